"""The store on SQLAlchemy Core: the same statements on SQLite and PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.dialects import postgresql, sqlite

from holdfast.base.faults import fault_point
from holdfast.model.entry import Entry, Event, entry_from_json
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.statuses import Lease
from holdfast.model.workflow import (
    NEVER_RUN_AGAIN,
    Issue,
    PauseRequest,
    Workflow,
    WorkflowOptions,
    WorkflowStatus,
)
from holdfast.store.documents import snapshot_from_columns, snapshot_to_columns
from holdfast.store.driver import Connection, Direct, Ordinary
from holdfast.store.engine import check_whole, database_errors, open_engine, shown, writing
from holdfast.store.protocol import (
    SNAPSHOT_FIELDS,
    Change,
    SnapshotSummary,
    changed_elsewhere,
    snapshot_not_found,
    workflow_not_found,
    worktree_taken,
)
from holdfast.store.sqlite import LEASE_AGE, sqlite_path
from holdfast.store.tables import originals, session_snapshots, workers, workflow_events, workflows

_EVENT_ORDER_LOCK = 7_310_002

_SUMMARY = [session_snapshots.c[name] for name in SnapshotSummary.__dataclass_fields__]
_OF_TRIGGERS = ("last_seq", "seq")


# Built once: putting a statement together costs more than running it.
_ADD_WORKFLOW = workflows.insert()
_CHANGE_WORKFLOW = (
    workflows.update()
    .where(workflows.c.id == sa.bindparam("which"), workflows.c.revision == sa.bindparam("seen"))
    .values({column.name: sa.bindparam(column.name) for column in workflows.c if column.name != "last_seq"})
)
_ADD_EVENTS = workflow_events.insert().returning(workflow_events.c.seq, sort_by_parameter_order=True)
_NUMBER_EVENTS = sa.select(sa.func.pg_advisory_xact_lock_shared(_EVENT_ORDER_LOCK))
_WAIT_FOR_WRITERS = sa.select(sa.func.pg_advisory_xact_lock(_EVENT_ORDER_LOCK))


def _put(table: sa.Table) -> dict[str, Any]:
    """By the kind of database: they spell it alike, but SQLAlchemy has no common word for it."""
    return {"sqlite": _replacing(sqlite.insert(table)), "postgresql": _replacing(postgresql.insert(table))}


def _replacing(insert: Any) -> Any:
    columns = {name: insert.excluded[name] for name in insert.table.c.keys() if name not in _OF_TRIGGERS}  # noqa: SIM118 - a collection of columns
    return insert.on_conflict_do_update(index_elements=list(insert.table.primary_key), set_=columns)


_PUT_SNAPSHOT = _put(session_snapshots)
_PUT_ORIGINAL = _put(originals)
_DELETE_ORIGINALS = originals.delete().where(originals.c.workflow_id == sa.bindparam("which"))
_ORIGINALS = sa.select(originals.c.name, originals.c.written).where(
    originals.c.workflow_id == sa.bindparam("which")
)


_IN_ORDER = (session_snapshots.c.created_at, session_snapshots.c.session_number)
"""Of one workflow, whose times never go back."""
_DELETE_SNAPSHOT = session_snapshots.delete().where(session_snapshots.c.id == sa.bindparam("which"))
_READ_SNAPSHOTS = sa.select(
    session_snapshots.c.id, session_snapshots.c.snapshot_json, session_snapshots.c.tasks
)
_ONE_SNAPSHOT = _READ_SNAPSHOTS.where(session_snapshots.c.id == sa.bindparam("which"))
_LATEST_SNAPSHOT = (
    _READ_SNAPSHOTS.where(session_snapshots.c.workflow_id == sa.bindparam("which"))
    .order_by(*(one.desc() for one in _IN_ORDER))
    .limit(1)
)
# Two look-ups in the index; asked for together, SQLite would read the whole table.
_EVENT_RANGE = sa.select(
    sa.select(sa.func.min(workflow_events.c.seq)).scalar_subquery(),
    sa.select(sa.func.max(workflow_events.c.seq)).scalar_subquery(),
)


class SqlStore:
    """`database` is a path (SQLite) or a `postgresql://` URL."""

    def __init__(self, database: str) -> None:
        self.database = database
        self._engine = open_engine(database)
        self._writing = writing(self._engine)
        self._direct = Direct(self._engine) if self._engine.dialect.name == "sqlite" else None
        self.leases = Leases(self._engine, self._writing, database)
        self._glance: Any = None
        self._has_marks = self._engine.dialect.name == "sqlite"

    @property
    def shown(self) -> str:
        """Which database this is, without its password."""
        return shown(self.database)

    @property
    def is_deleted(self) -> bool:
        """Whether its file is gone: what is written now, nobody will ever read."""
        return self._direct is not None and not sqlite_path(self.database).exists()

    def close(self) -> None:
        if self._glance is not None:
            self._glance.close()
            self._glance = None
        self._engine.dispose()

    def change_mark(self) -> int | None:
        """A number that is another one after any commit of anybody; none where the database has no such.

        It takes some microseconds and never waits. Call it from one thread.
        """
        if not self._has_marks:
            return None
        if self._glance is None:
            with database_errors(self.database):
                self._glance = self._engine.raw_connection()
                mode = self._glance.driver_connection.execute("PRAGMA journal_mode").fetchone()[0]
            self._has_marks = mode == "wal"  # else it would wait for writers
        return self._glance.driver_connection.execute("PRAGMA data_version").fetchone()[0]

    def verify(self) -> None:
        """Look through the whole database; raises `DamagedDataError` where something is broken."""
        with self._reading() as connection:
            check_whole(connection, self.database)

    def apply(self, change: Change) -> Sequence[Event]:
        snapshot = _snapshot_row(change.save) if change.save else None
        try:
            with database_errors(self.database), self._transaction() as connection:
                self._write_workflow(connection, change)
                if change.delete is not None:
                    self._delete_snapshot(connection, change.delete)
                if snapshot is not None:
                    connection.run(_PUT_SNAPSHOT[self._engine.dialect.name], snapshot)
                self._keep_originals(connection, change)
                return self._write_entries(connection, change)
        except exc.IntegrityError as error:
            raise self._refused(change, str(error.orig)) from error

    @contextlib.contextmanager
    def _transaction(self) -> Generator[Connection]:
        if self._direct is not None:
            with self._direct.writing() as direct:
                yield direct
            return
        with self._writing.begin() as connection:
            yield Ordinary(connection)
            fault_point("store.written")
        fault_point("store.committed")

    def _refused(self, change: Change, complaint: str) -> Exception:
        # PostgreSQL names the index, SQLite its column.
        if "uq_workflows_active_worktree" in complaint or "workflows.worktree" in complaint:
            return worktree_taken(change.workflow.worktree)
        return changed_elsewhere(change.workflow.id)

    def _write_workflow(self, connection: Connection, change: Change) -> None:
        row = _workflow_row(change.workflow)
        if change.seen is None:
            connection.run(_ADD_WORKFLOW, row)
            return
        met = connection.run(_CHANGE_WORKFLOW, {**row, "which": change.workflow.id, "seen": change.seen})
        if met != 1:
            raise changed_elsewhere(change.workflow.id)

    def _keep_originals(self, connection: Connection, change: Change) -> None:
        workflow_id = change.workflow.id
        for name, written in change.originals.items():
            row = {"workflow_id": workflow_id, "name": name, "written": written}
            connection.run(_PUT_ORIGINAL[self._engine.dialect.name], row)
        if change.workflow.status in NEVER_RUN_AGAIN:
            connection.run(_DELETE_ORIGINALS, {"which": workflow_id})

    def _delete_snapshot(self, connection: Connection, snapshot_id: str) -> None:
        if connection.run(_DELETE_SNAPSHOT, {"which": snapshot_id}) != 1:
            raise snapshot_not_found(snapshot_id)

    def _write_entries(self, connection: Connection, change: Change) -> list[Event]:
        if self._is_postgres:
            # Held to the commit, beside other writers. The row of the workflow, changed before, orders its
            # own events; who reads those of all waits for the writers that have numbers by then.
            connection.run(_NUMBER_EVENTS, {})
        workflow_id, at = change.workflow.id, change.workflow.updated_at
        rows = [
            {"workflow_id": workflow_id, "at": at, "type": entry.type, "entry_json": entry.model_dump_json()}
            for entry in change.entries
        ]
        if not rows:
            return []
        numbers = connection.add(_ADD_EVENTS, rows)
        return [
            Event(seq=seq, workflow_id=workflow_id, at=at, entry=entry)
            for seq, entry in zip(numbers, change.entries, strict=True)
        ]

    def workflow(self, workflow_id: str) -> Workflow:
        with self._reading() as connection:
            row = connection.execute(workflows.select().where(workflows.c.id == workflow_id)).one_or_none()
        if row is None:
            raise workflow_not_found(workflow_id)
        return _workflow(row)

    def originals(self, workflow_id: str) -> Mapping[str, str]:
        with self._reading() as connection:
            rows = connection.execute(_ORIGINALS, {"which": workflow_id})
            return {row.name: row.written for row in rows}

    def workflows(
        self,
        *,
        worktree: str | None = None,
        statuses: Collection[WorkflowStatus] | None = None,
        limit: int = 100,
        search: str | None = None,
    ) -> Sequence[Workflow]:
        return self._found(_listed(worktree, statuses, search).limit(limit))

    def workflow_page(
        self,
        *,
        worktree: str | None = None,
        statuses: Collection[WorkflowStatus] | None = None,
        limit: int = 100,
        search: str | None = None,
        before: int | None = None,
    ) -> tuple[Sequence[Workflow], int | None]:
        query = _listed(worktree, statuses, search).limit(limit + 1)
        if before is not None:
            query = query.where(workflows.c.last_seq < before)
        with self._reading() as connection:
            rows = connection.execute(query).all()
        position = rows[limit - 1].last_seq if len(rows) > limit else None
        return [_workflow(row) for row in rows[:limit]], position

    def queued(self, limit: int = 100) -> Sequence[Workflow]:
        table = workflows
        query = (
            table.select()
            .where(table.c.claim.is_(None), table.c.run_id.is_not(None))
            .order_by(table.c.last_seq)
            .limit(limit)
        )
        return self._found(query)

    def claimed(self) -> Sequence[Workflow]:
        """Those that somebody runs, or did before they died."""
        return self._found(workflows.select().where(workflows.c.claim.is_not(None)))

    def claimed_by_workers(self) -> int:
        """How many sessions workers have taken up, dead ones included."""
        query = sa.select(sa.func.count()).where(workflows.c.claim.startswith("worker-"))
        with self._reading() as connection:
            return connection.execute(query).scalar_one()

    def left_behind(self) -> Sequence[Workflow]:
        """Those that a worker has claimed which has no lease any more; nothing is read of the others."""
        claim = workflows.c.claim
        hosts = (
            sa.func.split_part(claim, "#", 1)
            if self._engine.dialect.name == "postgresql"
            else sa.func.substr(claim, 1, sa.func.instr(claim, "#") - 1)
        )
        living = sa.select(workers.c.id)
        return self._found(workflows.select().where(claim.startswith("worker-"), hosts.not_in(living)))

    def due(self, now: datetime, limit: int = 100) -> Sequence[Workflow]:
        table = workflows
        query = (
            table.select()
            .where(table.c.resume_at.is_not(None), table.c.resume_at <= now)
            .order_by(table.c.resume_at)
            .limit(limit)
        )
        return self._found(query)

    def _found(self, query: sa.Select[Any, Any, Any]) -> Sequence[Workflow]:
        with self._reading() as connection:
            return [_workflow(row) for row in connection.execute(query)]

    def snapshot(self, snapshot_id: str) -> SessionSnapshot:
        found = self._read_snapshot(_ONE_SNAPSHOT, snapshot_id)
        if found is None:
            raise snapshot_not_found(snapshot_id)
        return found

    def latest_snapshot(self, workflow_id: str) -> SessionSnapshot | None:
        return self._read_snapshot(_LATEST_SNAPSHOT, workflow_id)

    def _read_snapshot(self, query: sa.Select[Any, Any, Any], which: str) -> SessionSnapshot | None:
        row = self._one(query, {"which": which})
        if row is None:
            return None
        snapshot_id, text, tasks = row
        return snapshot_from_columns(text, tasks, where=f"snapshot {snapshot_id}")

    def _one(self, query: sa.Select[Any, Any, Any], values: dict[str, Any]) -> Sequence[Any] | None:
        """For columns that need no conversion."""
        if self._direct is not None:
            with database_errors(self.database):
                return self._direct.one(query, values)
        with self._reading() as connection:
            return connection.execute(query, values).one_or_none()

    def snapshots(self, workflow_id: str) -> Sequence[SnapshotSummary]:
        table = session_snapshots
        query = (
            sa.select(*_SUMMARY).where(table.c.workflow_id == workflow_id).order_by(table.c.session_number)
        )
        return self._summaries(query)

    def find_snapshots(self, name: str) -> Sequence[SnapshotSummary]:
        table = session_snapshots
        # Not LIKE, which SQLite takes without regard to case; not a range, which languages sort as they like.
        starts_so = sa.func.substr(table.c.id, 1, len(name)) == name
        query = (
            sa.select(*_SUMMARY)
            .where(sa.or_(starts_so, table.c.session_id == name))
            .order_by(*(one.desc() for one in (table.c.seq, *_IN_ORDER, table.c.id)))
        )
        return self._summaries(query)

    def _summaries(self, query: sa.Select[Any, Any, Any]) -> Sequence[SnapshotSummary]:
        with self._reading() as connection:
            return [SnapshotSummary(**row) for row in connection.execute(query).mappings()]

    def events(
        self,
        *,
        workflow_id: str | None = None,
        since: int = 0,
        limit: int | None = None,
        types: Collection[str] | None = None,
    ) -> Sequence[Event]:
        table = workflow_events
        query = table.select().where(table.c.seq > since).order_by(table.c.seq).limit(limit)
        if workflow_id is not None:
            query = query.where(table.c.workflow_id == workflow_id)
        if types is not None:
            query = query.where(table.c.type.in_(types))
        with self._reading() as connection:
            rows = connection.execute(query).all()
        if workflow_id is None and self._is_postgres and rows:
            # A number below these may belong to a transaction that is open, and would never be asked for.
            _, newest = self.event_range()
            with self._reading() as connection:
                rows = connection.execute(query.where(table.c.seq <= newest)).all()
        return [_event(row) for row in rows]

    def recent_entries(self, kind: str, limit: int) -> Sequence[Entry]:
        table = workflow_events
        query = (
            sa.select(table.c.type, table.c.entry_json)
            .where(table.c.type == kind)
            .order_by(table.c.seq.desc())
            .limit(limit)
        )
        with self._reading() as connection:
            return [entry_from_json(row.type, row.entry_json) for row in connection.execute(query)]

    def event_range(self) -> tuple[int, int]:
        """All numbers up to the highest are there to be read, or will never be."""
        with self._reading() as connection:
            if self._is_postgres:
                connection.execute(_WAIT_FOR_WRITERS)
            lowest, highest = connection.execute(_EVENT_RANGE).one()
        return lowest or 0, highest or 0

    @property
    def _is_postgres(self) -> bool:
        return self._engine.dialect.name == "postgresql"

    @contextlib.contextmanager
    def _reading(self) -> Generator[sa.Connection]:
        with database_errors(self.database), self._engine.connect() as connection:
            yield connection


def _event(row: Any) -> Event:
    entry = entry_from_json(row.type, row.entry_json)
    return Event(seq=row.seq, workflow_id=row.workflow_id, at=row.at, entry=entry)


def _listed(
    worktree: str | None, statuses: Collection[WorkflowStatus] | None, search: str | None
) -> sa.Select[Any, Any, Any]:
    query = workflows.select().order_by(workflows.c.last_seq.desc())
    if worktree is not None:
        query = query.where(workflows.c.worktree == worktree)
    if statuses is not None:
        query = query.where(workflows.c.status.in_(statuses))
    return query.where(_mentions(search)) if search else query


def _mentions(text: str) -> sa.ColumnElement[bool]:
    columns = (workflows.c.issue_title, workflows.c.issue_id, workflows.c.id, workflows.c.worktree)
    return sa.or_(*(column.icontains(text, autoescape=True) for column in columns))


_PLAIN_FIELDS = [name for name in Workflow.model_fields if name not in ("issue", "pause_request", "options")]


def _workflow_row(workflow: Workflow) -> dict[str, Any]:
    request = workflow.pause_request
    return {
        **{name: getattr(workflow, name) for name in _PLAIN_FIELDS},
        **{f"issue_{name}": getattr(workflow.issue, name) for name in Issue.model_fields},
        "pause_request": request.model_dump_json() if request else None,
        "options": workflow.options.model_dump_json(exclude_defaults=True),
    }


def _workflow(row: Any) -> Workflow:
    fields = dict(row._mapping)
    del fields["last_seq"]
    issue = Issue(**{name: fields.pop(f"issue_{name}") for name in Issue.model_fields})
    request = fields.pop("pause_request")
    options = fields.pop("options")
    return Workflow(
        issue=issue,
        options=WorkflowOptions() if options == "{}" else WorkflowOptions.model_validate_json(options),
        pause_request=PauseRequest.model_validate_json(request) if request else None,
        **fields,
    )


def _snapshot_row(snapshot: SessionSnapshot) -> dict[str, Any]:
    row = {name: getattr(snapshot, name) for name in SNAPSHOT_FIELDS}
    text, tasks = snapshot_to_columns(snapshot)
    return {**row, "snapshot_json": text, "tasks": tasks}


# Who is there to run work: a row a process, kept fresh on the database's own clock.
#
# Machines disagree about the time; they all agree with the database. A row that was not renewed for
# longer than its lease belongs to a process that is dead, cut off or stopped.

_LEASE_COLUMNS = ("id", "kind", "host", "pid", "started_mark", "lease_seconds")
_SQLITE_CLOCK = ("strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')", LEASE_AGE)
_POSTGRES_CLOCK = (
    "clock_timestamp()",
    "CAST(extract(epoch FROM clock_timestamp() - seen_at) AS double precision)",
)


class Leases:
    def __init__(self, reading: sa.Engine, writing: sa.Engine, database: str) -> None:
        self._reading, self._writing, self._database = reading, writing, database
        now, age = _SQLITE_CLOCK if reading.dialect.name == "sqlite" else _POSTGRES_CLOCK
        self._now: sa.ColumnElement[str] = sa.literal_column(now)
        self._age: sa.ColumnElement[float] = sa.literal_column(age)

    def add(self, lease: Lease) -> None:
        row = {name: getattr(lease, name) for name in _LEASE_COLUMNS}
        self._change(workers.insert().values(**row, seen_at=self._now))

    def renew(self, worker_id: str) -> bool:
        """Whether the row was still there; if not, somebody took its owner for dead."""
        return self._change(workers.update().where(workers.c.id == worker_id).values(seen_at=self._now)) == 1

    def remove(self, worker_id: str) -> None:
        self._change(workers.delete().where(workers.c.id == worker_id))

    def remove_expired(self, worker_id: str) -> bool:
        """Take the row of a dead process away; of several who try, one is told that it did."""
        is_expired = self._age > workers.c.lease_seconds
        return self._change(workers.delete().where(workers.c.id == worker_id, is_expired)) == 1

    def all(self) -> Sequence[Lease]:
        columns = [workers.c[name] for name in _LEASE_COLUMNS]
        with database_errors(self._database), self._reading.connect() as connection:
            rows = connection.execute(sa.select(*columns, self._age.label("age"))).mappings()
            return [Lease(**row) for row in rows]

    def _change(self, statement: sa.UpdateBase) -> int:
        """How many rows it met."""
        with database_errors(self._database), self._writing.begin() as connection:
            return connection.execute(statement).rowcount
