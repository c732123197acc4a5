"""Runs of flows in the database. A thread of its own writes, and all that waits goes into one commit.

The event loop never waits for the disk, and a thousand runs that finish nodes at the same
moment share one sync. A request is done when its commit is. `FlowStore` in `holdfast.flow`
says what is promised.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa
from pydantic_core import from_json, to_json
from sqlalchemy import exc

from holdfast.base.errors import (
    ConflictError,
    DamagedDataError,
    HoldfastError,
    StorageError,
)
from holdfast.model.flow import (
    RECORD_VERSION,
    SAME_AS_STORED,
    Claimed,
    FlowSession,
    FlowStatus,
    Mail,
    MailKind,
    Record,
    Runner,
    Settlement,
    check_open,
    claimed_by,
    json_of,
    lost_claim,
    said_until_now,
    session_exists,
    session_not_found,
    settled,
    still_running,
)
from holdfast.store.driver import AppendedRow, QuickAppends
from holdfast.store.engine import database_errors, open_engine, writing
from holdfast.store.tables import flow_records, flow_sessions

_MOST_IN_ONE_COMMIT = 2000
_MOST_IN_ONE_QUESTION = 200

# Built once: putting a statement together costs more than running it.
_CHANGING = (
    *("status", "claim", "runner_json", "updated_at", "paused_at", "reason", "node_id"),
    "record_version",
)
_ADD_SESSION = flow_sessions.insert()
_CHANGE_SESSION = (
    flow_sessions.update()
    .where(flow_sessions.c.id == sa.bindparam("which"))
    .values({name: sa.bindparam(name) for name in _CHANGING})
)
_SESSION = flow_sessions.select().where(flow_sessions.c.id == sa.bindparam("which"))
_SESSION_TO_CHANGE = _SESSION.with_for_update()
_CLAIMS = (
    sa.select(flow_sessions.c.id, flow_sessions.c.claim)
    .where(flow_sessions.c.id.in_(sa.bindparam("which", expanding=True)))
    .with_for_update(read=True)  # nobody takes a session over between this look and our commit
)
_ADD_RECORD = flow_records.insert()
_RECORDS = (
    sa.select(
        flow_records.c.seq,
        flow_records.c.kind,
        flow_records.c.path,
        flow_records.c.value_json,
        flow_records.c.taken_json,
    )
    .where(flow_records.c.session_id == sa.bindparam("which"))
    .order_by(flow_records.c.seq)
)
# What others send to a run is numbered downwards from -1, since its runner numbers upwards.
_FIRST_SEQ = sa.select(sa.func.min(flow_records.c.seq)).where(
    flow_records.c.session_id == sa.bindparam("which")
)


@dataclass(eq=False, slots=True)
class _Request:
    work: Callable[[sa.Connection], Any] | None
    append: tuple[str, int, Sequence[Record]] | None
    done: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    result: Any = None
    error: BaseException | None = None


class SqlFlowStore:
    """`database` is a path (SQLite) or a `postgresql://` URL."""

    def __init__(self, database: str) -> None:
        self.database = database
        self._engine = open_engine(database)
        self._writing = writing(self._engine)
        self._requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False

    def close(self) -> None:
        """Writes what was asked for, then lets the database go."""
        self._closed = True
        if self._thread is not None:
            self._requests.put(None)
            self._thread.join()
            self._thread = None
        self._engine.dispose()

    def pack(self, value: Any) -> tuple[Any, Any]:
        text = json_of(value)
        return text, value if type(value) in SAME_AS_STORED else from_json(text)

    def create(self, session: FlowSession, records: Sequence[Record] = ()) -> asyncio.Future[None]:
        return self._ask(lambda connection: _create(connection, session, records))

    def claim(
        self,
        session_id: str,
        runner: Runner,
        at: datetime,
        admit: Callable[[FlowSession, Sequence[Record]], None],
        message: str | None,
    ) -> asyncio.Future[Claimed]:
        def work(connection: sa.Connection) -> Claimed:
            session = _find(connection, _SESSION_TO_CHANGE, session_id)
            records, mail = _read(connection, session_id)
            admit(session, records)
            session = claimed_by(session, runner, at)
            _change(connection, session)
            said = said_until_now(records, mail, message)
            _add(connection, session_id, [each._replace(value=to_json(each.value).decode()) for each in said])
            return Claimed(session, records + said, mail)

        return self._ask(work)

    def post(self, session_id: str, kind: MailKind, name: str, packed: Any) -> asyncio.Future[None]:
        def work(connection: sa.Connection) -> None:
            session = _find(connection, _SESSION_TO_CHANGE, session_id)
            check_open(session)
            first = connection.execute(_FIRST_SEQ, {"which": session_id}).scalar() or 0
            _change(connection, replace(session, record_version=RECORD_VERSION))
            _insert(connection, [(session_id, min(first, 0) - 1, kind, name, packed, None)])

        return self._ask(work)

    def mail(self, since: Mapping[str, int]) -> asyncio.Future[list[Mail]]:
        return self._ask(lambda connection: _mail(connection, list(since.items())))

    def append(self, session_id: str, claim: int, records: Sequence[Record]) -> asyncio.Future[None]:
        return self._ask(None, (session_id, claim, records))

    def settle(
        self, session_id: str, claim: int, records: Sequence[Record], settlement: Settlement
    ) -> asyncio.Future[None]:
        def work(connection: sa.Connection) -> None:
            session = _find(connection, _SESSION_TO_CHANGE, session_id)
            if session.claim != claim:
                raise lost_claim(session_id)
            _change(connection, settled(session, settlement))
            _add(connection, session_id, records)

        return self._ask(work)

    def load(self, session_id: str) -> asyncio.Future[Claimed]:
        def work(connection: sa.Connection) -> Claimed:
            session = _find(connection, _SESSION, session_id)
            session.check_version()
            return Claimed(session, *_read(connection, session_id))

        return self._ask(work)

    def sessions(
        self, statuses: Collection[FlowStatus] | None = None, limit: int = 100
    ) -> asyncio.Future[list[FlowSession]]:
        table = flow_sessions
        query = table.select().order_by(table.c.updated_at.desc(), table.c.id.desc()).limit(limit)
        if statuses is not None:
            query = query.where(table.c.status.in_(statuses))
        return self._ask(lambda connection: [_session(row) for row in connection.execute(query)])

    def forget(self, session_id: str) -> asyncio.Future[None]:
        def work(connection: sa.Connection) -> None:
            if _find(connection, _SESSION_TO_CHANGE, session_id).status == "running":
                raise still_running(session_id)
            connection.execute(flow_records.delete().where(flow_records.c.session_id == session_id))
            connection.execute(flow_sessions.delete().where(flow_sessions.c.id == session_id))

        return self._ask(work)

    # The thread.

    def _ask(
        self,
        work: Callable[[sa.Connection], Any] | None,
        append: tuple[str, int, Sequence[Record]] | None = None,
    ) -> asyncio.Future[Any]:
        if self._closed:
            raise StorageError("the flow store is closed", hint="open it again: SqlFlowStore(database)")
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="holdfast-flows", daemon=True)
                self._thread.start()
        loop = asyncio.get_running_loop()
        request = _Request(work, append, loop.create_future(), loop)
        self._requests.put(request)
        return request.done

    def _serve(self) -> None:
        quick = QuickAppends(self._engine)
        try:
            self._serve_with(quick)
        finally:
            quick.close()

    def _serve_with(self, quick: QuickAppends) -> None:
        while (first := self._requests.get()) is not None:
            batch = [first]
            with contextlib.suppress(queue.Empty):
                while len(batch) < _MOST_IN_ONE_COMMIT:
                    following = self._requests.get_nowait()
                    if following is None:
                        self._requests.put(None)
                        break
                    batch.append(following)
            if not _appended(quick, batch):
                self._do(batch)
            for loop in {request.loop for request in batch}:
                mine = [request for request in batch if request.loop is loop]
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    loop.call_soon_threadsafe(_tell, mine)

    def _do(self, batch: list[_Request]) -> None:
        """All in one transaction. Where that fails, each in its own, so that one cannot hurt another."""
        try:
            with database_errors(self.database), self._writing.begin() as connection:
                _carry_out(connection, batch)
        except Exception as error:  # noqa: BLE001 - the thread must live; the error goes to who asked
            told = _written_twice() if isinstance(error, exc.IntegrityError) else error
            for request in batch:
                request.result, request.error = None, told
            if len(batch) > 1:
                for request in batch:
                    request.error = None
                    self._do([request])


def _written_twice() -> ConflictError:
    return ConflictError(
        "another process has recorded this run in the meantime", hint="resume it to see its current state"
    )


def _tell(batch: Sequence[_Request]) -> None:
    for request in batch:
        if request.done.done():
            continue  # cancelled
        if request.error is not None:
            request.done.set_exception(request.error)
        else:
            request.done.set_result(request.result)


def _appended(quick: QuickAppends, batch: Sequence[_Request]) -> bool:
    """Whether the short way was one for this batch, and went well."""
    if any(request.work is not None for request in batch):
        return False
    try:
        quick.write(
            {request.append[0] for request in batch if request.append},
            lambda claims: _admitted(batch, claims),
        )
    except Exception:  # noqa: BLE001 - the ordinary way says what is wrong
        for request in batch:
            request.error = None
        return False
    return True


def _carry_out(connection: sa.Connection, batch: Sequence[_Request]) -> None:
    """In the order asked for. Appends that follow each other become one statement."""
    appends: list[_Request] = []
    for request in batch:
        if request.work is None:
            appends.append(request)
            continue
        _append_all(connection, appends)
        appends = []
        try:
            request.result = request.work(connection)
        except HoldfastError as error:
            request.error = error  # it has looked, and written nothing
    _append_all(connection, appends)


def _append_all(connection: sa.Connection, requests: Sequence[_Request]) -> None:
    if not requests:
        return
    wanted = {request.append[0] for request in requests if request.append}
    claims = {row.id: row.claim for row in connection.execute(_CLAIMS, {"which": list(wanted)})}
    _insert(connection, _admitted(requests, claims))


def _admitted(requests: Sequence[_Request], claims: dict[str, int]) -> list[AppendedRow]:
    """What those add whose claim still holds; the others are told."""
    rows: list[AppendedRow] = []
    for request in requests:
        session_id, claim, records = cast("tuple[str, int, Sequence[Record]]", request.append)
        if session_id not in claims:
            request.error = session_not_found(session_id)
        elif claims[session_id] != claim:
            request.error = lost_claim(session_id)
        else:
            rows += _rows(session_id, records)
    return rows


def _rows(session_id: str, records: Sequence[Record]) -> list[AppendedRow]:
    """In the order of the table's columns."""
    return [
        (session_id, seq, kind, path, value, None if taken is None else to_json(taken).decode())
        for seq, kind, path, value, taken in records
    ]


