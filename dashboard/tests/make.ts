/** Short ways to say what happened, for tests. */
import type { WorkflowEvent } from "../src/api/types";

export const START = Date.parse("2026-01-06T12:00:00Z");

export function event(
  seq: number,
  entry: { type: string; [more: string]: unknown },
  seconds = seq,
): WorkflowEvent {
  return {
    seq,
    workflow_id: "wf",
    at: new Date(START + seconds * 1000).toISOString(),
    entry: entry as WorkflowEvent["entry"],
  };
}

export const started = (seq: number, task_id: string, attempt = 1) =>
  event(seq, { type: "task_started", task_id, attempt });

export const finished = (seq: number, task_id: string, outcome = "completed", result: string | null = null) =>
  event(seq, { type: "task_finished", task_id, outcome, result, attempt: 1 });

/** Random enough, and the same in every run with the same seed. */
export function randomly(seed: number): (below: number) => number {
  let state = seed >>> 0 || 1;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
