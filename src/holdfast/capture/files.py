"""What files held, and which of them hold something else now.

`FileTracker` looks at a file's stamp first and reads only what the stamp cannot settle
(`holdfast.base.file_stamps` says when it can). A link counts as what it points at, not as what is there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.base.clock import Clock, system_clock
from holdfast.base.file_stamps import ABSENT, feed, read_steadily, settled_ctime
from holdfast.base.redact import redact
from holdfast.base.text import decode_path, encode_path

if TYPE_CHECKING:
    from holdfast.model.snapshot import FileFingerprint

MOST_FILES = 2_000
LARGEST_FILE = 64 << 20
_LARGEST_FOLDER = 256 << 20
_NOT_PART = (b".holdfast", b".git")

Item = TypeVar("Item")
PathLike = str | bytes | os.PathLike[str]


def fingerprint_files(root: Path, paths: Iterable[str]) -> tuple[FileFingerprint, ...]:
    """Of the files at these paths (as `GitState` writes them) below `root`.

    Folders, sockets and what cannot be read are left out; a path with nothing there is
    marked absent. Bounded in number and size, since a pause must not wait on a build folder.
    """
    found: list[FileFingerprint] = []
    base = os.fsencode(root) + b"/"
    for path in paths:
        if len(found) == MOST_FILES:
            break
        print_of = _fingerprint(base + decode_path(path), path, system_clock(), largest=LARGEST_FILE)
        if print_of is not None:
            found.append(print_of)
    return tuple(found)


def list_folder(root: Path) -> list[str] | None:
    """Every file of a folder that has no git, as `GitState` writes paths; None where there are too many
    or not all can be listed. What is ours or a repository's own is not part of it."""
    found: list[bytes] = []
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.fsencode(root) + b"/" + folder) as entries:
                for entry in entries:
                    name = folder + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in _NOT_PART:
                            waiting.append(name + b"/")
                    elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                        found.append(name)
        except OSError:
            return None
        if len(found) > MOST_FILES:
            return None
    return sorted(encode_path(name) for name in found)


def fingerprint_folder(root: Path) -> tuple[FileFingerprint, ...] | None:
    """Of every file of a folder that has no git; None where that would be too much, or one cannot be read."""
    paths = list_folder(root)
    if paths is None or _size(root, paths) > _LARGEST_FOLDER:
        return None
    if redact("\n".join(paths))[1]:
        return None  # a name that is not kept as it is would look like another file
    prints = fingerprint_files(root, paths)
    if len(prints) < len(paths):
        return None
    return tuple(one for one in prints if one.hash != ABSENT)  # gone while we looked


def _size(root: Path, paths: Iterable[str]) -> int:
    base = os.fsencode(root) + b"/"
    size = 0
    for path in paths:
        with contextlib.suppress(OSError):
            size += os.lstat(base + decode_path(path)).st_size
    return size


def with_folders(
    root: Path, paths: Iterable[str], inside: Callable[[str], list[str]]
) -> tuple[FileFingerprint, ...]:
    """As `fingerprint_files`; of a folder, what is `inside`, if it can be had as a whole."""
    asked = list(paths)
    found = list(fingerprint_files(root, (path for path in asked if not path.endswith("/"))))
    for folder in (path for path in asked if path.endswith("/")):
        files = inside(folder)
        if len(found) + len(files) <= MOST_FILES and _size(root, files) <= _LARGEST_FOLDER:
            prints = fingerprint_files(root, files)
            found += prints if len(prints) == len(files) else ()
    return tuple(found)


@dataclass
class FileChanges:
    """What became of the files of a snapshot; every list in the snapshot's order."""

    modified: list[str] = field(default_factory=list[str])
    deleted: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    """There, and not to be read now: what they hold is not known."""
    touched: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """With the same content: the fields of their fingerprints, with the stamp of today."""

    @property
    def refreshed(self) -> dict[str, FileFingerprint]:
        return {path: _made(fields) for path, fields in self.touched.items()}

    @property
    def paths(self) -> list[str]:
        return [*self.modified, *self.deleted, *self.new, *self.unreadable]


