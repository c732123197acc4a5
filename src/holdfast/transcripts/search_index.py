"""An index of the words of all agents' sessions and of what they used, so that nothing is read twice.

It is a cache in one SQLite file of the user's data folder: whatever happens to it, it can be deleted and
built again. It holds redacted text only: each session's different words once, in lower case, which is a
hundredth of its text. So many words can be looked through from first to last for each question, in which a
part of one counts as well; an index of their parts took as much room as the sessions themselves.

A session's file is read again only when its size or one of its times changed. What was appended to the
file of an agent that only appends is read from where the last reading ended.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import cast

import orjson

from holdfast.base.durable import NO_FOLLOW, lock_file, opened
from holdfast.base.errors import HoldfastError
from holdfast.base.redact import redact
from holdfast.journal.usage import UsageTally
from holdfast.model.message import Message, ReadReport
from holdfast.transcripts import claude_code, codex, open_transcript, subagent_files
from holdfast.transcripts.discover import FoundSession, Head, SearchReport, text_searched
from holdfast.transcripts.opencode import connect

NAME = "search.sqlite"
_VERSION = 3
_WORD = re.compile(r"\w+")
_WORDS_OF_A_ROW = 100_000
_BATCH_CHARACTERS = 256 * 1024
_COMMIT_BYTES = 64 * 1024 * 1024
_ENDING_BYTES = 4096
_LAST_LINE_BYTES = 1024 * 1024
_SURROGATES = dict.fromkeys((0, *range(0xD800, 0xE000)), " ")
_SCHEMA = f"""
CREATE TABLE heads (path BLOB PRIMARY KEY, stamp TEXT NOT NULL, head BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, agent TEXT NOT NULL, path BLOB NOT NULL, name TEXT NOT NULL,
    stamp TEXT NOT NULL, read INTEGER NOT NULL, ending BLOB NOT NULL,
    usage BLOB NOT NULL, beside BLOB NOT NULL,
    UNIQUE (agent, path, name)
);
CREATE TABLE words (id INTEGER PRIMARY KEY, session INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX words_of_session ON words (session);
PRAGMA user_version = {_VERSION};
"""
_FAMILY_CHANGES = """
WITH RECURSIVE family(id) AS (
    SELECT ? UNION SELECT child.id FROM session AS child JOIN family ON child.parent_id = family.id
)
SELECT
    (SELECT count(*) || ' ' || total(time_updated) FROM message WHERE session_id IN family),
    (SELECT count(*) || ' ' || total(time_updated) FROM part WHERE session_id IN family),
    (SELECT group_concat(revert) FROM session WHERE id IN family)
"""

Key = tuple[str, bytes, str]
Progress = Callable[[int, int], None]
"""Called with the bytes read so far, and with those to be read in all."""


class IndexUnusableError(Exception):
    """The index cannot be used here and now; a scan answers in its place."""


class IndexDamagedError(IndexUnusableError):
    """It was removed, so that the next try builds it again."""


@contextmanager
def search_index(home: Path) -> Generator[SearchIndex]:
    """The index, held against other processes; one that is damaged is replaced by an empty one."""
    path = home / NAME
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with lock_file(lock_of(home)):
            try:
                with closing(_open(path)) as connection:
                    yield SearchIndex(connection)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                _remove(path)
                raise IndexDamagedError(f"{path} was damaged: {error}") from error
    except sqlite3.Error as error:
        raise IndexUnusableError(f"{path}: {error}") from error
    except OSError as error:
        raise IndexUnusableError(f"{path}: {error.strerror or error}") from error


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """A full disk is none; a table that is missing is."""
    is_operational = isinstance(error, sqlite3.OperationalError)
    return not is_operational or error.sqlite_errorcode == sqlite3.SQLITE_ERROR


class _OlderError(sqlite3.DatabaseError):
    """Replaced like a damaged one."""


def _open(path: Path) -> sqlite3.Connection:
    try:
        return _connected(path)
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        _remove(path)
        return _connected(path)


def _connected(path: Path) -> sqlite3.Connection:
    with opened(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW) as descriptor:
        os.fchmod(descriptor, 0o600)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > _VERSION:
            raise IndexUnusableError(f"{path} was made by a newer Holdfast")
        connection.execute("PRAGMA temp_store = MEMORY")
        if version < _VERSION:
            if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise _OlderError("an older or a foreign file")
            connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        connection.execute("SELECT count(*) FROM (SELECT 1 FROM sessions, heads, words LIMIT 1)")
    except BaseException:
        connection.close()
        raise
    return connection


def _remove(path: Path) -> None:
    for one in files_in(path.parent):
        one.unlink(missing_ok=True)


def files_in(home: Path) -> list[Path]:
    """What the index in the user's data folder consists of; a killed process leaves a journal."""
    return [one for one in (home / NAME, home / f"{NAME}-journal") if one.exists()]


def lock_of(home: Path) -> Path:
    return home / f"{NAME}.lock"


@dataclass(frozen=True, slots=True)
class _Known:
    id: int
    stamp: str
    read: int
    ending: bytes
    usage: bytes
    beside: bytes  # the usage of sub-agents that keep files of their own


class SearchIndex:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.execute
        self._heads: dict[bytes, tuple[str, bytes]] = {
            path: (stamp, head) for path, stamp, head in self._run("SELECT path, stamp, head FROM heads")
        }
        self._new_heads: dict[bytes, tuple[str, bytes]] = {}
        self._seen_heads: set[bytes] = set()

    # what the heads of files tell, for `find_sessions`

    def head(self, path: Path, status: os.stat_result) -> Head | None:
        name = os.fsencode(path)
        self._seen_heads.add(name)
        stamp, data = self._heads.get(name, ("", b""))
        if stamp != _stamp(status):
            return None
        updated = datetime.fromtimestamp(status.st_mtime, UTC)
        try:
            return Head(size=status.st_size, updated=updated, **orjson.loads(data))
        except (TypeError, ValueError):
            return None

    def keep_head(self, path: Path, status: os.stat_result, head: Head) -> None:
        title = redact(head.title)[0] if head.title else None
        fields = {
            "session_id": head.session_id,
            "cwd": head.cwd,
            "has_message": head.has_message,
            "is_subagent": head.is_subagent,
            "started": head.started,
            "title": title,
        }
        with suppress(TypeError):  # a name that is no text cannot be kept: it is read again
            self._new_heads[os.fsencode(path)] = (_stamp(status), orjson.dumps(fields))

    # bringing it up to date

    def update(self, found: Sequence[FoundSession], report: SearchReport, progress: Progress) -> None:
        """Read what is new or changed, and drop what is gone."""
        known = self._known()
        changed = _changed(found, known)
        gone = set(known) - {_key(one) for one in found}
        if not (changed or gone or self._new_heads or set(self._heads) - self._seen_heads):
            return
        self._run("BEGIN IMMEDIATE")
        for key in gone:
            self._forget(known[key].id)
        self._store_heads()
        self._read(changed, known, report, progress)
        self._run("COMMIT")

    def usage_of(
        self, found: Sequence[FoundSession], report: SearchReport, most: int
    ) -> dict[Key, UsageTally]:
        """What these used, as far as it is known, or told by reading so many bytes."""
        known = self._known()
        changed = _changed(found, known)
        near: list[tuple[FoundSession, str]] = []
        for one, stamp in sorted(changed, key=lambda each: each[0].size or 0):
            old = known.get(_key(one))
            most -= (one.size or 0) - (old.read if old else 0)
            if most >= 0:
                near.append((one, stamp))
        if near:
            self._run("BEGIN IMMEDIATE")
            self._read(near, known, report, lambda _done, _total: None)
            self._run("COMMIT")
            known = self._known()
        unread = {_key(one) for one, _ in changed} - {_key(one) for one, _ in near}
        told = {_key(one) for one in found} & known.keys() - unread
        return {key: _with_subagents(known[key]) for key in told if known[key].stamp}

    def _known(self) -> dict[Key, _Known]:
        return {
            (agent, path, name): _Known(*rest)
            for agent, path, name, *rest in self._run(
                "SELECT agent, path, name, id, stamp, read, ending, usage, beside FROM sessions"
            )
        }

    def _read(
        self,
        changed: Sequence[tuple[FoundSession, str]],
        known: Mapping[Key, _Known],
        report: SearchReport,
        progress: Progress,
    ) -> None:
        """Call in a transaction; it is committed now and then."""
        total, done, pending = sum(one.size or 0 for one, _ in changed), 0, 0
        for one, stamp in changed:
            self._take(one, stamp, known.get(_key(one)), report)
            done, pending = done + (one.size or 0), pending + (one.size or 0)
            if pending > _COMMIT_BYTES:
                self._run("COMMIT")
                self._run("BEGIN IMMEDIATE")
                pending = 0
            progress(done, total)

    def _store_heads(self) -> None:
        for path in set(self._heads) - self._seen_heads:
            self._run("DELETE FROM heads WHERE path = ?", (path,))
        for path, (stamp, head) in self._new_heads.items():
            self._run("INSERT OR REPLACE INTO heads VALUES (?, ?, ?)", (path, stamp, head))

    def _forget(self, session: int) -> None:
        self._run("DELETE FROM words WHERE session = ?", (session,))
        self._run("DELETE FROM sessions WHERE id = ?", (session,))

    def _take(self, one: FoundSession, stamp: str, old: _Known | None, report: SearchReport) -> None:
        reading = _appended(one, old) if old else None
        if reading is None:
            if old:
                self._forget(old.id)
            cursor = self._run(
                "INSERT INTO sessions (agent, path, name, stamp, read, ending, usage, beside)"
                " VALUES (?, ?, ?, '', 0, x'', x'', x'')",
                _key(one),
            )
            session = int(cast(int, cursor.lastrowid))
            reading, tally = _whole(one), UsageTally()
        else:
            session, tally = cast(_Known, old).id, _tally_from(cast(_Known, old).usage)
        beside = UsageTally()
        try:
            for body in _bodies(_counting(reading.messages, tally)):
                self._run("INSERT INTO words (session, body) VALUES (?, ?)", (session, body))
            beside = _tally_beside(one)
        except (HoldfastError, OSError):
            report.skipped += 1
            stamp = ""  # it is tried again next time
        self._run(
            "UPDATE sessions SET stamp = ?, read = ?, ending = ?, usage = ?, beside = ? WHERE id = ?",
            (stamp, reading.end, reading.ending, orjson.dumps(tally), orjson.dumps(beside), session),
        )

    # asking

    def matching(self, words: Iterable[str]) -> set[Key]:
        """The sessions in which all the words may occur; all of them do where `is_sure`."""
        try:
            missing = {part.encode() for word in words for part in _WORD.findall(word.lower())}
        except UnicodeEncodeError:
            return set()  # bytes that are no text occur in none
        found: dict[int, set[bytes]] = {}
        for session, body in self._run("SELECT session, body FROM words"):
            found.setdefault(session, set()).update(part for part in missing if part in body)
        rows = self._run("SELECT id, agent, path, name FROM sessions")
        return {
            (agent, path, name)
            for session, agent, path, name in rows
            if not missing - found.get(session, set())
        }


def is_sure(words: Iterable[str]) -> bool:
    """Whether the index answers for itself: of what is more than one word it knows the words alone."""
    return all(_WORD.fullmatch(word.lower()) for word in words)


def _counting(messages: Iterator[Message], tally: UsageTally) -> Iterator[Message]:
    for message in messages:
        tally.count(message)
        yield message


def _tally_beside(one: FoundSession) -> UsageTally:
    tally = UsageTally()
    for path in subagent_files(one.path).values() if one.agent == "claude-code" else ():
        for message in open_transcript(path, "claude-code")[1]:
            tally.count(message)
    return tally


def _tally_from(data: bytes) -> UsageTally:
    return UsageTally(**orjson.loads(data)) if data else UsageTally()


def _with_subagents(known: _Known) -> UsageTally:
    tally = _tally_from(known.usage)
    for name, counts in _tally_from(known.beside).models.items():
        before = tally.models.get(name, (0, 0, 0, 0))
        tally.models[name] = [old + new for old, new in zip(before, counts, strict=True)]
    return tally


def _changed(found: Sequence[FoundSession], known: Mapping[Key, _Known]) -> list[tuple[FoundSession, str]]:
    """Those to be read, with what tells their present state."""
    stamps = _Stamps()
    told = [(one, stamps.of(one)) for one in found]
    return [
        (one, stamp)
        for one, stamp in told
        if (old := known.get(_key(one))) is None or not stamp or old.stamp != stamp
    ]


def _key(one: FoundSession) -> Key:
    return one.agent, os.fsencode(one.path), one.session_id.encode(errors="replace").decode()


def key_of(one: FoundSession) -> Key:
    return _key(one)


# --- what tells that a file changed


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


class _Stamps:
    """Sessions that share a database are told apart by what the database says of each."""

    def __init__(self) -> None:
        self._files: dict[Path, str] = {}

    def of(self, one: FoundSession) -> str:
        """Empty where it cannot be told."""
        try:
            if one.size is not None:
                return _stamp(one.path.stat())
            return f"{one.updated.timestamp()} {self._changes(one)}"
        except (OSError, sqlite3.Error):
            return ""

    def _changes(self, one: FoundSession) -> str:
        with closing(connect(one.path)) as connection:
            row = connection.execute(_FAMILY_CHANGES, (one.session_id,)).fetchone()
        return hashlib.sha256(repr(row).encode()).hexdigest()


# --- reading


@dataclass(slots=True)
class _Reading:
    messages: Iterator[Message]
    end: int = 0  # of the last whole line
    ending: bytes = b""  # a hash of the file's first and last bytes up to there


def _whole(one: FoundSession) -> _Reading:
    end, ending = _end(one.path) if one.agent in _APPENDING else (0, b"")
    return _Reading(_all_messages(one), end, ending)


def _all_messages(one: FoundSession) -> Iterator[Message]:
    yield from open_transcript(one.path, one.agent, one.session_id)[1]


# Gemini CLI writes the whole conversation again now and then, which only its whole file tells.
_APPENDING = {"claude-code": claude_code.read, "codex": codex.read}
# What only the lines before tell the meaning of: a queue taken back, a summary, a second session in the file.
_NEEDS_WHOLE = (b'"popAll"', b'"compact_boundary"', b'"isCompactSummary"', b'"compacted"', b'"session_meta"')


def _appended(one: FoundSession, old: _Known) -> _Reading | None:
    """What follows that which was read before; nothing where the file was written anew."""
    read = _APPENDING.get(one.agent)
    if read is None or not old.read or not old.stamp:
        return None
    try:
        with one.path.open("rb") as source:
            number = source.fileno()
            if os.fstat(number).st_size < old.read or _ending(number, old.read) != old.ending:
                return None
            source.seek(old.read)
            data = source.read(_COMMIT_BYTES + 1)
            whole = data.rfind(b"\n") + 1
            end = old.read + whole
            ending = _ending(number, end)
    except OSError:
        return None
    if len(data) > _COMMIT_BYTES or any(mark in data for mark in _NEEDS_WHOLE):
        return None
    return _Reading(read(BytesIO(data), ReadReport()), end, ending)


def _end(path: Path) -> tuple[int, bytes]:
    """Where the last whole line ends. Taken before the file is read: what comes meanwhile is read twice."""
    try:
        with path.open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            start = max(0, size - _LAST_LINE_BYTES)
            source.seek(start)
            whole = source.read(size - start).rfind(b"\n") + 1
            return (start + whole, _ending(source.fileno(), start + whole)) if whole else (0, b"")
    except OSError:
        return 0, b""


def _ending(descriptor: int, end: int) -> bytes:
    first = os.pread(descriptor, min(_ENDING_BYTES, end), 0)
    last = os.pread(descriptor, min(_ENDING_BYTES, end), max(0, end - _ENDING_BYTES))
    return hashlib.sha256(first + last).digest()


def _bodies(messages: Iterator[Message]) -> Iterator[bytes]:
    words: set[str] = set()
    for text in _batches(messages):
        words.update(_WORD.findall(redact(text)[0].lower().translate(_SURROGATES)))
        if len(words) > _WORDS_OF_A_ROW:
            yield "\n".join(words).encode()
            words.clear()
    if words:
        yield "\n".join(sorted(words)).encode()


def _batches(messages: Iterator[Message]) -> Iterator[str]:
    batch: list[str] = []
    size = 0
    for message in messages:
        batch.append(text := text_searched(message))
        size += len(text)
        if size > _BATCH_CHARACTERS:
            yield "\n".join(batch)
            batch, size = [], 0
    yield "\n".join(batch)
