"""What undo knew last: of each file, of who is at work, of what was begun; and what an entry says."""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AwareDatetime, Field, ValidationError

from holdfast.base.durable import NO_FOLLOW, is_held, opened, set_aside
from holdfast.base.errors import DamagedDataError, NewerSchemaError, StorageError
from holdfast.base.process import ProcessIdentity, is_alive
from holdfast.base.redact import redact
from holdfast.model.base import Schema, Value, explain
from holdfast.project.formats import ending_mark

# ── manifests ─────────────────────────────────────────────────────────────────────────────────────

# What one entry of a transaction says: which files it found, and what it left.
#
# An entry is a commit. Its message carries this document, its tree the blobs that the document names,
# so that git itself keeps them. Nothing is ever taken out of a transaction: undoing adds an entry.

_OF_A_PLAN = re.compile(r"-s\d+(-\d+)?\Z")
_BESIDE = re.compile(r" \(beside ([^()]*)\)\Z")


def _manifest_3_to_4(document: dict[str, Any]) -> dict[str, Any]:
    """Whose tasks' change it is stood in its description alone; whether anything was undone is looked up."""
    tasks: dict[str, list[str]] = {}
    if document.get("kind") == "change" and _OF_A_PLAN.search(str(document.get("transaction_id"))):
        told = str(document.get("description", ""))
        beside = _BESIDE.search(told)
        named = _BESIDE.sub("", told).split("; ")
        tasks["tasks"] = [name for one in named if (name := one.partition(": ")[0])]
        tasks["beside"] = beside[1].split(", ") if beside else []
    return {**document, **tasks, "undone": True}


MANIFEST_SCHEMA = Schema(
    "side-car entry",
    {
        1: "files before and after, what it undoes, what is in doubt",
        2: "what the record does not cover",
        3: "folders, owners, extended attributes, which names are one file",
        4: "tasks of a plan, the order of all entries, whether anything was undone before",
    },
    {1: dict, 2: dict, 3: _manifest_3_to_4},
)

FileKind = Literal["begin", "change", "undo", "rollback", "commit"]
Status = Literal["in-progress", "committed", "rolled-back"]
TransactionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]


class FileState(Value):
    """A file, a link or a folder. A path with nothing there has no state: None."""

    link: bool = False
    folder: bool = Field(default=False, description="Its path ends with /")
    permissions: int = Field(ge=0, le=0o7777)
    oid: str = Field(pattern=r"^[0-9a-f]{40}$")
    size: int = Field(ge=0)
    stored: bool = Field(
        default=True, description="False if it was too large to store; it may have been set aside"
    )
    inode: int = Field(default=0, description="Where it had several names: equal for the names of one file")
    owner: tuple[int, int] | None = Field(default=None, description="User and group, where not our own")
    attributes: dict[str, str] = Field(default={}, description="Extended attributes, values in base64")

    @property
    def blob(self) -> str | None:
        """The content that is stored of it; a folder has none."""
        return self.oid if self.stored and not self.folder else None

    @property
    def git_mode(self) -> str:
        if self.link:
            return "120000"
        return "100755" if self.permissions & 0o100 else "100644"

    def same_content(self, other: FileState | None) -> bool:
        return other is not None and (self.link, self.folder, self.oid) == (
            other.link,
            other.folder,
            other.oid,
        )

    def same_as(self, other: FileState | None) -> bool:
        return other is not None and self.same_content(other) and self.permissions == other.permissions


def task_name(task_id: str) -> str:
    """Under which a task's changes are recorded."""
    return redact(task_id)[0]


class TasksEnded(NamedTuple):
    """Of a plan: whose end a change was recorded at, and who was still at work, by id."""

    tasks: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    is_noted: bool = False
    """Whether their end is recorded even where no file was changed."""
    missed: str = ""
    """What the record cannot hold."""


def told(paths: Iterable[str]) -> list[str]:
    """These, without the folders that one of the others tells of."""
    following = pairwise([*sorted(paths), ""])
    return [name for name, after in following if not (name.endswith("/") and after.startswith(name))]


def same(one: FileState | None, other: FileState | None) -> bool:
    return other is None if one is None else one.same_as(other)


class PathChange(Value):
    path: str
    before: FileState | None
    after: FileState | None

    @property
    def kind(self) -> Literal["added", "modified", "deleted"]:
        return "added" if self.before is None else "deleted" if self.after is None else "modified"


