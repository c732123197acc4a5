import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { diffOf, snapshotsOf } from "../api/queries";
import type { SnapshotDiff, SnapshotSummary } from "../api/types";
import { count, moment, percent, words } from "../lib/format";
import { useTitle } from "../lib/use-title";
import { Section, Status, Wide } from "../parts/bits";
import { Crumbs } from "../parts/Crumbs";
import { Empty, Shown } from "../parts/states";
import { DecisionItem, ErrorItem } from "./SnapshotPage";
import "../styles/details.css";

export default function DiffPage({ id, before, after }: { id: string; before: string; after: string }) {
  useTitle("Compare snapshots");
  const query = useQuery(diffOf(before, after));
  const all = useQuery(snapshotsOf(id)).data?.snapshots ?? [];
  const [, go] = useLocation();
  return (
    <div className="stack">
      <Crumbs id={id} parts={[["Snapshots", `/workflows/${id}/snapshots`]]} />
      <h1>Compare two snapshots</h1>
      <div className="pair">
        <Side
          name="Before"
          id={id}
          value={before}
          all={all}
          onChange={(next) => go(`/workflows/${id}/diff/${next}/${after}`, { replace: true })}
        />
        <Side
          name="After"
          id={id}
          value={after}
          all={all}
          onChange={(next) => go(`/workflows/${id}/diff/${before}/${next}`, { replace: true })}
        />
      </div>
      <Shown query={query} what="difference">
        {(diff) => <Difference diff={diff} />}
      </Shown>
    </div>
  );
}

function Side({
  name,
  id,
  value,
  all,
  onChange,
}: {
  name: string;
  id: string;
  value: string;
  all: readonly SnapshotSummary[];
  onChange: (id: string) => void;
}) {
  return (
    <div className="card">
      <label>
        <span>{name}</span>
        <select value={value} onChange={(event) => onChange(event.target.value)}>
          {!all.some((one) => one.id === value) && <option value={value}>{value}</option>}
          {all.map((one) => (
            <option key={one.id} value={one.id}>
              session {one.session_number}, {moment(one.created_at)}
            </option>
          ))}
        </select>
      </label>
      <Link href={`/workflows/${id}/snapshots/${value}`}>Open</Link>
    </div>
  );
}

function Difference({ diff }: { diff: SnapshotDiff }) {
  const files = diff.files_added.length + diff.files_removed.length + diff.files_changed.length;
  const findings = diff.decisions_added.length + diff.errors_added.length + diff.errors_resolved.length;
  if (diff.facts.length + diff.tasks.length + files + findings === 0) {
    return <Empty title="The snapshots are identical." />;
  }
  return (
    <>
      {diff.facts.length > 0 && (
        <Section title="Facts" count={diff.facts.length}>
          <SideBySide
            rows={diff.facts.map((fact) => [
              words(fact.what),
              shown(fact.what, fact.before),
              shown(fact.what, fact.after),
            ])}
          />
        </Section>
      )}
      {diff.tasks.length > 0 && (
        <Section title="Tasks" count={diff.tasks.length}>
          <SideBySide rows={diff.tasks.map((task) => [task.id, status(task.before), status(task.after)])} />
        </Section>
      )}
      {files > 0 && (
        <Section title="Files" count={files}>
          <SideBySide
            rows={[
              ...diff.files_added.map((path) => fileRow(path, "–", "added")),
              ...diff.files_changed.map((path) => fileRow(path, "one content", "another")),
              ...diff.files_removed.map((path) => fileRow(path, "there", "gone")),
            ]}
          />
        </Section>
      )}
      {diff.decisions_added.length > 0 && (
        <Section title="New decisions" count={diff.decisions_added.length}>
          <ul className="findings">
            {diff.decisions_added.map((one) => (
              <DecisionItem key={one.id} one={one} />
            ))}
          </ul>
        </Section>
      )}
      {diff.errors_added.length > 0 && (
        <Section title="New errors" count={diff.errors_added.length}>
          <ul className="findings">
            {diff.errors_added.map((one) => (
              <ErrorItem key={one.id} one={one} />
            ))}
          </ul>
        </Section>
      )}
      {diff.errors_resolved.length > 0 && (
        <Section title="Errors resolved" count={diff.errors_resolved.length}>
          <ul className="findings">
            {diff.errors_resolved.map((one) => (
              <ErrorItem key={one.id} one={one} />
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

function SideBySide({ rows }: { rows: readonly (readonly [string, ReactNode, ReactNode])[] }) {
  return (
    <Wide label="Before and after">
      <table className="table diff">
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([what, before, after]) => (
            <tr key={what}>
              <th scope="row">{what}</th>
              <td className="before">{before}</td>
              <td className="after">{after}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Wide>
  );
}

const fileRow = (path: string, before: string, after: string) => [path, before, after] as const;

function status(value: string | null): ReactNode {
  return value ? <Status status={value} /> : "–";
}

function shown(what: string, value: unknown): ReactNode {
  if (value === null || value === undefined || value === "") return "–";
  if (Array.isArray(value))
    return value.length ? value.map((one) => <div key={String(one)}>{String(one)}</div>) : "none";
  if (what === "context used" && typeof value === "number") return percent(value);
  return typeof value === "number" ? count(value) : String(value);
}
