/** A workflow's life as sessions, and what was worked on in each, out of its events. */
import { known, type WorkflowEvent } from "../api/types";

export interface TaskRun {
  readonly taskId: string;
  readonly attempt: number;
  readonly from: number;
  to: number | null;
  outcome: string | null;
}

export interface SessionSpan {
  readonly number: number;
  readonly from: number;
  to: number | null;
  ending: string | null;
  trigger: string | null;
  reason: string | null;
  snapshotId: string | null;
  takeovers: number;
  readonly runs: TaskRun[];
}

const ENDED = new Set(["completed", "failed", "cancelled"]);

export function sessionsOf(events: readonly WorkflowEvent[]): SessionSpan[] {
  const sessions: SessionSpan[] = [];
  const open = new Map<string, TaskRun>();
  const current = (at: number): SessionSpan => {
    const last = sessions.at(-1);
    if (last) return last;
    const made = span(1, at); // the beginning is not kept any more
    sessions.push(made);
    return made;
  };
  for (const event of events) {
    const at = Date.parse(event.at);
    const entry = known(event);
    switch (entry.type) {
      case "workflow_created":
        sessions.push(span(1, at));
        break;
      case "workflow_resumed":
        sessions.push(span(entry.session_number, at));
        break;
      case "session_taken":
        if (entry.took_over_from) current(at).takeovers += 1;
        break;
      case "task_started": {
        const run = { taskId: entry.task_id, attempt: entry.attempt ?? 1, from: at, to: null, outcome: null };
        const cutOff = open.get(entry.task_id);
        if (cutOff) close(cutOff, at, "interrupted");
        open.set(entry.task_id, run);
        current(at).runs.push(run);
        break;
      }
      case "task_finished": {
        const run = open.get(entry.task_id);
        if (run) close(run, at, entry.outcome);
        open.delete(entry.task_id);
        break;
      }
      case "workflow_paused":
        Object.assign(current(at), {
          to: at,
          ending: "paused",
          trigger: entry.trigger,
          reason: entry.reason ?? null,
          snapshotId: entry.snapshot_id,
        });
        for (const run of open.values()) close(run, at, "interrupted");
        open.clear();
        break;
      case "workflow_status_changed":
        if (ENDED.has(entry.status)) {
          Object.assign(current(at), { to: at, ending: entry.status, reason: entry.reason ?? null });
          for (const run of open.values()) close(run, at, "interrupted");
          open.clear();
        }
        break;
    }
  }
  return sessions;
}

function span(number: number, from: number): SessionSpan {
  return {
    number,
    from,
    to: null,
    ending: null,
    trigger: null,
    reason: null,
    snapshotId: null,
    takeovers: 0,
    runs: [],
  };
}

function close(run: TaskRun, at: number, outcome: string): void {
  run.to = at;
  run.outcome = outcome;
}
