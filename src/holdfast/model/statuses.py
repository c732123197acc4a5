"""The states of workflows and tasks, which may follow which, and what a session's entries do to the tasks.

Standard library only: commands that only look read these without loading the values. `SessionFold` and the
quick look at a database (`sessions/standing.py`) share `TaskProgress`, so there is one rule for what a
task's start and end mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from holdfast.base.process import ProcessIdentity, is_alive, machine

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Protocol

    from holdfast.model.task import Task

    class HasStatus(Protocol):
        @property
        def status(self) -> str: ...


WorkflowStatus = Literal["pending", "in_progress", "blocked", "paused", "completed", "failed", "cancelled"]

VALID_TRANSITIONS: dict[WorkflowStatus, frozenset[WorkflowStatus]] = {
    "pending": frozenset({"in_progress", "cancelled"}),
    "in_progress": frozenset({"blocked", "paused", "completed", "failed", "cancelled"}),
    "blocked": frozenset({"in_progress", "failed", "cancelled"}),
    "paused": frozenset({"in_progress", "cancelled"}),
    "completed": frozenset(),
    "failed": frozenset({"in_progress", "cancelled"}),
    "cancelled": frozenset(),
}

ACTIVE: frozenset[WorkflowStatus] = frozenset({"in_progress", "blocked"})
"""A worktree holds at most one of these."""

RESUMABLE: frozenset[WorkflowStatus] = frozenset({"paused", "failed"})
"""The next session of these is another one, from where the last one stopped."""

OPEN: frozenset[WorkflowStatus] = frozenset({*ACTIVE, "pending", "paused"})

NEVER_RUN_AGAIN: frozenset[WorkflowStatus] = frozenset({"completed", "cancelled"})

TaskStatus = Literal["pending", "in_progress", "blocked", "completed", "failed", "skipped"]

REMAINING: frozenset[TaskStatus] = frozenset({"pending", "in_progress", "blocked", "failed"})

DONE: frozenset[TaskStatus] = frozenset({"completed", "skipped"})
"""Whatever depends on these may start."""


class PlanFacts:
    """What a plan tells of its tasks, whether they are values or were only read."""

    if TYPE_CHECKING:
        tasks: tuple[Task, ...]

    @cached_property
    def by_id(self) -> dict[str, Task]:
        return {task.id: task for task in self.tasks}

    def count(self, *statuses: TaskStatus) -> int:
        held = [task.status for task in self.tasks]
        return sum(map(held.count, statuses))


class IssueFacts:
    """What an issue tells of itself, whether it is a value or was only read."""

    if TYPE_CHECKING:
        id: str
        title: str
        description: str

    @property
    def says_nothing(self) -> bool:
        return (self.title, self.description) == (folder_title(self.id), "")


class WorkflowFacts:
    """What a workflow tells of itself, whether it is a value or was only read."""

    if TYPE_CHECKING:
        options: Any
        worktree: str

    @property
    def users_folder(self) -> str:
        """The user's folder that the work is in; nothing where it is in clones of the workers."""
        return "" if self.options.repository is not None else self.worktree


def folder_title(name: str) -> str:
    """Where nobody has said what the work is for."""
    return f"Work in {name}"


NOT_TO_BE_RUN = "it cannot be run: "
"""How the failure begins of a task whose text is here without its secrets alone: no retry can help."""


def is_lost(reason: str | None) -> bool:
    return reason is not None and reason.startswith(NOT_TO_BE_RUN)


NOT_YET = "the condition does not hold yet"
"""How the failure begins of a task that has to go round once more, and in which nothing went wrong."""


def is_not_yet(reason: str | None) -> bool:
    return reason is not None and reason.startswith(NOT_YET)


# ── progress ──────────────────────────────────────────────────────────────────────────────────────


@dataclass
class TaskProgress:
    """What changed about the tasks of a plan, which is kept elsewhere."""

    task_changes: dict[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    current_task_id: str | None = None
    done_in_session: int = 0
    failed_in_session: set[str] = field(default_factory=set[str])

    def change(self, task_id: str, **changes: object) -> None:
        self.task_changes[task_id] = {**self.task_changes.get(task_id, {}), **changes}

    def start(self, plan: Mapping[str, HasStatus], task_id: str, attempt: int) -> None:
        if task_id in plan:
            self.change(task_id, status="in_progress", result=None, attempts=attempt)
            self.current_task_id = task_id

    def finish(self, task_id: str, outcome: str, result: str | None, *, is_retried: bool = False) -> None:
        # An interrupted task did not happen: it is pending again.
        is_pending = outcome == "interrupted" or is_retried
        self.change(task_id, status="pending" if is_pending else outcome, result=result)
        self.done_in_session += outcome == "completed"
        if outcome == "failed" and not is_retried:
            self.failed_in_session.add(task_id)
        if self.current_task_id == task_id:
            self.current_task_id = None

    def skip(self, task_id: str, reason: str | None) -> None:
        self.change(task_id, status="skipped", result=reason)

    def resume(self, plan: Mapping[str, HasStatus], retry: Collection[str] | None = None) -> None:
        """To resume is to try again what failed: all of it, or only what `retry` names."""
        for task_id, task in plan.items():
            is_failed = self.task_changes.get(task_id, {}).get("status", task.status) == "failed"
            if is_failed and (retry is None or task_id in retry):
                self.change(task_id, status="pending")
        self.done_in_session = 0
        self.failed_in_session = set()


# ── claims ──────────────────────────────────────────────────────────────────────────────────────────

# Who runs a workflow, and whether that process is gone.
#
# A claim names its holder: `worker-HOST-PID-…#3` is the third session that worker took. A
# worker's lease may be judged by anybody; a run in somebody's terminal lives as long as
# its process does, even where it is stopped with Ctrl-Z.


@dataclass(frozen=True)
class Lease:
    id: str
    kind: str
    host: str
    pid: int
    started_mark: str | None
    lease_seconds: float
    age: float = 0.0
    """Seconds since it was renewed, by the database's clock."""

    @property
    def expired(self) -> bool:
        return self.age > self.lease_seconds


def holder(claim: str) -> str:
    return claim.rpartition("#")[0]


def is_gone(claim: str, leases: Iterable[Lease]) -> bool:
    """Whether whoever holds this claim will never go on with it."""
    lease = next((one for one in leases if one.id == holder(claim)), None)
    return lease is None or is_dead(lease)


def is_dead(lease: Lease) -> bool:
    if lease.host == machine():
        identity: ProcessIdentity = {"pid": lease.pid, "started": lease.started_mark}
        if not is_alive(identity):
            return True
        if lease.kind == "run":
            return False
    return lease.expired
