"""A session's small files, and how they stay whole under many hooks at once. What is built in alone."""

from __future__ import annotations

import os
import time

from holdfast.project import formats
from holdfast.project.trust import Trust, sync_names

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.hooks.fast.event import AgentEvent


try:
    import fcntl
except ImportError:  # Windows: one process at a time, unlocked
    fcntl = None

NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
"""As `holdfast.base.durable` has it."""
_READABLE = os.O_RDONLY | NO_FOLLOW
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def ensure_folder(folder: str) -> None:
    """Private from the start; `.holdfast` itself ignores itself for git. No project is made that is gone."""
    if os.path.isdir(folder):
        return
    project = folder[: folder.index(f"/{formats.FOLDER}/")]
    Trust().make_own(project)
    parts = [f"{project}/{formats.FOLDER}/{part}" for part in (formats.SESSIONS, formats.STATE)]
    missing = [part for part in parts if not os.path.isdir(part)]
    for part in missing:
        _make(part)
    if missing:
        sync_names(f"{project}/{formats.FOLDER}")
    for part in (os.path.dirname(folder), folder):
        _make(part)


def _make(folder: str) -> None:
    """Without those above it: of a project that is removed meanwhile nothing is made again."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise


def read(path: str, most: int = 1 << 20) -> bytes | None:
    """The content; None where there is no such file."""
    try:
        descriptor = os.open(path, _READABLE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def create(path: str, data: bytes = b"") -> bool:
    """Make the file; whether it was us. Of many who try, one succeeds."""
    try:
        descriptor = os.open(path, _NEW, 0o600)
    except FileExistsError:
        return False
    try:
        if data:
            os.write(descriptor, data)
    finally:
        os.close(descriptor)
    return True


def write(path: str, data: bytes) -> None:
    """The whole new content or the whole old one. Not synced: notes may be lost with the power."""
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_FOLLOW, 0o600)
    try:
        try:
            written = os.write(descriptor, data)
        finally:
            os.close(descriptor)
        if written != len(data):
            raise OSError(28, os.strerror(28), path)
        os.replace(temporary, path)
    except OSError:
        remove(temporary)
        raise


def remove(path: str) -> bool:
    try:
        os.unlink(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


class Locked:
    """Alone with a file, until the block ends or the process does."""

    def __init__(self, path: str, flags: int = os.O_RDWR | os.O_CREAT) -> None:
        self._path = path
        self._flags = flags | NO_FOLLOW
        self.descriptor = -1

    def __enter__(self) -> int:
        self.descriptor = os.open(self._path, self._flags, 0o600)
        lock(self.descriptor)
        return self.descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


def lock(descriptor: int) -> None:
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def is_locked(path: str) -> bool:
    """Whether somebody has it to themselves at this moment."""
    try:
        descriptor = os.open(path, os.O_RDWR | NO_FOLLOW)
    except OSError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def lasts(is_so: Callable[[], bool], seconds: float) -> bool:
    """Wait for the end of what another process does, so long at most; whether it goes on after that."""
    deadline = time.monotonic() + seconds
    while is_so():
        if time.monotonic() >= deadline:
            return True
        time.sleep(0.01)
    return False


def unlock(descriptor: int) -> None:
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def hold(path: str) -> int:
    """Mark the file as held until the last process that inherits this descriptor is gone.

    Any number may hold it. Unlike a process's number, it cannot be taken for another's, nor outlive it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o600)
    os.set_inheritable(descriptor, True)
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def overwrite(descriptor: int, data: bytes) -> None:
    """For whoever holds the lock."""
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))


def count_in(data: bytes) -> int:
    text = data.strip()
    return int(text) if text.isdigit() else 0


def count_up(path: str, flags: int = os.O_RDWR | os.O_CREAT) -> int:
    """One more than it was; right under any number of hooks at once."""
    with Locked(path, flags) as descriptor:
        number = count_in(os.read(descriptor, 32)) + 1
        overwrite(descriptor, b"%d" % number)
    return number


def winding_down(event: AgentEvent) -> str:
    """The name of this session's own wind-down; empty where it has none."""
    return (read(event.note(formats.WINDING), 100) or b"").decode("ascii", "replace").strip()
