import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { snapshotsOf } from "../api/queries";
import type { SnapshotSummary } from "../api/types";
import { TRIGGERS } from "../lib/describe";
import { shortId, words } from "../lib/format";
import { Ago } from "./bits";
import { Empty, Shown } from "./states";

export function SnapshotList({ id }: { id: string }) {
  const query = useQuery(snapshotsOf(id));
  return (
    <Shown query={query} what="snapshots">
      {({ snapshots }) =>
        snapshots.length === 0 ? (
          <Empty title="No snapshots yet.">
            <p>A snapshot is taken at every pause.</p>
          </Empty>
        ) : (
          <Snapshots id={id} snapshots={snapshots} />
        )
      }
    </Shown>
  );
}

function Snapshots({ id, snapshots }: { id: string; snapshots: readonly SnapshotSummary[] }) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [, go] = useLocation();
  const toggle = (one: string) =>
    setChosen((now) => (now.includes(one) ? now.filter((other) => other !== one) : [...now, one].slice(-2)));
  const compare = () => {
    const [before, after] = snapshots.filter((one) => chosen.includes(one.id)).map((one) => one.id);
    if (before && after) go(`/workflows/${id}/diff/${before}/${after}`);
  };
  return (
    <div className="stack">
      <div className="row spread wrap">
        <p className="muted">Choose two to compare them.</p>
        <button type="button" disabled={chosen.length !== 2} onClick={compare}>
          Compare
        </button>
      </div>
      <table className="table cards framed">
        <thead>
          <tr>
            <th scope="col">
              <span className="hidden">Compare</span>
            </th>
            <th scope="col">Snapshot</th>
            <th scope="col">Why</th>
            <th scope="col" className="number">
              Done
            </th>
            <th scope="col" className="number">
              Left
            </th>
            <th scope="col">Made</th>
          </tr>
        </thead>
        <tbody>
          {[...snapshots].reverse().map((one) => (
            <tr key={one.id}>
              <td className="check-cell">
                <input
                  type="checkbox"
                  aria-label={`Compare the snapshot of session ${one.session_number}`}
                  checked={chosen.includes(one.id)}
                  onChange={() => toggle(one.id)}
                />
              </td>
              <td className="title">
                <Link href={`/workflows/${id}/snapshots/${one.id}`}>Session {one.session_number}</Link>
                <span className="muted">{shortId(one.id)}</span>
              </td>
              <td data-label="Why">
                {words(TRIGGERS[one.trigger] ?? one.trigger)}
                {one.pause_reason && <span className="muted clamped"> {one.pause_reason}</span>}
              </td>
              <td data-label="Done" className="number">
                {one.tasks_completed}
              </td>
              <td data-label="Left" className="number">
                {one.tasks_remaining}
              </td>
              <td data-label="Made" className="nowrap">
                <Ago at={one.created_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
