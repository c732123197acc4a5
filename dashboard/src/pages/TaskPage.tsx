/** One task: what it prints while it runs, its attempts, what it changed, and what can be done about it. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { conversationOf, progressOf, taskOf } from "../api/queries";
import type { TaskAttempt, TaskDetail, WorkflowProgress } from "../api/types";
import { count, dollars, duration, moment, neutral, percent } from "../lib/format";
import { plain } from "../lib/output";
import { taskPath } from "../lib/paths";
import { useTitle } from "../lib/use-title";
import { useEvents, useNews } from "../live/use-events";
import { ForkButton, RetryButton, SkipDialog } from "../parts/Actions";
import { Approval } from "../parts/ApprovalCard";
import { Ago, Facts, Foreign, ForeignText, Section, Status, useNow } from "../parts/bits";
import { ConversationView } from "../parts/ConversationView";
import { Crumbs } from "../parts/Crumbs";
import { FileChanges } from "../parts/FileChanges";
import { LiveOutput } from "../parts/LiveOutput";
import { Shown } from "../parts/states";
import "../styles/details.css";

export default function TaskPage({ id, taskId }: { id: string; taskId: string }) {
  const detail = useQuery(taskOf(id, taskId));
  const progress = useQuery(progressOf(id));
  const client = useQueryClient();
  useNews(useEvents(id, detail.data?.seq ?? null), (news, isGap) => {
    const isAbout = news.some(({ entry }) => !("task_id" in entry) || entry.task_id === taskId);
    if (isAbout || isGap) void client.invalidateQueries({ queryKey: taskOf(id, taskId).queryKey });
    if (news.length > 0 || isGap) void client.invalidateQueries({ queryKey: progressOf(id).queryKey });
  });
  const title = progress.data?.workflow.issue.title;
  useTitle(`${taskId} · ${title ?? "Task"}`);
  return (
    <div className="stack">
      <Crumbs id={id} parts={[["Tasks", `/workflows/${id}/tasks`]]} />
      <Shown query={detail} what="task">
        {(data) => (
          <>
            <Head data={data} progress={progress.data} />
            <Approval id={id} taskId={data.is_waiting ? taskId : null} />
            <div className="with-side">
              <div className="stack">
                <LiveOutput
                  id={id}
                  taskId={taskId}
                  attempts={data.attempts}
                  isRunning={data.task.status === "in_progress"}
                />
                <Changes data={data} id={id} />
                {data.attempts.some((one) => one.conversations.length > 0) && <Talk data={data} id={id} />}
              </div>
              <div className="stack">
                <What data={data} id={id} />
                <Attempts attempts={data.attempts} />
              </div>
            </div>
          </>
        )}
      </Shown>
    </div>
  );
}

function Head({ data, progress }: { data: TaskDetail; progress: WorkflowProgress | undefined }) {
  const { task } = data;
  const last = data.attempts.at(-1);
  const now = useNow();
  const isRunning = task.status === "in_progress" && last !== undefined && !last.outcome;
  const told = [
    isRunning && `running for ${duration(Math.max(1, (now - Date.parse(last.started_at)) / 1000))}`,
    last?.seconds != null && `took ${duration(last.seconds)}`,
    last?.tokens != null && `${count(last.tokens)} tokens`,
    last?.cost_usd != null && dollars(last.cost_usd),
    data.attempts.length > 1 && `attempt ${last?.number}`,
  ].filter(Boolean);
  return (
    <>
      <div className="head">
        <div className="head-title">
          <h1 className="with-status" title={neutral(task.id)}>
            <span className="clamped">{neutral(task.id)}</span>{" "}
            <Status status={data.is_waiting ? "blocked" : (task.status ?? "pending")} />
          </h1>
          {task.description !== task.id && <Description text={neutral(task.description)} />}
          {told.length > 0 && <p className="muted">{told.join(" · ")}</p>}
        </div>
        {progress && <TaskActions data={data} progress={progress} />}
      </div>
      {task.result && task.status !== "completed" && (
        <p className={`notice ${task.status === "failed" ? "bad" : ""}`}>
          <Foreign text={plain(task.result)} />
        </p>
      )}
    </>
  );
}

const LONG = 280;

function Description({ text }: { text: string }) {
  const [isWhole, setWhole] = useState(text.length <= LONG);
  return (
    <div className="muted">
      <p className={isWhole ? "" : "clamped"}>{text}</p>
      {text.length > LONG && (
        <button
          type="button"
          className="small quiet"
          aria-expanded={isWhole}
          onClick={() => setWhole(!isWhole)}
        >
          {isWhole ? "Show less" : "Show all of it"}
        </button>
      )}
    </div>
  );
}

function TaskActions({ data: { task }, progress }: { data: TaskDetail; progress: WorkflowProgress }) {
  const { workflow } = progress;
  const [isSkipping, setSkipping] = useState(false);
  const rests = workflow.status === "paused" || workflow.status === "failed" || progress.abandoned;
  const canAct = rests && task.status !== "completed" && task.status !== "skipped";
  return (
    <div className="actions">
      <ForkButton id={workflow.id} taskId={task.id} />
      {canAct && task.status === "failed" && (
        <RetryButton
          id={workflow.id}
          taskId={task.id}
          className="primary"
          done={`Task ${neutral(task.id)} is retried.`}
        />
      )}
      {canAct && (
        <button type="button" onClick={() => setSkipping(true)}>
          Skip
        </button>
      )}
      {isSkipping && (
        <SkipDialog id={workflow.id} taskId={task.id} isLate={!canAct} onClose={() => setSkipping(false)} />
      )}
    </div>
  );
}

function What({ data, id }: { data: TaskDetail; id: string }) {
  const { task, driver } = data;
  const isShell = driver === "shell";
  const text = isShell ? task.run : task.prompt || task.run;
  return (
    <Section title="What it runs">
      <div className="stack">
        {text ? (
          <ForeignText title={isShell ? "Command" : "Prompt"} text={text} isCode={isShell} />
        ) : (
          <p className="muted">Its {isShell ? "command" : "prompt"} is not recorded.</p>
        )}
        {task.until && <ForeignText title="Repeated until this command succeeds" text={task.until} isCode />}
        <Facts
          facts={[
            ["Driver", neutral(driver)],
            ["Folder", <code key="folder">{neutral(data.worktree)}</code>],
            ["After", (task.depends_on?.length ?? 0) > 0 && <Others id={id} names={task.depends_on ?? []} />],
            ["Needed by", data.needed_by.length > 0 && <Others id={id} names={data.needed_by} />],
            ["Approval", task.approval ? "required before it starts" : null],
            ["Retries", task.retries],
            ["Time limit", task.timeout == null ? null : duration(task.timeout)],
            ["Test report", task.junit && <code>{neutral(task.junit)}</code>],
            ...Object.entries(task.outputs ?? {}).map(
              ([name, value]) => [`Output ${neutral(name)}`, <Foreign key={name} text={value} />] as const,
            ),
          ]}
        />
      </div>
    </Section>
  );
}

const MOST_NAMES = 12;

function Others({ id, names }: { id: string; names: readonly string[] }) {
  return (
    <>
      {names.slice(0, MOST_NAMES).map((name, index) => (
        <span key={name}>
          {index > 0 && ", "}
          <Link href={taskPath(id, name)}>{neutral(name)}</Link>
        </span>
      ))}
      {names.length > MOST_NAMES && ` and ${count(names.length - MOST_NAMES)} more`}
    </>
  );
}

function Attempts({ attempts }: { attempts: readonly TaskAttempt[] }) {
  return (
    <Section title="Attempts" count={attempts.length}>
      {attempts.length === 0 ? (
        <p className="muted">It has not started yet.</p>
      ) : (
        <ol className="attempts">
          {[...attempts].reverse().map((one) => (
            <AttemptItem key={`${one.number}-${one.started_at}`} one={one} />
          ))}
        </ol>
      )}
    </Section>
  );
}

function AttemptItem({ one }: { one: TaskAttempt }) {
  const used = [
    one.seconds != null && `took ${duration(one.seconds)}`,
    one.tokens != null && `${count(one.tokens)} tokens`,
    one.cost_usd != null && dollars(one.cost_usd),
    one.context_share != null && `${percent(one.context_share)} of the context window`,
    `session ${one.session_number}`,
    ...one.commits.map((commit) => `commit ${commit.slice(0, 12)}`),
  ].filter(Boolean);
  return (
    <li>
      <p className="row spread">
        <span>
          #{one.number} <Status status={one.outcome ?? "in_progress"} />
        </span>
        <span className="muted">
          <Ago at={one.started_at} />
        </span>
      </p>
      <p className="muted">{used.join(" · ")}</p>
      {one.result && one.outcome !== "completed" && (
        <p className="muted clamped" title={readable(one.result)}>
          {readable(one.result)}
        </p>
      )}
      {one.retry_at && <p className="muted">retried at {moment(one.retry_at)}</p>}
    </li>
  );
}

function readable(text: string): string {
  return neutral(plain(text));
}

function Changes({ data, id }: { data: TaskDetail; id: string }) {
  const stands = data.changes.reduce(
    (sum, one) => sum + (one.change.stands ? one.change.files.length : 0),
    0,
  );
  return (
    <Section title="Files changed" count={stands}>
      {data.changes.length === 0 ? (
        <p className="muted">
          {data.changes_unknown ? `Cannot tell: ${neutral(data.changes_unknown)}.` : nothingChanged(data)}
        </p>
      ) : (
        <FileChanges id={id} worktree={data.worktree} changes={data.changes} />
      )}
    </Section>
  );
}

function nothingChanged({ task }: TaskDetail): string {
  if (task.status === "in_progress") return "They are recorded when it ends.";
  return (task.attempts ?? 0) > 0 ? "No change of this task is recorded." : "It has not started yet.";
}

function Talk({ data, id }: { data: TaskDetail; id: string }) {
  const spoken = [...data.attempts].reverse().filter((one) => one.conversations.length > 0);
  const [attempt, setAttempt] = useState(spoken[0]?.number ?? 0);
  const query = useInfiniteQuery({
    ...conversationOf(id, data.task.id, attempt),
    refetchInterval: data.task.status === "in_progress" ? 3_000 : false,
  });
  return (
    <Section title="Conversation">
      {spoken.length > 1 && (
        <label className="inline">
          <span>Attempt</span>
          <select value={attempt} onChange={(event) => setAttempt(Number(event.target.value))}>
            {spoken.map((one) => (
              <option key={one.number} value={one.number}>
                {one.number}
              </option>
            ))}
          </select>
        </label>
      )}
      <ConversationView query={query} />
    </Section>
  );
}
