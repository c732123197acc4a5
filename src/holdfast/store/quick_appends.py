"""The one hot path: records of runs, straight through the database's driver.

A node of a flow waits for this. Putting the same two statements through SQLAlchemy takes six times
as long as SQLite takes for them (bench `flow`). Everything rarer, and whatever goes wrong here,
goes the ordinary way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from holdfast.store.tables import flow_records, flow_sessions

Row = tuple[Any, ...]


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

    def write(self, sessions: Iterable[str], rows: Callable[[dict[str, int]], Sequence[Row]]) -> None:
        """`rows` gets the claims of these sessions and says what to add. On the disk when this returns."""
        try:
            cursor = self._cursor()
            if self._is_sqlite:
                cursor.execute("BEGIN IMMEDIATE")
            if added := rows(self._claims(cursor, list(sessions))):
                cursor.executemany(self._insert, added)
            self._connection.commit()
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
