"""What a store must do. Every change is one transaction: new state plus at least one entry."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from holdfast.base.errors import ConflictError, HeldElsewhereError, NotFoundError
from holdfast.model.policy import Trigger

if TYPE_CHECKING:
    from holdfast.model.entry import Entry, Event
    from holdfast.model.snapshot import SessionSnapshot
    from holdfast.model.workflow import Workflow, WorkflowStatus


@dataclass(frozen=True)
class Change:
    """One change of one workflow: applied whole, or not at all.

    `seen` is the revision the change was made from, `None` for a new workflow. If
    somebody changed the workflow since, the store refuses with `ConflictError`.
    """

    workflow: Workflow
    seen: int | None
    entries: tuple[Entry, ...]
    save: SessionSnapshot | None = None
    """A snapshot to add, or to replace where one with its id exists."""
    delete: str | None = None
    """Id of a snapshot to remove."""
    originals: Mapping[str, str] = field(default_factory=dict[str, str])
    """What is executed, by name, where the entries have it without its secrets."""


@dataclass(frozen=True)
class SnapshotSummary:
    """A line in a list of snapshots; nothing large is read for it."""

    id: str
    workflow_id: str
    session_number: int
    session_id: str
    trigger: Trigger
    created_at: datetime
    pause_reason: str | None
    tasks_completed: int
    tasks_remaining: int
    seq: int = 0
    """Number of the last event before it: the order of snapshots, whatever the clock said."""

    @classmethod
    def of(cls, snapshot: SessionSnapshot, seq: int = 0) -> SnapshotSummary:
        return cls(**{name: getattr(snapshot, name) for name in SNAPSHOT_FIELDS}, seq=seq)

    @property
    def place(self) -> tuple[int, datetime, int]:
        """Sorts snapshots of any workflows, oldest first."""
        return (self.seq, self.created_at, self.session_number)


SNAPSHOT_FIELDS = tuple(one.name for one in fields(SnapshotSummary) if one.name != "seq")
"""What a line tells of the snapshot itself."""


class Store(Protocol):
    def apply(self, change: Change) -> Sequence[Event]:
        """Make the change durable and give its entries their sequence numbers."""
        ...

    def workflow(self, workflow_id: str) -> Workflow: ...

    def originals(self, workflow_id: str) -> Mapping[str, str]:
        """All that changes of the workflow brought with them; gone once it never runs again.

        For whoever executes it. Nothing of it may be shown, exported or recorded.
        """
        ...

    def workflows(
        self,
        *,
        worktree: str | None = None,
        statuses: Collection[WorkflowStatus] | None = None,
        limit: int = 100,
        search: str | None = None,
    ) -> Sequence[Workflow]:
        """Most recently changed first: in the order of their events, whatever the clock said.

        `search` is looked for in title, issue, id and worktree, whatever its case.
        """
        ...

    def workflow_page(
        self,
        *,
        worktree: str | None = None,
        statuses: Collection[WorkflowStatus] | None = None,
        limit: int = 100,
        search: str | None = None,
        before: int | None = None,
    ) -> tuple[Sequence[Workflow], int | None]:
        """The same from `before` on, and the `before` of the next page; none after the last."""
        ...

    def queued(self, limit: int = 100) -> Sequence[Workflow]:
        """Those with a run that nobody has claimed, the longest unchanged first."""
        ...

    def due(self, now: datetime, limit: int = 100) -> Sequence[Workflow]:
        """Those that were to go on by themselves by now, the longest due first."""
        ...

    def snapshot(self, snapshot_id: str) -> SessionSnapshot: ...

    def latest_snapshot(self, workflow_id: str) -> SessionSnapshot | None:
        """The one paused last, whatever its number."""
        ...

    def snapshots(self, workflow_id: str) -> Sequence[SnapshotSummary]:
        """In order of their session numbers."""
        ...

    def find_snapshots(self, name: str) -> Sequence[SnapshotSummary]:
        """Those whose id begins with `name`, or whose session is called so; newest first."""
        ...

    def events(
        self,
        *,
        workflow_id: str | None = None,
        since: int = 0,
        limit: int | None = None,
        types: Collection[str] | None = None,
    ) -> Sequence[Event]:
        """Entries with a sequence number above `since`, in order; of these types only, where given."""
        ...

    def event_range(self) -> tuple[int, int]:
        """The lowest and the highest sequence number there is; 0 and 0 where there is none."""
        ...

    def recent_entries(self, kind: str, limit: int) -> Sequence[Entry]:
        """The newest entries of one kind, of all workflows, newest first."""
        ...

    def close(self) -> None: ...


# What every store says in the same words.


def workflow_not_found(workflow_id: str) -> NotFoundError:
    return NotFoundError(f"no such workflow: {workflow_id}", hint="`holdfast list --all` shows them")


def snapshot_not_found(snapshot_id: str) -> NotFoundError:
    return NotFoundError(f"no such snapshot: {snapshot_id}", hint="`holdfast snapshot list` shows them")


def changed_elsewhere(workflow_id: str) -> ConflictError:
    return ConflictError(
        f"workflow {workflow_id} was changed by another process in the meantime",
        hint="check `holdfast status` and try again",
    )


def worktree_taken(worktree: str) -> HeldElsewhereError:
    return HeldElsewhereError(
        f"another workflow is active in {worktree}",
        hint="pause or cancel it first; `holdfast status` shows it",
    )
