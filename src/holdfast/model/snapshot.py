"""What is saved at a pause: the fold over a session's entries, plus facts of the world; how two differ."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from holdfast.model.base import SNAPSHOT_SCHEMA, Value
from holdfast.model.entry import AgentSessionReported, WorkCommitted
from holdfast.model.findings import Decision, ErrorRecord, ModelReading, ReviewerFeedback, TestState
from holdfast.model.gathered import Fidelity, Gathered
from holdfast.model.git import GitState
from holdfast.model.message import TodoItem
from holdfast.model.policy import Trigger
from holdfast.model.task import REMAINING, TaskDAG
from holdfast.model.usage import UsageMetrics


class ActionGlimpse(Value):
    type: str
    timestamp: str


class RecordedWords(Value):
    """What one action says, for people; the journal has it in full."""

    type: str
    timestamp: str
    text: str
    rule: bool = Field(default=False, description="The user stated a standing rule")
    from_hook: bool = Field(default=False, description="Recorded by hooks: also in the transcript")


class IncrementalPause(Value):
    """The contents of the wind-down journal when it was finalised; the journal itself is kept alongside."""

    enabled: bool = True
    action_count: int = Field(ge=0)
    duration_seconds: int = Field(ge=0)
    context_range: tuple[float, float]
    tool_calls: int = Field(ge=0)
    actions_summary: tuple[ActionGlimpse, ...] = Field(max_length=10)
    recorded: tuple[RecordedWords, ...] = Field(
        default=(), description="User messages first, then other actions"
    )
    said_dropped: int = Field(default=0, ge=0, description="User messages found only in the journal")
    others_dropped: int = Field(default=0, ge=0, description="Other actions found only in the journal")
    agent_session: str | None = Field(default=None, description="The agent whose hooks recorded it, if any")
    skipped_lines: int = Field(
        default=0, ge=0, description="Truncated or unreadable lines, kept but not counted"
    )


class FileFingerprint(Value):
    path: str
    hash: str = Field(pattern=r"^(sha256:[0-9a-f]{64}|absent)$")
    mtime_ns: int
    size: int = Field(ge=0)
    executable: bool | None = Field(default=None, description="By its owner; null for what is no plain file")
    ctime_ns: int | None = Field(
        default=None, description="Change time; null if the timestamp alone does not prove the content"
    )


class ContextPin(Value):
    part: str = Field(min_length=1, max_length=40, description="Part of the context it stands in")
    text: str = Field(min_length=1, max_length=4_000)


class ContextEdits(Value):
    """What a person changed in the context for the next session; kept for the sessions that follow."""

    pins: tuple[ContextPin, ...] = Field(
        default=(), max_length=100, description="Always included, as they were pinned"
    )
    dropped: tuple[str, ...] = Field(default=(), max_length=1_000, description="Keys of statements left out")
    order: tuple[str, ...] = Field(
        default=(), max_length=1_000, description="Keys in their order; each stays in its part"
    )

    @property
    def lasting(self) -> ContextEdits:
        """What holds for later sessions: a pinned state of then would be told as that of now."""
        return self.changed(pins=tuple(pin for pin in self.pins if pin.part in _LASTING_PARTS))


_LASTING_PARTS = ("wants", "decisions")


class SessionSnapshot(Value):
    """Everything the next session needs, at one point in time."""

    schema_version: Literal[1] = SNAPSHOT_SCHEMA.current
    id: str
    workflow_id: str
    session_number: int = Field(ge=1)
    session_id: str = Field(description="Base name of the session's files")

    created_at: AwareDatetime
    trigger: Trigger
    pause_reason: str | None = None

    task_dag: TaskDAG = TaskDAG()
    current_task_id: str | None = None
    next_task_id: str | None = None

    git_state: GitState | None = Field(default=None, description="Null if the folder is not a repository")
    files: tuple[FileFingerprint, ...] = Field(
        default=(), description="Changed files at the time of the snapshot"
    )
    folder_files: tuple[FileFingerprint, ...] | None = Field(
        default=None,
        description="Every file of a folder without git; null if git tells, or there were too many",
    )

    decisions: tuple[Decision, ...] = ()
    errors: tuple[ErrorRecord, ...] = ()
    reviewer_feedback: tuple[ReviewerFeedback, ...] | None = None
    test_state: TestState | None = None
    constraints: tuple[str, ...] = Field(default=(), description="The user's standing rules, verbatim")

    todos: tuple[TodoItem, ...] = Field(default=(), description="The list that the agent recorded, if any")

    worked: bool = Field(default=True, description="False if the session produced nothing worth resuming")
    usage: UsageMetrics = UsageMetrics()
    agent_session: AgentSessionReported | None = Field(
        default=None, description="The agent's own session for the last task"
    )
    conversation: str | None = Field(default=None, description="The agent's own session it was made from")
    continues: str | None = Field(
        default=None, description="Name of the session whose handover it was given, if any"
    )
    handover: str | None = Field(default=None, description="The agent's own words for the next session")
    reading: ModelReading | None = Field(
        default=None, description="What a model read in the record, if one is set"
    )
    context_edits: ContextEdits | None = None
    closed: bool = Field(default=False, description="The user said that nothing is left to do")
    work: WorkCommitted | None = Field(default=None, description="The commit other machines continue from")
    incremental_pause: IncrementalPause | None = None
    gathered: Gathered | None = Field(default=None, description="What was found in the agent's transcript")
    fidelity: Fidelity | None = Field(default=None, description="What the resume context includes of this")
    folded_through: int = Field(default=0, ge=0, description="Sequence number of the last entry it holds")

    @cached_property
    def tasks_completed(self) -> int:
        return self.task_dag.count("completed")

    @cached_property
    def tasks_remaining(self) -> int:
        return self.task_dag.count(*REMAINING)

    @model_validator(mode="after")
    def _tasks_exist(self) -> Self:
        for role in ("current_task_id", "next_task_id"):
            named = getattr(self, role)
            if named is not None and named not in self.task_dag.by_id:
                raise ValueError(f"{role} refers to {named!r}, which is not a task of the plan")
        return self


# ── differences ───────────────────────────────────────────────────────────────────────────────────

# What changed between two snapshots.


class TaskChange(Value):
    id: str
    before: str | None
    after: str | None


class FactChange(Value):
    """One fact, before and after."""

    what: str
    before: Any
    after: Any


class SnapshotDiff(Value):
    before: str
    after: str
    facts: tuple[FactChange, ...]
    tasks: tuple[TaskChange, ...]
    decisions_added: tuple[Decision, ...]
    errors_added: tuple[ErrorRecord, ...]
    errors_resolved: tuple[ErrorRecord, ...]
    files_added: tuple[str, ...]
    files_removed: tuple[str, ...]
    files_changed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not any(
            getattr(self, name) for name in type(self).model_fields if name not in ("before", "after")
        )


def diff(before: SessionSnapshot, after: SessionSnapshot) -> SnapshotDiff:
    known_decisions = {item.id for item in before.decisions}
    old_errors = {item.id: item for item in before.errors}
    old_files = {item.path: item.hash for item in before.files}
    new_files = {item.path: item.hash for item in after.files}
    return SnapshotDiff(
        before=before.session_id,
        after=after.session_id,
        facts=tuple(_facts(before, after)),
        tasks=tuple(_tasks(before, after)),
        decisions_added=tuple(item for item in after.decisions if item.id not in known_decisions),
        errors_added=tuple(item for item in after.errors if item.id not in old_errors),
        errors_resolved=tuple(
            item
            for item in after.errors
            if item.id in old_errors
            and old_errors[item.id].resolution == "unresolved"
            and item.resolution != "unresolved"
        ),
        files_added=tuple(sorted(new_files.keys() - old_files.keys())),
        files_removed=tuple(sorted(old_files.keys() - new_files.keys())),
        files_changed=tuple(
            sorted(path for path in old_files.keys() & new_files.keys() if old_files[path] != new_files[path])
        ),
    )


def _plain_facts(snapshot: SessionSnapshot) -> dict[str, Any]:
    git, tests, usage = snapshot.git_state, snapshot.test_state, snapshot.usage
    return {
        "workflow": snapshot.workflow_id,
        "session number": snapshot.session_number,
        "trigger": snapshot.trigger,
        "reason": snapshot.pause_reason,
        "branch": git.branch if git else None,
        "commit": git.commit_at_snapshot if git else None,
        "uncommitted changes": git.uncommitted_summary if git else None,
        "test phase": tests.phase if tests else None,
        "failing tests": list(tests.failing_tests) if tests else None,
        "context used": usage.context_utilization,
        "tokens used": usage.tokens_used,
        "tool calls": usage.tool_calls,
        "constraints": list(snapshot.constraints),
    }


def _facts(before: SessionSnapshot, after: SessionSnapshot) -> list[FactChange]:
    old, new = _plain_facts(before), _plain_facts(after)
    return [
        FactChange(what=what, before=old[what], after=new[what]) for what in old if old[what] != new[what]
    ]


def _tasks(before: SessionSnapshot, after: SessionSnapshot) -> list[TaskChange]:
    old = {task.id: task.status for task in before.task_dag.tasks}
    new = {task.id: task.status for task in after.task_dag.tasks}
    return [
        TaskChange(id=name, before=old.get(name), after=new.get(name))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    ]
