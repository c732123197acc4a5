import { useMemo } from "react";
import { Link } from "wouter";
import type { Task } from "../api/types";
import { countByStatus, type TaskStatus } from "../graph/tasks";
import { count, neutral, words } from "../lib/format";
import { plain } from "../lib/output";
import { taskPath } from "../lib/paths";
import { useParam } from "../lib/use-param";
import { Status } from "./bits";
import { Empty } from "./states";
import { VirtualList } from "./VirtualList";

const ORDER: readonly TaskStatus[] = ["in_progress", "failed", "blocked", "pending", "skipped", "completed"];

/** `id`: of the workflow, where its tasks have pages. */
export function TaskTable({ id, tasks }: { id?: string; tasks: readonly Task[] }) {
  const [search, setSearch] = useParam("q");
  const [asked, setStatus] = useParam("status");
  const status = ORDER.find((one) => one === asked) ?? null;
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
              onClick={() => setStatus(status === one ? "" : one)}
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
          render={(task) => <TaskLine id={id} task={task} />}
        />
      )}
    </div>
  );
}

function TaskLine({ id, task }: { id: string | undefined; task: Task }) {
  const needs = task.depends_on ?? [];
  return (
    <div className="task" data-task={task.id}>
      <Status status={task.status ?? "pending"} />
      <span className="task-name">
        {id ? (
          <Link href={taskPath(id, task.id)}>{neutral(task.id)}</Link>
        ) : (
          <strong>{neutral(task.id)}</strong>
        )}{" "}
        {task.description !== task.id && neutral(task.description)}
        <span className="muted">
          {[
            needs.length > 0 &&
              `after ${neutral(needs.slice(0, 4).join(", "))}${needs.length > 4 ? ` and ${needs.length - 4} more` : ""}`,
            task.approval && "needs approval",
            (task.attempts ?? 0) > 1 && `attempt ${task.attempts}`,
            task.result && shortened(task.result),
          ]
            .filter(Boolean)
            .join(" · ")}
        </span>
      </span>
    </div>
  );
}

/** The end of what it printed, which its page shows whole. */
function shortened(result: string): string {
  const text = neutral(plain(result)).replace(/\s+/g, " ").trim();
  return text.length <= 160 ? text : `… ${text.slice(-160)}`;
}
