"""When `stat` alone tells that a file still holds what it held, and how to read one that may be changing.

A file system's clock ticks: two writes within one tick leave the same stamp. So a stamp is
believed only once the tick it was made in is over; until then the content decides. The inode's
change time is part of it, since anybody can set the other one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

GRAIN_NS = 2_000_000_000
"""The longest tick in use (FAT's); local ones are milliseconds."""

ABSENT = "absent"
"""In place of a hash: nothing is there."""

T = TypeVar("T")
_READS = 3
_BLOCK = 1 << 20


def settled_ctime(status: os.stat_result, now: float) -> int | None:
    """The change time if the stamp can be believed from now on, None while it may be shared."""
    newest = max(status.st_ctime_ns, status.st_mtime_ns)
    return status.st_ctime_ns if newest + GRAIN_NS <= now * 1_000_000_000 else None


def same_stamp(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_mode, one.st_ino) == (
        other.st_size,
        other.st_mtime_ns,
        other.st_ctime_ns,
        other.st_mode,
        other.st_ino,
    )


@contextmanager
def open_regular(location: bytes) -> Generator[int]:
    """Open for reading; what has become a pipe or a link since it was looked at is an OSError."""
    # Without O_NONBLOCK a pipe put in the file's place would hold us until somebody writes to it.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(location, flags | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{os.fsdecode(location)} is not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_steadily(location: bytes, read: Callable[[int], T]) -> tuple[T, os.stat_result, bool]:
    """What `read` makes of the open file, its stamp, and whether it stood still meanwhile."""
    for attempt in range(1, _READS + 1):
        with open_regular(location) as descriptor:
            before = os.fstat(descriptor)
            found = read(descriptor)
            after = os.fstat(descriptor)
        if same_stamp(before, after) or attempt == _READS:
            return found, after, same_stamp(before, after)
    raise AssertionError("unreachable")


def feed(descriptor: int, take: Callable[[bytes], object]) -> int:
    """Hand the content over block by block; returns how many bytes there were."""
    total = 0
    while block := os.read(descriptor, _BLOCK):
        take(block)
        total += len(block)
    return total
