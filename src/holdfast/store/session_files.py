"""The session files of a project: a pause is put in place as a whole, or not at all.

    1  everything is written and synced in a staging folder
    2  the journal gets its last line
    3  the database is asked to take the pause, and decides; see `sessions/pause.py`
    4  the staging folder is renamed to `.commit-SESSION.PROOF`
    5  the files and the journal are renamed to where they belong, LATEST last
    6  the commit folder goes

From 4 on only names change, so a full disk cannot stop it half-way. Whoever opens the folder next
finishes what a crash interrupted after 4, and takes back what it interrupted before 3. In between only
the database can tell, so that waits for somebody who can ask it. A set that no database knows of, such as
an archived journal, is decided by the rename.
`LATEST-SESSION.txt` is set after the files are there and taken back before they go.

A patch or an archive can bring folders of these names, too, and what their manifests say moves and cuts
files. So the name ends with a proof made with the folder's mark; what bears none is left alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from holdfast.base import ids
from holdfast.base.durable import (
    NO_FOLLOW,
    append_or_undo,
    lock_descriptor,
    lock_file,
    opened,
    read_file,
    replace_file,
    storage_errors,
    sync_folder,
    write_new,
)
from holdfast.base.errors import ConflictError, DamagedDataError, HoldfastError, NotFoundError
from holdfast.base.faults import fault_point
from holdfast.project.formats import (
    ARCHIVE_MARK,
    ARCHIVE_SUFFIX,
    COMMIT,
    INDEXED,
    JOURNAL,
    LATEST,
    STAGING,
    STARTED,
    UNINDEXED,
)
from holdfast.project.trust import MARK, forget_starts, session_proof

log = logging.getLogger("holdfast.store")

KINDS = (".json", ".yaml", ".md")

_MANIFEST = "manifest.json"
_LOCK = ".lock"
LOCK_WAIT = 60.0
_JOURNAL_FLAGS = os.O_RDWR | os.O_APPEND | NO_FOLLOW
_NOT_OURS = "%s was not created by Holdfast and is ignored"
_OUR_TEMPORARIES = (f".{LATEST}.*.tmp", f".{JOURNAL}.*.tmp", ".session-*.tmp")
"""Written under our lock only, so what is found belongs to the dead. Other rooms' files are theirs."""


@dataclass(frozen=True)
class Closing:
    """A journal that ends with this session: gets its last line, then its archive name.

    Whoever places the set holds the journal's lock.
    """

    journal: str
    archive: str
    last_line: str


Answer = Literal["taken", "changed", "away"]
"""Of the database to a pause: it has it; the workflow changed meanwhile; it cannot be asked."""

IsStored = Callable[[str], bool | None]
"""Whether the database has the snapshot with this id; None where it cannot be asked."""


