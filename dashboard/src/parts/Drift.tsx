import type { ContextResponse } from "../api/types";

const SAID = {
  changed: "The folder has changed since the pause.",
  cannot_tell: "Cannot tell whether the folder has changed since the pause.",
} as const;

/** What a resume found, for whoever saw an older answer or none: nothing where the folder is unchanged. */
export function driftFound(answer: Pick<ContextResponse, "drift" | "drift_state">): string | null {
  if (answer.drift_state === "same") return null;
  const found = [SAID[answer.drift_state], ...answer.drift].join(" ");
  return `${found} The session is told.`;
}

export function Drift({ answer }: { answer: Pick<ContextResponse, "drift" | "drift_state"> }) {
  if (answer.drift_state === "same") {
    return (
      <div className="notice good">
        <p>The folder is unchanged since the pause.</p>
        <p className="muted">Files that git ignores were not compared.</p>
      </div>
    );
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
