import { useMemo, useState } from "react";
import { Link } from "wouter";
import type { WorkflowEvent } from "../api/types";
import { TRIGGERS } from "../lib/describe";
import { counted, duration, moment, neutral } from "../lib/format";
import { type SessionSpan, sessionsOf, type TaskRun } from "../lib/timeline";
import { useParam } from "../lib/use-param";
import { Status, useNow } from "./bits";
import { SessionReplay } from "./SessionReplay";
import { Loading } from "./states";

const MOST_BARS = 400;
const MOST_LANES = 12;

export function SessionTimeline({
  id,
  events,
  isRunning,
}: {
  id: string;
  events: readonly WorkflowEvent[];
  isRunning: boolean;
}) {
  const sessions = useMemo(() => sessionsOf(events), [events]);
  const now = useNow();
  const [wanted, setWanted] = useParam("at");
  const named = Date.parse(wanted);
  const meant = sessions.findLast((session) => session.from <= named);
  const close = () => setWanted("");
  if (sessions.length === 0) return <Loading what="sessions" />;
  return (
    <ol className="sessions">
      {[...sessions].reverse().map((session, index) => (
        <Session
          key={`${session.number}-${session.from}`}
          id={id}
          session={session}
          events={events}
          named={session === meant ? named : null}
          onClose={close}
          end={
            session.to ??
            (isRunning && index === 0 ? Math.max(now, lastMoment(session)) : lastMoment(session))
          }
        />
      ))}
    </ol>
  );
}

function lastMoment(session: SessionSpan): number {
  return session.runs.reduce((latest, run) => Math.max(latest, run.to ?? run.from), session.from);
}

interface Properties {
  id: string;
  session: SessionSpan;
  end: number;
  events: readonly WorkflowEvent[];
  /** A moment of it, as a link to it names it; what was found after the pause may bear a later time. */
  named: number | null;
  onClose: () => void;
}

function Session({ id, session, end, events, named, onClose }: Properties) {
  const [chosen, choose] = useState<number | null>(null);
  const wanted = chosen ?? named;
  const at = wanted === null ? null : Math.min(wanted, end);
  const isOpen = at !== null;
  const toggle = () => {
    choose(isOpen ? null : session.from);
    if (isOpen) onClose();
  };
  const finished = session.runs.filter((run) => run.outcome === "completed").length;
  const failed = session.runs.filter((run) => run.outcome === "failed").length;
  return (
    <li className="card session">
      <div className="row spread wrap">
        <h2>Session {session.number}</h2>
        <Status status={session.ending ?? "in_progress"} />
      </div>
      <p className="muted">
        {moment(new Date(session.from).toISOString())}
        {end > session.from && ` · ${duration((end - session.from) / 1000)}`} · {counted(finished, "task")}{" "}
        completed{failed > 0 && `, ${failed} failed`}
        {session.takeovers > 0 && `, taken over ${counted(session.takeovers, "time")}`}
      </p>
      <Lanes runs={session.runs} from={session.from} to={end} at={at} />
      <div>
        <button type="button" className="small" aria-expanded={isOpen} onClick={toggle}>
          {isOpen ? "Close the replay" : "Replay"}
        </button>
      </div>
      {isOpen && (
        <SessionReplay id={id} session={session} end={end} events={events} at={at} onMove={choose} />
      )}
      {session.ending === "paused" && (
        <p>
          Paused because {TRIGGERS[session.trigger ?? ""] ?? session.trigger}
          {session.reason && <>: {neutral(session.reason)}</>}{" "}
          {session.snapshotId && (
            <Link href={`/workflows/${id}/snapshots/${session.snapshotId}`}>Snapshot</Link>
          )}
        </p>
      )}
      {session.ending && session.ending !== "paused" && session.reason && (
        <p>
          {neutral(session.reason)}{" "}
          {session.snapshotId && (
            <Link href={`/workflows/${id}/snapshots/${session.snapshotId}`}>Snapshot</Link>
          )}
        </p>
      )}
    </li>
  );
}

/** Tasks as bars over time, each in the first lane that is free. */
function Lanes({
  runs,
  from,
  to,
  at,
}: {
  runs: readonly TaskRun[];
  from: number;
  to: number;
  at: number | null;
}) {
  const shown = runs.slice(-MOST_BARS);
  if (shown.length === 0) return <p className="muted">No task was started.</p>;
  const span = Math.max(1, to - from);
  const lanes: number[] = [];
  const bars = shown.map((run) => {
    const end = run.to ?? to;
    let lane = lanes.findIndex((free) => free <= run.from);
    if (lane < 0) lane = Math.min(lanes.length, MOST_LANES - 1);
    lanes[lane] = end;
    return { run, lane, left: (100 * (run.from - from)) / span, width: (100 * (end - run.from)) / span };
  });
  return (
    <div
      className="lanes"
      role="img"
      aria-label={`${counted(runs.length, "task run")} over ${duration(span / 1000)}`}
      style={{ height: `${lanes.length * 22}px` }}
    >
      {bars.map(({ run, lane, left, width }) => (
        <span
          key={`${run.taskId}-${run.attempt}-${run.from}`}
          className={`lane-bar lane-${run.outcome ?? "in_progress"}`}
          title={`${neutral(run.taskId)}: ${run.outcome ?? "running"}, ${duration(((run.to ?? to) - run.from) / 1000)}`}
          style={{ top: `${lane * 22}px`, left: `${left}%`, width: `max(3px, calc(${width}% - 1px))` }}
        >
          {width > 4 && neutral(run.taskId)}
        </span>
      ))}
      {at !== null && <span className="lane-moment" style={{ left: `${(100 * (at - from)) / span}%` }} />}
    </div>
  );
}
