"""A workflow: work that outlives sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Self

from pydantic import AwareDatetime, Field

from holdfast.base.errors import IllegalTransitionError
from holdfast.model.base import Value
from holdfast.model.policy import PausePolicy, Trigger
from holdfast.model.statuses import (
    ACTIVE,
    NEVER_RUN_AGAIN,
    OPEN,
    RESUMABLE,
    VALID_TRANSITIONS,
    IssueFacts,
    WorkflowFacts,
    WorkflowStatus,
    folder_title,
)
from holdfast.model.thresholds import DEFAULT_PRIORITY, WORKFLOW_PAUSE

__all__ = [
    "ACTIVE",
    "NEVER_RUN_AGAIN",
    "OPEN",
    "RESUMABLE",
    "VALID_TRANSITIONS",
    "Issue",
    "PauseRequest",
    "Workflow",
    "WorkflowOptions",
    "WorkflowStatus",
]


class Issue(IssueFacts, Value):
    """What the work is for, as its author wrote it."""

    id: str
    title: str
    description: str = ""

    @classmethod
    def for_folder(cls, name: str) -> Issue:
        """Where nobody has said what the work is for."""
        return cls(id=name, title=folder_title(name))


class PauseRequest(Value):
    """A pause was requested; it takes effect at the next boundary."""

    trigger: Trigger
    reason: str | None = None
    requested_at: AwareDatetime
    force_after: float | None = Field(default=None, ge=0, description="Overrides the workflow's own limit")


class WorkflowOptions(Value):
    """How a workflow is run, in every one of its sessions."""

    driver: str = Field(default="shell", description="Driver that executes the tasks")
    parallel: int = Field(default=1, ge=1, description="Maximum number of concurrent tasks")
    pause_every: int | None = Field(default=None, ge=1, description="Pause after N tasks in a session")
    timeout: float | None = Field(
        default=None, gt=0, description="Interrupt and pause a session after N seconds"
    )
    exhaustion_at: float = Field(
        default=WORKFLOW_PAUSE, gt=0, le=1, description="Pause at this share of the context window"
    )
    force_after: float = Field(default=300.0, ge=0, description="Seconds a pause waits for a running task")
    resume_on_reset: bool = Field(default=False, description="Resume automatically when the quota resets")
    retries: int = Field(default=0, ge=0, description="Automatic retries of a task that fails")
    retry_delay: float = Field(
        default=1.0, ge=0, description="Seconds before the first retry; doubled before each further one"
    )
    keep_going: bool = Field(default=False, description="Run independent tasks after one has failed")
    priority: int = Field(
        default=DEFAULT_PRIORITY, ge=1, le=1_000_000, description="Workers begin with the lowest"
    )
    repository: str | None = Field(default=None, description="Git URL or path workers fetch the code from")
    branch: str | None = Field(default=None, description="Branch of the work in that repository")

    def pausing_at(self, share: float) -> WorkflowOptions:
        """With this limit, unless they were made with one: a plan's own wins."""
        return self if "exhaustion_at" in self.model_fields_set else self.changed(exhaustion_at=share)

    @property
    def policy(self) -> PausePolicy:
        return PausePolicy(
            exhaustion_at=self.exhaustion_at,
            every_tasks=self.pause_every,
            timeout_seconds=self.timeout,
            force_after_seconds=self.force_after,
        )


class Workflow(WorkflowFacts, Value):
    id: str
    issue: Issue
    worktree: str = Field(description="Folder the work happens in")
    status: WorkflowStatus = "pending"
    revision: int = Field(default=1, ge=1, description="Incremented on every change, for optimistic locking")
    session_count: int = Field(default=1, ge=1)
    created_at: AwareDatetime
    updated_at: AwareDatetime
    paused_at: AwareDatetime | None = None
    pause_reason: str | None = Field(default=None, description="Why it is paused, or why it failed")
    pause_request: PauseRequest | None = None
    commit_at_start: str | None = Field(default=None, description="HEAD when the workflow started")
    options: WorkflowOptions = WorkflowOptions()
    run_id: str | None = Field(default=None, description="Current run; any other run is stale")
    claim: str | None = Field(
        default=None, description="Claim of the current runner; required for every write by a runner"
    )
    resume_at: AwareDatetime | None = Field(default=None, description="When it resumes automatically")

    def without_secrets(self) -> Self:
        """As with any value; but the folder stays, whatever its name sounds like: it is where the work is."""
        clean = super().without_secrets()
        same = clean.worktree == self.worktree
        return clean if same else clean.model_copy(update={"worktree": self.worktree})

    def moved(self, status: WorkflowStatus, at: datetime, **changes: object) -> Workflow:
        """The workflow in its next state; an illegal step is refused."""
        if status not in VALID_TRANSITIONS[self.status]:
            allowed = ", ".join(sorted(VALID_TRANSITIONS[self.status])) or "none: it has ended"
            raise IllegalTransitionError(
                f"workflow {self.id} is {self.status} and cannot become {status} (allowed: {allowed})"
            )
        return self.touched(at, status=status, **changes)

    def touched(self, at: datetime, **changes: object) -> Workflow:
        """A copy with these changes, as the next revision. Its times do not go back, though the clock may."""
        return self.changed(updated_at=max(at, self.updated_at), revision=self.revision + 1, **changes)
