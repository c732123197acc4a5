"""What requests and answers look like, beside the values of `holdfast.model`, and cursors."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import AwareDatetime, ConfigDict, Field

from holdfast.base.errors import InvalidInputError
from holdfast.capture.drift import DriftState
from holdfast.model.base import Value
from holdfast.model.entry import Event
from holdfast.model.gathered import Fidelity
from holdfast.model.git import GitState
from holdfast.model.message import Role, ToolOutcome
from holdfast.model.policy import Levels
from holdfast.model.snapshot import ContextEdits, ContextPin, FileFingerprint
from holdfast.model.task import Task, TaskStatus
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Workflow
from holdfast.resume.compiler import DEFAULT_BUDGET, SMALLEST_BUDGET
from holdfast.sessions.threads import Thread
from holdfast.store.protocol import SnapshotSummary
from holdfast.undo.state import FileKind, Status
from holdfast.workflows.experience import DriverRecord

# ── requests and answers ──────────────────────────────────────────────────────────────────────────

HunkNumber = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Reason = Annotated[str, Field(max_length=10_000)]
Drift = Annotated[
    tuple[str, ...],
    Field(description="How the worktree differs from the pause, and what cannot be compared, as sentences"),
]
DriftIs = Annotated[
    DriftState, Field(description="`same` covers what could be compared; `strict` also rejects `cannot_tell`")
]


class Body(Value):
    """What somebody sends: no key we do not know, no number that is none (`true` is not 1)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


# --- requests


class PlanTask(Body):
    """A task in a plan; see docs/workflows.md."""

    id: str = Field(min_length=1)
    description: str | None = None
    depends_on: tuple[str, ...] = ()
    run: str | None = None
    prompt: str | None = None
    driver: str | None = None
    approval: bool = False
    review: bool = False
    junit: str | None = None
    retries: int | None = Field(default=None, strict=True, ge=0, le=1000)
    timeout: float | None = Field(default=None, strict=True, gt=0)
    until: str | None = None
    max: int | None = Field(default=None, strict=True, ge=1, le=1000)


class PlanIssue(Body):
    """What the work of a plan is for."""

    id: str
    title: str
    description: str = ""


class PlanDocument(Body):
    """A plan as JSON; the same keys as in a plan file."""

    issue: PlanIssue
    tasks: tuple[PlanTask, ...] = Field(min_length=1)
    constraints: tuple[str, ...] = ()
    driver: str | None = None
    parallel: int | None = Field(default=None, strict=True, ge=1, le=1000)
    pause_every: int | None = Field(default=None, strict=True, ge=1, le=1_000_000)
    timeout: float | None = Field(default=None, strict=True, gt=0)
    exhaustion_at: float | None = Field(default=None, strict=True, gt=0, le=1)
    force_after: float | None = Field(default=None, strict=True, ge=0)
    resume_on_reset: bool | None = None
    retries: int | None = Field(default=None, strict=True, ge=0, le=1000)
    retry_delay: float | None = Field(default=None, strict=True, ge=0, le=86_400)
    keep_going: bool | None = None
    priority: int | None = Field(default=None, strict=True, ge=1, le=1_000_000)
    repository: str | None = None
    branch: str | None = None


class CreateWorkflow(Body):
    plan: PlanDocument | str = Field(description="A plan as JSON, or the text of a plan file (YAML)")
    worktree: str | None = Field(
        default=None, max_length=4096, description="The folder to work in. Default: the server's project"
    )


class PauseWorkflow(Body):
    reason: Reason | None = Field(default=None, description="Human-readable reason for pausing")
    force_after: float | None = Field(
        strict=True, default=None, ge=0, le=86_400, description="Interrupt the running task after N seconds"
    )
    wait_seconds: float = Field(
        strict=True,
        default=0,
        ge=0,
        le=60,
        description="Wait up to N seconds for the pause before responding",
    )