@dataclass(frozen=True)
class FileSet:
    """What one finalised pause puts into the sessions folder."""

    session_id: str
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By ending: `.json`, `.yaml`, `.md`."""
    closing: Closing | None = None
    becomes_latest: bool = True
    to_be_indexed: bool = False
    snapshot_id: str | None = None
    """Of a pause that the database decides on."""
    stands_in: bool = False
    """Whether the files count by themselves while the database is away."""


class SessionFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def locked(self, is_stored: IsStored | None = None, wait: float = LOCK_WAIT) -> Generator[None]:
        """Alone in the folder, with whatever a crashed process left half-done finished first.

        Without `is_stored`, what only the database can tell waits for the next one.
        """
        with storage_errors("use the sessions folder"), lock_file(self.folder / _LOCK, wait=wait):
            self._finish_interrupted(is_stored)
            yield

    def free_session_id(self, seconds: float) -> str:
        """A name nobody has, for a pause that starts now. Call with the lock held."""
        attempt = 1
        while self.is_taken(name := ids.session_id(seconds, attempt)):
            attempt += 1
        return name

    def is_taken(self, name: str) -> bool:
        # `name.` and `name-incremental` are its own files; `name-2` is another session. A wind-down that is
        # going on has its name, too: who began it looks for its session by that.
        own = (f"{name}.*", f"{name}{ARCHIVE_MARK}*", f"{STAGING}{name}.*", f"{STARTED}{name}")
        return any(any(self.folder.glob(pattern)) for pattern in own)

    def place(self, files: FileSet, ask: Callable[[], Answer] | None = None) -> Answer:
        """Put the set in place. Call with the lock held; on an error nothing has changed.

        `ask` gives the pause to the database once everything is written. If the workflow has changed
        meanwhile, nothing is placed. If it fails in a way that leaves open whether the database has the
        pause, the staging folder stays for somebody who can find out.
        """
        staging = self._in_progress(STAGING, files.session_id)
        try:
            self._close_journal(self._stage(staging, files))
            commit = self._committed(staging) if ask is None else None
        except BaseException:
            self._take_back(staging, journal_locked=True)
            raise
        answer: Answer = self._answer(staging, ask) if ask else "away"
        if answer != "changed":
            self._roll_forward(commit or self._committed(staging))
        fault_point("pause.placed")
        if answer == "taken":
            self.mark_indexed(files.session_id)
        return answer

    def _answer(self, staging: Path, ask: Callable[[], Answer]) -> Answer:
        sync_folder(self.folder)  # also after a power cut it is there to be finished
        fault_point("pause.staged")
        try:
            answer = ask()
        except ConflictError:  # it has not taken it
            self._take_back(staging, journal_locked=True)
            raise
        if answer == "changed":
            self._take_back(staging, journal_locked=True)
        fault_point("pause.decided")
        return answer

    def _committed(self, staging: Path) -> Path:
        commit = self._in_progress(COMMIT, _session_of(staging))
        staging.rename(commit)
        sync_folder(self.folder)
        return commit

    def _in_progress(self, kind: str, session_id: str) -> Path:
        return self.folder / f"{kind}{session_id}.{self._proof(kind + session_id).decode()}"

    def _stage(self, staging: Path, files: FileSet) -> dict[str, Any]:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(mode=0o700)
        names = {f"{files.session_id}{kind}": data for kind, data in files.files.items()}
        if files.to_be_indexed:
            names[f"{UNINDEXED}{files.session_id}"] = self._proof(files.session_id)
        if files.becomes_latest:
            names[LATEST] = f"{files.session_id}\n".encode()  # named last, so moved last
        for name, data in names.items():
            write_new(staging / name, data)
        manifest: dict[str, Any] = {
            "files": list(names),
            "closing": self._closing(files.closing),
            "snapshot_id": files.snapshot_id,
            "stands_in": files.stands_in,
        }
        write_new(staging / _MANIFEST, json.dumps(manifest).encode())
        sync_folder(staging)
        return manifest

    def _closing(self, closing: Closing | None) -> dict[str, Any] | None:
        if closing is None or not (self.folder / closing.journal).exists():
            return None  # none, or archived by the placing that was just finished
        return {**asdict(closing), "size": (self.folder / closing.journal).stat().st_size}

    def _close_journal(self, manifest: dict[str, Any]) -> None:
        closing = manifest["closing"]
        if closing is None:
            return
        with opened(self.folder / closing["journal"], _JOURNAL_FLAGS) as descriptor:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            append_or_undo(descriptor, b"\n" * torn + _last_line(closing), size)
            os.fsync(descriptor)

    def _see_journal_closed(self, manifest: dict[str, Any]) -> None:
        """Its last line may be missing or torn: the crash came before the database was asked."""
        closing = manifest["closing"]
        if closing is None:
            return
        with (
            contextlib.suppress(FileNotFoundError),
            opened(self.folder / closing["journal"], _JOURNAL_FLAGS) as descriptor,
        ):
            lock_descriptor(descriptor)
            line = _last_line(closing)
            if line not in os.pread(descriptor, len(line) + 1, closing["size"]):
                self._reopen_journal(closing, journal_locked=True)
                self._close_journal(manifest)

    def _take_back(self, staging: Path, *, journal_locked: bool) -> None:
        """Undo a placing that was not committed: the journal's last line, then the staged files."""
        with contextlib.suppress(OSError):  # not so far yet, or taken back already
            manifest = _manifest(staging)
            if manifest and manifest["closing"] is not None:
                self._reopen_journal(manifest["closing"], journal_locked=journal_locked)
        shutil.rmtree(staging, ignore_errors=True)

    def _reopen_journal(self, closing: dict[str, Any], *, journal_locked: bool) -> None:
        with opened(self.folder / closing["journal"], _JOURNAL_FLAGS) as descriptor:
            if not journal_locked:  # or what somebody appends now would be cut off with it
                lock_descriptor(descriptor)
            line = _last_line(closing)
            added = os.pread(descriptor, len(line) + 2, closing["size"])
            if line.startswith(added) or (b"\n" + line).startswith(added):  # and nothing behind it
                os.ftruncate(descriptor, closing["size"])

    def _roll_forward(self, commit: Path) -> None:
        manifest = _manifest(commit)
        if manifest is None:
            log.warning(_NOT_OURS, commit)
            return
        closing = manifest["closing"]
        if closing is not None:
            with contextlib.suppress(FileNotFoundError):  # done before the crash
                (self.folder / closing["journal"]).rename(self.folder / closing["archive"])
        for name in manifest["files"]:
            if name == LATEST:
                sync_folder(self.folder)  # what it names is there first, also after a power cut
                fault_point("pause.moving")
            with contextlib.suppress(FileNotFoundError):
                (commit / name).replace(self.folder / name)
        sync_folder(self.folder)
        (commit / _MANIFEST).unlink()
        commit.rmdir()

    def _finish_interrupted(self, is_stored: IsStored | None) -> None:
        for commit in self._left(COMMIT):
            if (commit / _MANIFEST).exists():
                self._roll_forward(commit)
            else:
                commit.rmdir()  # all was moved; only the empty folder is left
        for staging in self._left(STAGING):
            self._finish_staged(staging, is_stored)
        for pattern in _OUR_TEMPORARIES:
            for rubbish in self.folder.glob(pattern):
                rubbish.unlink(missing_ok=True)
        if not (self.folder / JOURNAL).exists():
            forget_starts(str(self.folder.parent))

    def _finish_staged(self, staging: Path, is_stored: IsStored | None) -> None:
        """The database may have the pause: then its files follow. If it has not, nothing has happened."""
        pause = _staged_pause(staging)
        if pause is None:
            self._take_back(staging, journal_locked=False)
        elif is_stored is not None:
            has_it = is_stored(pause["snapshot_id"])
            if has_it or (has_it is None and pause["stands_in"]):
                self._see_journal_closed(pause)
                self._roll_forward(self._committed(staging))
            elif has_it is False:
                self._take_back(staging, journal_locked=False)

    def _left(self, kind: str) -> Generator[Path]:
        """What a process of ours left half-done; nothing that something else put here."""
        for path in sorted(self.folder.glob(f"{kind}*")):
            if path == self._in_progress(kind, _session_of(path)) and not path.is_symlink():
                yield path
            else:
                log.warning(_NOT_OURS, path)

    def session_ids(self) -> list[str]:
        """Sessions with a full snapshot, newest first."""
        names = {path.stem for path in self.folder.glob("session-*.json") if ids.is_session_id(path.stem)}
        return sorted(names, key=ids.session_order, reverse=True)

    def latest(self) -> str | None:
        """The session that the folder names, if Holdfast wrote it."""
        try:
            named = read_file(self.folder / LATEST).decode(errors="replace").strip()
        except FileNotFoundError:
            return None
        return named if (self.folder / f"{named}.json").exists() and self.may_stand_in(named) else None

    def latest_worked(self) -> bool:
        """Whether there is a latest session, and it did something."""
        latest = self.latest()
        return latest is not None and self._worked(latest)

    def _worked(self, session_id: str) -> bool:
        """In doubt, it did."""
        try:
            return self.read(session_id).get("worked") is not False
        except HoldfastError:
            return True

    def read(self, session_id: str) -> dict[str, Any]:
        """The JSON document of a session as it stands on the disk."""
        path = self.folder / f"{session_id}.json"
        if not ids.is_session_id(session_id) or not path.exists():
            raise NotFoundError(
                f"no such session here: {session_id}", hint="`holdfast snapshot list` shows them"
            )
        with storage_errors("read the session"):
            data = read_file(path)
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise DamagedDataError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(document, dict):
            raise DamagedDataError(f"{path} is not a session: expected a JSON object")
        return document  # type: ignore[return-value]

    def delete(self, session_id: str) -> bool:
        """Remove a session's files, its journal included; whether there were any."""
        if not ids.is_session_id(session_id):
            return False
        with self.locked():
            others = [name for name in self.session_ids() if name != session_id]
            if self.latest() == session_id:
                at_work = (name for name in others if self._worked(name))
                self._point_latest_at(next(at_work, others[0] if others else None))
            own = [
                path
                for path in self.folder.iterdir()
                if path.name.startswith((f"{session_id}.", f"{session_id}{ARCHIVE_MARK}"))
                or path.name in (f"{UNINDEXED}{session_id}", f"{INDEXED}{session_id}")
            ]
            for path in own:
                path.unlink()
            sync_folder(self.folder)
            return bool(own)

    def _point_latest_at(self, session_id: str | None) -> None:
        if session_id is None:
            (self.folder / LATEST).unlink(missing_ok=True)
            sync_folder(self.folder)
        else:
            replace_file(self.folder / LATEST, f"{session_id}\n".encode())

    def unindexed(self) -> list[str]:
        """Sessions whose files are safe but which the database has not taken yet, oldest first."""
        names = [path.name.removeprefix(UNINDEXED) for path in self.folder.glob(f"{UNINDEXED}*")]
        return sorted(names, key=ids.session_order)

    def is_ours(self, session_id: str) -> bool:
        """Whether Holdfast itself noted here that the database has not taken it: a patch can bring files."""
        return self._is_proved(UNINDEXED, session_id)

    def has_waiting_of_ours(self) -> bool:
        return any(self.is_ours(session_id) for session_id in self.unindexed())

    def may_stand_in(self, session_id: str) -> bool:
        """Whether its files count where nobody asks the database: they were written by Holdfast here."""
        return self._is_proved(INDEXED, session_id) or self._is_proved(UNINDEXED, session_id)

    def _is_proved(self, kind: str, session_id: str) -> bool:
        try:
            return read_file(self.folder / f"{kind}{session_id}") == self._proof(session_id)
        except OSError:  # it is missing, or not a plain file
            return False

    def accept_waiting(self) -> None:
        """The user trusts the folder with all the sessions in it, and with what waits."""
        for session_id in self.unindexed():
            replace_file(self.folder / f"{UNINDEXED}{session_id}", self._proof(session_id))
        for session_id in self.session_ids():
            if not self.may_stand_in(session_id):
                replace_file(self.folder / f"{INDEXED}{session_id}", self._proof(session_id))
        for kind in (STAGING, COMMIT):
            for path in self.folder.glob(f"{kind}*"):
                if ids.is_session_id(_session_of(path)):
                    path.rename(self._in_progress(kind, _session_of(path)))

    def _proof(self, of: str) -> bytes:
        try:
            mark = read_file(self.folder.parent / MARK)
        except FileNotFoundError:
            mark = b""
        return session_proof(mark, of)

    def mark_indexed(self, session_id: str) -> None:
        """The proof stays: the files may have to stand in for the database one day."""
        waiting, known = (self.folder / f"{kind}{session_id}" for kind in (UNINDEXED, INDEXED))
        if self.is_ours(session_id):
            waiting.replace(known)
            return
        waiting.unlink(missing_ok=True)
        if not self._is_proved(INDEXED, session_id):
            replace_file(known, self._proof(session_id))


