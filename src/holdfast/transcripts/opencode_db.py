"""OpenCode's database, read row by row, beside the program that may be writing it."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import orjson

from holdfast.base.errors import DamagedDataError, NotFoundError
from holdfast.model.message import ReadReport
from holdfast.transcripts.fields import count_unknown, mapping_of, text_of
from holdfast.transcripts.lines import MAX_LINE_BYTES

SQLITE_MAGIC = b"SQLite format 3\x00"
_WAIT_SECONDS = 5.0

_FAMILY = """
WITH RECURSIVE family(id) AS (
    SELECT id FROM session WHERE id = :session
    UNION
    SELECT child.id FROM session AS child JOIN family ON child.parent_id = family.id
)
"""
_MESSAGES = (
    _FAMILY
    + """
SELECT message.id, message.session_id FROM message JOIN family ON message.session_id = family.id
ORDER BY message.time_created, message.id
"""
)
_LAST_OF_EACH = (
    _FAMILY
    + """
SELECT message.id, max(message.time_created) FROM message JOIN family ON message.session_id = family.id
GROUP BY message.session_id
"""
)
_MESSAGE = f"""
SELECT CASE WHEN length(data) <= {MAX_LINE_BYTES} THEN data END, length(data) FROM message WHERE id = ?
"""  # noqa: S608 - the number is ours
_PARTS = f"""
SELECT id, CASE WHEN length(data) <= {MAX_LINE_BYTES} THEN data END, length(data)
FROM part WHERE message_id = ? ORDER BY id
"""  # noqa: S608 - the number is ours


@dataclass(frozen=True, slots=True)
class SessionRow:
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class MessageRow:
    info: dict[str, Any]
    parts: Iterator[dict[str, Any]]  # to be consumed before the next row is asked for
    subagent: str | None
    is_last: bool


def connect(path: Path) -> sqlite3.Connection:
    """A connection that never writes, neither into the database nor beside it.

    Even a read-only connection to a database in WAL mode leaves a log and its index behind.
    Where no log lies there, nobody is writing, and the file can be read as it is.
    """
    log = path.with_name(path.name + "-wal")
    mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?{mode}", uri=True, timeout=_WAIT_SECONDS, isolation_level=None
    )
    # Any bytes may stand in a damaged text column: decoding is ours.
    connection.text_factory = bytes
    return connection


def read_rows(path: Path, report: ReadReport, session_id: str | None) -> Iterator[SessionRow | MessageRow]:
    with closing(connect(path)) as connection:
        # One transaction: a session that goes on meanwhile is seen as of now.
        connection.execute("BEGIN")
        yield from _Rows(connection, report, path).of(session_id)


@contextmanager
def damage_named(path: Path) -> Generator[None]:
    """Goes around reading rows *and* their parts: SQLite notices damage only where it steps."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # The latter where not even the names of columns are text any more.
        raise DamagedDataError(
            f"{path} cannot be read as an OpenCode database: {error}",
            hint="`opencode export` writes a session as JSON, which can be read as well",
        ) from error


def decoded(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


class _Rows:
    def __init__(self, connection: sqlite3.Connection, report: ReadReport, path: Path) -> None:
        self._connection = connection
        self._report = report
        self._path = path

    def of(self, session_id: str | None) -> Iterator[SessionRow | MessageRow]:
        session = self._session(session_id)
        yield SessionRow(session)
        root = text_of(session.get("id"))
        reverted = _parsed(session.get("revert"))
        last = {row[0] for row in self._connection.execute(_LAST_OF_EACH, {"session": root})}
        if not last:
            self._note_newer_format(root)
        for identifier, owner in self._connection.execute(_MESSAGES, {"session": root}):
            if decoded(owner) == root and is_reverted(decoded(identifier), reverted):
                self._report.taken_back += 1
            else:
                yield from self._message(identifier, decoded(owner), root, is_last=identifier in last)

    def _session(self, session_id: str | None) -> dict[str, Any]:
        where = "id = ?" if session_id is not None else "parent_id IS NULL"
        rows = self._connection.execute(
            f"SELECT * FROM session WHERE {where} ORDER BY time_updated DESC LIMIT 1",  # noqa: S608
            (session_id,) if session_id is not None else (),
        )
        row = rows.fetchone()
        if row is None:
            wanted = f"session {session_id}" if session_id is not None else "session"
            hint = "`holdfast sessions list` shows what there is"
            raise NotFoundError(f"no {wanted} in {self._path}", hint=hint)
        names = [column[0] for column in rows.description]
        return {
            name: decoded(value) if isinstance(value, bytes) else value
            for name, value in zip(names, row, strict=True)
        }

    def _message(self, identifier: bytes, owner: str, root: str, *, is_last: bool) -> Iterator[MessageRow]:
        row = self._connection.execute(_MESSAGE, (_key(identifier),)).fetchone()
        info = self._fields(row[0], row[1]) if row else None
        if info is None:
            return
        subagent = None if owner == root else text_of(info.get("agent")) or owner
        yield MessageRow({**info, "id": decoded(identifier)}, self._parts(identifier), subagent, is_last)

    def _parts(self, message: bytes) -> Iterator[dict[str, Any]]:
        for identifier, data, size in self._connection.execute(_PARTS, (_key(message),)):
            part = self._fields(data, size)
            if part is not None:
                yield {**part, "id": decoded(identifier)}

    def _fields(self, data: object, size: object) -> dict[str, Any] | None:
        self._report.lines += 1
        if isinstance(size, int) and size > MAX_LINE_BYTES:
            self._report.oversized += 1
            return None
        fields = _parsed(data)
        if not fields:
            self._report.torn += 1
        return fields or None

    def _note_newer_format(self, root: str) -> None:
        """OpenCode prepares a table of another layout; say so instead of finding nothing."""
        tables = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'session_message'")
        if tables.fetchone() is None:
            return
        rows = self._connection.execute("SELECT count(*) FROM session_message WHERE session_id = ?", (root,))
        for _ in range(min(int(rows.fetchone()[0]), 1)):
            count_unknown(self._report, "session_message")


def _key(identifier: object) -> object:
    """The id as the database has it: text came as bytes and must go back as text."""
    return identifier.decode(errors="replace") if isinstance(identifier, bytes) else identifier


def _parsed(data: object) -> dict[str, Any]:
    if not isinstance(data, str | bytes):
        return {}
    try:
        return mapping_of(cast(object, orjson.loads(data)))
    except (orjson.JSONDecodeError, RecursionError):
        return {}


def is_reverted(identifier: str, revert: dict[str, Any]) -> bool:
    """Ids grow with time: the message named in ``revert`` and all after it are void."""
    first = text_of(revert.get("messageID"))
    return bool(first) and identifier >= first