class LedgerEntry(Value):
    schema_version: Literal[4] = MANIFEST_SCHEMA.current
    id: str
    kind: FileKind
    transaction_id: TransactionId
    session_id: str
    status: Status = Field(default="in-progress", description="Status of the transaction from here on")
    at: AwareDatetime
    description: str = ""
    changes: tuple[PathChange, ...] = ()
    undoes: tuple[str, ...] = Field(
        default=(), description="Entries that this one undid, except for the paths in `left`"
    )
    doubt: str = Field(default="", description="Why the change cannot be attributed to the session")
    left: tuple[str, ...] = Field(default=(), description="Paths that were left unchanged")
    uncovered: tuple[str, ...] = Field(
        default=(), description="What is not recorded: ignored files, submodules, a look that came late"
    )
    continued_from: str | None = Field(default=None, description="The previous committed transaction")
    tasks: tuple[str, ...] = Field(default=(), description="Tasks of a plan that ended with this change")
    beside: tuple[str, ...] = Field(default=(), description="Tasks that were still running then")
    number: int = Field(default=0, description="Its place among all entries; 0: recorded before they had one")
    undone: bool = Field(
        default=False, description="Whether anything of its transaction may have been undone up to here"
    )

    @property
    def renames(self) -> dict[str, str]:
        """New path to old, where content left one place and appeared in another."""
        gone = {c.before.oid: c.path for c in self.changes if c.before and not c.after and c.before.size}
        return {
            c.path: gone[c.after.oid]
            for c in self.changes
            if c.after and not c.before and c.after.oid in gone
        }


def to_message(entry: LedgerEntry) -> str:
    subject = " ".join(f"{entry.kind}: {entry.description}".split())[:72].rstrip(": ")
    return f"{subject}\n\n{entry.model_dump_json(exclude_defaults=False)}"


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DamagedDataError(f"the database of the side-car is damaged: {error}") from error


def from_message(message: str, *, where: str) -> LedgerEntry:
    try:
        document: Any = json.loads(message.partition("\n\n")[2])
        if not isinstance(document, dict):
            raise DamagedDataError(f"{where} is not an entry of a transaction")
        return LedgerEntry.model_validate(MANIFEST_SCHEMA.upgrade(document, where=where))  # type: ignore[arg-type]
    except ValidationError as error:
        raise DamagedDataError(f"{where} is damaged: {explain(error)}") from error
    except (ValueError, RecursionError) as error:
        raise DamagedDataError(f"{where} is damaged: {error}") from error


# ── state ─────────────────────────────────────────────────────────────────────────────────────────

# What the side-car knew last: of each file, of who is at work, and of what was begun and not ended.
#
# One SQLite file, written under the side-car's lock. Every change of it is one sync of the disk, and the
# only one that recording takes: objects and branches that were not synced yet stand in it too, and are
# written again should the machine have gone down. Losing the file loses no content: the branches hold
# all that was recorded, and the next look at the tree starts from what is there.

log = logging.getLogger("holdfast.sidecar")

VERSION = 3
SYNCHRONOUS = "FULL"
_TABLES = """
CREATE TABLE IF NOT EXISTS files (
    path BLOB PRIMARY KEY, link INTEGER NOT NULL, permissions INTEGER NOT NULL, oid TEXT NOT NULL,
    size INTEGER NOT NULL, stored INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER,
    inode INTEGER NOT NULL DEFAULT 0, names INTEGER NOT NULL DEFAULT 1, more TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS watches (
    transaction_id TEXT NOT NULL, path BLOB NOT NULL, pid INTEGER NOT NULL, started TEXT,
    PRIMARY KEY (transaction_id, path)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS branches (name TEXT PRIMARY KEY, oid TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unsynced (oid TEXT PRIMARY KEY, packed BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS first_look (
    indexed BLOB NOT NULL, odd BLOB NOT NULL, plain INTEGER NOT NULL, executable INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_NO_FOLDERS = "no folders"
_NO_LOOK_YET = -1
"""In place of the modes: of the first look there is only the index so far."""
_SINCE_FIRST = """
INSERT INTO notes VALUES ('no folders', '1');
ALTER TABLE files ADD COLUMN inode INTEGER NOT NULL DEFAULT 0;
ALTER TABLE files ADD COLUMN names INTEGER NOT NULL DEFAULT 1;
ALTER TABLE files ADD COLUMN more TEXT NOT NULL DEFAULT '';
"""
FOLDER_KIND = 2
"""`link` of a folder, whose path ends with `/`."""
BORROWED = 2
"""`stored` of a file whose content is in the user's repository alone, until a change of it is recorded."""
WHOLE_TREE = b""
"""The path of a watch that covers every file."""