class ResumeWorkflow(Body):
    snapshot_id: str | None = Field(default=None, description="Resume from an older snapshot")
    message: Reason | None = Field(default=None, description="A message for the next session")
    strict: bool = Field(
        default=False, description="Fail unless the worktree is known to be unchanged since the pause"
    )
    accept_commands: str | None = Field(
        default=None,
        max_length=64,
        description="`digest` of a refusal (`unconfirmed_commands`): run exactly the commands it listed",
    )
    accept_undone: bool | None = Field(
        default=None, description="Continue although changes of completed tasks were undone"
    )


_ACCEPT_UNDONE = Field(
    default=False, description="Continue although changes of completed tasks were undone (`undone_work`)"
)


class RetryTask(Body):
    task_id: str | None = Field(default=None, description="The failed task; default: all that failed")
    message: Reason | None = Field(default=None, description="A message for the next session")
    accept_undone: bool = _ACCEPT_UNDONE


class SkipTask(Body):
    task_id: str
    reason: Reason | None = None
    accept_undone: bool = _ACCEPT_UNDONE


class ForkWorkflow(Body):
    task_id: str | None = Field(
        default=None, description="This task and all that depend on it are to run again in the copy"
    )
    snapshot_id: str | None = Field(default=None, description="Copy the state of an older snapshot")
    worktree: str | None = Field(
        default=None, max_length=4096, description="The folder of the copy. Default: that of the original"
    )
    accept_commands: str | None = Field(
        default=None,
        max_length=64,
        description="`digest` of a refusal (`unconfirmed_commands`): accept exactly the commands it listed",
    )


class GiveReason(Body):
    reason: Reason | None = None


class RejectTask(Body):
    task_id: str | None = Field(default=None, description="Fail unless this is the task that is waiting")
    reason: Reason | None = None


class ApproveTask(Body):
    task_id: str | None = Field(default=None, description="Fail unless this is the task that is waiting")
    accept_undone: bool = _ACCEPT_UNDONE


class UseLink(Body):
    code: str = Field(max_length=200, description="What follows `#code=` in the link")


# --- answers


class BrowserToken(Value):
    token: str = Field(description="Send it as `Authorization: Bearer TOKEN`; it opens this port only")


class LoggedOut(Value):
    name: str = Field(description="Of the token that has ended, as `holdfast token list` showed it")


class NewLink(Value):
    link: str = Field(description="Lets one browser in, once")
    expires_at: AwareDatetime


class ActionResponse(Value):
    """Response for workflow actions."""

    status: Literal[
        "created",
        "pausing",
        "paused",
        "resumed",
        "taken_up",
        "skipped",
        "cancelled",
        "approved",
        "rejected",
        "deleted",
    ]
    workflow_id: str
    snapshot_id: str | None = None


class CancelResponse(ActionResponse):
    stopping_elsewhere: bool = Field(
        description="It ran on another machine than the server's, which is still stopping its task"
    )


class ResumeResponse(ActionResponse):
    """`taken_up`: there is no plan to run; the context is for the next session; it stays paused."""

    session_number: int
    drift: Drift
    drift_state: DriftIs
    taken_up_before: AwareDatetime | None = Field(default=None, description="When it was previously resumed")


class TaskCounts(Value):
    total: int
    completed: int
    failed: int


class WorkflowPage(Value):
    workflows: tuple[Workflow, ...]
    tasks: dict[str, TaskCounts] | None = Field(
        default=None, description="By the workflow's id, where `tasks` was asked for"
    )
    next_cursor: str | None = Field(
        description="Pass as `cursor` to get the next page; null on the last page"
    )
    seq: int = Field(description="Number of the newest event at the time of reading; follow from there")


class WorkflowProgress(Value):
    """The current state of a workflow, in addition to its own record."""

    workflow: Workflow
    tasks_total: int
    tasks_completed: int
    tasks_remaining: int
    tasks_failed: int
    failed_task_ids: tuple[str, ...]
    current_task_id: str | None
    waiting_for_approval: str | None = Field(description="The task waiting for approval")
    abandoned: bool = Field(description="Recorded as running, but its runner is gone: resume it")
    usage: UsageMetrics
    snapshots: int
    latest_snapshot_id: str | None
    seq: int


