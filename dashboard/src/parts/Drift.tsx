export function Drift({ drift }: { drift: readonly string[] }) {
  if (drift.length === 0) return <p className="notice good">The folder is as it was at the pause.</p>;
  return (
    <section className="notice warn" aria-label="Drift">
      <p>
        <strong>The folder is not as it was at the pause.</strong> The next session is told:
      </p>
      <ul>
        {drift.map((one) => (
          <li key={one}>{one}</li>
        ))}
      </ul>
    </section>
  );
}
