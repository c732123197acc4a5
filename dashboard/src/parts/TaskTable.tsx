import { useMemo, useState } from "react";
import type { Task } from "../api/types";
import { countByStatus, type TaskStatus } from "../graph/tasks";
import { count, neutral, words } from "../lib/format";
import { Status } from "./bits";
import { Empty } from "./states";
import { VirtualList } from "./VirtualList";

const ORDER: readonly TaskStatus[] = ["in_progress", "failed", "blocked", "pending", "skipped", "completed"];

export function TaskTable({ tasks }: { tasks: readonly Task[] }) {
  const [search, setSearch] = useState("");
  const [status, setStatus] = useState<TaskStatus | null>(null);
  const counts = useMemo(() => countByStatus(tasks), [tasks]);
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    return tasks.filter(
      (task) =>
        (status === null || task.status === status) &&
        (!wanted || `${task.id} ${task.description}`.toLowerCase().includes(wanted)),
    );
  }, [tasks, search, status]);
  if (tasks.length === 0) return <Empty title="This workflow has no tasks." />;
  return (
    <div className="stack">
      <div className="row wrap">
        <input
          type="search"
          className="grow"
          value={search}
          placeholder="Search tasks"
          aria-label="Search tasks"
          onChange={(event) => setSearch(event.target.value)}
        />
        <fieldset className="chips">
          <legend className="hidden">Status</legend>
          {ORDER.filter((one) => counts[one] > 0).map((one) => (
            <button
              key={one}
              type="button"
              className={`chip chip-${one}`}
              aria-pressed={status === one}
              onClick={() => setStatus(status === one ? null : one)}
            >
              {words(one)} <span className="count">{count(counts[one])}</span>
            </button>
          ))}
        </fieldset>
      </div>
      {found.length === 0 ? (
        <Empty title="No matching tasks." />
      ) : (
        <VirtualList
          items={found}
          rowHeight={52}
          label="Tasks"
          keyOf={(task) => task.id}
          render={(task) => <TaskLine task={task} />}
        />
      )}
    </div>
  );
}

function TaskLine({ task }: { task: Task }) {
  const needs = task.depends_on ?? [];
  return (
    <div className="task" data-task={task.id}>
      <Status status={task.status ?? "pending"} />
      <span className="task-name">
        <strong>{neutral(task.id)}</strong> {task.description !== task.id && neutral(task.description)}
        <span className="muted">
          {[
            needs.length > 0 &&
              `after ${neutral(needs.slice(0, 4).join(", "))}${needs.length > 4 ? ` and ${needs.length - 4} more` : ""}`,
            task.approval && "needs approval",
            (task.attempts ?? 0) > 1 && `attempt ${task.attempts}`,
            task.result && neutral(task.result),
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </span>
    </div>
  );
}