class TaskList(Value):
    workflow_id: str
    tasks: tuple[Task, ...]
    seq: int


class Precedent(Value):
    """A task that the waiting one depends on."""

    task_id: str
    status: TaskStatus
    result: str | None
    printed: str | None = Field(
        description="The end of its output, without secrets; null if none is kept on the server's machine"
    )


class EventPage(Value):
    events: tuple[Event, ...]
    next_since: int | None = Field(description="Pass as `since` to get the next page; null on the last page")
    oldest: int = Field(description="Lowest event number kept; earlier events were deleted")
    newest: int


class SnapshotListResponse(Value):
    """Response for listing snapshots."""

    workflow_id: str
    snapshots: tuple[SnapshotSummary, ...]


class ThreadList(Value):
    threads: tuple[Thread, ...]


class SnapshotMatches(Value):
    snapshots: tuple[SnapshotSummary, ...]


class GitChanges(Value):
    git_state: GitState | None
    files: tuple[FileFingerprint, ...]
    git: dict[str, Any] | None = Field(description="Commits and similar, found in the agent's own session")


class Journal(Value):
    actions: tuple[dict[str, Any], ...] = Field(description="Lines of the wind-down journal")
    turns: tuple[dict[str, Any], ...] = Field(description="User messages and agent reports")
    commands: tuple[dict[str, Any], ...]
    truncated: bool = Field(description="Whether only the newest actions are shown")


class Cost(Value):
    tokens: int
    model: str | None
    dollars: float | None = Field(description="Null if the price is unknown")


class ContextResponse(Value):
    """The context for the next session, what it omits, and what it costs to read."""

    context: str
    fidelity: Fidelity
    cost: Cost
    drift: Drift
    drift_state: DriftIs


class ContextChanges(Body):
    pins: tuple[ContextPin, ...] = Field(default=(), max_length=100)
    dropped: tuple[str, ...] = Field(default=(), max_length=1_000, description="Keys of statements")
    order: tuple[str, ...] = Field(
        default=(), max_length=1_000, description="Keys in their order; each stays in its part"
    )


class EditContext(Body):
    edits: ContextChanges | None = Field(default=None, description="Null: as they were saved")
    max_chars: int = Field(default=DEFAULT_BUDGET, strict=True, ge=SMALLEST_BUDGET, le=1_000_000)
    model: str | None = Field(default=None, max_length=200, description="For the cost estimate")


class ContextStatement(Value):
    """A line or paragraph of a context."""

    key: str
    part: str
    title: str = Field(description="Heading of its part")
    text: str
    is_fixed: bool = Field(description="Always there and in its place: cannot be dropped or moved")
    is_pinned: bool
    is_dropped: bool
    is_carried: bool = Field(description="False if it was dropped, or if there was no room for it")
    is_shortened: bool


class EditedContext(ContextResponse):
    statements: tuple[ContextStatement, ...] = Field(
        description="In their order; what was dropped or did not fit is in its place, too"
    )
    edits: ContextEdits


class UndoneTaskFiles(Value):
    id: str
    state: Literal["undone", "partly_undone", "cannot_tell"]
    paths: tuple[str, ...] = Field(description="Files in which its change does not stand, or may not")


class UndoneReport(Value):
    """What completed tasks had changed in files and was undone since."""

    tasks: tuple[UndoneTaskFiles, ...]
    facts: tuple[str, ...]
    is_certain: bool = Field(description="Then a resume is refused unless `accept_undone` is true")
    restore_with: tuple[str, ...] = Field(description="Commands that restore it, in this order")


class ResumePreview(ContextResponse):
    workflow_id: str
    snapshot: SnapshotSummary | None = Field(
        description="The snapshot it resumes from; null before the first pause"
    )
    next_task_id: str | None
    undone: UndoneReport | None = Field(
        description="What completed tasks had changed and was undone since; null if all of it stands"
    )


