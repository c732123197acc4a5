import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type KeyboardEvent, type ReactNode, Suspense, useEffect, useMemo } from "react";
import { Link, useLocation } from "wouter";
import { keys, progressOf, snapshotsOf, tasksOf, usageOf } from "../api/queries";
import type { UsageHistory, WorkflowEvent, WorkflowProgress } from "../api/types";
import { countByStatus, tasksNow } from "../graph/tasks";
import { count, dollars, duration, folder, neutral, percent, short } from "../lib/format";
import { plain } from "../lib/output";
import { part } from "../lib/part";
import { taskPath } from "../lib/paths";
import { useTitle } from "../lib/use-title";
import { useEvents, useNews } from "../live/use-events";
import { Actions } from "../parts/Actions";
import { Approval } from "../parts/ApprovalCard";
import { Ago, ContextGauge, Foreign, ProgressBar, Status } from "../parts/bits";
import { EventList } from "../parts/EventList";
import { SessionTimeline } from "../parts/SessionTimeline";
import { SnapshotList } from "../parts/SnapshotList";
import { Failed, Loading, Shown } from "../parts/states";
import { TaskTable } from "../parts/TaskTable";
import "../styles/details.css";

const TaskGraph = part(() => import("../graph/TaskGraph"));
const UsagePlot = part(() => import("../parts/UsagePlot"));

const TABS = [
  ["graph", "Graph"],
  ["tasks", "Tasks"],
  ["events", "Events"],
  ["sessions", "Sessions"],
  ["snapshots", "Snapshots"],
  ["usage", "Usage"],
] as const;
type Tab = (typeof TABS)[number][0];

/** After these the tasks may stand anywhere: they are loaded again. */
const RELOADS = new Set(["workflow_paused", "workflow_resumed", "snapshot_imported"]);
const OF_SNAPSHOTS = new Set([
  "workflow_paused",
  "snapshot_enriched",
  "snapshot_deleted",
  "snapshot_imported",
]);

export default function WorkflowDetail({ id, tab }: { id: string; tab: string | undefined }) {
  const progress = useQuery(progressOf(id));
  const tasks = useQuery(tasksOf(id));
  const usage = useQuery(usageOf(id));
  const client = useQueryClient();
  // From the first event on: the same stream tells the past and the present.
  const following = useEvents(id, progress.data ? 0 : null);
  useNews(following, (news, isGap) => {
    const knownSeq = tasks.data?.seq ?? 0;
    const has = (types: ReadonlySet<string>) =>
      news.some((event) => event.seq > knownSeq && types.has(event.entry.type));
    if (isGap) void client.invalidateQueries({ queryKey: keys.workflow(id) });
    if (news.some((event) => event.seq > (progress.data?.seq ?? 0))) {
      void client.invalidateQueries({ queryKey: progressOf(id).queryKey });
      void client.invalidateQueries({ queryKey: keys.lists });
    }
    if (has(RELOADS)) void client.invalidateQueries({ queryKey: tasksOf(id).queryKey });
    if (has(OF_SNAPSHOTS)) void client.invalidateQueries({ queryKey: snapshotsOf(id).queryKey });
    if (has(new Set(["usage_reported"]))) void client.invalidateQueries({ queryKey: usageOf(id).queryKey });
  });
  const now = useMemo(
    () => (tasks.data ? tasksNow(tasks.data.tasks, tasks.data.seq, following.stream.events) : null),
    [tasks.data, following.stream.events],
  );
  useTitle(progress.data?.workflow.issue.title ?? "Workflow");
  if (!progress.data) {
    if (progress.isError) return <Failed error={progress.error} retry={() => void progress.refetch()} />;
    return <Loading what="workflow" />;
  }
  const shown = TABS.some(([name]) => name === tab) ? (tab as Tab) : "graph";
  const counts = now ? countByStatus(now) : null;
  return (
    <>
      <Head
        progress={progress.data}
        usage={latestUsage(progress.data, usage.data)}
        done={counts?.completed ?? progress.data.tasks_completed}
        failed={counts?.failed ?? progress.data.tasks_failed}
      />
      {progress.isError && <Failed error={progress.error} retry={() => void progress.refetch()} />}
      <Tabs
        id={id}
        shown={shown}
        events={following.stream.events.length}
        snapshots={progress.data.snapshots}
      />
      <div role="tabpanel" id="tab-panel" aria-labelledby={`tab-${shown}`} className="panel">
        {(shown === "graph" || shown === "tasks") &&
          (now ? (
            <Suspense fallback={<Loading what="graph" />}>
              {shown === "graph" ? <TaskGraph id={id} tasks={now} /> : <TaskTable id={id} tasks={now} />}
            </Suspense>
          ) : (
            <Shown query={tasks} what="tasks">
              {() => null}
            </Shown>
          ))}
        {shown === "events" && <EventList stream={following.stream} state={following.state} />}
        {shown === "sessions" && (
          <SessionTimeline
            id={id}
            events={following.stream.events as WorkflowEvent[]}
            isRunning={progress.data.workflow.status === "in_progress"}
          />
        )}
        {shown === "snapshots" && <SnapshotList id={id} />}
        {shown === "usage" && (
          <UsageTab id={id} isRunning={progress.data.workflow.status === "in_progress"} />
        )}
      </div>
    </>
  );
}

