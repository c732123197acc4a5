/** The API's values under the names this code uses. */
import type {
  IncrementalPause,
  Event as WireEvent,
  SessionSnapshot as WireSnapshot,
  Workflow,
} from "./schema";

export type {
  AgentSession,
  AgentSessionUsage,
  Approval,
  Carried,
  ContextEdits,
  ContextResponse,
  ContextStatement,
  Conversation,
  ConversationMessage,
  Cost,
  Decision,
  DiffHunk,
  EditedContext,
  ErrorRecord,
  Evidence,
  EvidenceMessages,
  Fidelity,
  Health,
  Journal,
  ProjectStats,
  RecordedChange,
  ResumePreview,
  SettingsView,
  SnapshotDiff,
  SnapshotSummary,
  SocketMessage,
  Task,
  TaskAttempt,
  TaskCounts,
  TaskDetail,
  UndoneReport,
  UndoResponse,
  UsageHistory,
  UsageMetrics,
  UsageSample,
  Workflow,
  WorkflowPage,
  WorkflowProgress,
  WorkflowStats,
  WorkItem,
  WorkList,
} from "./schema";

type Loose<Value, Key extends keyof Value> = Omit<Value, Key> & { [Name in Key]: readonly number[] };
/** The client makes lists of pairs, as of the range of a wind-down; what was gathered no page shows. */
export type SessionSnapshot = Omit<WireSnapshot, "incremental_pause" | "gathered"> & {
  incremental_pause?: Loose<IncrementalPause, "context_range"> | null;
};
export type WorkflowEvent = WireEvent;
/** A kind that this build knows; anything newer shows under its bare name. */
export type KnownEntry = Named<WireEvent["entry"]>;
type Named<Entry> = Entry extends { type: infer Name } ? (string extends Name ? never : Entry) : never;
export type WorkflowStatus = NonNullable<Workflow["status"]>;

/** One that somebody newer wrote falls through every case: its `type` is none of these. */
export function known(event: WorkflowEvent): KnownEntry {
  return event.entry as KnownEntry;
}
