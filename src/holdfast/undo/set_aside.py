"""Files that had to leave the tree and whose content is not stored: moved here, and back when undone.

Each is named after its content, so the record that names the content finds the file. Nothing here is
ever removed by us. A rename keeps mode, times and whatever else the file has, at any size and without
needing room.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from itertools import count
from pathlib import Path

from holdfast.base.durable import opened, private_folder, sync_folder, write_whole
from holdfast.base.errors import ConflictError
from holdfast.base.faults import fault_point
from holdfast.base.file_stamps import feed, open_regular
from holdfast.undo.state import FileState

PART = ".holdfast-part-"
"""How the names of files begin that are not written whole."""


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
    digest = hashlib.sha1(f"blob {state.size}\0".encode(), usedforsecurity=False)
    with opened(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:

        def take(block: bytes) -> None:
            digest.update(block)
            write_whole(descriptor, block)

        with open_regular(os.fsencode(source)) as from_source:
            feed(from_source, take)
            status = os.fstat(from_source)
        if digest.hexdigest() != state.oid:
            raise ConflictError(f"{source} was changed at the same moment and was left unchanged")
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
        os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fsync(descriptor)
