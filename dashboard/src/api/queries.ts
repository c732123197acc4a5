/** Every question the pages ask, each under one key. */
import {
  infiniteQueryOptions,
  keepPreviousData,
  type QueryClient,
  queryOptions,
} from "@tanstack/react-query";
import { answered, api, toShow } from "./client";
import type { ContextEdits, Evidence, WorkflowStatus } from "./types";

const PAGE = 25;
const SESSIONS = 25;

export interface ListFilter {
  search: string;
  status: WorkflowStatus[];
}

export const keys = {
  lists: ["workflows"] as const,
  work: ["work"] as const,
  workflow: (id: string) => ["workflow", id] as const,
};

/** Counting their tasks takes longer: the list shows before they are counted. */
export const workflowPages = (filter: ListFilter, tasks: boolean) =>
  infiniteQueryOptions({
    queryKey: [...keys.lists, filter, tasks],
    queryFn: ({ pageParam, signal }) =>
      answered(
        api.GET("/api/workflows", {
          params: {
            query: {
              limit: PAGE,
              ...(tasks ? { tasks } : {}),
              ...(filter.search ? { search: filter.search } : {}),
              ...(filter.status.length ? { status: filter.status } : {}),
              ...(pageParam ? { cursor: pageParam } : {}),
            },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });

const of = (workflow_id: string) => ({ params: { path: { workflow_id } } });
const within = (workflow_id: string, snapshot_id: string) => ({
  params: { path: { workflow_id, snapshot_id } },
});

export const progressOf = (id: string) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "progress"],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/workflows/{workflow_id}/progress", { ...of(id), signal })),
  });

export const approvalOf = (id: string, task_id: string) =>
  queryOptions({
    // Not among the workflow's own keys: once decided there is nothing to ask for again.
    queryKey: ["approval", id, task_id],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/workflows/{workflow_id}/approval", { ...of(id), signal })),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });

export const tasksOf = (id: string) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "tasks"],
    queryFn: ({ signal }) => answered(api.GET("/api/workflows/{workflow_id}/tasks", { ...of(id), signal })),
    // Events keep it current; a plan of thousands of tasks is not loaded again for each of them.
    staleTime: Number.POSITIVE_INFINITY,
  });

export const taskOf = (id: string, task_id: string) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "task", task_id],
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/workflows/{workflow_id}/task", {
          params: { path: { workflow_id: id }, query: { task_id } },
          signal,
        }),
      ),
  });

export const conversationOf = (id: string, task_id: string, attempt: number) =>
  infiniteQueryOptions({
    queryKey: [...keys.workflow(id), "conversation", task_id, attempt],
    queryFn: ({ pageParam, signal }) =>
      answered(
        api.GET("/api/workflows/{workflow_id}/conversation", {
          params: {
            path: { workflow_id: id },
            query: { task_id, attempt, ...(pageParam === null ? {} : { before: pageParam }) },
          },
          signal,
        }),
      ),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => (page.first > 0 ? page.first : null),
  });

/** What a finding cites, out of the agent's own record. */
export const evidenceOf = (id: string, { source, messages }: Evidence) =>
  queryOptions({
    queryKey: ["evidence", id, source, messages],
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/workflows/{workflow_id}/evidence", {
          params: { path: { workflow_id: id }, query: { source, message: messages.slice(0, MOST_CITED) } },
          signal,
        }),
      ),
    retry: false,
    staleTime: 60_000,
  });
const MOST_CITED = 50;

export const diffOfChange = (transaction_id: string, change: string, project: string) =>
  queryOptions({
    queryKey: ["transaction", project, transaction_id, "diff", change],
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/transactions/{transaction_id}/diff", {
          params: { path: { transaction_id }, query: { change, project } },
          signal,
        }),
      ),
    staleTime: Number.POSITIVE_INFINITY, // a change that was recorded stays what it is
  });

export const usageOf = (id: string) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "usage"],
    queryFn: ({ signal }) => answered(api.GET("/api/workflows/{workflow_id}/usage", { ...of(id), signal })),
  });

export const snapshotsOf = (id: string) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "snapshots"],
    queryFn: ({ signal }) => toShow(api.GET("/api/workflows/{workflow_id}/snapshots", { ...of(id), signal })),
  });

export const snapshot = (id: string, snapshotId: string) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "snapshot", snapshotId],
    queryFn: ({ signal }) =>
      toShow(
        api.GET("/api/workflows/{workflow_id}/snapshots/{snapshot_id}", {
          ...within(id, snapshotId),
          signal,
        }),
      ),
  });

export const contextOf = (id: string, snapshotId: string) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "snapshot", snapshotId, "context"],
    queryFn: ({ signal }) =>
      toShow(
        api.GET("/api/workflows/{workflow_id}/snapshots/{snapshot_id}/context", {
          ...within(id, snapshotId),
          signal,
        }),
      ),
  });

/** With these changes, or as saved; statement by statement. */
export const editedContext = (id: string, snapshotId: string, edits: ContextEdits | null, model: string) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "snapshot", snapshotId, "edited", edits, model],
    queryFn: ({ signal }) =>
      answered(
        api.POST("/api/workflows/{workflow_id}/snapshots/{snapshot_id}/context", {
          ...within(id, snapshotId),
          body: { edits, max_chars: 9_500, model: model || null },
          signal,
        }),
      ),
    gcTime: 60_000,
  });