class KnownFile(NamedTuple):
    """A file as it was last seen, with the stamp it had."""

    link: int
    permissions: int
    oid: str
    size: int
    stored: int
    mtime_ns: int
    ctime_ns: int | None
    inode: int = 0
    names: int = 1
    more: str = ""
    """Its owner and extended attributes as JSON, where they are out of the ordinary."""

    @property
    def state(self) -> FileState:
        more: dict[str, Any] = _parsed(self.more) if self.more else {}
        return FileState(
            link=self.link == 1,
            folder=self.link == FOLDER_KIND,
            permissions=self.permissions,
            oid=self.oid,
            size=self.size,
            stored=bool(self.stored),
            inode=self.inode if self.names > 1 else 0,
            **more,
        )


_COLUMNS = ", ".join(KnownFile._fields)
_MARKS = ", ".join("?" * (1 + len(KnownFile._fields)))


def same_content(one: KnownFile | None, other: KnownFile | None) -> bool:
    return one is None if other is None else one is not None and one[:3] == other[:3]


@dataclass(frozen=True)
class UndoLimits:
    largest_file: int = 16 << 20
    """A larger file's change is recorded, its content is not kept."""
    total: int = 2 << 30
    largest_tree: int = 8 << 30
    """A project with more in it is not watched as a whole."""
    collect_after: int = 64 << 20
    keep_days: float = 30.0
    """So long a finished transaction can be taken back."""


@dataclass(frozen=True)
class NamedFiles:
    """The files and folders that a session's own tools named since it watches, and what it is doing."""

    paths: frozenset[bytes]
    description: str = ""
    wholes: frozenset[bytes] = frozenset()
    """Removed, moved or copied with all that is below."""
    news: frozenset[bytes] = frozenset()
    """Likewise, if there was no such folder before."""
    modes: frozenset[bytes] = frozenset()
    """Only their mode or time was set; or they were made, empty."""

    def covers(self, path: bytes, differing: Differing | None = None) -> bool:
        place = path.rstrip(b"/")
        if place in self.paths or (place in self.modes and differing and _keeps_content(*differing[path])):
            return True
        while place and place not in self.wholes and not self._is_new(place, differing or {}):
            place = place.rpartition(b"/")[0]
        return bool(place)

    def _is_new(self, folder: bytes, differing: Differing) -> bool:
        before, now = differing.get(folder + b"/", (None, None))
        return folder in self.news and before is None and now is not None


def _keeps_content(before: KnownFile | None, now: KnownFile | None) -> bool:
    if before is None or now is None:
        return now is not None and not now.link and not now.size
    return (before.link, before.oid) == (now.link, now.oid)


Differing = Mapping[bytes, tuple[KnownFile | None, KnownFile | None]]
"""Path to how a file was known, and how it is now."""


_LACKING = re.compile(
    r"(?:^|; )(?=turn (\S+) was not recorded: |what turn (\S+) changed before its first look at the files )"
)
_NEXT = re.compile(r"; (?=turn \S+ was not recorded: |what )")


def lost_turn(turn: str, reason: str) -> str:
    """As the record says that it lacks a turn."""
    return f"turn {turn} was not recorded: {reason}"


def late_look(turn: str) -> str:
    """As the record says that a turn's tools did not wait."""
    return f"what turn {turn} changed before its first look at the files was finished"


def turns_lacking(uncovered: Iterable[str]) -> list[tuple[str, str]]:
    """Of what is not recorded the turns, each with the sentence that says so: no undo takes them back."""
    return [
        (found[1] or found[2], _NEXT.split(line[found.end() :], maxsplit=1)[0])
        for line in uncovered
        for found in _LACKING.finditer(line)
    ]


class FirstLook(NamedTuple):
    """What the user's index says of most files, until somebody asks for one of them."""

    indexed: bytes
    odd: frozenset[bytes]
    """Files in it that it does not tell of."""
    modes: tuple[int, int]


@dataclass(frozen=True)
class Watch:
    transaction_id: str
    paths: frozenset[bytes]
    owners: tuple[ProcessIdentity, ...]
    ending: Path
    """Held by the processes that were started to end it, when its owner was about to exit."""

    @cached_property
    def abandoned(self) -> bool:
        """Nobody is left who could end it."""
        return not any(is_alive(owner) for owner in self.owners) and not is_held(self.ending)

    @property
    def whole_tree(self) -> bool:
        return WHOLE_TREE in self.paths