def _insert(connection: sa.Connection, rows: Sequence[AppendedRow]) -> None:
    if rows:
        columns = [column.name for column in flow_records.c]
        connection.execute(_ADD_RECORD, [dict(zip(columns, row, strict=True)) for row in rows])


def _add(connection: sa.Connection, session_id: str, records: Sequence[Record]) -> None:
    _insert(connection, _rows(session_id, records))


def _read(connection: sa.Connection, session_id: str) -> tuple[tuple[Record, ...], tuple[Mail, ...]]:
    try:
        records = [
            Record(seq, kind, path, from_json(value), None if taken is None else tuple(from_json(taken)))
            for seq, kind, path, value, taken in connection.execute(_RECORDS, {"which": session_id})
        ]
    except ValueError as error:
        raise DamagedDataError(f"a record of session {session_id} is not valid JSON: {error}") from error
    sent = sum(record.seq < 0 for record in records)
    mail = [
        Mail(session_id, -seq, cast("Any", kind), name, value) for seq, kind, name, value, _ in records[:sent]
    ]
    return tuple(records[sent:]), tuple(reversed(mail))


def _mail(connection: sa.Connection, since: Sequence[tuple[str, int]]) -> list[Mail]:
    table, found = flow_records, list[Mail]()
    for start in range(0, len(since), _MOST_IN_ONE_QUESTION):
        wanted = [
            sa.and_(table.c.session_id == name, table.c.seq < -number)
            for name, number in since[start : start + _MOST_IN_ONE_QUESTION]
        ]
        query = table.select().where(sa.or_(*wanted)).order_by(table.c.session_id, table.c.seq.desc())
        for row in connection.execute(query):
            found.append(Mail(row.session_id, -row.seq, row.kind, row.path, from_json(row.value_json)))
    return found


