"""What git would wait for, or read, for ever: a pipe, a device or a file of holes in place of a file.

An archive can hold these and git itself cannot, so git does not expect them. Looking for them costs as much
as `git status` does, and is left to the moment when a git has not answered for a while.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from holdfast.base.durable import is_hole

_READ_IN_EACH_FOLDER = frozenset((".gitignore", ".gitattributes", ".gitmodules"))
_MOST = 300_000
"""Names that are looked at; who has more in a tree waits for git itself."""


class Obstacle(NamedTuple):
    place: str
    kind: str
    is_in_git: bool


_found: dict[Path, Obstacle] = {}
"""By the folder that git was run in: nobody waits for the same one twice."""


def known_obstacle(folder: Path) -> Obstacle | None:
    """The one that was found before, if it is still there."""
    before = _found.pop(folder, None)
    if before and _kind_of(before.place, follow=before.is_in_git):
        _found[folder] = before
        return before
    return None


def find_obstacle(folder: Path) -> Obstacle | None:
    """The first one in the repository that the folder is in: in its `.git`, or in the work tree."""
    top = next((one for one in (folder, *folder.parents) if os.path.lexists(one / ".git")), None)
    found = _obstacle_in(top) if top else None
    if found:
        _found[folder] = found
    return found


def _obstacle_in(top: Path) -> Obstacle | None:
    left = _MOST
    for entry, is_git in _entries(top):
        left -= 1
        if left < 0:
            return None
        if is_git or entry.name in _READ_IN_EACH_FOLDER:
            kind = _kind_of(entry.path, follow=is_git)
            if kind:
                return Obstacle(entry.path, kind, is_git)
    return None


def _entries(top: Path) -> Iterator[tuple[os.DirEntry[str], bool]]:
    """All but folders, with whether git reads each; git's own come first."""
    waiting = [(str(top), False), *((one, True) for one in _git_folders(top))]
    while waiting:
        folder, is_git = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            if not entry.is_dir(follow_symlinks=False):
                yield entry, is_git
            elif is_git or entry.name != ".git":
                waiting.append((entry.path, is_git))


def _git_folders(top: Path) -> list[str]:
    git = top / ".git"
    if git.is_dir():
        return [str(git)]
    try:
        told = git.read_text(errors="replace") if git.is_file() else ""
    except OSError:
        return []
    return [str(top / told.partition("gitdir:")[2].strip())] if "gitdir:" in told else []


def _kind_of(path: str, *, follow: bool) -> str:
    """Empty for what ends when it is read. Git follows links in its own folder and no others."""
    try:
        found = Path(path).stat(follow_symlinks=follow)
    except OSError:
        return ""
    if stat.S_ISFIFO(found.st_mode):
        return "a pipe"
    if stat.S_ISCHR(found.st_mode):
        return "a device"
    return "empty in most parts and said to be very large" if is_hole(found) else ""