class UsageSample(Value):
    at: AwareDatetime
    seq: int
    session_number: int
    context_utilization: float | None
    tokens_used: int
    cost_usd: float | None


class UsageHistory(Value):
    workflow_id: str
    samples: tuple[UsageSample, ...]
    exhaustion_at: float = Field(description="Share of the context window at which it pauses automatically")
    seconds_until_pause: float | None = Field(
        description="At the rate of this session; null if it does not grow"
    )
    seconds_until_full: float | None


class AgentSessionUsage(Value):
    """What a session has used by its agent's own record, sub-agents included; null is what cannot be told."""

    model: str | None
    tokens: int
    context_tokens: int | None = Field(description="Null if nothing is recorded since a compaction")
    context_window: int
    context_share: float | None = Field(description="Share of the window, 0.0 to 1.0")
    cost_usd: float | None = Field(description="At list prices; null if the model has none")
    cost_is_partial: bool = Field(description="A part was used on models without a list price")


class AgentSession(Value):
    """A session that a coding agent keeps on this machine."""

    agent: str
    session_id: str
    path: str
    project: str | None = Field(description="Its working folder, if the agent tells")
    started: datetime | None
    updated: datetime
    size: int | None
    title: str | None
    usage: AgentSessionUsage | None = Field(description="If asked for, and the record can be read")


class AgentSessionPage(Value):
    project: str | None = Field(description="Null for all projects")
    sessions: tuple[AgentSession, ...]
    next_cursor: str | None
    skipped: int = Field(description="Files that could not be read and were skipped")


class ProjectList(Value):
    projects: tuple[str, ...]


class ProjectStats(Value):
    project: str
    journals: int
    actions: int
    skipped_lines: int
    by_type: dict[str, int]
    by_tool: dict[str, int]
    context_per_action: float | None
    mean_duration_seconds: float | None
    seconds_to_exhaustion: float | None
    active_session: str | None


class WorkflowStats(Value):
    """Statistics of the newest tasks of all workflows."""

    newest: int = Field(description="So many of the last tasks are counted, and of the last pauses")
    drivers: tuple[DriverRecord, ...]
    pauses: dict[str, int] = Field(description="What ended sessions, by trigger")


class SettingsView(Value):
    project: str
    home: str
    db: str = Field(description="Without its password")
    levels: Levels
    context_window: int | None
    compress_after_days: float
    model: str | None
    model_url: str | None
    model_time_limit: float
    on_exhaustion: str
    version: str


class Health(Value):
    status: Literal["ok"]
    version: str
    database: str
    workers: int = Field(description="Active workers")
    seq: int
    listeners: int = Field(description="Open WebSockets")


# --- what /ws/events sends


class EventsMessage(Value):
    """One or more events, in order: replayed events first, then live ones."""

    type: Literal["events"] = "events"
    events: tuple[Event, ...]


class LiveMessage(Value):
    """Everything up to `seq` was replayed; what follows is live."""

    type: Literal["live"] = "live"
    seq: int


class BackfillExpiredMessage(Value):
    """Some events after `since` were deleted: reload the state, then continue with the events that follow."""

    type: Literal["backfill_expired"] = "backfill_expired"
    since: int
    oldest: int = Field(description="Lowest event number still available")
    newest: int


class PingMessage(Value):
    type: Literal["ping"] = "ping"
    seq: int = Field(description="Number of the newest event")


class SlowMessage(Value):
    """The client is too slow. The connection closes (code 4008); reconnect with `since=seq`."""

    type: Literal["slow"] = "slow"
    seq: int = Field(description="The last event you were sent")
    newest: int


# --- transactions


class TransactionSummary(Value):
    """What one session changed in files."""

    id: str
    session_id: str
    status: Status
    began: AwareDatetime
    updated: AwareDatetime
    changes: int = Field(description="Changes that were not undone")
    files: tuple[str, ...]
    continued_from: str | None
    not_covered: tuple[str, ...] = Field(description="What is not recorded, as sentences")


