"""The user's index, read and never written: what their git knows of a file without anybody reading it.

A file whose stamp is the one in the index holds what git wrote down there, as long as the stamp is older
than the index itself. The first look at a large tree so costs a system call or two a file, and no copies: the
content stays in the user's repository until a change of the file is recorded.

Of a large tree several processes survey a part each, as git's threads do. What they run is this very
file, which for that reason imports next to nothing.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
from marshal import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

IndexedFile = tuple[int, int, int, str]
"""Change time, time of writing, size, and the id of the content."""
SurveyedPart = tuple[
    dict[bytes, IndexedFile | None], dict[bytes, int], set[bytes], dict[bytes, set[bytes]], bool
]
"""What `Survey.found` tells."""

NOTHING = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""The id of an empty content, which a folder has too."""

_HEAD = 12
_FIXED = 62
"""Bytes of an entry before its name: ten numbers, the id, the flags."""
_EXTENDED, _STAGE, _LENGTH = 0x4000, 0x3000, 0x0FFF
_NOT_PLAIN = _EXTENDED | _STAGE
_PLAIN, _EXECUTABLE, _MODULE = 0o100644, 0o100755, 0o160000
_WORD = 0xFFFFFFFF
_FIELDS = struct.Struct(">4I4xII8xI20xH")
"""The times, inode, mode, size and flags of an entry."""
Fields = tuple[int, int, int, int, int, int, int, int]
_SECOND = 1_000_000_000
_TICK = 20_000_000
"""Longer than the clock of any local file system with fractions of a second takes from tick to tick."""
_LONG_TICK = 2 * _SECOND
_SAMPLE = 64
_NOT_WHOLE = (b"link", b"sdir")
"""Extensions of an index that has entries elsewhere, or folders in place of what is in them."""


def readable_count(data: bytes) -> int | None:
    """How many entries an index has; None where it is of a kind that is not read here."""
    if len(data) < _HEAD + 20 or data[:4] != b"DIRC":
        return None
    version, count = struct.unpack_from(">II", data, 4)
    return count if version in (2, 3, 4) else None


def entries(data: bytes, last: int, first: int = 0) -> Iterator[tuple[int, bytes, Fields]]:
    """Where each up to the `last` begins, its name and its numbers; those before `first` are left out."""
    fields_at = _FIELDS.unpack_from
    packed_names = data[7] == 4
    begun, name = (0, b"") if packed_names else (first, b"")
    position = _position_of(data, begun)
    for number in range(begun, last):
        fields = fields_at(data, position)
        flags = fields[7]
        start = position + _FIXED + (2 if flags & _EXTENDED else 0)
        if packed_names:
            dropped, start = _number(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - dropped] + data[start:end]
            if number >= first:
                yield position, name, fields
            position = end + 1
        else:
            length = flags & _LENGTH
            end = start + length if length < _LENGTH else data.index(b"\0", start)
            name = data[start:end]
            yield position, name, fields
            position += (end - position + 8) & ~7


def _position_of(data: bytes, number: int) -> int:
    """Where an entry begins, which the lengths of those before it tell, unless their names are packed."""
    flags_at = struct.Struct(">H").unpack_from
    position = _HEAD
    for _ in range(number):
        (flags,) = flags_at(data, position + 60)
        start = position + _FIXED + (2 if flags & _EXTENDED else 0)
        length = flags & _LENGTH
        end = start + length if length < _LENGTH else data.index(b"\0", start)
        position += (end - position + 8) & ~7
    return position


def is_whole(data: bytes, last: int, name: bytes) -> bool:
    """Whether no extension, behind the last entry, says that there is more to it."""
    start = last + _FIXED + (2 if data[last + 60] & _EXTENDED >> 8 else 0)
    if data[7] == 4:
        position = data.index(b"\0", _number(data, start)[1]) + 1
    else:
        position = last + ((start + len(name) - last + 8) & ~7)
    while position + 8 <= len(data) - 20:
        if data[position : position + 4] in _NOT_WHOLE:
            return False
        position += 8 + int.from_bytes(data[position + 4 : position + 8], "big")
    return True


