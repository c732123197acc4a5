"""A store that forgets: for tests, and for flows that need no more."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from holdfast.model.entry import Entry, Event
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import ACTIVE, NEVER_RUN_AGAIN, Workflow, WorkflowStatus
from holdfast.store.protocol import (
    Change,
    SnapshotSummary,
    changed_elsewhere,
    snapshot_not_found,
    workflow_not_found,
    worktree_taken,
)


class MemoryStore:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workflows: dict[str, Workflow] = {}
        self._snapshots: dict[str, SessionSnapshot] = {}
        self._events: list[Event] = []
        self._last_seq: dict[str, int] = {}
        self._places: dict[str, int] = {}
        self._originals: dict[str, dict[str, str]] = {}

    def apply(self, change: Change) -> Sequence[Event]:
        with self._lock:
            self._check(change)
            workflow = change.workflow
            recorded = [
                Event(
                    seq=len(self._events) + offset,
                    workflow_id=workflow.id,
                    at=workflow.updated_at,
                    entry=entry,
                )
                for offset, entry in enumerate(change.entries, start=1)
            ]
            self._workflows[workflow.id] = workflow
            if change.delete is not None:
                del self._snapshots[change.delete]
            if change.save is not None:
                self._place(change.save)
                self._snapshots[change.save.id] = change.save
            self._events += recorded
            if recorded:
                self._last_seq[workflow.id] = recorded[-1].seq
            self._keep_originals(change)
            return recorded

    def _place(self, snapshot: SessionSnapshot) -> None:
        """One that comes late stands before those of its workflow that followed it."""
        if snapshot.id not in self._snapshots:
            following = (
                self._places[other.id] for other in self._of(snapshot.workflow_id) if _came(snapshot, other)
            )
            self._places[snapshot.id] = min(following, default=len(self._events))

    def _keep_originals(self, change: Change) -> None:
        workflow = change.workflow
        kept = {**self._originals.get(workflow.id, {}), **change.originals}
        self._originals[workflow.id] = {} if workflow.status in NEVER_RUN_AGAIN else kept

    def _check(self, change: Change) -> None:
        workflow = change.workflow
        now = self._workflows.get(workflow.id)
        if (now.revision if now else None) != change.seen:
            raise changed_elsewhere(workflow.id)
        if workflow.status in ACTIVE and any(
            other.id != workflow.id and other.worktree == workflow.worktree and other.status in ACTIVE
            for other in self._workflows.values()
        ):
            raise worktree_taken(workflow.worktree)
        if change.delete is not None and change.delete not in self._snapshots:
            raise snapshot_not_found(change.delete)
        if change.save is not None and any(
            other.id not in (change.save.id, change.delete)
            and other.workflow_id == workflow.id
            and other.session_number == change.save.session_number
            for other in self._snapshots.values()
        ):
            raise changed_elsewhere(workflow.id)

    def workflow(self, workflow_id: str) -> Workflow:
        try:
            return self._workflows[workflow_id]
        except KeyError:
            raise workflow_not_found(workflow_id) from None

    def originals(self, workflow_id: str) -> Mapping[str, str]:
        return self._originals.get(workflow_id, {})

    def workflows(
        self,
        *,
        worktree: str | None = None,
        statuses: Collection[WorkflowStatus] | None = None,
        limit: int = 100,
        search: str | None = None,
    ) -> Sequence[Workflow]:
        page, _ = self.workflow_page(worktree=worktree, statuses=statuses, limit=limit, search=search)
        return page

    def workflow_page(
        self,
        *,
        worktree: str | None = None,
        statuses: Collection[WorkflowStatus] | None = None,
        limit: int = 100,
        search: str | None = None,
        before: int | None = None,
    ) -> tuple[Sequence[Workflow], int | None]:
        last = dict(self._last_seq)
        found = [
            workflow
            for workflow in list(self._workflows.values())
            if (worktree is None or workflow.worktree == worktree)
            and (statuses is None or workflow.status in statuses)
            and (not search or _mentions(workflow, search.lower()))
            and (before is None or last[workflow.id] < before)
        ]
        found.sort(key=lambda workflow: last[workflow.id], reverse=True)
        return found[:limit], last[found[limit - 1].id] if len(found) > limit else None

    def queued(self, limit: int = 100) -> Sequence[Workflow]:
        found = [flow for flow in list(self._workflows.values()) if flow.run_id and flow.claim is None]
        return sorted(found, key=lambda flow: self._last_seq[flow.id])[:limit]

    def due(self, now: datetime, limit: int = 100) -> Sequence[Workflow]:
        found = [
            (flow.resume_at, flow)
            for flow in list(self._workflows.values())
            if flow.resume_at is not None and flow.resume_at <= now
        ]
        return [flow for _, flow in sorted(found, key=lambda pair: pair[0])][:limit]

    def snapshot(self, snapshot_id: str) -> SessionSnapshot:
        try:
            return self._snapshots[snapshot_id]
        except KeyError:
            raise snapshot_not_found(snapshot_id) from None

    def latest_snapshot(self, workflow_id: str) -> SessionSnapshot | None:
        return max(
            self._of(workflow_id),
            key=lambda snapshot: (snapshot.created_at, snapshot.session_number),
            default=None,
        )

    def snapshots(self, workflow_id: str) -> Sequence[SnapshotSummary]:
        return sorted(map(self._line, self._of(workflow_id)), key=lambda line: line.session_number)

    def find_snapshots(self, name: str) -> Sequence[SnapshotSummary]:
        found = [
            self._line(snapshot)
            for snapshot in list(self._snapshots.values())
            if snapshot.id.startswith(name) or snapshot.session_id == name
        ]
        return sorted(found, key=lambda line: (*line.place, line.id), reverse=True)

    def _line(self, snapshot: SessionSnapshot) -> SnapshotSummary:
        return SnapshotSummary.of(snapshot, self._places[snapshot.id])

    def events(
        self,
        *,
        workflow_id: str | None = None,
        since: int = 0,
        limit: int | None = None,
        types: Collection[str] | None = None,
    ) -> Sequence[Event]:
        return [
            event
            for event in self._events[max(0, since) :]
            if (workflow_id is None or event.workflow_id == workflow_id)
            and (types is None or event.entry.type in types)
        ][:limit]

    def event_range(self) -> tuple[int, int]:
        return min(1, len(self._events)), len(self._events)

    def recent_entries(self, kind: str, limit: int) -> Sequence[Entry]:
        return [event.entry for event in reversed(self._events) if event.entry.type == kind][:limit]

    def close(self) -> None:
        pass

    def _of(self, workflow_id: str) -> list[SessionSnapshot]:
        return [
            snapshot for snapshot in list(self._snapshots.values()) if snapshot.workflow_id == workflow_id
        ]


def _came(one: SessionSnapshot, other: SessionSnapshot) -> bool:
    """Whether the first came before the second."""
    return (one.created_at, one.session_number) < (other.created_at, other.session_number)


def _mentions(workflow: Workflow, text: str) -> bool:
    told = (workflow.issue.title, workflow.issue.id, workflow.id, workflow.worktree)
    return any(text in one.lower() for one in told)
