"""The reading half of a store, over HTTP: commands that look at things need not know where they are."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter

from holdfast.base.errors import CannotDoError
from holdfast.client.http import Connection
from holdfast.model.entry import Entry, Event
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import Workflow, WorkflowStatus
from holdfast.store.protocol import Change, SnapshotSummary

_LARGEST_PAGE = 500
_LARGEST_EVENT_PAGE = 2_000
_summaries: TypeAdapter[list[SnapshotSummary]] = TypeAdapter(list[SnapshotSummary])


class RemoteStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def apply(self, change: Change) -> Sequence[Event]:
        raise CannotDoError(
            f"workflow {change.workflow.id} is a server's; this command changes a database only",
            hint="run it without --server",
        )

    def workflow(self, workflow_id: str) -> Workflow:
        return Workflow.model_validate(self._connection.get("workflows", workflow_id))

    def originals(self, workflow_id: str) -> Mapping[str, str]:  # noqa: ARG002
        raise _servers_own("originals")

    def workflows(
        self,
        *,
        worktree: str | None = None,
        statuses: Collection[WorkflowStatus] | None = None,
        limit: int = 100,
        search: str | None = None,
        before: tuple[datetime, str] | None = None,
    ) -> Sequence[Workflow]:
        if before is not None:
            raise CannotDoError("a server's pages are turned by its own cursors")
        if statuses is not None and not statuses:
            return []
        pages = self._pages(
            limit, worktree=worktree, status=sorted(statuses) if statuses is not None else None, search=search
        )
        return [Workflow.model_validate(one) for one in pages]

    def _pages(self, limit: int, **question: Any) -> Iterator[Any]:
        cursor: str | None = None
        while limit > 0:
            page = self._connection.get(
                "workflows", **question, limit=min(limit, _LARGEST_PAGE), cursor=cursor
            )
            yield from page["workflows"]
            limit -= len(page["workflows"])
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def is_abandoned(self, workflow_id: str) -> bool:
        return self._connection.get("workflows", workflow_id, "progress")["abandoned"]

    def queued(self, limit: int = 100) -> Sequence[Workflow]:  # noqa: ARG002
        raise _servers_own("queued")

    def due(self, now: datetime, limit: int = 100) -> Sequence[Workflow]:  # noqa: ARG002
        raise _servers_own("due")

    def snapshot(self, snapshot_id: str) -> SessionSnapshot:
        return SessionSnapshot.model_validate(self._connection.get("snapshots", snapshot_id))

    def latest_snapshot(self, workflow_id: str) -> SessionSnapshot | None:
        lines = self.snapshots(workflow_id)
        latest = max(lines, key=lambda line: (line.created_at, line.session_number), default=None)
        return self.snapshot(latest.id) if latest else None

    def snapshots(self, workflow_id: str) -> Sequence[SnapshotSummary]:
        found = self._connection.get("workflows", workflow_id, "snapshots")["snapshots"]
        return _summaries.validate_python(found)

    def find_snapshots(self, name: str) -> Sequence[SnapshotSummary]:
        return _summaries.validate_python(self._connection.get("snapshots", name=name)["snapshots"])

    def delete_snapshot(self, line: SnapshotSummary) -> None:
        self._connection.delete("workflows", line.workflow_id, "snapshots", line.id)

    def journal(self, snapshot: SessionSnapshot) -> list[str]:
        """The recorded actions of the wind-down behind a snapshot, as JSON."""
        path = ("workflows", snapshot.workflow_id, "snapshots", snapshot.id, "journal")
        actions = self._connection.get(*path, limit=10_000)["actions"]
        return [json.dumps(action, ensure_ascii=False, separators=(",", ":")) for action in actions]

    def events(
        self,
        *,
        workflow_id: str | None = None,
        since: int = 0,
        limit: int | None = None,
        types: Collection[str] | None = None,
    ) -> Sequence[Event]:
        path = ("workflows", workflow_id, "events") if workflow_id is not None else ("events",)
        found: list[Event] = []
        position: int | None = since
        while position is not None and (limit is None or len(found) < limit):
            page = self._connection.get(*path, since=position, limit=_LARGEST_EVENT_PAGE)
            found += [Event.model_validate(one) for one in page["events"]]
            position = page["next_since"]
        return [event for event in found if types is None or event.entry.type in types][:limit]

    def recent_entries(self, kind: str, limit: int) -> Sequence[Entry]:  # noqa: ARG002
        raise _servers_own(f"told by all {kind} entries")

    def event_range(self) -> tuple[int, int]:
        page = self._connection.get("events", limit=1)
        return page["oldest"], page["newest"]

    def close(self) -> None:
        self._connection.close()


def _servers_own(what: str) -> CannotDoError:
    return CannotDoError(f"what is {what} is the server's own affair", hint="its workers see to it")