_REFUSALS = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def refused_by_the_disk(error: sqlite3.DatabaseError, so_far: str = "") -> StorageError | None:
    """A disk that is full, or cannot be written, says nothing against what is in the database."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF == sqlite3.SQLITE_FULL:
        return StorageError(f"no space left for the database of the side-car{so_far}")
    if code & 0xFF in _REFUSALS and code != sqlite3.SQLITE_IOERR_SHORT_READ:  # the file was cut
        return StorageError(f"could not use the database of the side-car: {error}{so_far}")
    return None


class State:
    def __init__(self, path: Path, unsynced: Callable[[], dict[str, bytes]], *, now: float) -> None:
        self._folder = path.parent
        self._take_unsynced = unsynced
        self._kept_index = b""
        try:
            self._database = _opened(path)
        except sqlite3.DatabaseError as error:
            if refusal := refused_by_the_disk(error, "; nothing was changed"):
                raise refusal from error
            kept = set_aside(path, now)
            log.warning("%s was damaged (%s) and kept as %s", path.name, error, kept.name)
            self._database = _opened(path)

    @contextmanager
    def change(self) -> Generator[None]:
        """All of it or nothing, on the disk when the block is left."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.executemany(
                "INSERT OR REPLACE INTO unsynced VALUES (?, ?)", self._take_unsynced().items()
            )
        except BaseException:
            if self._database.in_transaction:  # of a full disk SQLite itself rolls back
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def close(self) -> None:
        self._database.close()

    def all_files(self) -> dict[bytes, KnownFile]:
        rows = self._database.execute(f"SELECT path, {_COLUMNS} FROM files")  # noqa: S608 - our own names
        return {row[0]: KnownFile._make(row[1:]) for row in rows}

    def file(self, path: bytes) -> KnownFile | None:
        query = f"SELECT {_COLUMNS} FROM files WHERE path = ?"  # noqa: S608 - our own names
        row = self._database.execute(query, (path,)).fetchone()
        return KnownFile._make(row) if row else None

    def files_in(self, folder: bytes) -> list[bytes]:
        """Known files below a folder, which is given with its slash."""
        rows = self._database.execute(
            "SELECT path FROM files WHERE path > ? AND path < ?", (folder, folder[:-1] + b"0")
        )
        return [path for (path,) in rows if not path.endswith(b"/")]

    def paths_with(self, oids: Iterable[str]) -> list[tuple[bytes, str]]:
        """Where these contents were last seen."""
        query = "SELECT path, oid FROM files WHERE oid IN (SELECT value FROM json_each(?))"
        return self._database.execute(query, (json.dumps(list(oids)),)).fetchall()

    def paths_of(self, inode: int) -> list[bytes]:
        """The names under which a file was last seen."""
        return [
            path for (path,) in self._database.execute("SELECT path FROM files WHERE inode = ?", (inode,))
        ]

    def put_files(self, files: Mapping[bytes, KnownFile | None]) -> None:
        self._database.executemany(
            "DELETE FROM files WHERE path = ?", [(path,) for path, known in files.items() if known is None]
        )
        self._database.executemany(
            f"INSERT OR REPLACE INTO files (path, {_COLUMNS}) VALUES ({_MARKS})",  # noqa: S608 - likewise
            [(path, *known) for path, known in files.items() if known is not None],
        )

    def put_file(self, path: bytes, known: KnownFile | None) -> None:
        self._put("files", "path", path, known)

    def _put(self, table: str, key: str, name: str | bytes, values: tuple[Any, ...] | None) -> None:
        """The row of that name, or none of it."""
        if values is None:
            self._database.execute(f"DELETE FROM {table} WHERE {key} = ?", (name,))  # noqa: S608 - our own names
        else:
            marks = ", ".join("?" * (1 + len(values)))
            self._database.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", (name, *values))  # noqa: S608 - likewise

    def keep_index(self, indexed: bytes) -> None:
        """The large part of a first look, which says nothing until the rest is put."""
        row = (indexed, b"", _NO_LOOK_YET, _NO_LOOK_YET)
        with self.change():
            self._database.execute("DELETE FROM first_look")
            self._database.execute("INSERT INTO first_look VALUES (?, ?, ?, ?)", row)
        self._kept_index = indexed

    def put_first_look(self, first: FirstLook | None) -> None:
        is_kept = first is not None and first.indexed is self._kept_index
        self._database.execute("DELETE FROM first_look WHERE plain <> ? OR ?", (_NO_LOOK_YET, not is_kept))
        self._kept_index = b""
        if first is not None:
            row = (b"" if is_kept else first.indexed, b"\0".join(first.odd), *first.modes)
            self._database.execute("INSERT INTO first_look VALUES (?, ?, ?, ?)", row)

    def shrink(self) -> None:
        """Give back to the disk what was needed only for a while."""
        self._database.execute("VACUUM")

    def first_look(self) -> FirstLook | None:
        """Where this is, the files in it are not among the others yet."""
        found = self._database.execute("SELECT * FROM first_look ORDER BY plain DESC").fetchall()
        if not found or found[0][2] == _NO_LOOK_YET:
            return None
        _, odd, *modes = found[0]
        return FirstLook(found[0][0] or found[-1][0], frozenset(odd.split(b"\0")), (modes[0], modes[1]))

    def watches(self) -> list[Watch]:
        rows = self._database.execute("SELECT transaction_id, path, pid, started FROM watches ORDER BY 1, 2")
        found: dict[str, list[tuple[bytes, int, str | None]]] = {}
        for name, *rest in rows:
            found.setdefault(name, []).append(tuple(rest))
        return [
            Watch(
                name,
                frozenset(path for path, _, _ in lines),
                tuple({"pid": pid, "started": started} for pid, started in {line[1:] for line in lines}),
                ending_file(self._folder, name),
            )
            for name, lines in found.items()
        ]

    def watch(self, transaction_id: str, paths: Iterable[bytes], owner: ProcessIdentity) -> None:
        self._database.executemany(
            "INSERT OR REPLACE INTO watches VALUES (?, ?, ?, ?)",
            [(transaction_id, path, owner["pid"], owner["started"]) for path in paths],
        )

    def is_watched_by(self, transaction_id: str, owner: ProcessIdentity) -> bool:
        """Whether the watch is that process's, and not one that another has taken over."""
        row = self._database.execute(
            "SELECT 1 FROM watches WHERE transaction_id = ? AND pid = ? AND started IS ?",
            (transaction_id, owner["pid"], owner["started"]),
        ).fetchone()
        return row is not None

    def unwatch(self, transaction_id: str, paths: Iterable[bytes] | None = None) -> None:
        if paths is None:
            self._database.execute("DELETE FROM watches WHERE transaction_id = ?", (transaction_id,))
        else:
            self._database.executemany(
                "DELETE FROM watches WHERE transaction_id = ? AND path = ?",
                [(transaction_id, path) for path in paths],
            )

    def branches(self) -> dict[str, str]:
        """Where every branch belongs."""
        return dict(self._database.execute("SELECT name, oid FROM branches"))

    def put_branch(self, name: str, oid: str | None) -> None:
        self._put("branches", "name", name, None if oid is None else (oid,))

    def unsynced_count(self) -> int:
        return self._database.execute("SELECT count(*) FROM unsynced").fetchone()[0]

    def unsynced(self) -> dict[str, bytes]:
        return dict(self._database.execute("SELECT oid, packed FROM unsynced"))

    def all_synced(self) -> None:
        self._database.execute("DELETE FROM unsynced")

    @property
    def knows_folders(self) -> bool:
        """Not while the last look at the whole tree was an older version's."""
        return self.note(_NO_FOLDERS) is None

    def found_folders(self) -> None:
        self.put_note(_NO_FOLDERS, None)

    def note(self, name: str) -> Any:
        row = self._database.execute("SELECT value FROM notes WHERE name = ?", (name,)).fetchone()
        return _parsed(row[0]) if row else None

    def put_note(self, name: str, value: Any) -> None:
        self._put("notes", "name", name, None if value is None else (json.dumps(value),))


def ending_file(folder: Path, transaction_id: str) -> Path:
    return folder / ending_mark(transaction_id)


def _opened(path: Path) -> sqlite3.Connection:
    with opened(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW):
        pass  # SQLite would make it as the umask says, and its log like it
    # Threads take turns: whoever is at work holds the side-car's lock.
    database = sqlite3.connect(path, isolation_level=None, timeout=30, check_same_thread=False)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise NewerSchemaError(f"{path.name} is version {version}; this holdfast supports {VERSION}")
        # One sync a change. One process at a time is at work in it, so the race of decision 4 cannot happen.
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        if version < VERSION:
            more = _SINCE_FIRST if version == 1 else ""
            database.executescript(f"BEGIN; {_TABLES} {more} PRAGMA user_version = {VERSION}; COMMIT;")
    except BaseException:
        database.close()
        raise
    return database
