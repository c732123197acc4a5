"""The user's index, read and never written: what their git knows of a file without anybody reading it.

A file whose stamp is the one in the index holds what git wrote down there, as long as the stamp is older
than the index itself. The first look at a large tree so costs a system call a file, and no copies: the
content stays in the user's repository until a change of the file is recorded.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast.base.file_stamps import GRAIN_NS
from holdfast.undo.state import NOTHING

_HEAD = struct.Struct(">4sII")
_ENTRY = struct.Struct(">10I20sH")
_SECOND = 1_000_000_000
_TICK = 20_000_000
"""Longer than the clock of any local file system with fractions of a second takes from tick to tick."""
_EXTENDED, _STAGE, _LENGTH = 0x4000, 0x3000, 0x0FFF


class IndexedFile(NamedTuple):
    ctime_ns: int
    mtime_ns: int
    inode: int
    mode: int
    size: int
    oid: str


@dataclass(frozen=True)
class UsersIndex:
    files: dict[bytes, IndexedFile]

    def content_of(self, path: bytes, status: os.stat_result) -> str | None:
        """The id of what the file holds, where its stamp proves it."""
        known = self.files.get(path)
        if (
            known is None
            or status.st_ctime_ns != known[0]
            or status.st_mtime_ns != known[1]
            or status.st_ino & 0xFFFFFFFF != known[2]
            or status.st_size != known[4]
            or not stat.S_ISREG(status.st_mode)
        ):
            return None
        return known.oid

    def without(self, paths: Iterable[bytes]) -> UsersIndex:
        gone = frozenset(paths)
        return UsersIndex({path: one for path, one in self.files.items() if path not in gone})


def read_index(place: Path) -> UsersIndex | None:
    """Regular files of an index of version 2 to 4; None where it is of another kind."""
    try:
        written = place.stat().st_mtime_ns
        data = place.read_bytes()
        signature, version, count = _HEAD.unpack_from(data)
        if signature != b"DIRC" or version not in (2, 3, 4):
            return None
        return UsersIndex(_entries(data, version, count, written))
    except (OSError, struct.error, ValueError, IndexError):
        return None


def _entries(data: bytes, version: int, count: int, written: int) -> dict[bytes, IndexedFile]:
    found: dict[bytes, IndexedFile] = {}
    position, name = _HEAD.size, b""
    for _ in range(count):
        fields = _ENTRY.unpack_from(data, position)
        flags: int = fields[11]
        start = position + _ENTRY.size + (2 if flags & _EXTENDED else 0)
        if version == 4:
            dropped, start = _number(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - dropped] + data[start:end]
            position = end + 1
        else:
            length = flags & _LENGTH
            end = start + length if length < _LENGTH else data.index(b"\0", start)
            name = data[start:end]
            position += (end - position + 8) & ~7
        one = _indexed(fields)
        if not flags & (_EXTENDED | _STAGE) and _is_believed(one, written):
            found[name] = one
    return found


def _indexed(fields: tuple[int, ...]) -> IndexedFile:
    ctime, ctime_ns, mtime, mtime_ns, _, inode, mode, _, _, size, oid, _ = fields
    return IndexedFile(
        ctime * _SECOND + ctime_ns,
        mtime * _SECOND + mtime_ns,
        inode,
        mode,
        size,
        bytes(oid).hex(),  # type: ignore[arg-type]
    )


def _is_believed(one: IndexedFile, written: int) -> bool:
    """Not written in the tick in which git looked, which git itself marks with a size of nothing."""
    tick = _TICK if one.mtime_ns % _SECOND else GRAIN_NS
    return (
        stat.S_ISREG(one.mode)
        and max(one.mtime_ns, one.ctime_ns) + tick < written
        and (one.size > 0 or one.oid == NOTHING)
    )


def _number(data: bytes, position: int) -> tuple[int, int]:
    """How git packs the length that a name shares with the one before."""
    byte = data[position]
    value = byte & 0x7F
    while byte & 0x80:
        position += 1
        byte = data[position]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, position + 1
