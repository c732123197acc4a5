"""A session's files: `session-….json`, `.yaml`, `.md` and the journal, placed all together or not at all.

    1  everything is written and synced in a staging folder     (a crash leaves rubbish, swept later)
    2  the staging folder is renamed to `.commit-SESSION`        (this one rename decides)
    3  the files move to their names, the journal is closed and moved, LATEST is set
    4  the commit folder goes

Whoever opens the folder next finishes an interrupted 3: every step can be repeated.
`LATEST-SESSION.txt` is set after the files are there and taken back before they go.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from holdfast import ids
from holdfast.durable import (
    append_or_undo,
    lock_descriptor,
    lock_file,
    replace_file,
    storage_errors,
    sync_folder,
    write_new,
)
from holdfast.errors import DamagedDataError, NotFoundError

LATEST = "LATEST-SESSION.txt"
KINDS = (".json", ".yaml", ".md")

_STAGING = ".staging-"
_COMMIT = ".commit-"
_MANIFEST = "manifest.json"
_LOCK = ".lock"
_UNINDEXED = ".unindexed-"
_LOCK_WAIT = 60.0


@dataclass(frozen=True)
class Closing:
    """A journal that ends with this session: gets its last line, then its archive name.

    Whoever places the set holds the journal's lock.
    """

    journal: str
    archive: str
    last_line: str


@dataclass(frozen=True)
class FileSet:
    """What one finalised pause puts into the sessions folder."""

    session_id: str
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """By ending: `.json`, `.yaml`, `.md`."""
    closing: Closing | None = None
    becomes_latest: bool = True
    to_be_indexed: bool = False


class SessionFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Alone in the folder, with whatever a crashed process left half-done finished first."""
        with storage_errors("use the sessions folder"), lock_file(self.folder / _LOCK, wait=_LOCK_WAIT):
            self._finish_interrupted()
            yield

    def free_session_id(self, seconds: float) -> str:
        """A name nobody has, for a pause that starts now. Call with the lock held."""
        attempt = 1
        while self._is_taken(name := ids.session_id(seconds, attempt)):
            attempt += 1
        return name

    def _is_taken(self, name: str) -> bool:
        # `name.` and `name-incremental` are its own files; `name-2` is another session.
        return any(self.folder.glob(f"{name}.*")) or any(self.folder.glob(f"{name}-incremental*"))

    def place(self, files: FileSet) -> None:
        """Put the set in place. Call with the lock held; on an error nothing has changed."""
        staging = self.folder / f"{_STAGING}{files.session_id}"
        try:
            self._stage(staging, files)
            commit = self.folder / f"{_COMMIT}{files.session_id}"
            staging.rename(commit)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            raise
        sync_folder(self.folder)
        self._roll_forward(commit, journal_locked=True)

    def _stage(self, staging: Path, files: FileSet) -> None:
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(mode=0o700)
        names = {f"{files.session_id}{kind}": data for kind, data in files.files.items()}
        if files.to_be_indexed:
            names[f"{_UNINDEXED}{files.session_id}"] = b""
        for name, data in names.items():
            write_new(staging / name, data)
        manifest: dict[str, Any] = {
            "session_id": files.session_id,
            "files": sorted(names),
            "latest": files.becomes_latest,
            "closing": asdict(files.closing) if files.closing else None,
        }
        write_new(staging / _MANIFEST, json.dumps(manifest).encode())
        sync_folder(staging)

    def _roll_forward(self, commit: Path, *, journal_locked: bool) -> None:
        manifest = json.loads((commit / _MANIFEST).read_bytes())
        for name in manifest["files"]:
            with contextlib.suppress(FileNotFoundError):  # moved before the crash
                (commit / name).replace(self.folder / name)
        if manifest["closing"]:
            self._close_journal(manifest["closing"], locked=journal_locked)
        sync_folder(self.folder)
        if manifest["latest"]:
            replace_file(self.folder / LATEST, f"{manifest['session_id']}\n".encode())
        (commit / _MANIFEST).unlink(missing_ok=True)
        commit.rmdir()

    def _close_journal(self, closing: dict[str, str], *, locked: bool) -> None:
        path = self.folder / closing["journal"]
        line = closing["last_line"].encode() + b"\n"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except FileNotFoundError:
            return  # renamed before the crash
        try:
            if not locked:
                lock_descriptor(descriptor)
            size = os.fstat(descriptor).st_size
            ending = os.pread(descriptor, len(line), max(0, size - len(line)))
            if ending != line:
                torn = ending[-1:] not in (b"", b"\n")
                append_or_undo(descriptor, b"\n" + line if torn else line, size)
            os.fsync(descriptor)
            path.rename(self.folder / closing["archive"])
        finally:
            os.close(descriptor)

    def _finish_interrupted(self) -> None:
        for commit in sorted(self.folder.glob(f"{_COMMIT}*")):
            if (commit / _MANIFEST).exists():
                self._roll_forward(commit, journal_locked=False)
            else:
                shutil.rmtree(commit)  # all was moved; only the empty folder is left
        for rubbish in (*self.folder.glob(f"{_STAGING}*"), *self.folder.glob(".*.tmp")):
            shutil.rmtree(rubbish) if rubbish.is_dir() else rubbish.unlink(missing_ok=True)

    def session_ids(self) -> list[str]:
        """Sessions with a full snapshot, newest first."""
        names = {path.stem for path in self.folder.glob("session-*.json") if ids.is_session_id(path.stem)}
        return sorted(names, key=ids.session_order, reverse=True)

    def latest(self) -> str | None:
        try:
            named = (self.folder / LATEST).read_text(errors="replace").strip()
        except FileNotFoundError:
            return None
        return named if (self.folder / f"{named}.json").exists() else None

    def read(self, session_id: str) -> dict[str, Any]:
        """The JSON document of a session as it stands on the disk."""
        path = self.folder / f"{session_id}.json"
        if not ids.is_session_id(session_id) or not path.exists():
            raise NotFoundError(
                f"there is no session {session_id} here", hint="`holdfast snapshot list` shows them"
            )
        with storage_errors("read the session"):
            data = path.read_bytes()
        try:
            document = json.loads(data)
        except ValueError as error:
            raise DamagedDataError(f"{path} is no JSON: {error}") from error
        if not isinstance(document, dict):
            raise DamagedDataError(f"{path} is no session: a JSON object is expected")
        return document  # type: ignore[return-value]

    def delete(self, session_id: str) -> bool:
        """Remove a session's files, its journal included; whether there were any."""
        with self.locked():
            others = [name for name in self.session_ids() if name != session_id]
            if self.latest() == session_id:
                self._point_latest_at(others[0] if others else None)
            own = [
                path
                for path in self.folder.iterdir()
                if path.name.startswith((f"{session_id}.", f"{session_id}-incremental"))
                or path.name == f"{_UNINDEXED}{session_id}"
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
        names = [path.name.removeprefix(_UNINDEXED) for path in self.folder.glob(f"{_UNINDEXED}*")]
        return sorted(names, key=ids.session_order)

    def mark_indexed(self, session_id: str) -> None:
        (self.folder / f"{_UNINDEXED}{session_id}").unlink(missing_ok=True)
