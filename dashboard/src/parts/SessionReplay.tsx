/** A session to go through again: a moment on its time line, how things stood then, and what was decided and why. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { Link } from "wouter";
import { snapshot } from "../api/queries";
import type { WorkflowEvent } from "../api/types";
import { duration, neutral, percent, timeOfDay } from "../lib/format";
import { taskPath } from "../lib/paths";
import { type Mark, markAt, marksOf, type Standing, standingAt } from "../lib/replay";
import type { SessionSpan } from "../lib/timeline";
import { EvidenceList } from "./EvidenceList";

/** The whole of it, however long it was. */
const PLAYS_SECONDS = 20;
const FRAME = 100;
const MOST_MARKS = 300;

interface Properties {
  id: string;
  session: SessionSpan;
  end: number;
  events: readonly WorkflowEvent[];
  at: number;
  onMove: (at: number) => void;
}

export function SessionReplay({ id, session, end, events, at, onMove }: Properties) {
  const [isPlaying, setPlaying] = useState(false);
  const found = useQuery({
    ...snapshot(id, session.snapshotId ?? ""),
    enabled: session.snapshotId !== null,
    retry: false, // it may have been deleted: the events tell the rest
  });
  const marks = useMemo(() => marksOf(session, end, events, found.data), [session, end, events, found.data]);
  const standing = useMemo(() => standingAt(session, events, at), [session, events, at]);
  const span = Math.max(1, end - session.from);
  useEffect(() => {
    if (!isPlaying) return;
    const timer = window.setTimeout(() => {
      const next = Math.min(end, at + (span * FRAME) / (PLAYS_SECONDS * 1000));
      onMove(next);
      if (next >= end) setPlaying(false);
    }, FRAME);
    return () => window.clearTimeout(timer);
  }, [isPlaying, at, end, span, onMove]);
  const shown = markAt(marks, at);
  const play = () => {
    if (!isPlaying && at >= end) onMove(session.from);
    setPlaying(!isPlaying);
  };
  const step = (to: Mark | undefined) => {
    setPlaying(false);
    if (to) onMove(to.at);
  };
  return (
    <section className="replay stack" aria-label={`Replay of session ${session.number}`}>
      <div className="row wrap">
        <button type="button" className="small" onClick={play}>
          {isPlaying ? "Stop" : "Play"}
        </button>
        <button
          type="button"
          className="small"
          disabled={!marks.some((mark) => mark.at < at)}
          onClick={() => step(marks.findLast((mark) => mark.at < at))}
        >
          Previous
        </button>
        <button
          type="button"
          className="small"
          disabled={!marks.some((mark) => mark.at > at)}
          onClick={() => step(marks.find((mark) => mark.at > at))}
        >
          Next
        </button>
        <input
          type="range"
          className="grow"
          min={session.from}
          max={end}
          step={Math.max(1, Math.round(span / 1000))}
          value={at}
          aria-label="Moment"
          aria-valuetext={`${timeOfDay(new Date(at).toISOString())}, ${told(standing)}`}
          onChange={(event) => {
            setPlaying(false);
            onMove(Number(event.target.value));
          }}
        />
      </div>
      <Moment id={id} at={at} from={session.from} standing={standing} />
      {marks.length === 0 ? (
        <p className="muted">Nothing but the tasks above is recorded of this session.</p>
      ) : (
        <ol className="marks" aria-label="Decisions and what else happened">
          {marks.slice(-MOST_MARKS).map((mark) => (
            <MarkItem
              key={mark.key}
              id={id}
              mark={mark}
              isPast={mark.at <= at}
              isShown={mark === marks[shown]}
              onChoose={() => step(mark)}
            />
          ))}
        </ol>
      )}
    </section>
  );
}

function told({ running, completed, failed, context }: Standing): string {
  return [
    running.length > 0 ? `running ${running.map(neutral).join(", ")}` : "nothing running",
    `${completed} completed`,
    failed > 0 && `${failed} failed`,
    context !== null && `context ${percent(context)} full`,
  ]
    .filter(Boolean)
    .join(", ");
}

function Moment({ id, at, from, standing }: { id: string; at: number; from: number; standing: Standing }) {
  const moment = new Date(at).toISOString();
  return (
    <p className="moment">
      <time dateTime={moment}>
        <strong>{timeOfDay(moment)}</strong>
      </time>{" "}
      <span className="muted">{duration((at - from) / 1000)} in:</span>{" "}
      {standing.running.length === 0 && "nothing running"}
      {standing.running.map((taskId, index) => (
        <span key={taskId}>
          {index === 0 ? "running " : ", "}
          <Link href={taskPath(id, taskId)}>{neutral(taskId)}</Link>
        </span>
      ))}
      , {standing.completed} completed
      {standing.failed > 0 && `, ${standing.failed} failed`}
      {standing.context !== null && `, context ${percent(standing.context)} full`}
    </p>
  );
}

interface MarkProperties {
  id: string;
  mark: Mark;
  isPast: boolean;
  isShown: boolean;
  onChoose: () => void;
}

function MarkItem({ id, mark, isPast, isShown, onChoose }: MarkProperties) {
  const at = new Date(mark.at).toISOString();
  return (
    <li className={`mark tone-${mark.tone} ${isPast ? "" : "mark-to-come"}`} aria-current={isShown}>
      <button type="button" className="quiet mark-title" onClick={onChoose}>
        <time dateTime={at}>{timeOfDay(at)}</time>
        <span className="event-title">{mark.title}</span>
      </button>
      {isShown && <MarkDetail id={id} mark={mark} />}
    </li>
  );
}

function MarkDetail({ id, mark }: { id: string; mark: Mark }) {
  const { decision, error, taskId } = mark;
  const evidence = decision?.evidence ?? error?.evidence ?? [];
  return (
    <div className="mark-detail stack">
      {mark.detail && <p>{mark.detail}</p>}
      {(decision?.alternatives_considered?.length ?? 0) > 0 && (
        <p className="muted">Instead of: {neutral(decision?.alternatives_considered?.join("; ") ?? "")}</p>
      )}
      {error?.resolution_notes && <p className="muted">{neutral(error.resolution_notes)}</p>}
      {evidence.length > 0 && <EvidenceList id={id} evidence={evidence} />}
      {(decision || error) && evidence.length === 0 && (
        <p className="muted">Recorded without messages that it rests on.</p>
      )}
      {taskId && (
        <p>
          <Link href={taskPath(id, taskId)}>Task {neutral(taskId)}: what it printed, changed and said</Link>
        </p>
      )}
    </div>
  );
}
