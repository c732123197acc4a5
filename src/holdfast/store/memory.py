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
                self._snapshots[change.save.id] = change.save
            self._events += recorded
            self._keep_originals(change)
            return recorded

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
        before: tuple[datetime, str] | None = None,
    ) -> Sequence[Workflow]:
        found = [
            workflow
            for workflow in list(self._workflows.values())
            if (worktree is None or workflow.worktree == worktree)
            and (statuses is None or workflow.status in statuses)
            and (not search or _mentions(workflow, search.lower()))
            and (before is None or (workflow.updated_at, workflow.id) < before)
        ]
        if worktree is not None and before is None:
            last = {event.workflow_id: event.seq for event in self._events}
            return sorted(found, key=lambda workflow: last[workflow.id], reverse=True)[:limit]
        return sorted(found, key=lambda workflow: (workflow.updated_at, workflow.id), reverse=True)[:limit]

    def queued(self, limit: int = 100) -> Sequence[Workflow]:
        found = [flow for flow in list(self._workflows.values()) if flow.run_id and flow.claim is None]
        return sorted(found, key=lambda flow: flow.updated_at)[:limit]

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
        return sorted(map(SnapshotSummary.of, self._of(workflow_id)), key=lambda line: line.session_number)

    def find_snapshots(self, name: str) -> Sequence[SnapshotSummary]:
        found = [
            SnapshotSummary.of(snapshot)
            for snapshot in list(self._snapshots.values())
            if snapshot.id.startswith(name) or snapshot.session_id == name
        ]
        return sorted(found, key=lambda line: (line.created_at, line.id), reverse=True)

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


def _mentions(workflow: Workflow, text: str) -> bool:
    told = (workflow.issue.title, workflow.issue.id, workflow.id, workflow.worktree)
    return any(text in one.lower() for one in told)