def _session_of(in_progress: Path) -> str:
    name = in_progress.name
    return name.removeprefix(COMMIT).removeprefix(STAGING).partition(".")[0]


def _staged_pause(staging: Path) -> dict[str, Any] | None:
    """The manifest of a pause that was written as a whole, and that the database is to decide on."""
    try:
        manifest = _manifest(staging)
    except OSError:
        return None
    return manifest if manifest and isinstance(manifest.get("snapshot_id"), str) else None


def _manifest(in_progress: Path) -> dict[str, Any] | None:
    """None where it is damaged, or not one that Holdfast would write."""
    try:
        manifest = json.loads(read_file(in_progress / _MANIFEST))
    except (ValueError, RecursionError):
        return None
    return manifest if _is_sound(manifest, _session_of(in_progress)) else None


def _is_sound(manifest: Any, session_id: str) -> bool:
    """Whether it names files of that session, and nothing outside of the folder."""
    own = {f"{session_id}{kind}" for kind in KINDS} | {f"{UNINDEXED}{session_id}", LATEST}
    try:
        closing = manifest["closing"]
        return set(manifest["files"]) <= own and (closing is None or _closes(closing, session_id))
    except (KeyError, TypeError):
        return False


def _closes(closing: dict[str, Any], session_id: str) -> bool:
    names = (closing["journal"], closing["archive"])
    kinds = isinstance(closing["last_line"], str) and isinstance(closing["size"], int)
    return kinds and names == (JOURNAL, f"{session_id}{ARCHIVE_SUFFIX}")


def _last_line(closing: dict[str, Any]) -> bytes:
    return closing["last_line"].encode() + b"\n"
