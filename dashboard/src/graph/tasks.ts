/** Tasks as they stand: as loaded, and what events said since. */
import { known, type Task, type WorkflowEvent } from "../api/types";

export type TaskStatus = NonNullable<Task["status"]>;

type Change = Partial<Task>;

export function changeBy(event: WorkflowEvent): { taskId: string; change: Change } | null {
  const entry = known(event);
  switch (entry.type) {
    case "task_started":
      return {
        taskId: entry.task_id,
        change: { status: "in_progress", result: null, attempts: entry.attempt ?? 1 },
      };
    case "task_finished":
      return {
        taskId: entry.task_id,
        // An interrupted task did not happen: it is pending again.
        change: {
          status: entry.outcome === "interrupted" || entry.retry_at ? "pending" : entry.outcome,
          result: entry.result ?? null,
        },
      };
    case "task_approved":
      return { taskId: entry.task_id, change: { approval: false } };
    case "task_skipped":
      return { taskId: entry.task_id, change: { status: "skipped", result: entry.reason ?? null } };
    default:
      return null;
  }
}

/** Unchanged tasks stay the same objects, so that only the changed ones are drawn again. */
export function tasksNow(
  tasks: readonly Task[],
  seq: number,
  events: readonly WorkflowEvent[],
): readonly Task[] {
  const changes = new Map<string, Change>();
  const start = events.findLastIndex((event) => event.seq <= seq) + 1;
  for (const event of events.slice(start)) {
    const found = changeBy(event);
    if (found) changes.set(found.taskId, { ...changes.get(found.taskId), ...found.change });
  }
  if (changes.size === 0) return tasks;
  return tasks.map((task) => {
    const change = changes.get(task.id);
    return change ? { ...task, ...change } : task;
  });
}

export function countByStatus(tasks: readonly Task[]): Record<TaskStatus, number> {
  const counts = { pending: 0, in_progress: 0, blocked: 0, completed: 0, failed: 0, skipped: 0 };
  for (const task of tasks) counts[task.status ?? "pending"] += 1;
  return counts;
}