interface Used {
  readonly context: number | null;
  readonly tokens: number;
  readonly details: readonly (string | null)[];
  readonly untilPause: number | null;
}

/** Of the session that runs, or of the one that was paused last: its own record is closed then. */
function latestUsage({ usage, workflow }: WorkflowProgress, history: UsageHistory | undefined): Used {
  const last = history?.samples.at(-1);
  const sample = last?.session_number === workflow.session_count ? last : undefined;
  const cost = usage.cost_usd ?? sample?.cost_usd;
  return {
    context: usage.context_utilization ?? sample?.context_utilization ?? null,
    tokens: usage.tokens_used || sample?.tokens_used || 0,
    details: [
      cost == null ? null : dollars(cost),
      usage.session_duration_seconds ? duration(usage.session_duration_seconds) : null,
      usage.tool_calls ? `${count(usage.tool_calls)} tool calls` : null,
    ],
    untilPause: workflow.status === "in_progress" ? (history?.seconds_until_pause ?? null) : null,
  };
}

function Head({
  progress,
  usage,
  done,
  failed,
}: {
  progress: WorkflowProgress;
  usage: Used;
  done: number;
  failed: number;
}) {
  const { workflow } = progress;
  const pausesAt = workflow.options?.exhaustion_at ?? null;
  const status = workflow.status ?? "pending";
  return (
    <>
      <div className="head">
        <div className="head-title">
          <h1 className="clamped" title={neutral(workflow.issue.title)}>
            {neutral(workflow.issue.title || workflow.issue.id)}
          </h1>
          <p className="muted">
            <span className="ellipsis">{neutral(workflow.issue.id)}</span> ·{" "}
            <span className="ellipsis" title={neutral(workflow.worktree)}>
              {folder(workflow.worktree)}
            </span>{" "}
            · session {workflow.session_count} · changed <Ago at={workflow.updated_at} />
          </p>
        </div>
        <Actions progress={progress} />
      </div>
      <Notices progress={progress} />
      <div className="tiles">
        <div className="tile">
          <span className="tile-name">Status</span>
          <span className="tile-value">
            <Status status={status} />
          </span>
          <span className="muted">
            {workflow.pause_request ? "pausing when the running task ends" : runs(progress)}
          </span>
        </div>
        <div className="tile">
          <span className="tile-name">Tasks</span>
          <span className="tile-value">
            {count(done)} <small>of {count(progress.tasks_total)}</small>
          </span>
          <ProgressBar done={done} failed={failed} total={progress.tasks_total} />
        </div>
        <div className="tile">
          <span className="tile-name">Context window</span>
          <ContextGauge share={usage.context} pausesAt={pausesAt} />
          <span className="muted">
            {pausesAt !== null && `pauses at ${percent(pausesAt)}`}
            {pausesAt !== null && usage.untilPause !== null && `, in about ${duration(usage.untilPause)}`}
          </span>
        </div>
        <div className="tile">
          <span className="tile-name">
            {workflow.status === "in_progress" ? "This session" : "Last session"}
          </span>
          <span className="tile-value">
            {short(usage.tokens)} <small>tokens</small>
          </span>
          <span className="muted">{usage.details.filter(Boolean).join(" · ") || "no details reported"}</span>
        </div>
      </div>
    </>
  );
}

