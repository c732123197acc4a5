"""What can happen in a session. State is a fold over these, in the order of their sequence numbers.

Adding something that can happen: a class here, its line in `AnyEntry`, and what it
does to the state in `fold.py`. An entry written by a newer version reads as
`UnknownEntry`: kept, passed on, without effect.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AwareDatetime, ConfigDict, Field, TypeAdapter

from holdfast.model.base import Value
from holdfast.model.findings import Decision, ErrorRecord, ReviewerFeedback, TestState
from holdfast.model.message import TodoItem
from holdfast.model.policy import Trigger
from holdfast.model.task import TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Issue, WorkflowStatus


class WorkflowCreated(Value):
    type: Literal["workflow_created"] = "workflow_created"
    issue: Issue
    worktree: str
    task_dag: TaskDAG = TaskDAG()
    constraints: tuple[str, ...] = ()
    runs: bool = Field(default=False, description="Whether Holdfast runs its tasks")


class WorkflowStatusChanged(Value):
    """Started, blocked, completed, failed or cancelled; pausing and resuming have separate entries.

    A failure follows the entry of its pause, which names the snapshot.
    """

    type: Literal["workflow_status_changed"] = "workflow_status_changed"
    status: WorkflowStatus
    reason: str | None = None


class SessionTaken(Value):
    """A runner claimed the session: the first one, or one that took over."""

    type: Literal["session_taken"] = "session_taken"
    run_id: str
    claim: str
    took_over_from: str | None = None


class Warned(Value):
    """A warning to the user that did not stop anything."""

    type: Literal["warned"] = "warned"
    text: str


class TaskApproved(Value):
    type: Literal["task_approved"] = "task_approved"
    task_id: str


class TaskSkipped(Value):
    """The user gave up on a task; what depends on it can start."""

    type: Literal["task_skipped"] = "task_skipped"
    task_id: str
    reason: str | None = None


class WorkCommitted(Value):
    """A task's changes were committed so that other machines can fetch them."""

    type: Literal["work_committed"] = "work_committed"
    task_id: str
    commit: str
    ref: str = Field(description="Location in the workflow's repository")


class AgentSessionReported(Value):
    """The agent's own session behind the tasks of this one."""

    type: Literal["agent_session_reported"] = "agent_session_reported"
    task_id: str
    agent: str
    agent_session_id: str
    transcript: str | None = None


class TaskStarted(Value):
    type: Literal["task_started"] = "task_started"
    task_id: str
    attempt: int = Field(
        default=1, ge=1, description="Greater than 1 if an earlier attempt was interrupted or failed"
    )


class TaskFinished(Value):
    type: Literal["task_finished"] = "task_finished"
    task_id: str
    outcome: Literal["completed", "failed", "blocked", "interrupted"]
    result: str | None = None
    attempt: int = Field(default=1, ge=1)
    seconds: float | None = Field(default=None, ge=0, description="Duration of this attempt")
    driver: str | None = None
    tokens: int | None = Field(default=None, ge=0, description="Usage of its model calls")
    context_share: float | None = Field(
        default=None, ge=0, description="Share of the context window it added"
    )
    outputs: dict[str, str] | None = Field(
        default=None, description="Values it left for the tasks that depend on it"
    )
    retry_at: AwareDatetime | None = Field(
        default=None, description="When it is retried automatically, if it failed and has retries left"
    )


class DecisionRecorded(Value):
    type: Literal["decision_recorded"] = "decision_recorded"
    decision: Decision


class ErrorRecorded(Value):
    """A new error, or an update of the one with the same id."""

    type: Literal["error_recorded"] = "error_recorded"
    error: ErrorRecord


class FeedbackRecorded(Value):
    type: Literal["feedback_recorded"] = "feedback_recorded"
    feedback: ReviewerFeedback


class TestsRun(Value):
    __test__ = False

    type: Literal["tests_run"] = "tests_run"
    state: TestState


