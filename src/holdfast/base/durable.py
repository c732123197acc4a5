"""How bytes reach the disk and stay there: locks, atomic files, damage set aside.

Every room that writes a file does it through here, so the answer to "what if the
power goes now?" is given once. Standard library only: the hook path imports this.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import BinaryIO

from holdfast.base.errors import HeldElsewhereError, StorageError

try:
    import fcntl
except ImportError:  # Windows: one process at a time, unlocked
    fcntl = None

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""For every file of ours that is opened by its name: a link in its place would lead to somebody else's, and
who opens a pipe would wait for ever."""


@contextlib.contextmanager
def storage_errors(doing: str) -> Generator[None]:
    """Turn the system's refusal into an error that says what was being done."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        where = f" ({error.filename})" if error.filename else ""
        raise StorageError(f"could not {doing}: {reason}{where}") from error


def private_folder(path: Path) -> Path:
    """Make the folder for us alone; leave an existing one as it is. A link to a folder is none."""
    private_folders(path)
    return path


def private_folders(*paths: Path, is_lasting: bool = True) -> None:
    """Several at once wait for the disk a few times, not once each; not at all where none need be lasting."""
    changed: dict[Path, None] = {}
    for path in paths:
        with storage_errors(f"make the folder {path}"):
            changed |= dict.fromkeys(_make_folders(path, PRIVATE_FOLDER))
            if path.is_symlink():
                raise OSError(errno.ELOOP, "it is a symbolic link")
    for folder in changed if is_lasting else ():
        with storage_errors(f"make a folder in {folder}"):
            sync_folder(folder)


def make_folder(path: Path, mode: int = PRIVATE_FOLDER) -> None:
    """Each folder that is missing on the way, by default for us alone, and its name on the disk."""
    for folder in _make_folders(path, mode):
        sync_folder(folder)


def _make_folders(path: Path, mode: int) -> list[Path]:
    """Those in which one was made; their names are not on the disk yet."""
    missing = [path]
    while not os.path.lexists(missing[-1].parent):
        missing.append(missing[-1].parent)
    changed: list[Path] = []
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=mode)
        except FileExistsError:
            if not folder.is_dir():
                raise
        else:
            changed.append(folder.parent)
    return changed


@contextlib.contextmanager
def opened(path: Path | str, flags: int) -> Generator[int]:
    """The number of an open file, closed afterwards; one that this makes is for us alone."""
    descriptor = os.open(path, flags, PRIVATE_FILE)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_file(path: Path) -> BinaryIO:
    """A file of ours, to be read."""
    file = open(os.open(path, os.O_RDONLY | NO_FOLLOW), "rb")  # noqa: PTH123, SIM115 - the caller closes it
    try:
        refuse_hole(file.fileno(), path)
    except OSError:
        file.close()
        raise
    return file


_LARGE = 64 << 20
_SMALLEST_SHARE = 64
"""No file system packs text as tightly."""


def refuse_hole(descriptor: int, path: Path) -> None:
    """One that says it is large and holds nothing would be read as one endless line, a pipe for ever."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    if is_hole(found):
        raise OSError(errno.EFBIG, f"{os.strerror(errno.EFBIG)}, and empty in most parts", str(path))


def is_hole(found: os.stat_result) -> bool:
    stored = getattr(found, "st_blocks", found.st_size) * 512
    return found.st_size > _LARGE and stored * _SMALLEST_SHARE < found.st_size


def open_to_append(path: Path) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_FOLLOW
    return open(os.open(path, flags, PRIVATE_FILE), "ab")  # noqa: PTH123 - the caller closes it


LARGEST = 1 << 30
"""What a file of ours may hold: one of holes may say that it is as large as the disk."""


def read_file(path: Path) -> bytes:
    with open_file(path) as file:
        if os.fstat(file.fileno()).st_size > LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        return file.read()


def sync_folder(path: Path) -> None:
    """Make renames and new names in a folder survive a power cut."""
    if os.name == "nt":
        return
    with opened(path, os.O_RDONLY) as descriptor:
        os.fsync(descriptor)


def write_whole(descriptor: int, data: bytes) -> None:
    """`os.write` may take less than it was given; a regular file seldom does, a full disk often."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def append_or_undo(descriptor: int, data: bytes, size: int) -> None:
    """One write at the end of a file of that size, which the caller has locked.

    A full disk takes a part: that is taken back, so the file is as it was.
    """
    try:
        written = os.write(descriptor, data)
        if written != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def write_new(path: Path, data: bytes) -> None:
    """A new file with these bytes, on the disk when this returns; never over an old one."""
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
        write_whole(descriptor, data)
        os.fsync(descriptor)


def replace_file(path: Path, data: bytes, *, is_lasting: bool = True) -> None:
    """The whole new content or the whole old one, whatever happens in between.

    Of one that is not lasting yet, the caller syncs the folder with others.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
    try:
        write_new(temporary, data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if is_lasting:
        sync_folder(path.parent)


def keep_if_damaged(path: Path, readable: Callable[[bytes], object] = bytes.decode) -> None:
    """Before a file is written anew: one that nobody can read is moved aside, not overwritten."""
    try:
        readable(read_file(path))
    except FileNotFoundError:
        return
    except (ValueError, TypeError, LookupError, RecursionError):
        set_aside(path, path.stat().st_mtime)


def set_aside(path: Path, seconds: float) -> Path:
    """Move a damaged file out of the way under a name that tells; never over another one."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(seconds))
    for attempt in range(1, 1000):
        suffix = "" if attempt == 1 else f"-{attempt}"
        target = path.with_name(f"{path.name}.damaged-{stamp}{suffix}")
        if not target.exists():
            path.rename(target)
            sync_folder(path.parent)
            return target
    raise StorageError(f"could not set {path} aside: a thousand damaged copies already exist")


@contextlib.contextmanager
def lock_file(path: Path, *, wait: float | None = None) -> Generator[None]:
    """Hold an exclusive lock; the system releases it when the process dies.

    The file itself stays: removing a lock file while others wait on it would let two in.
    With `wait`, gives up after that many seconds.
    """
    with opened(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW) as descriptor:
        _acquire(descriptor, path, wait)
        yield


def lock_descriptor(descriptor: int) -> None:
    """Hold an exclusive lock on an open file until it is closed."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def is_held(path: Path) -> bool:
    """Whether a process lives that was given the file to hold (`holdfast.hooks.fast.notes.hold`)."""
    try:
        with opened(path, os.O_RDWR | NO_FOLLOW) as descriptor:
            _acquire(descriptor, path, 0)
    except FileNotFoundError:
        return False
    except HeldElsewhereError:
        return True
    return False


def unlock_descriptor(descriptor: int) -> None:
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _acquire(descriptor: int, path: Path, wait: float | None) -> None:
    if fcntl is None:
        return
    if wait is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise HeldElsewhereError(
                    f"another process has held {path} for {wait:g} s",
                    hint="wait for it to finish and try again",
                ) from None
            time.sleep(0.01)
        else:
            return
