import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { type KeyboardEvent, Suspense, useDeferredValue, useEffect, useRef, useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { keys, type ListFilter, workflowPages } from "../api/queries";
import type { TaskCounts, Workflow, WorkflowStatus } from "../api/types";
import { folder, neutral, words } from "../lib/format";
import { part } from "../lib/part";
import { useTitle } from "../lib/use-title";
import { useEvents, useNews } from "../live/use-events";
import { Ago, ProgressBar, Status } from "../parts/bits";
import { Overview } from "../parts/Overview";
import { Empty, Failed, Loading } from "../parts/states";

const BulkActions = part(() => import("../parts/BulkActions"));

const STATUSES: readonly WorkflowStatus[] = [
  "in_progress",
  "paused",
  "blocked",
  "pending",
  "completed",
  "failed",
  "cancelled",
];

export function WorkflowList() {
  useTitle("Workflows");
  const [filter, setFilter] = useFilter();
  const asked = useDeferredValue(filter);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const query = useInfiniteQuery({ ...workflowPages(asked, false), placeholderData: (before) => before });
  const counted = useInfiniteQuery({ ...workflowPages(asked, true), placeholderData: (before) => before });
  const counts = new Map(counted.data?.pages.flatMap((page) => Object.entries(page.tasks ?? {})));
  useLiveList(query.data?.pages[0]?.seq);
  const workflows = query.data?.pages.flatMap((page) => page.workflows) ?? [];
  const selected = workflows.filter((one) => chosen.has(one.id));
  const isFiltered = filter.search !== "" || filter.status.length > 0;
  return (
    <>
      <h1 className="hidden">Workflows</h1>
      {!isFiltered && <Overview />}
      {!isFiltered && <h2 className="listing-title">All workflows</h2>}
      <Filters filter={filter} onChange={setFilter} />
      {query.isError && <Failed error={query.error} retry={() => void query.refetch()} />}
      {query.isPending && <Loading what="workflows" />}
      {query.data && workflows.length === 0 && <NoWorkflows isFiltered={isFiltered} />}
      {selected.length > 0 && (
        <Suspense fallback={null}>
          <BulkActions chosen={selected} onClear={() => setChosen(new Set())} />
        </Suspense>
      )}
      {workflows.length > 0 && (
        <WorkflowTable
          workflows={workflows}
          counts={counts}
          isCounted={!counted.isFetching}
          chosen={chosen}
          onChoose={setChosen}
        />
      )}
      {query.hasNextPage && (
        <button
          type="button"
          className="more"
          disabled={query.isFetchingNextPage}
          onClick={() => {
            void query.fetchNextPage();
            void counted.fetchNextPage();
          }}
        >
          {query.isFetchingNextPage ? "Loading…" : "Show more"}
        </button>
      )}
    </>
  );
}

/** In the address, so that a filtered list can be kept and shared. */
function useFilter(): [ListFilter, (filter: ListFilter) => void] {
  const [params, setParams] = useSearchParams();
  const status = params
    .getAll("status")
    .filter((one): one is WorkflowStatus => STATUSES.includes(one as WorkflowStatus));
  const filter = { search: params.get("q") ?? "", status };
  const change = (next: ListFilter) =>
    setParams(
      (before) => {
        const made = new URLSearchParams(before);
        for (const name of ["q", "status"]) made.delete(name);
        if (next.search) made.set("q", next.search);
        for (const one of next.status) made.append("status", one);
        return made;
      },
      { replace: true },
    );
  return [filter, change];
}

/** Any event may change any line: the pages that show are asked for again, once a second at most. */
function useLiveList(seq: number | undefined): void {
  const [since, setSince] = useState<number | null>(null);
  useEffect(() => setSince((known) => known ?? seq ?? null), [seq]);
  const client = useQueryClient();
  const following = useEvents(null, since);
  // The overview looks at more than one table: seldom enough that a busy machine does not notice.
  useNews(
    following,
    (news, isGap) => {
      if (news.length > 0 || isGap) void client.invalidateQueries({ queryKey: keys.work });
    },
    2000,
  );
  useNews(
    following,
    (news, isGap) => {
      if (news.length > 0 || isGap) void client.invalidateQueries({ queryKey: keys.lists });
    },
    1000,
  );
}

function Filters({ filter, onChange }: { filter: ListFilter; onChange: (filter: ListFilter) => void }) {
  const [text, setText] = useState(filter.search);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = (event: globalThis.KeyboardEvent) => {
      const isTyping =
        event.target instanceof HTMLElement && /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (event.key === "/" && !isTyping) {
        event.preventDefault();
        input.current?.focus();
      }
    };
    window.addEventListener("keydown", focus);
    return () => window.removeEventListener("keydown", focus);
  }, []);
  const search = (next: string) => {
    setText(next);
    onChange({ ...filter, search: next.trim() });
  };
  const toggle = (status: WorkflowStatus) => {
    const has = filter.status.includes(status);
    onChange({
      ...filter,
      status: has ? filter.status.filter((one) => one !== status) : [...filter.status, status],
    });
  };
  return (
    <search className="filters">
      <input
        ref={input}
        type="search"
        value={text}
        placeholder="Search title, issue, id or folder"
        aria-label="Search workflows"
        aria-keyshortcuts="/"
        onChange={(event) => search(event.target.value)}
      />
      <fieldset className="chips">
        <legend className="hidden">Status</legend>
        {STATUSES.map((status) => (
          <button
            key={status}
            type="button"
            className={`chip chip-${status}`}
            aria-pressed={filter.status.includes(status)}
            onClick={() => toggle(status)}
          >
            {words(status)}
          </button>
        ))}
      </fieldset>
    </search>
  );
}