function runs({ current_task_id, workflow }: WorkflowProgress): ReactNode {
  if (current_task_id) {
    return (
      <>
        working on <Link href={taskPath(workflow.id, current_task_id)}>{neutral(current_task_id)}</Link>
      </>
    );
  }
  return `driver ${neutral(workflow.options?.driver ?? "shell")}`;
}

function Notices({ progress }: { progress: WorkflowProgress }) {
  const { workflow } = progress;
  return (
    <>
      {progress.abandoned && (
        <p className="notice warn" role="status">
          The process running this workflow is gone. Resume it: no finished work is lost.
        </p>
      )}
      <Approval key={workflow.id} id={workflow.id} taskId={progress.waiting_for_approval} />
      {(workflow.status === "paused" || workflow.status === "failed") && (
        <p className="notice warn">
          {workflow.status === "failed" ? "Failed" : "Paused"}{" "}
          {workflow.paused_at && <Ago at={workflow.paused_at} />}
          {workflow.pause_reason && (
            <>
              : <Foreign text={plain(workflow.pause_reason)} />
            </>
          )}
          {progress.latest_snapshot_id && (
            <>
              {" "}
              <Link href={`/workflows/${workflow.id}/snapshots/${progress.latest_snapshot_id}`}>
                View snapshot
              </Link>
            </>
          )}
        </p>
      )}
    </>
  );
}

function Tabs({
  id,
  shown,
  events,
  snapshots,
}: {
  id: string;
  shown: Tab;
  events: number;
  snapshots: number;
}) {
  const [, go] = useLocation();
  const counts: Partial<Record<Tab, number>> = { events, snapshots };
  useEffect(() => {
    // Sideways only: the page itself stays where its reader is.
    const tab = document.getElementById(`tab-${shown}`);
    const bar = tab?.parentElement;
    if (tab && bar)
      bar.scrollLeft = tab.offsetLeft - bar.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
  }, [shown]);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = TABS.findIndex(([name]) => name === shown);
    const [next] = TABS[(at + step + TABS.length) % TABS.length] as (typeof TABS)[number];
    go(`/workflows/${id}/${next}`, { replace: true });
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div className="tabs" role="tablist" aria-label="Parts of the workflow" onKeyDown={move}>
      {TABS.map(([name, title]) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          aria-selected={name === shown}
          aria-controls="tab-panel"
          tabIndex={name === shown ? 0 : -1}
          onClick={() => go(`/workflows/${id}/${name}`, { replace: true })}
        >
          {title}
          {counts[name] ? <span className="count">{count(counts[name])}</span> : null}
        </button>
      ))}
    </div>
  );
}

function UsageTab({ id, isRunning }: { id: string; isRunning: boolean }) {
  const usage = useQuery(usageOf(id));
  return (
    <Shown query={usage} what="usage">
      {(data) => (
        <Suspense fallback={<Loading what="plot" />}>
          <UsagePlot usage={data} isRunning={isRunning} />
        </Suspense>
      )}
    </Shown>
  );
}