export const journalOf = (id: string, snapshotId: string) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "snapshot", snapshotId, "journal"],
    queryFn: ({ signal }) =>
      toShow(
        api.GET("/api/workflows/{workflow_id}/snapshots/{snapshot_id}/journal", {
          ...within(id, snapshotId),
          signal,
        }),
      ),
  });

export const resumePreview = (id: string, options: { snapshotId: string | null; model: string }) =>
  queryOptions({
    queryKey: [...keys.workflow(id), "resume-preview", options],
    queryFn: ({ signal }) =>
      toShow(
        api.GET("/api/workflows/{workflow_id}/resume/preview", {
          params: {
            path: { workflow_id: id },
            query: {
              ...(options.snapshotId ? { snapshot_id: options.snapshotId } : {}),
              ...(options.model ? { model: options.model } : {}),
            },
          },
          signal,
        }),
      ),
    // Files may change under a paused workflow at any moment.
    staleTime: 0,
    gcTime: 0,
  });

export const diffOf = (before: string, after: string) =>
  queryOptions({
    queryKey: ["diff", before, after],
    queryFn: ({ signal }) =>
      toShow(api.GET("/api/snapshots/diff", { params: { query: { before, after } }, signal })),
  });

/** At most so many of each state; all of it is counted. */
export const openWork = (limit: number) =>
  queryOptions({
    queryKey: [...keys.work, limit],
    queryFn: ({ signal }) => answered(api.GET("/api/work", { params: { query: { limit } }, signal })),
    placeholderData: keepPreviousData,
    staleTime: 5_000,
    refetchInterval: 60_000,
  });

const NEWEST = 6;

/** With `usage` every record is read whole: the names are shown before that. */
export const newestSessions = (usage: boolean) =>
  queryOptions({
    queryKey: ["sessions", "newest", usage],
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/sessions", { params: { query: { everywhere: true, limit: NEWEST, usage } }, signal }),
      ),
    staleTime: 15_000,
    refetchInterval: 60_000,
  });

const FOUND = 8;

/** Of everything that has a page: the workflows and snapshots by these words, the threads and sessions to choose from. */
export async function search(wanted: string, signal?: AbortSignal) {
  const asked = signal ? { signal } : {};
  const [workflows, threads, sessions, snapshots] = await Promise.all([
    answered(api.GET("/api/workflows", { params: { query: { limit: FOUND, search: wanted } }, ...asked })),
    answered(api.GET("/api/threads", { params: { query: { finished: true } }, ...asked })),
    answered(api.GET("/api/sessions", { params: { query: { limit: 200 } }, ...asked })),
    wanted
      ? answered(api.GET("/api/snapshots", { params: { query: { name: wanted } }, ...asked }))
      : { snapshots: [] },
  ]);
  return {
    workflows: workflows.workflows,
    threads: threads.threads,
    sessions: sessions.sessions,
    snapshots: snapshots.snapshots,
  };
}

export const found = (wanted: string) =>
  queryOptions({
    queryKey: ["found", wanted],
    queryFn: ({ signal }) => search(wanted, signal),
    placeholderData: keepPreviousData,
    staleTime: 10_000,
  });

/** Of one project, of the server's own (null), or of all. With `usage` every record is read whole. */
export const agentSessions = (project: string | null, everywhere: boolean, usage: boolean) =>
  infiniteQueryOptions({
    queryKey: ["sessions", everywhere ? true : project, usage],
    queryFn: ({ pageParam, signal }) =>
      answered(
        api.GET("/api/sessions", {
          params: {
            query: {
              limit: SESSIONS,
              usage,
              ...(everywhere ? { everywhere } : project ? { project } : {}),
              ...(pageParam ? { cursor: pageParam } : {}),
            },
          },
          signal,
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_cursor,
  });

export const sessionContext = (sessionId: string, project: string | null) =>
  queryOptions({
    queryKey: ["sessions", project, sessionId, "context"],
    queryFn: ({ signal }) =>
      toShow(
        api.GET("/api/sessions/{session_id}/context", {
          params: { path: { session_id: sessionId }, query: project ? { project } : {} },
          signal,
        }),
      ),
  });

export const projects = queryOptions({
  queryKey: ["projects"],
  queryFn: ({ signal }) => answered(api.GET("/api/projects", { signal })),
});

export const health = queryOptions({
  queryKey: ["health"],
  queryFn: ({ signal }) => answered(api.GET("/api/health", { signal })),
});

export const serverSettings = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => answered(api.GET("/api/settings", { signal })),
});

export const stats = queryOptions({
  queryKey: ["stats"],
  queryFn: ({ signal }) => answered(api.GET("/api/stats", { signal })),
});

export const workflowStats = queryOptions({
  queryKey: ["stats", "workflows"],
  queryFn: ({ signal }) => answered(api.GET("/api/stats/workflows", { signal })),
});

/** After something happened to a workflow: what shows it is asked for again. */
export function refresh(client: QueryClient, id: string): void {
  void client.invalidateQueries({ queryKey: keys.workflow(id) });
  void client.invalidateQueries({ queryKey: keys.lists });
}