function NoWorkflows({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No matching workflows." />;
  return (
    <Empty title="No workflows yet.">
      <p>
        <Link href="/new">Create one from a plan</Link>, or run <code>holdfast run plan.yaml</code> in a
        project.
      </p>
    </Empty>
  );
}

interface Choice {
  chosen: ReadonlySet<string>;
  onChoose: (chosen: ReadonlySet<string>) => void;
}

interface Counted {
  counts: ReadonlyMap<string, TaskCounts>;
  isCounted: boolean;
}

function WorkflowTable({
  workflows,
  chosen,
  onChoose,
  ...counted
}: Choice & Counted & { workflows: readonly Workflow[] }) {
  const all = workflows.every((one) => chosen.has(one.id));
  return (
    <table className="table cards framed listing workflows">
      <thead>
        <tr>
          <th scope="col" className="check-cell">
            <input
              type="checkbox"
              aria-label="Select all workflows"
              checked={all}
              onChange={() => onChoose(new Set(all ? [] : workflows.map((one) => one.id)))}
            />
          </th>
          <th scope="col" className="status-cell">
            Status
          </th>
          <th scope="col" className="title-cell">
            Workflow
          </th>
          <th scope="col">Progress</th>
          <th scope="col">Folder</th>
          <th scope="col" className="number">
            Session
          </th>
          <th scope="col">Changed</th>
        </tr>
      </thead>
      <tbody>
        {workflows.map((workflow) => (
          <WorkflowRow
            key={workflow.id}
            workflow={workflow}
            chosen={chosen}
            onChoose={onChoose}
            {...counted}
          />
        ))}
      </tbody>
    </table>
  );
}

function WorkflowRow({
  workflow,
  chosen,
  onChoose,
  counts,
  isCounted,
}: Choice & Counted & { workflow: Workflow }) {
  const [, go] = useLocation();
  const status = workflow.status ?? "pending";
  const href = `/workflows/${workflow.id}`;
  const open = (event: KeyboardEvent | React.MouseEvent) => {
    if (!(event.target as HTMLElement).closest("a, .check-cell")) go(href);
  };
  const choose = () => {
    const next = new Set(chosen);
    if (!next.delete(workflow.id)) next.add(workflow.id);
    onChoose(next);
  };
  return (
    // The link in the row is what keyboards and screen readers use; the row is a larger target for a mouse.
    <tr onClick={open}>
      <td className="check-cell">
        <input
          type="checkbox"
          aria-label={`Select ${neutral(workflow.issue.title || workflow.issue.id)}`}
          checked={chosen.has(workflow.id)}
          onChange={choose}
        />
      </td>
      <td data-label="Status">
        <Status status={status} />
        {workflow.pause_request && <span className="note">pausing…</span>}
      </td>
      <td className="title">
        <Link href={href} className="clamped">
          {neutral(workflow.issue.title || workflow.issue.id)}
        </Link>
        <span className="muted clamped">
          {neutral(workflow.issue.id)}
          {workflow.pause_reason && (status === "paused" || status === "failed") && (
            <> · {neutral(workflow.pause_reason)}</>
          )}
        </span>
      </td>
      <td data-label="Progress">
        <RowProgress counts={counts.get(workflow.id)} isCounted={isCounted} />
      </td>
      <td data-label="Folder" title={neutral(workflow.worktree)}>
        <span className="path clamped">{folder(workflow.worktree)}</span>
      </td>
      <td data-label="Session" className="number">
        {workflow.session_count}
      </td>
      <td data-label="Changed" className="nowrap">
        <Ago at={workflow.updated_at} />
      </td>
    </tr>
  );
}

function RowProgress({ counts, isCounted }: { counts: TaskCounts | undefined; isCounted: boolean }) {
  if (!counts) return <span className="muted">{isCounted ? "unknown" : "…"}</span>;
  const { completed, failed, total } = counts;
  return (
    <span className="row-progress">
      <ProgressBar done={completed} failed={failed} total={total} />
      <span className="muted nowrap">
        {completed}/{total}
      </span>
    </span>
  );
}
