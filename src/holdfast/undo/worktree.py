"""The user's files: looked at, and one at a time put back, never over anything unexpected.

A file is exchanged for another in one step, and what came out is looked at: were it not what was
expected, it goes back. Whoever writes at the same moment loses nothing. What leaves the tree and is not
stored is set aside.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import re
import stat
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from holdfast.base.durable import make_folder, opened, private_folder, sync_folder, write_whole
from holdfast.base.errors import CannotDoError, ConflictError, HoldfastError, InvalidInputError
from holdfast.base.faults import fault_point
from holdfast.base.file_stamps import GRAIN_NS, feed, open_regular, read_steadily, settled_ctime
from holdfast.project.formats import FOLDER
from holdfast.undo.git import UsersGit
from holdfast.undo.objects import blob_id
from holdfast.undo.plan import NOT_KEPT
from holdfast.undo.state import BORROWED, FOLDER_KIND, FileState, KnownFile, same
from holdfast.undo.users_index import NOTHING, IndexedFile

MOST_FILES = 200_000
_STAGED = ".holdfast-staged-"
PART = ".holdfast-part-"
"""How the names of files begin that are not written whole."""
_POSITIVE = (1 << 63) - 1
_FICLONE = 0x40049409
"""Linux' number of the request; elsewhere it is nobody's, and refused."""
_LONGEST_LINE = 1 << 20

Keep = Callable[[bytes], int]
"""Takes a blob; says whether it is stored, and how: not where there was no room for it."""


MOST_READ = 2 << 30
"""Bytes of one file: reading that many takes some seconds."""


class UnreadableError(CannotDoError):
    """There, and neither a file nor a link that we may read."""

    kind = "unreadable"


class EnormousError(UnreadableError):
    """Nobody waits until all of it is read."""

    kind = "too large to read"


class Worktree:
    def __init__(self, root: Path, stage: Path, *, largest: int) -> None:
        self.root = root
        self._base = os.fsencode(root) + b"/"
        self._stage = stage
        self.set_aside = SetAside(stage.with_name("set-aside"))
        self._largest = largest
        self._folders: dict[bytes, str] = {}
        self._large_read: dict[tuple[int, int], tuple[int, int, str]] | None = None
        """Of large files that were read, while it holds: disk and inode to size, time and content."""

    def location(self, path: bytes) -> bytes:
        return self._base + path

    def users_git(self) -> UsersGit | None:
        """The user's own git, where it has a say in which files count."""
        in_git = any((folder / ".git").exists() for folder in (self.root, *self.root.parents))
        users_git = UsersGit(self.root) if in_git else None
        return users_git if users_git and users_git.covers_root else None

    def list_files(self, users_git: UsersGit | None) -> list[bytes]:
        """Every file that the user's git does not ignore; where there is no git, every file.

        A repository in the tree, which git does not look into, is a name that ends with `/`.
        """
        names = users_git.list_unignored() if users_git else None
        found = [name for name in (self._walk() if names is None else names) if is_ours(name)]
        self.refuse_too_many(len(found))
        return found

    def refuse_too_many(self, files: int) -> None:
        if files > MOST_FILES:
            raise CannotDoError(
                f"{self.root} holds more than {MOST_FILES:,} files", hint="give the paths to watch"
            )

    def _walk(self) -> Iterator[bytes]:
        for folder, folders, names in os.walk(self._base):
            folders[:] = [name for name in folders if name not in (b".git", os.fsencode(FOLDER))]
            for name in names + [one for one in folders if os.path.islink(folder + b"/" + one)]:  # noqa: PTH114 - bytes
                yield (folder.rstrip(b"/") + b"/" + name)[len(self._base) :]

    def is_folder(self, path: bytes) -> bool:
        return os.path.isdir(self.location(path)) and not os.path.islink(self.location(path))  # noqa: PTH112, PTH114 - bytes

    def size_of(self, path: bytes) -> int | None:
        try:
            return os.lstat(self.location(path)).st_size
        except OSError:
            return None

    def inode_of(self, path: bytes) -> int | None:
        try:
            return os.lstat(self.location(path)).st_ino & _POSITIVE
        except OSError:
            return None

    def moment(self) -> int:
        """Now, by the clock that stamps the files: a share's may differ from ours."""
        os.utime(self._stage)
        return self._stage.stat().st_ctime_ns

    def is_older(self, path: bytes, moment: int) -> bool:
        """Whether nothing was done to the file since; not even its own name was changed."""
        try:
            return os.lstat(self.location(path)).st_ctime_ns < moment
        except OSError:
            return False

    # ── looking ────────────────────────────────────────────────────────────────────────────

    def look(
        self,
        path: bytes,
        known: KnownFile | None,
        now: float,
        keep: Keep,
        borrowed: Mapping[bytes, IndexedFile | None] | None = None,
    ) -> KnownFile | None:
        """What is there; read, and handed to `keep`, only where no stamp settles it."""
        location = self.location(path)
        try:
            if path.endswith(b"/"):
                return self._look_at_folder(path)
            if self._kind_of_folder(path) == "link":
                return None  # what is behind it is another place's
            status = os.lstat(location)
            if known is not None and _same_stamp(known, status):
                return known
            indexed = borrowed.get(path) if borrowed else None
            if indexed and indexed[:3] == (status.st_ctime_ns, status.st_mtime_ns, status.st_size):
                stamp = settled_ctime(status, now)
                return _known(location, status, 0, indexed[3], status.st_size, BORROWED, stamp)
            return self._read(location, status, now, _unless_borrowed(keep, known))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UnreadableError(f"{os.fsdecode(path)} cannot be read: {error.strerror or error}") from error

    def _read(self, location: bytes, status: os.stat_result, now: float, keep: Keep) -> KnownFile | None:
        if stat.S_ISDIR(status.st_mode):
            return None
        still = True
        if link := stat.S_ISLNK(status.st_mode):
            data = os.readlink(location)  # noqa: PTH115 - bytes
            oid, size, stored = blob_id(data), len(data), keep(data)
        elif stat.S_ISREG(status.st_mode):
            if status.st_size > MOST_READ:
                raise EnormousError(f"{os.fsdecode(location)} has {status.st_size >> 20:,} MiB")
            (oid, size, stored), status, still = self._read_content(location, status, keep)
        else:
            raise UnreadableError(f"{os.fsdecode(location)} is neither a file nor a link")
        believed = settled_ctime(status, now) if still else None
        return _known(location, status, int(link), oid, size, stored, believed)

    @contextmanager
    def reading_large_files_once(self) -> Generator[None]:
        """Within one command: moving a file about sets its change time alone, so until the end size and time
        of writing tell that one too large to be stored holds what it held. Nothing is lost were that wrong,
        for such a file is never removed."""
        self._large_read = {}
        try:
            yield
        finally:
            self._large_read = None

    def _read_content(
        self, location: bytes, status: os.stat_result, keep: Keep
    ) -> tuple[tuple[str, int, int], os.stat_result, bool]:
        known = (self._large_read or {}).get((status.st_dev, status.st_ino))
        if known and known[:2] == (status.st_size, status.st_mtime_ns):
            return (known[2], status.st_size, False), status, True
        found, status, still = read_steadily(location, lambda fd: self._take(fd, keep))
        if self._large_read is not None and still and status.st_size > self._largest:
            newest = self.moment() - GRAIN_NS  # what was written to since may be again, within the tick
            stamp = status.st_size, status.st_mtime_ns, found[0]
            self._large_read |= {(status.st_dev, status.st_ino): stamp} if status.st_mtime_ns < newest else {}
        return found, status, still

    def _look_at_folder(self, path: bytes) -> KnownFile | None:
        if self._kind_of_folder(path) != "folder":
            return None
        return known_folder(os.lstat(self.location(path[:-1])).st_mode)

    def _take(self, descriptor: int, keep: Keep) -> tuple[str, int, int]:
        size = os.fstat(descriptor).st_size
        if size > self._largest:
            digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
            feed(descriptor, digest.update)
            return digest.hexdigest(), size, False
        blocks: list[bytes] = []
        feed(descriptor, blocks.append)
        data = b"".join(blocks)
        return blob_id(data), len(data), keep(data)

    def lines_among(self, location: bytes, wanted: frozenset[bytes]) -> frozenset[bytes]:
        """Those of these lines that a file holds, at any size."""
        found: set[bytes] = set()
        with (
            suppress(OSError),
            open_regular(location) as descriptor,
            os.fdopen(descriptor, "rb", closefd=False) as file,
        ):
            while line := file.readline(_LONGEST_LINE):
                found |= wanted & {line.rstrip(b"\r\n")}
        return frozenset(found)

    def more_of(self, path: bytes, known: KnownFile) -> str:
        """What a file has beside content and mode, if nothing was done to it since it was seen."""
        try:
            location = self.location(path)
            status = os.lstat(location)
            return _more_of(location, status) if status.st_ctime_ns == known.ctime_ns else ""
        except OSError:
            return ""

    def state_of(self, path: bytes) -> FileState | None:
        """Read anew, whatever its stamp says."""
        self.forget()
        found = self.look(path, None, 0.0, lambda _: True)
        return found.state if found else None

    def forget(self) -> None:
        """Folders may have changed."""
        self._folders.clear()

    def _kind_of_folder(self, path: bytes) -> str:
        """What the folders on the way are: `folder` all of them, else `link`, `file` or `nothing`."""
        folder = path.rpartition(b"/")[0]
        if not folder:
            return "folder"
        if folder not in self._folders:
            self._folders[folder] = above = self._kind_of_folder(folder)
            if above == "folder":
                self._folders[folder] = _kind(self.location(folder))
        return self._folders[folder]

    # ── putting back ───────────────────────────────────────────────────────────────────────

    def refusal(self, path: bytes, leaving: set[bytes]) -> str | None:
        """Why a file could not be put there; `leaving` are the paths that make room first."""
        self.forget()
        kind = self._kind_of_folder(path)
        if kind in ("link", "file") and not any(_is_below(path, other) for other in leaving):
            return f"its folder is now a {kind}"
        if self.is_folder(path) and not path.endswith(b"/"):
            inside = {
                path + (folder + b"/" + name)[len(self.location(path)) :]
                for folder, _, names in os.walk(self.location(path))
                for name in names
            }
            if inside - leaving or (not inside and path + b"/" not in leaving):
                return "there is now a folder in its place"
        return None

    def put(
        self,
        path: bytes,
        expected: FileState | None,
        target: FileState | None,
        data: bytes,
        twin: bytes | None = None,
    ) -> None:
        """From one state to another; a `ConflictError` where it was in neither, and nothing is changed.

        With a `twin` it becomes another name of the file at that path.
        """
        location = self._place_of(path)
        if self._kind_of_folder(path) == "link":  # it leads to another place's files
            raise _moved(location)
        if path.endswith(b"/"):
            self._put_folder(location, target)
        elif target is None:
            self._remove(location, expected)
        elif target.same_content(expected) and not target.link:
            with open_regular(os.fsencode(location)) as descriptor:
                _dress(descriptor, target)
        else:
            make_folder(location.parent, 0o777)  # as the user's umask has it
            if self.is_folder(path):
                _drop_empty(location)
            self._put_content(location, expected, target, data, twin)
            sync_folder(location.parent)

    def _put_folder(self, location: Path, target: FileState | None) -> None:
        """A folder that is left, or made, or gets its mode; one that may not be written to gets it last."""
        if target is None:
            location.rmdir()
        else:
            location.mkdir(parents=True, exist_ok=True)
            location.chmod(target.permissions | stat.S_IRWXU)
        sync_folder(location.parent)

    def folder_like_above(self, path: bytes) -> FileState:
        """A folder that has to be made, with the mode of the nearest one around it."""
        above = next(one for one in (*folders_above(path)[::-1], b"") if self.is_folder(one.rstrip(b"/")))
        permissions = stat.S_IMODE(os.lstat(self.location(above)).st_mode) & 0o777
        return FileState(folder=True, permissions=permissions, oid=NOTHING, size=0)

    def close_folder(self, path: bytes, state: FileState) -> None:
        """Its mode to the bit, once all is in it that belongs there."""
        with suppress(OSError):
            self._place_of(path).chmod(state.permissions)

    def holds_more(self, path: bytes, leaving: set[bytes]) -> bool:
        """Whether anything stays in the folder when these are gone."""
        try:
            names = os.listdir(self.location(path))  # noqa: PTH208 - bytes
        except OSError:
            return False
        return any(path + name not in leaving and path + name + b"/" not in leaving for name in names)

    def _put_content(
        self,
        location: Path,
        expected: FileState | None,
        target: FileState,
        data: bytes,
        twin: bytes | None,
    ) -> None:
        staged = self._staged(location)
        try:
            if not self._is_linked(twin, staged) and target.stored:
                _write(staged, target, data)
            elif not target.stored:
                self._fetch(staged, target)
            fault_point("sidecar.staged")
            if expected is None:
                _place_new(staged, location)
            else:
                self._swap(staged, location, expected)
        except (OSError, HoldfastError):
            # Only what we staged; anything else that is there by now is somebody's.
            if same(self.state_at(staged), target):
                self._let_go(staged, target, location)
            raise

    def _is_linked(self, twin: bytes | None, staged: Path) -> bool:
        """Whether there is a twin, and `staged` is a name of it now; not every disk can do that."""
        try:
            if twin is not None:
                os.link(self._place_of(twin), staged, follow_symlinks=False)
        except OSError:
            return False
        return twin is not None

    def _fetch(self, staged: Path, target: FileState) -> None:
        """Content that is not stored, from where it was set aside."""
        for found in self.set_aside.find(target.oid):
            if target.same_content(self.state_at(found)):
                move(found, staged, target)
                fault_point("sidecar.fetched")
                if not target.link:
                    with open_regular(os.fsencode(staged)) as descriptor:
                        _dress(descriptor, target)
                return
        for found in self.set_aside.find(target.oid):
            place = os.path.relpath(found, self.root)
            raise CannotDoError(f"it was set aside as {place}, which has since been changed; move it by hand")
        raise CannotDoError(NOT_KEPT)

    def has_content(self, oid: str) -> bool:
        return bool(self.set_aside.find(oid))

    def copy_aside(self, path: bytes, state: FileState) -> None:
        """For content that is needed elsewhere before it is free to go."""
        self.set_aside.copy_in(self._place_of(path), state)

    def _place_of(self, path: bytes) -> Path:
        return Path(os.fsdecode(self.location(path)))

    def _staged(self, location: Path) -> Path:
        """A free name beside it, on the same disk, outside of the user's folders where that can be."""
        folder = (
            self._stage if self._stage.stat().st_dev == location.parent.stat().st_dev else location.parent
        )
        name = os.fsdecode(os.fsencode(location.name)[:60])
        places = (folder / f"{_STAGED}{os.getpid()}-{number}-{name}" for number in count())
        return next(place for place in places if not os.path.lexists(place))

    def _swap(self, staged: Path, location: Path, expected: FileState) -> None:
        exchange = _exchange()
        if exchange is None:
            self._replace(staged, location, expected)
            return
        try:
            exchange(staged, location)
        except FileNotFoundError:
            raise _moved(location) from None
        fault_point("sidecar.swapped")
        try:
            self._let_go(staged, expected, location)
        except (OSError, HoldfastError):
            exchange(staged, location)
            raise

    def _replace(self, staged: Path, location: Path, expected: FileState) -> None:
        """Where names cannot be exchanged: what is not stored gets a second name, then loses the first."""
        if not same(self.state_at(location), expected):
            raise _moved(location)
        if expected.stored:
            staged.replace(location)
            return
        second = self._staged(location)
        os.link(location, second, follow_symlinks=False)
        fault_point("sidecar.linked")
        staged.replace(location)
        self._let_go(second, expected, location)

    def _remove(self, location: Path, expected: FileState | None) -> None:
        aside = self._staged(location)
        try:
            location.rename(aside)
        except FileNotFoundError:
            raise _moved(location) from None
        fault_point("sidecar.aside")
        try:
            self._let_go(aside, expected, location)
        except (OSError, HoldfastError):
            _place_new(aside, location)
            raise
        sync_folder(location.parent)

    def _let_go(self, place: Path, expected: FileState | None, location: Path) -> None:
        """What was at `location` goes, if it is as expected; what is not stored is set aside."""
        if expected is None or not same(self.state_at(place), expected):
            raise _moved(location)
        if expected.stored:
            place.unlink()
        else:
            self.set_aside.take_in(place, expected, location.name)
            fault_point("sidecar.set-aside")

    def leftovers(self, paths: Iterable[bytes]) -> list[Path]:
        """What a crash left in the middle of an exchange; what was not even written whole is swept."""
        folders = {self._stage, self.set_aside.folder, *(self._place_of(path).parent for path in paths)}
        found: list[Path] = []
        for folder in folders:
            for torn in folder.glob(f"{PART}*"):
                torn.unlink()
            found += folder.glob(f"{_STAGED}*")
        return sorted(found)

    def is_second_name(self, place: Path, paths: Iterable[bytes]) -> bool:
        """Whether it is the very file that stands at one of these paths: a crash came between two names."""
        status = place.lstat()
        return status.st_nlink > 1 and any(
            os.path.samestat(status, self._place_of(path).lstat())
            for path in paths
            if os.path.lexists(self.location(path))
        )

    def state_at(self, location: Path) -> FileState | None:
        place = os.fsencode(location)
        try:
            found = self._read(place, os.lstat(place), 0.0, lambda _: True)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.state if found else None