class FileTracker:
    """Paths are relative to `root` (where we are, if none is given), or absolute."""

    @staticmethod
    def create_snapshot(
        filepaths: Iterable[PathLike], *, root: Path | None = None, clock: Clock = system_clock
    ) -> dict[str, FileFingerprint]:
        """Fingerprints by path. What is no file or cannot be read is left out."""
        base = _base(root)
        prints: dict[str, FileFingerprint] = {}
        for path in filepaths:
            name = os.fsencode(path)
            key = encode_path(name)
            print_of = _fingerprint(base + name, key, clock())
            if print_of is not None:
                prints[key] = print_of
        return prints

    @staticmethod
    def compare(
        snapshot: Mapping[str, FileFingerprint],
        filepaths: Iterable[PathLike] = (),
        *,
        root: Path | None = None,
        clock: Clock = system_clock,
    ) -> FileChanges:
        """The difference to now. Of `filepaths`, those that are there and not in the snapshot are new."""
        changes = FileChanges()
        base = _base(root)
        for path, location, status in _unsettled(snapshot, root):
            before = snapshot[path]
            if status is not None and _is_content(status) and status.st_size != before.size:
                # Another size is another content; no need to read it.
                (changes.new if before.hash == ABSENT else changes.modified).append(path)
            else:
                _sort_in(changes, before, _look(location, path, clock()))
        for path in filepaths:
            name = os.fsencode(path)
            key = encode_path(name)
            if key not in snapshot and os.path.lexists(base + name):
                changes.new.append(key)
        return changes

    @staticmethod
    def detect_changes(
        snapshot: MutableMapping[str, FileFingerprint],
        filepaths: Iterable[PathLike] = (),
        *,
        root: Path | None = None,
        clock: Clock = system_clock,
    ) -> list[str]:
        """Paths whose content is another one, is gone or is new.

        A file that was only touched is none of them; the snapshot gets its new stamp.
        """
        changes = FileTracker.compare(snapshot, filepaths, root=root, clock=clock)
        snapshot.update(changes.refreshed)
        return changes.paths

    @staticmethod
    def get_changed_items(changed_files: Iterable[PathLike], items: Iterable[Item]) -> list[Item]:
        """Those items whose `filepath` (an attribute or a key) is among the changed files."""
        changed = {os.fsencode(path) for path in changed_files}
        changed |= {decode_path(os.fsdecode(path)) for path in changed if path.startswith(b'"')}
        return [item for item in items if os.fsencode(_filepath(item)) in changed]


def _filepath(item: object) -> PathLike:
    return item["filepath"] if isinstance(item, Mapping) else item.filepath  # type: ignore[attr-defined, no-any-return]


def _base(root: Path | None) -> bytes:
    return os.fsencode(root) + b"/" if root else b""


def _is_content(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)


def _unsettled(
    snapshot: Mapping[str, FileFingerprint], root: Path | None
) -> list[tuple[str, bytes, os.stat_result | None]]:
    """The files whose stamps differ; one system call a file, and little more, is what it costs."""
    base = _base(root)
    prefix = os.fsdecode(base)
    lstat = os.lstat
    found: list[tuple[str, bytes, os.stat_result | None]] = []
    for path, known in snapshot.items():
        place = base + decode_path(path) if path[:1] == '"' else prefix + path
        try:
            status = lstat(place)
            if (
                status.st_ctime_ns == known.ctime_ns
                and status.st_mtime_ns == known.mtime_ns
                and status.st_size == known.size
            ):
                continue
        except OSError:
            status = None
        found.append((path, os.fsencode(place), status))
    return found


def _sort_in(changes: FileChanges, before: FileFingerprint, now: dict[str, Any] | None) -> None:
    if now is None:
        changes.unreadable.append(before.path)
    elif now["hash"] == before.hash:
        if before.hash != ABSENT and any(getattr(before, name) != value for name, value in now.items()):
            changes.touched[before.path] = now
    elif now["hash"] == ABSENT:
        changes.deleted.append(before.path)
    elif before.hash == ABSENT:
        changes.new.append(before.path)
    else:
        changes.modified.append(before.path)


def _fingerprint(
    location: bytes, path: str, now: float, *, largest: int | None = None
) -> FileFingerprint | None:
    found = _look(location, path, now, largest=largest)
    return None if found is None else _made(found)


def _made(fields: dict[str, Any]) -> FileFingerprint:
    from holdfast.model.snapshot import FileFingerprint  # pydantic, which who only compares does not load

    return FileFingerprint(**fields)


def _look(location: bytes, path: str, now: float, *, largest: int | None = None) -> dict[str, Any] | None:
    """The fields of a fingerprint.

    None if it is not a file, cannot be read or is too large. One that disappears meanwhile counts as absent.
    """
    try:
        status = os.lstat(location)
        if stat.S_ISLNK(status.st_mode):
            digest, still = hashlib.sha256(os.readlink(location)).hexdigest(), True  # noqa: PTH115 - bytes
        elif stat.S_ISREG(status.st_mode) and (largest is None or status.st_size <= largest):
            digest, status, still = read_steadily(location, _sha256)
        else:
            return None
    except (FileNotFoundError, NotADirectoryError):
        return {"path": path, "hash": ABSENT, "mtime_ns": 0, "size": 0}
    except OSError:
        return None
    return {
        "path": path,
        "hash": f"sha256:{digest}",
        "mtime_ns": status.st_mtime_ns,
        "size": status.st_size,
        "executable": is_executable(status),
        "ctime_ns": settled_ctime(status, now) if still else None,
    }


def is_executable(status: os.stat_result) -> bool | None:
    """As git keeps it; None for what is no plain file."""
    return bool(status.st_mode & stat.S_IXUSR) if stat.S_ISREG(status.st_mode) else None


def changed_modes(snapshot: Iterable[FileFingerprint], root: Path) -> list[str]:
    """Files that became executable, or are no longer. To `FileTracker` their content is what counts."""
    base = os.fsencode(root) + b"/"
    changed: list[str] = []
    for one in snapshot:
        with contextlib.suppress(OSError):
            now = is_executable(os.lstat(base + decode_path(one.path)))
            if None not in (one.executable, now) and now != one.executable:
                changed.append(one.path)
    return changed


def _sha256(descriptor: int) -> str:
    digest = hashlib.sha256()
    feed(descriptor, digest.update)
    return digest.hexdigest()