class TransactionList(Value):
    project: str
    transactions: tuple[TransactionSummary, ...]


class ChangedFile(Value):
    path: str = Field(description="Ends with / if it is a folder")
    kind: Literal["added", "modified", "deleted"]


class TransactionEntry(Value):
    id: str
    kind: FileKind
    at: AwareDatetime
    description: str
    stands: bool = Field(description="Whether it was not undone, or not in all files")
    doubt: str = Field(description="Why the change cannot be attributed to the session; empty if it can")
    files: tuple[ChangedFile, ...]
    left: tuple[str, ...] = Field(description="Files that an undo left unchanged")
    undoes: tuple[str, ...] = Field(description="The entries that it undid")


class TransactionDetail(TransactionSummary):
    entries: tuple[TransactionEntry, ...]


class TaskConversation(Value):
    """Where an agent keeps what it said."""

    agent: str
    session_id: str


class TaskAttempt(Value):
    number: int
    session_number: int
    started_at: AwareDatetime
    ended_at: AwareDatetime | None
    outcome: Literal["completed", "failed", "blocked", "interrupted"] | None = Field(
        description="Null while it runs"
    )
    result: str | None
    seconds: float | None
    tokens: int | None
    context_share: float | None = Field(description="How much of the context window it added")
    cost_usd: float | None = Field(
        description="Null if it is unknown, or if other tasks ran at the same time"
    )
    retry_at: AwareDatetime | None
    commits: tuple[str, ...]
    conversations: tuple[TaskConversation, ...]


class RecordedChange(Value):
    """What a task changed in files."""

    transaction_id: str
    change: TransactionEntry
    undone_by: str | None = Field(
        description="The entry that undid it, if it was undone; undo that one to have the change back"
    )


class TaskDetail(Value):
    workflow_id: str
    task: Task
    driver: str
    worktree: str
    is_waiting: bool = Field(description="Whether it waits for approval")
    needed_by: tuple[str, ...] = Field(description="The tasks that depend on it")
    attempts: tuple[TaskAttempt, ...] = Field(description="Oldest first")
    changes: tuple[RecordedChange, ...] = Field(description="Newest first")
    changes_unknown: str | None = Field(description="Why its changes cannot be shown; null if they can")
    seq: int


ExecutedText = Literal["run", "prompt", "until"]


class Approval(Value):
    """What will run if the waiting task is approved. Texts are those of the plan: not to be trusted."""

    task: Task
    driver: str
    worktree: str
    risk: str | None = Field(
        description="What the rules for agents' commands object to; null does not mean that it is harmless"
    )
    until_risk: str | None = Field(description="The same for the command in `until`")
    hidden_in: tuple[ExecutedText, ...] = Field(
        description="Which of the task's texts are shown without something that looks like a secret"
    )
    cost_usd: float | None = Field(description="Of the workflow so far; null if it is unknown")
    changes: tuple[RecordedChange, ...] = Field(
        description="What its tasks changed in files so far, newest first"
    )
    changes_left_out: int = Field(description="How many older ones there are")
    changes_unknown: str | None = Field(description="Why changes cannot be shown; null if they can")
    after: tuple[Precedent, ...] = Field(description="The tasks it depends on, 50 at most")
    after_left_out: int = Field(description="How many more it depends on")


class ConversationCall(Value):
    id: str
    tool: str
    arguments: str = Field(description="The command, or the arguments as JSON")


class ConversationResult(Value):
    call_id: str
    text: str
    outcome: ToolOutcome


class ConversationMessage(Value):
    number: int = Field(description="Position in the conversation, from 0")
    role: Role
    at: str | None
    text: str
    thinking: str
    is_injected: bool = Field(description="Added by the agent's program, not typed by the user")
    is_compaction: bool = Field(description="The agent's own summary of what came before")
    subagent: str | None
    calls: tuple[ConversationCall, ...]
    results: tuple[ConversationResult, ...]


