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

NOTHING = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
"""The id of an empty content, which a folder has too."""

_HEAD = 12
_FIXED = 62
"""Bytes of an entry before its name: ten numbers, the id, the flags."""
_EXTENDED, _STAGE, _LENGTH = 0x4000, 0x3000, 0x0FFF
_NOT_PLAIN = _EXTENDED | _STAGE
_PLAIN, _EXECUTABLE = 0o100644, 0o100755
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


def entries(data: bytes, last: int) -> Iterator[tuple[int, bytes]]:
    """Where each of the first so many begins, and its name."""
    flags_at = struct.Struct(">H").unpack_from
    packed_names = data[7] == 4
    position, name = _HEAD, b""
    for _ in range(last):
        (flags,) = flags_at(data, position + 60)
        start = position + _FIXED + (2 if flags & _EXTENDED else 0)
        if packed_names:
            dropped, start = _number(data, start)
            end = data.index(b"\0", start)
            name = name[: len(name) - dropped] + data[start:end]
            yield position, name
            position = end + 1
        else:
            length = flags & _LENGTH
            end = start + length if length < _LENGTH else data.index(b"\0", start)
            name = data[start:end]
            yield position, name
            position += (end - position + 8) & ~7


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
    return [name for _, name in entries(data, readable_count(data) or 0)]


def usual_modes(data: bytes, count: int, base: bytes) -> tuple[int, int]:
    """The modes that the files of this tree mostly have, plain ones and executable ones."""
    from collections import Counter  # what runs in processes of its own starts faster without

    found: Counter[int] = Counter()
    for _, name in entries(data, min(count, _SAMPLE)):
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
        self.odd: dict[bytes, tuple[int, int, int, str] | None] = {}
        """Files that the index alone does not tell of: stamp, size and id, where at least these hold."""
        self.folders: dict[bytes, int] = {}
        """Those on the way to the files, with their modes."""
        self.inside: set[bytes] = set()
        """Folders in these."""
        self.is_whole = True

    def run(self, first: int, last: int, *, alone: bool) -> None:
        """`alone`, in a process of its own, from within each folder in turn: shorter ways. The extended
        attributes are then left for later: they cost as much as the rest."""
        data, odd, usual = self._data, self.odd, self._usual
        lstat, fields_at = os.lstat, _FIELDS.unpack_from
        attributes = None if alone else attributes_in(self._base)
        believed, coarsely, settled = self._limits
        ourselves = (1, os.geteuid(), os.getegid())
        folder, prefix, position, name = None, b"", 0, b""
        self._is_folder(b"")
        for number, (position, name) in enumerate(entries(data, last)):
            if number < first:
                continue
            above, _, own = name.rpartition(b"/")
            if above != folder:
                folder, prefix = above, self._enter(above, moving=alone)
            if prefix is None:  # the folder is gone, or another thing by now
                odd[name] = None
                continue
            ctime_s, ctime_ns, mtime_s, mtime_ns, inode, mode, size, flags = fields_at(data, position)
            try:
                place = prefix + own
                status = lstat(place)
                ctime, mtime = status.st_ctime_ns, status.st_mtime_ns
                if (
                    ctime != ctime_s * _SECOND + ctime_ns
                    or mtime != mtime_s * _SECOND + mtime_ns
                    or status[6] != size
                    or status[1] & _WORD != inode
                    or ctime > believed
                    or mtime > believed
                    or mode not in usual
                    or flags & _NOT_PLAIN
                    or (not mtime_ns and mtime > coarsely)
                    or (not size and oid_of(data, position) != NOTHING)
                ):
                    odd[name] = None
                elif (
                    status[0] != usual[mode]
                    or status[3:6] != ourselves
                    or ctime > settled
                    or mtime > settled
                    or (attributes is not None and attributes(place))
                ):
                    odd[name] = (ctime, mtime, size, oid_of(data, position))
            except OSError:
                odd[name] = None
        if position and last == readable_count(data):
            self.is_whole = is_whole(data, position, name)

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
        below = folder + b"/" if folder else b""
        try:
            mode = os.lstat(self._base + folder).st_mode
            if not stat.S_ISDIR(mode):
                return False
            with os.scandir(self._base + folder) as found:
                self.inside.update(below + one.name for one in found if one.is_dir(follow_symlinks=False))
        except OSError:
            return False
        self.folders[folder] = mode
        return True


_WORD = 0xFFFFFFFF
_FIELDS = struct.Struct(">4I4xII8xI20xH")
"""The times, inode, mode, size and flags of an entry."""


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
    sys.stdout.buffer.write(dumps((survey.odd, survey.folders, list(survey.inside), survey.is_whole)))


if __name__ == "__main__":
    main()
