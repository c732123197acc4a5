/** A session moment by moment: what mattered in it and when, and how things stood at any time. */
import { type Decision, type ErrorRecord, known, type WorkflowEvent } from "../api/types";
import { describe, type Line } from "./describe";
import type { SessionSpan } from "./timeline";

export interface Mark extends Line {
  readonly key: string;
  readonly at: number;
  readonly taskId: string | null;
  readonly decision?: Decision;
  readonly error?: ErrorRecord;
}

export interface Standing {
  readonly running: readonly string[];
  readonly completed: number;
  readonly failed: number;
  /** Share of the context window, as reported last before it; null before the first report. */
  readonly context: number | null;
}

/** Worth stopping at; that a task began or ended well is seen in the lanes. */
const TOLD = new Set([
  "decision_recorded",
  "error_recorded",
  "feedback_recorded",
  "tests_run",
  "constraint_pinned",
  "work_committed",
  "warned",
  "session_taken",
  "task_approved",
  "task_skipped",
  "pause_requested",
  "workflow_paused",
]);

interface Found {
  readonly decisions?: readonly Decision[] | null;
  readonly errors?: readonly ErrorRecord[] | null;
}

/** What the events tell, and what was found in the agent's record only after the pause. */
export function marksOf(
  session: SessionSpan,
  end: number,
  events: readonly WorkflowEvent[],
  found: Found | undefined,
): Mark[] {
  const marks = events.filter((event) => within(session, end, Date.parse(event.at))).flatMap(markOf);
  const told = new Set(events.flatMap(idsOf));
  const added = (id: string, timestamp: string) =>
    !told.has(id) && Date.parse(timestamp) >= session.from - SLACK;
  for (const decision of found?.decisions ?? []) {
    if (added(decision.id, decision.timestamp)) marks.push(decided(decision, session, end));
  }
  for (const error of found?.errors ?? []) {
    if (added(error.id, error.timestamp)) marks.push(failed(error, session, end));
  }
  return marks.sort((one, other) => one.at - other.at);
}

/** Agents' clocks count whole seconds here and there. */
const SLACK = 1_000;

function within(session: SessionSpan, end: number, at: number): boolean {
  return at >= session.from && at <= end;
}

function idsOf(event: WorkflowEvent): string[] {
  const entry = known(event);
  if (entry.type === "decision_recorded") return [entry.decision.id];
  return entry.type === "error_recorded" ? [entry.error.id] : [];
}

function markOf(event: WorkflowEvent): Mark[] {
  const entry = known(event);
  const isFailure = entry.type === "task_finished" && entry.outcome !== "completed";
  if (!TOLD.has(entry.type) && !isFailure) return [];
  return [
    {
      ...describe(event),
      key: `event-${event.seq}`,
      at: Date.parse(event.at),
      taskId: taskOf(entry),
      ...(entry.type === "decision_recorded" ? { decision: entry.decision } : {}),
      ...(entry.type === "error_recorded" ? { error: entry.error } : {}),
    },
  ];
}

function taskOf(entry: ReturnType<typeof known>): string | null {
  if (entry.type === "decision_recorded") return entry.decision.task_id ?? null;
  if (entry.type === "error_recorded") return entry.error.task_id ?? null;
  return "task_id" in entry ? (entry.task_id ?? null) : null;
}

function decided(decision: Decision, session: SessionSpan, end: number): Mark {
  const event = asEvent({ type: "decision_recorded", decision }, decision.timestamp);
  return { ...(markOf(event)[0] as Mark), key: `decision-${decision.id}`, at: inside(event, session, end) };
}

function failed(error: ErrorRecord, session: SessionSpan, end: number): Mark {
  const event = asEvent({ type: "error_recorded", error }, error.timestamp);
  return { ...(markOf(event)[0] as Mark), key: `error-${error.id}`, at: inside(event, session, end) };
}

function asEvent(entry: object, at: string): WorkflowEvent {
  return { seq: 0, workflow_id: "", at, entry: entry as WorkflowEvent["entry"] };
}

/** What was found after the pause bears the time of that where its message has none. */
function inside(event: WorkflowEvent, session: SessionSpan, end: number): number {
  return Math.min(end, Math.max(session.from, Date.parse(event.at)));
}

export function standingAt(session: SessionSpan, events: readonly WorkflowEvent[], at: number): Standing {
  const begun = session.runs.filter((run) => run.from <= at);
  const ended = begun.filter((run) => run.to !== null && run.to <= at);
  let context: number | null = null;
  for (const event of events) {
    const moment = Date.parse(event.at);
    if (moment > at) break;
    const entry = known(event);
    if (moment >= session.from && entry.type === "usage_reported") {
      context = entry.usage.context_utilization ?? context;
    }
  }
  return {
    running: begun.filter((run) => !ended.includes(run)).map((run) => run.taskId),
    completed: ended.filter((run) => run.outcome === "completed").length,
    failed: ended.filter((run) => run.outcome === "failed").length,
    context,
  };
}

/** The one that a moment shows: the last one before it. */
export function markAt(marks: readonly Mark[], at: number): number {
  return marks.findLastIndex((mark) => mark.at <= at);
}
