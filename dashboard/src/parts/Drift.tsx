import type { ContextResponse } from "../api/types";

const SAID = {
  changed: "The folder is not as it was at the pause.",
  cannot_tell: "Nobody can tell whether the folder is as it was at the pause.",
} as const;

export function Drift({ answer }: { answer: Pick<ContextResponse, "drift" | "drift_state"> }) {
  if (answer.drift_state === "same") {
    return <p className="notice good">The folder is as it was at the pause.</p>;
  }
  return (
    <section className="notice warn" aria-label="Drift">
      <p>
        <strong>{SAID[answer.drift_state]}</strong> The next session is told:
      </p>
      <ul>
        {answer.drift.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
    </section>
  );
}