def _create(connection: sa.Connection, session: FlowSession, records: Sequence[Record]) -> None:
    if connection.execute(_SESSION, {"which": session.id}).first() is not None:
        raise session_exists(session.id)
    try:
        with connection.begin_nested():
            connection.execute(_ADD_SESSION, _row(session))
    except exc.IntegrityError:
        raise session_exists(session.id) from None
    _add(connection, session.id, records)


def _change(connection: sa.Connection, session: FlowSession) -> None:
    row = _row(session)
    connection.execute(_CHANGE_SESSION, {"which": session.id, **{name: row[name] for name in _CHANGING}})


def _row(session: FlowSession) -> dict[str, Any]:
    """By the names of the columns: they are the session's own, but for what is stored as JSON."""
    row = dict(vars(session))
    runner = row.pop("runner")
    row["input_json"] = row.pop("input")
    row["runner_json"] = None if runner is None else to_json(runner).decode()
    return row


def _find(connection: sa.Connection, query: Any, session_id: str) -> FlowSession:
    row = connection.execute(query, {"which": session_id}).one_or_none()
    if row is None:
        raise session_not_found(session_id)
    return _session(row)


def _session(row: Any) -> FlowSession:
    fields = dict(row._mapping)
    given, runner = fields.pop("input_json"), fields.pop("runner_json")
    try:
        return FlowSession(
            **fields,
            input=from_json(given),
            runner=None if runner is None else cast("Runner", from_json(runner)),
        )
    except ValueError as error:
        raise DamagedDataError(f"session {row.id} is damaged: {error}") from error