# ── set aside ─────────────────────────────────────────────────────────────────────────────────────

# Files that had to leave the tree and whose content is not stored: moved here, and back when undone.
#
# Each is named after its content, so the record that names the content finds the file. Nothing here is
# ever removed by us. A rename keeps mode, times and whatever else the file has, at any size and without
# needing room.


class SetAside:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, oid: str) -> list[Path]:
        """What is named after this content; it may have been changed since."""
        return sorted(self.folder.glob(f"{oid}-*"))

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9a-f]*-*"))

    def take_in(self, place: Path, state: FileState, name: str) -> Path:
        """Move a file here that holds what `state` says."""
        target = self._free(state, name)
        move(place, target, state)
        sync_folder(self.folder)
        return target

    def copy_in(self, place: Path, state: FileState) -> None:
        copy(place, self._free(state, place.name), state)

    def _free(self, state: FileState, name: str) -> Path:
        readable = re.sub(r"[^A-Za-z0-9._-]", "_", name)[-60:]
        if not self.folder.is_dir():
            private_folder(self.folder)
            sync_folder(self.folder.parent)
        places = (self.folder / f"{state.oid}-{number}-{readable}" for number in count(1))
        return next(place for place in places if not os.path.lexists(place))


def move(source: Path, place: Path, state: FileState) -> None:
    """Renamed; onto another disk it is copied and compared before the first one goes."""
    try:
        source.rename(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(source, place, state)
        fault_point("sidecar.copied")
        source.unlink()


def copy(source: Path, place: Path, state: FileState) -> None:
    """With mode and times, on the disk when this returns; a `ConflictError` if it is not as `state` says."""
    if state.link:
        os.symlink(source.readlink(), place)  # noqa: PTH211 - the same, and neither resolves anything
        return
    part = place.with_name(f"{PART}{place.name}")
    part.unlink(missing_ok=True)
    try:
        _copy_content(source, part, state)
        part.rename(place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(place.parent)


def _copy_content(source: Path, part: Path, state: FileState) -> None:
    """Of which the disk keeps one where it can share; each of the two may be written to all the same."""
    digest = hashlib.sha1(f"blob {state.size}\0".encode(), usedforsecurity=False)
    with opened(part, os.O_RDWR | os.O_CREAT | os.O_EXCL) as descriptor:

        def take(block: bytes) -> None:
            digest.update(block)
            write_whole(descriptor, block)

        with open_regular(os.fsencode(source)) as from_source:
            if share_content(from_source, descriptor):
                feed(descriptor, digest.update)
            else:
                feed(from_source, take)
            status = os.fstat(from_source)
        if digest.hexdigest() != state.oid:
            raise ConflictError(f"{source} was changed at the same moment and was left unchanged")
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fsync(descriptor)


def share_content(source: int, target: int) -> bool:
    """Give an empty file the content of another without a copy of it; not every file system can (btrfs, XFS
    and a few more). What is written to either of them later is its own."""
    try:
        import fcntl

        fcntl.ioctl(target, _FICLONE, source)
    except (ImportError, OSError):
        return False
    return True


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────


def checked_path(root: Path, path: str | bytes | os.PathLike[str]) -> bytes:
    """A path as the side-car names it; refused outside of the root and in the folders of git and ours."""
    name = os.fsencode(path)
    if name.startswith(b"/"):
        base = os.fsencode(root) + b"/"
        if not name.startswith(base):
            raise InvalidInputError(f"{os.fsdecode(name)} is outside {root}")
        name = name[len(base) :]
    name = os.path.normpath(name)
    if name.startswith((b"../", b"/")) or name.endswith(b"/") or name in (b".", b"..") or not is_ours(name):
        raise InvalidInputError(f"{os.fsdecode(name)} is not a file of the project that can be watched")
    return name


def _unless_borrowed(keep: Keep, known: KnownFile | None) -> Keep:
    """What was only touched is in the user's repository still."""
    if known is None or known.stored != BORROWED:
        return keep
    return lambda data: BORROWED if blob_id(data) == known.oid else keep(data)


def folders_above(path: bytes) -> list[bytes]:
    """Each with its slash, the outermost first."""
    parts = path.rstrip(b"/").split(b"/")[:-1]
    return [b"/".join(parts[: number + 1]) + b"/" for number in range(len(parts))]


def _drop_empty(folder: Path) -> None:
    """A folder and those in it, if there is nothing else; then a file can stand there."""
    for place, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(place).rmdir()


def _kind(location: bytes) -> str:
    try:
        mode = os.lstat(location).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    return "folder" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "file"


def known_folder(mode: int) -> KnownFile:
    return KnownFile(FOLDER_KIND, stat.S_IMODE(mode), NOTHING, 0, 1, 0, 0)


def _is_below(path: bytes, folder: bytes) -> bool:
    return path.startswith(folder + b"/")


def is_ours(name: bytes) -> bool:
    lower = name.lower()
    if b".git" not in lower and not lower.startswith(b"."):
        return True
    parts = lower.split(b"/")
    return b".git" not in parts and parts[0] != os.fsencode(FOLDER)


def _same_stamp(known: KnownFile, status: os.stat_result) -> bool:
    return (
        status.st_ctime_ns == known.ctime_ns
        and status.st_mtime_ns == known.mtime_ns
        and status.st_size == known.size
        and (bool(known.link) or stat.S_IMODE(status.st_mode) == known.permissions)
    )


def _known(
    location: bytes,
    status: os.stat_result,
    link: int,
    oid: str,
    size: int,
    stored: int,
    ctime_ns: int | None,
) -> KnownFile:
    permissions = 0o777 if link else stat.S_IMODE(status.st_mode)
    more = "" if link else _more_of(location, status)
    inode = status.st_ino & _POSITIVE
    return KnownFile(
        link, permissions, oid, size, stored, status.st_mtime_ns, ctime_ns, inode, status.st_nlink, more
    )


def _more_of(location: bytes, status: os.stat_result) -> str:
    """What a file has beside content and mode, where that is out of the ordinary."""
    names: list[str] = []
    if sys.platform == "linux":
        try:  # noqa: SIM105 - once a file, of many thousands
            names = os.listxattr(location, follow_symlinks=False)
        except OSError:
            pass  # no such thing on this disk
    owner = (status.st_uid, status.st_gid)
    if not names and owner == _ourselves():
        return ""
    more: dict[str, Any] = {} if owner == _ourselves() else {"owner": owner}
    with suppress(OSError):
        values = {name: os.getxattr(location, name, follow_symlinks=False) for name in names}
        more |= {"attributes": {name: b64encode(one).decode() for name, one in values.items()}}
    return json.dumps(more)


@cache
def _ourselves() -> tuple[int, int]:
    return os.geteuid(), os.getegid()


def _dress(descriptor: int, state: FileState) -> None:
    """Owner and extended attributes as far as we may set them, then the mode, which a new owner resets."""
    if state.owner is not None:
        with suppress(OSError):
            os.fchown(descriptor, *state.owner)
    if sys.platform == "linux":
        for name, value in state.attributes.items():
            with suppress(OSError):
                os.setxattr(descriptor, name, b64decode(value))
    os.fchmod(descriptor, state.permissions)


def _write(place: Path, state: FileState, data: bytes) -> None:
    if state.link:
        os.symlink(data, os.fsencode(place))  # noqa: PTH211 - bytes
        return
    part = place.with_name(place.name.replace(_STAGED, PART, 1))
    part.unlink(missing_ok=True)
    try:
        with opened(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            write_whole(descriptor, data)
            _dress(descriptor, state)
            os.fsync(descriptor)
    except OSError:
        part.unlink(missing_ok=True)  # a full disk needs the room
        raise
    part.rename(place)


def _place_new(staged: Path, location: Path) -> None:
    """Give it the name, unless that is taken."""
    try:
        os.link(staged, location, follow_symlinks=False)
    except FileExistsError:
        raise _moved(location) from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EXDEV, errno.EMLINK):
            raise
        if os.path.lexists(location):
            raise _moved(location) from None
        staged.rename(location)
        return
    staged.unlink()


def _moved(location: Path) -> ConflictError:
    return ConflictError(
        f"{location} was changed at the same moment and was left unchanged", hint="run the same command again"
    )


@cache
def _exchange() -> Callable[[Path, Path], None] | None:
    """Swap two names in one step, where the system can."""
    library: Any = ctypes.CDLL(None, use_errno=True)
    here = -100  # AT_FDCWD
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        call: Callable[[bytes, bytes], int] = lambda one, two: library.renameat2(here, one, here, two, 2)  # noqa: E731
    elif sys.platform == "darwin" and hasattr(library, "renamex_np"):
        call = lambda one, two: library.renamex_np(one, two, 2)  # noqa: E731
    else:
        return None

    def exchange(one: Path, two: Path) -> None:
        if call(os.fsencode(one), os.fsencode(two)) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(two))

    return exchange