class EvidenceMessages(Value):
    """What a finding rests on, as the agent's own record has it; its texts are not to be trusted."""

    source: str
    messages: tuple[ConversationMessage, ...] = Field(
        description="Those that are still in the record; `number` is the position in it"
    )


class Conversation(Value):
    """Texts are those of the agent, its tools and its user: not to be trusted."""

    agent: str
    session_id: str
    messages: tuple[ConversationMessage, ...]
    first: int = Field(description="Number of the first one; pass as `before` to get those before it")
    total: int


class DiffHunk(Value):
    number: int = Field(description="For `hunks` of an undo")
    path: str
    kind: Literal["added", "modified", "deleted"]
    lines: tuple[str, ...] = Field(
        description="Of a unified diff, without secrets; none if it is a whole file that cannot be shown"
    )


class TransactionDiff(Value):
    hunks: tuple[DiffHunk, ...]


class RedoRequest(Body):
    files: tuple[str, ...] = Field(default=(), max_length=10_000, description="Only these. Default: all")
    partial: bool = Field(default=False, description="Skip files that cannot be undone without loss")
    dry_run: bool = Field(default=False, description="Only say what would be done")


class UndoRequest(RedoRequest):
    change: str | None = Field(default=None, max_length=200, description="Default: the last that stands")
    everything: bool = Field(default=False, description="Roll the whole transaction back")
    hunks: tuple[HunkNumber, ...] = Field(
        default=(),
        max_length=10_000,
        description="Only these, by the numbers in the diff of the transaction, or of `change`",
    )
    doubtful: bool = Field(default=False, description="Include changes that are in doubt")


class UndoResponse(Value):
    dry_run: bool
    entry: str | None = Field(description="The undo's own id; none after a dry run")
    restored: tuple[str, ...]
    left: dict[str, str] = Field(description="Files that are left unchanged, each with the reason")
    in_doubt: tuple[str, ...] = Field(description="Those left because their change is in doubt")
    set_aside: dict[str, str] = Field(description="Large files that were moved away, and where to")


SocketMessage = EventsMessage | LiveMessage | BackfillExpiredMessage | PingMessage | SlowMessage


# ── cursors ───────────────────────────────────────────────────────────────────────────────────────

# Cursors: where a page ended, in a form that means nothing to anybody else.

LARGEST_NUMBER = 2**63 - 1

Limit = Annotated[int, Query(ge=1, le=500, description="Maximum number of results")]
Cursor = Annotated[str | None, Query(max_length=400, description="`next_cursor` of the previous page")]
Since = Annotated[int, Query(ge=0, le=LARGEST_NUMBER, description="Only events with a higher number")]


def workflow_cursor(seq: int) -> str:
    return _packed("before", str(seq))


def workflow_position(cursor: str | None) -> int | None:
    """The number of an event: workflows last changed before it follow."""
    return None if cursor is None else _number(cursor, "before", LARGEST_NUMBER)


def offset_cursor(offset: int) -> str:
    return _packed("offset", str(offset))


def offset_of(cursor: str | None) -> int:
    return 0 if cursor is None else _number(cursor, "offset", 999_999_999)


def _number(cursor: str, wanted: str, most: int) -> int:
    kind, number = _unpacked(cursor)
    if kind != wanted or not number.isascii() or not number.isdecimal() or len(number) > len(str(most)):
        raise _not_ours()
    if int(number) > most:
        raise _not_ours()
    return int(number)


def _packed(first: str, second: str) -> str:
    return base64.urlsafe_b64encode(f"{first}\n{second}".encode()).decode().rstrip("=")


def _unpacked(cursor: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        first, second = text.split("\n")
    except (binascii.Error, ValueError):
        raise _not_ours() from None
    return first, second


def _not_ours() -> InvalidInputError:
    return InvalidInputError(
        "invalid cursor", hint="take `next_cursor` of the previous page, or leave it out"
    )