def stamp_of(data: bytes, position: int) -> tuple[int, int, int, int]:
    """Change time, time of writing, inode and size, as git last saw them."""
    ctime, ctime_ns, mtime, mtime_ns, _, inode = struct.unpack_from(">6I", data, position)
    (size,) = struct.unpack_from(">I", data, position + 36)
    return ctime * _SECOND + ctime_ns, mtime * _SECOND + mtime_ns, inode, size


def oid_of(data: bytes, position: int) -> str:
    return data[position + 40 : position + 60].hex()


def is_executable(data: bytes, position: int) -> bool:
    return bool(data[position + 27] & 0o100)


def names_in(data: bytes) -> list[bytes]:
    return [name for _, name, _ in entries(data, readable_count(data) or 0)]


def usual_modes(data: bytes, count: int, base: bytes) -> tuple[int, int]:
    """The modes that the files of this tree mostly have, plain ones and executable ones."""
    from collections import Counter  # what runs in processes of its own starts faster without

    found: Counter[int] = Counter()
    for _, name, _ in entries(data, min(count, _SAMPLE)):
        try:
            mode = os.lstat(base + name).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode):
            found[mode & ~0o111] += 1
    plain = found.most_common(1)[0][0] if found else stat.S_IFREG | 0o644
    return plain, plain | (plain & 0o444) >> 2


