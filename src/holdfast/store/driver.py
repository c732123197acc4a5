"""Statements and appends straight through the database's driver, for the hot paths."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import exc

from holdfast.base.faults import fault_point
from holdfast.store.tables import flow_records, flow_sessions

# ── statements ────────────────────────────────────────────────────────────────────────────────────

# Statements of ours straight through SQLite's driver.
#
# A pause waits for a handful of small statements, and putting them through SQLAlchemy takes longer than
# SQLite takes for them (bench `snapshot`). Here they are compiled by it once and then run by the driver:
# the same text, the same values, the same connections of the pool, the same errors. PostgreSQL
# answers over a socket, which hides that cost: there SQLAlchemy runs them.

Row = Mapping[str, Any]


class Connection(Protocol):
    """What a change needs, of either kind of database."""

    def run(self, statement: Any, row: Row) -> int:
        """How many rows it met."""
        ...

    def add(self, statement: Any, rows: Sequence[Row]) -> Sequence[int]:
        """The numbers the rows got, in their order."""
        ...


class Direct:
    """The way to the driver of an SQLite database; may be used by any thread."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._prepared: dict[Any, _Prepared] = {}

    @contextlib.contextmanager
    def writing(self) -> Generator[Connection]:
        """One transaction, committed at the end and rolled back by any error."""
        with self._errors(), self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield _DirectConnection(connection, self._prepare)
            fault_point("store.written")
            connection.execute("COMMIT")
            fault_point("store.committed")

    def one(self, statement: Any, row: Row) -> tuple[Any, ...] | None:
        """The first row of the answer, as the driver gives it."""
        prepared = self._prepare(statement, row)
        with self._errors(), self._connection() as connection:
            return connection.execute(prepared.text, prepared.values(row)).fetchone()

    @contextlib.contextmanager
    def _connection(self) -> Generator[Any]:
        """Back in the pool afterwards, which rolls back what was not committed."""
        with contextlib.closing(self._engine.raw_connection()) as pooled:
            yield pooled.driver_connection

    @contextlib.contextmanager
    def _errors(self) -> Generator[None]:
        """The driver's errors as SQLAlchemy would raise them."""
        kind: Any = self._engine.dialect.loaded_dbapi.Error
        try:
            yield
        except kind as error:
            raise exc.DBAPIError.instance(None, None, error, kind) from error

    def _prepare(self, statement: Any, row: Row) -> _Prepared:
        prepared = self._prepared.get(statement)
        if prepared is None:
            prepared = self._prepared[statement] = _Prepared(statement, self._engine.dialect, row)
        return prepared


class _DirectConnection:
    def __init__(self, connection: Any, prepare: Callable[[Any, Row], _Prepared]) -> None:
        self._connection = connection
        self._prepare = prepare

    def run(self, statement: Any, row: Row) -> int:
        prepared = self._prepare(statement, row)
        return self._connection.execute(prepared.text, prepared.values(row)).rowcount

    def add(self, statement: Any, rows: Sequence[Row]) -> Sequence[int]:
        return [self._added(self._prepare(statement, row), row) for row in rows]

    def _added(self, prepared: _Prepared, row: Row) -> int:
        (number,) = self._connection.execute(prepared.text, prepared.values(row)).fetchall()[0]
        return number


class _Prepared:
    """A statement's text, and the names of its values in their order with what converts each."""

    def __init__(self, statement: Any, dialect: sa.Dialect, row: Row) -> None:
        compiled = statement.compile(dialect=dialect, column_keys=list(row))
        self.text: str = compiled.string
        self._constants = {name: value for name, value in compiled.params.items() if name not in row}
        self._takes: list[tuple[str, Callable[[Any], Any] | None]] = [
            (name, compiled.binds[name].type.dialect_impl(dialect).bind_processor(dialect))
            for name in compiled.positiontup
        ]

    def values(self, row: Row) -> list[Any]:
        given = {**self._constants, **row} if self._constants else row
        return [convert(given[name]) if convert else given[name] for name, convert in self._takes]


class Ordinary:
    """The same on a connection of SQLAlchemy."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def run(self, statement: Any, row: Row) -> int:
        return self._connection.execute(statement, row).rowcount

    def add(self, statement: Any, rows: Sequence[Row]) -> Sequence[int]:
        return self._connection.execute(statement, rows).scalars().all()


# ── appends ───────────────────────────────────────────────────────────────────────────────────────

# The one hot path: records of runs, straight through the database's driver.
#
# A node of a flow waits for this. Putting the same two statements through SQLAlchemy takes six times
# as long as SQLite takes for them (bench `flow`). Everything rarer, and whatever goes wrong here,
# goes the ordinary way.

AppendedRow = tuple[Any, ...]


class QuickAppends:
    """Belongs to one thread, and keeps one connection."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._is_sqlite = engine.dialect.name == "sqlite"
        mark = "?" if self._is_sqlite else "%s"
        columns = ", ".join(column.name for column in flow_records.c)
        marks = ", ".join([mark] * len(flow_records.c))
        self._insert = f"INSERT INTO {flow_records.name} ({columns}) VALUES ({marks})"  # noqa: S608 - our own names
        self._mark = mark
        self._connection: Any = None

    def write(self, sessions: Iterable[str], rows: Callable[[dict[str, int]], Sequence[AppendedRow]]) -> None:
        """`rows` gets the claims of these sessions and says what to add. On the disk when this returns."""
        try:
            cursor = self._cursor()
            if self._is_sqlite:
                cursor.execute("BEGIN IMMEDIATE")
            if added := rows(self._claims(cursor, list(sessions))):
                cursor.executemany(self._insert, added)
            fault_point("flow.written")
            self._connection.commit()
            fault_point("flow.committed")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Rolls back what was not committed."""
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.rollback()
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None

    def _cursor(self) -> Any:
        if self._connection is None:
            self._connection = self._engine.raw_connection()
        return self._connection.cursor()

    def _claims(self, cursor: Any, sessions: Sequence[str]) -> dict[str, int]:
        marks = ", ".join([self._mark] * len(sessions))
        question = f"SELECT id, claim FROM {flow_sessions.name} WHERE id IN ({marks})"  # noqa: S608 - our own names
        # Nobody may take a session over between this look and our commit; SQLite has one writer anyway.
        cursor.execute(question if self._is_sqlite else f"{question} FOR SHARE", sessions)
        return dict(cursor.fetchall())
