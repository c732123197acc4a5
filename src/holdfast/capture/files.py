"""Fingerprints of files: what they held when a snapshot was taken."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from holdfast.model.git import decode_path
from holdfast.model.snapshot import FileFingerprint

MOST_FILES = 2_000
LARGEST_FILE = 64 << 20


def fingerprint_files(root: Path, paths: Iterable[str]) -> tuple[FileFingerprint, ...]:
    """Of the files at these paths (as `GitState` writes them) below `root`.

    Folders, sockets and what cannot be read are left out; a path with nothing there is
    marked absent. Bounded in number and size, since a pause must not wait on a build folder.
    """
    found: list[FileFingerprint] = []
    for path in paths:
        if len(found) == MOST_FILES:
            break
        print_of = _fingerprint(os.fsencode(root) + b"/" + decode_path(path), path)
        if print_of is not None:
            found.append(print_of)
    return tuple(found)


def _fingerprint(location: bytes, path: str) -> FileFingerprint | None:
    try:
        status = os.lstat(location)
        if stat.S_ISLNK(status.st_mode):
            digest = hashlib.sha256(os.readlink(location))  # noqa: PTH115 - the name may be no text
        elif stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_FILE:
            with open(location, "rb") as file:  # noqa: PTH123 - the name may be no text
                digest = hashlib.file_digest(file, "sha256")
        else:
            return None
    except (FileNotFoundError, NotADirectoryError):
        return FileFingerprint(path=path, hash="absent", mtime_ns=0, size=0)
    except OSError:
        return None
    return FileFingerprint(
        path=path, hash=f"sha256:{digest.hexdigest()}", mtime_ns=status.st_mtime_ns, size=status.st_size
    )