class Survey:
    """A part of the files of an index, compared with what stands in the tree."""

    def __init__(self, data: bytes, base: bytes, modes: tuple[int, int], times: tuple[int, int]) -> None:
        """`base` with a slash at its end; `times`: when the index was written, and now."""
        self._data = data
        self._base = base
        self._usual = {_PLAIN: modes[0], _EXECUTABLE: modes[1]}
        written, now = times
        self._limits = written - _TICK, written - _LONG_TICK, now - _LONG_TICK
        self.odd: dict[bytes, IndexedFile | None] = {}
        """Files that the index alone does not tell of: stamp, size and id, where at least these hold."""
        self.folders: dict[bytes, int] = {}
        """Those on the way to the files, with their modes."""
        self.replacing: set[bytes] = set()
        """Folders where the index has a file, or another repository."""
        self.strange: dict[bytes, set[bytes]] = {}
        """By folder, the names in it that are none of this part's; where there are such."""
        self.is_whole = True

    def run(self, first: int, last: int, *, alone: bool) -> None:
        """`alone`, in a process of its own, from within each folder in turn: shorter ways. The extended
        attributes are then left for later: they cost as much as the rest."""
        data, odd, usual = self._data, self.odd, self._usual
        lstat = os.lstat
        attributes = None if alone else attributes_in(self._base)
        undoubted = min(self._limits)
        ourselves = (1, os.geteuid(), os.getegid())
        folder, prefix, position, name = None, b"", 0, b""
        here: list[bytes] = []
        self._is_folder(b"")
        for position, name, fields in entries(data, last, first):
            above, _, own = name.rpartition(b"/")
            if above != folder:
                self._knows(folder, here)
                here.clear()
                folder, prefix = above, self._enter(above, moving=alone)
            if prefix is None:  # the folder is gone, or another thing by now
                odd[name] = None
                continue
            here.append(own)
            try:
                place = prefix + own
                status = lstat(place)
                ctime_s, ctime_ns, mtime_s, mtime_ns, inode, mode, size, flags = fields
                ctime, mtime = status.st_ctime_ns, status.st_mtime_ns
                # Of nearly all files this is all there is to ask.
                if (
                    ctime != ctime_s * _SECOND + ctime_ns
                    or mtime != mtime_s * _SECOND + mtime_ns
                    or not size
                    or status[6] != size
                    or status[1] & _WORD != inode
                    or flags & _NOT_PLAIN
                    or status[0] != usual.get(mode)
                    or status[3:6] != ourselves
                    or ctime > undoubted
                    or mtime > undoubted
                    or (attributes is not None and attributes(place))
                ):
                    has_more = status[3:6] != ourselves or bool(attributes and attributes(place))
                    self._look_closer(name, oid_of(data, position), fields, status, has_more=has_more)
                    if stat.S_ISDIR(status[0]) and mode != _MODULE:
                        here.pop()
            except OSError:
                odd[name] = None
        self._knows(folder, here)
        for above, _, own in (one.rpartition(b"/") for one in self.folders):
            self.strange[above].discard(own)
        self.strange = {name: left for name, left in self.strange.items() if left}
        if position and last == readable_count(data):
            self.is_whole = is_whole(data, position, name)

    def _look_closer(
        self, name: bytes, oid: str, fields: Fields, status: os.stat_result, *, has_more: bool
    ) -> None:
        """At a file of which not all is as it mostly is."""
        ctime_s, ctime_ns, mtime_s, mtime_ns, inode, mode, size, flags = fields
        believed, coarsely, settled = self._limits
        ctime, mtime = status.st_ctime_ns, status.st_mtime_ns
        if stat.S_ISDIR(status[0]):
            self.replacing.add(name)
        if (
            ctime != ctime_s * _SECOND + ctime_ns
            or mtime != mtime_s * _SECOND + mtime_ns
            or status[6] != size
            or status[1] & _WORD != inode
            or ctime > believed
            or mtime > believed
            or mode not in self._usual
            or flags & _NOT_PLAIN
            or (not mtime_ns and mtime > coarsely)
            or (not size and oid != NOTHING)
        ):
            self.odd[name] = None
        elif has_more or status[0] != self._usual[mode] or ctime > settled or mtime > settled:
            self.odd[name] = (ctime, mtime, size, oid)

    @property
    def found(self) -> SurveyedPart:
        """All of it, as values that can be handed on."""
        return self.odd, self.folders, self.replacing, self.strange, self.is_whole

    def _knows(self, folder: bytes | None, names: list[bytes]) -> None:
        if folder in self.strange:
            self.strange[folder].difference_update(names)

    def _enter(self, folder: bytes, *, moving: bool) -> bytes | None:
        """How names in it begin; None where it is no folder, or behind a link."""
        if not self._is_folder(folder):
            return None
        place = self._base + folder
        if not moving:
            return place + b"/" if folder else place
        try:
            os.chdir(place)
        except OSError:
            return None
        return b""

    def _is_folder(self, folder: bytes) -> bool:
        """With all on the way to it; what is in it is noted."""
        if folder in self.folders:
            return True
        if folder and not self._is_folder(folder.rpartition(b"/")[0]):
            return False
        place = self._base + folder
        try:
            mode = os.lstat(place).st_mode
            if not stat.S_ISDIR(mode):
                return False
            self.strange[folder] = set(os.listdir(place))  # noqa: PTH208 - bytes
        except OSError:
            return False
        self.folders[folder] = mode
        return True


def attributes_in(base: bytes) -> Callable[[bytes], list[str]]:
    """What lists a file's extended attributes, where there are such."""
    if sys.platform != "linux":
        return lambda _place: []
    listed = os.listxattr
    try:
        listed(base)
    except OSError:
        return lambda _place: []
    return lambda place: listed(place, follow_symlinks=False)


def _number(data: bytes, position: int) -> tuple[int, int]:
    """How git packs the length that a name shares with the one before."""
    byte = data[position]
    value = byte & 0x7F
    while byte & 0x80:
        position += 1
        byte = data[position]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, position + 1


def main() -> None:
    """`BASE FIRST LAST PLAIN EXECUTABLE WRITTEN NOW`, the index on stdin; what was found goes to stdout.

    Others read the same open file, so its position is nobody's.
    """
    base = os.fsencode(sys.argv[1])
    first, last, plain, executable, written, now = map(int, sys.argv[2:])
    data, left = b"", os.fstat(0).st_size
    while left > len(data):
        data += os.pread(0, left - len(data), len(data)) or sys.exit("the index became shorter")
    survey = Survey(data, base, (plain, executable), (written, now))
    survey.run(first, last, alone=True)
    sys.stdout.buffer.write(dumps(survey.found))


if __name__ == "__main__":
    main()