class UsageReported(Value):
    """The session's running total; the newest report applies."""

    type: Literal["usage_reported"] = "usage_reported"
    usage: UsageMetrics


class ConstraintPinned(Value):
    type: Literal["constraint_pinned"] = "constraint_pinned"
    text: str = Field(min_length=1)


class TodosSet(Value):
    """The whole list as the agent told it; the newest one since the last pause applies."""

    type: Literal["todos_set"] = "todos_set"
    todos: tuple[TodoItem, ...]


class PauseRequested(Value):
    type: Literal["pause_requested"] = "pause_requested"
    trigger: Trigger
    reason: str | None = None


class WorkflowPaused(Value):
    type: Literal["workflow_paused"] = "workflow_paused"
    snapshot_id: str
    session_id: str
    session_number: int
    trigger: Trigger
    reason: str | None = None


class WorkflowResumed(Value):
    type: Literal["workflow_resumed"] = "workflow_resumed"
    snapshot_id: str | None = None
    session_number: int
    message: str | None = None
    retry: tuple[str, ...] | None = Field(
        default=None, description="Failed tasks that are retried; null for all of them"
    )


class HandoverTakenUp(Value):
    """Work without a plan was resumed: its context was read to continue by hand or in an agent."""

    type: Literal["handover_taken_up"] = "handover_taken_up"
    snapshot_id: str
    message: str | None = None


class SnapshotEnriched(Value):
    type: Literal["snapshot_enriched"] = "snapshot_enriched"
    snapshot_id: str
    decisions: int = 0
    errors: int = 0


class SnapshotDeleted(Value):
    type: Literal["snapshot_deleted"] = "snapshot_deleted"
    snapshot_id: str


class SnapshotImported(Value):
    """Restored from a session's files after the database was lost or moved."""

    type: Literal["snapshot_imported"] = "snapshot_imported"
    snapshot_id: str
    session_id: str


class WorkflowMoved(Value):
    """Its folder was moved or renamed."""

    type: Literal["workflow_moved"] = "workflow_moved"
    worktree: str


class WorkflowForked(Value):
    """It began as a copy of another workflow, which stays as it is."""

    type: Literal["workflow_forked"] = "workflow_forked"
    origin_id: str = Field(description="The workflow it was forked from")
    snapshot_id: str | None = Field(default=None, description="The snapshot of that one, if an older one")
    task_id: str | None = Field(default=None, description="The first task that is to run again")


class UnknownEntry(Value):
    model_config = ConfigDict(frozen=True, extra="allow")

    type: str


AnyEntry = Annotated[
    WorkflowCreated
    | WorkflowStatusChanged
    | SessionTaken
    | Warned
    | TaskApproved
    | TaskSkipped
    | AgentSessionReported
    | WorkCommitted
    | TaskStarted
    | TaskFinished
    | DecisionRecorded
    | ErrorRecorded
    | FeedbackRecorded
    | TestsRun
    | UsageReported
    | ConstraintPinned
    | TodosSet
    | PauseRequested
    | WorkflowPaused
    | WorkflowResumed
    | HandoverTakenUp
    | SnapshotEnriched
    | SnapshotDeleted
    | SnapshotImported
    | WorkflowMoved
    | WorkflowForked,
    Field(discriminator="type"),
]

Entry = AnyEntry | UnknownEntry


class Event(Value):
    """A recorded entry with its position in the total order of all changes."""

    seq: int = Field(ge=1)
    workflow_id: str
    at: AwareDatetime
    entry: Entry


_KNOWN: TypeAdapter[Any] = TypeAdapter(AnyEntry)
_KINDS: frozenset[str] = frozenset(
    kind.model_fields["type"].default for kind in get_args(get_args(AnyEntry)[0])
)


def entry_from_json(kind: str, text: str) -> Entry:
    """Strict about the kinds we know, patient with those we do not."""
    if kind in _KINDS:
        return _KNOWN.validate_json(text)
    return UnknownEntry.model_validate_json(text)
