"""A tree as it was last looked at: `lstat` alone tells which files may differ since, mostly none.

A folder's stamp says whether names came or went in it, as a file's says whether it was written to. Stamps
are taken before the names are listed, so what happens in between is seen next time. Which names count
is git's to say (`ls-files`); it is asked again only when a folder, the index or an ignore file changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from holdfast.base.file_stamps import settled_ctime
from holdfast.project.formats import FOLDER
from holdfast.undo.git import TreeSurvey, UsersGit
from holdfast.undo.state import FOLDER_KIND, KnownFile, same_content
from holdfast.undo.users_index import readable_count
from holdfast.undo.worktree import UnreadableError, Worktree, is_ours

_QUICKLY_READ = 1 << 20
_ROUNDS = 5
_IGNORE_FILE = b".gitignore"
_NOT_OURS = frozenset((b".git", os.fsencode(FOLDER)))


Stamp = tuple[int, int, int]


class _Folder(NamedTuple):
    stamp: Stamp | None
    """None while it may be shared by another state of the folder: then the names decide."""
    names: frozenset[bytes]
    folders: frozenset[bytes]


class TreeCache:
    def __init__(self, tree: Worktree) -> None:
        self._tree = tree
        self._files: dict[bytes, KnownFile] = {}
        self._folders: dict[bytes, _Folder] = {}
        self._users_git: UsersGit | None = None
        self._sources: list[Path] = []
        self._source_stamps: list[Stamp | None] = []
        self.complete = False
        """Whether every file was looked at since it was last forgotten."""
        self.nested: list[bytes] = []
        """Repositories in the tree that git itself does not look into."""
        self.unseen: dict[bytes, str] = {}
        """Names in the tree that could not be looked at, each with what it is."""

    def forget(self) -> None:
        self.unseen.clear()
        self._files.clear()
        self._folders.clear()
        self.complete = False

    def saw(self, path: bytes, known: KnownFile | None) -> None:
        if known is None:
            self._files.pop(path, None)
        else:
            self._files[path] = known

    def is_submodule(self, path: bytes, before: KnownFile | None, names: Iterable[bytes]) -> bool:
        """Whether a folder that git lists as a file is one; not if it took the place of a file: its own files
        are listed then."""
        if path.endswith(b"/") or not self._tree.is_folder(path):
            return False
        inside = path + b"/"
        if self._is_repository(path):
            return inside not in self.nested
        return before is None and not any(one.startswith(inside) and one[-1:] != b"/" for one in names)

    def list_files(self, now: float, expected: Iterable[bytes] = ()) -> list[bytes]:
        """Every file that counts, and every folder with a `/` behind its name; with stamps of all folders
        from before they were listed.

        With the names to be expected it mostly takes one round.
        """
        self._users_git = self._tree.users_git()
        self._sources = self._users_git.ignore_sources() if self._users_git else []
        folders = {*_folders_of(expected), *self._folders}
        names: list[bytes] = []
        for _ in range(_ROUNDS):
            self._source_stamps = self._look_at_sources(now)
            self._folders = {
                name: found for name in folders if (found := self._look_at_folder(name, now)) is not None
            }
            listed = self._tree.list_files(self._users_git)
            self.nested = [name for name in listed if name.endswith(b"/")]
            names = [name for name in listed if not name.endswith(b"/")]
            folders = self._folders_that_count(names)
            if folders <= self._folders.keys():
                self._folders = {name: self._folders[name] for name in folders}
                return names + self._counted_folders()
        self._source_stamps = [None]  # it does not stand still: ask again next time
        return names + self._counted_folders()

    def _counted_folders(self) -> list[bytes]:
        return [name + b"/" for name in self._folders if name]

    def first_look(
        self, now: float, keep_index: Callable[[bytes], None]
    ) -> tuple[TreeSurvey, list[bytes]] | None:
        """What the user's index tells of the tree, and the names in it that it does not tell of.

        It fills no cache: most of what it found is not known file by file.
        """
        self._users_git = self._tree.users_git()
        survey = self._users_git.survey(now, keep_index) if self._users_git else None
        if survey is None:
            return None
        others = [name for name in survey.others if is_ours(name)]
        self._tree.refuse_too_many((readable_count(survey.index) or 0) + len(others))
        self.nested = [name for name in others if name.endswith(b"/")]
        names = [name for name in (*others, *survey.odd) if not name.endswith(b"/") and is_ours(name)]
        counted = {*survey.folders, *(one for one in _folders_of(names) if self._is_folder(one))}
        inside_of = partial(self._seen_in, now=now)
        inside = survey.inside | inside_of(counted - survey.folders.keys())
        counted = self._with_inner(counted, inside, inside_of)
        self._folders = {}
        return survey, names + [name + b"/" for name in counted if name]

    def suspects(self, now: float) -> set[bytes]:
        """Paths that may hold something else than when they were last seen, new ones included."""
        found = self._suspect_files(now)
        # Should what follows fail, nothing may be believed any more.
        self.complete = False
        if self._names_may_differ(now) or any(path.endswith(_IGNORE_FILE) for path in found):
            found.update(path for path in self.list_files(now) if path not in self._files)
        self.complete = True
        return found

    # ── files ──────────────────────────────────────────────────────────────────────────────

    def _suspect_files(self, now: float) -> set[bytes]:
        lstat, base = os.lstat, self._tree.location(b"")
        found: set[bytes] = set()
        young: list[tuple[bytes, KnownFile]] = []
        for path, known in self._files.items():  # often thousands: little more than a system call each
            try:
                status = lstat(base + path)
                # Whoever changes the mode or the size changes this time, too.
                if status.st_ctime_ns == known.ctime_ns and status.st_mtime_ns == known.mtime_ns:
                    continue
                if known.link == FOLDER_KIND and _is_folder_with(known.permissions, lstat(base + path[:-1])):
                    continue
            except OSError:
                found.add(path)
                continue
            if known.ctime_ns is None:
                young.append((path, known))
            else:
                found.add(path)
        found.update(path for path, known in young if not self._still_holds(path, known, now))
        return found

    def _still_holds(self, path: bytes, known: KnownFile, now: float) -> bool:
        """Of a stamp too young to be believed: the content decides."""
        if known.size > _QUICKLY_READ:
            return False
        self._tree.forget()
        try:
            found = self._tree.look(path, None, now, lambda _: bool(known.stored))
        except UnreadableError:
            return False
        if found is None or not same_content(known, found):
            return False
        self._files[path] = found._replace(stored=known.stored)
        return True

    # ── folders and what is ignored ────────────────────────────────────────────────────────

    def _names_may_differ(self, now: float) -> bool:
        if None in self._source_stamps or self._look_at_sources(now) != self._source_stamps:
            return True
        for name, known in self._folders.items():
            found = self._stamp(name)
            if found is None:
                return True
            if known.stamp is None:
                seen = self._look_at_folder(name, now)
                if seen is None or seen.names != known.names:
                    return True
                self._folders[name] = seen
            elif found != known.stamp:
                return True
        return False

    def _stamp(self, folder: bytes) -> Stamp | None:
        try:
            return _stamp_of(os.lstat(self._tree.location(folder)))
        except OSError:
            return None

    def _look_at_folder(self, name: bytes, now: float) -> _Folder | None:
        known = self._folders.get(name)
        place = self._tree.location(name)
        try:
            status = os.lstat(place)
        except OSError:
            return None
        if name and not stat.S_ISDIR(status.st_mode):
            return None
        stamp = _stamp_of(status)
        if known is not None and known.stamp == stamp:
            return known
        try:
            with os.scandir(place) as entries:
                found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except OSError:  # we may not look into it
            found = dict[bytes, bool]()
        settled = settled_ctime(status, now) is not None
        folders = frozenset(one for one, is_folder in found.items() if is_folder and one not in _NOT_OURS)
        return _Folder(stamp if settled else None, frozenset(found), folders)

    def _folders_that_count(self, names: Iterable[bytes]) -> set[bytes]:
        """Those that hold a file that counts, and those that may come to hold one."""
        counted = {name for name in _folders_of(names) if self._is_folder(name)}
        return self._with_inner(counted, self._inside(counted), self._inside)

    def _with_inner(
        self, counted: set[bytes], inside: set[bytes], inside_of: Callable[[Iterable[bytes]], set[bytes]]
    ) -> set[bytes]:
        """These, and those in them that git would look into."""
        unclear = {one for one in inside - counted if one.rpartition(b"/")[2] not in _NOT_OURS}
        while unclear:
            candidates = [path for path in unclear if not self._is_repository(path)]
            ignored = self._users_git.find_ignored(candidates) if self._users_git else set[bytes]()
            kept = {path for path in candidates if path not in ignored and self._is_folder(path)}
            counted |= kept
            unclear = inside_of(kept) - counted
        return counted

    def _seen_in(self, folders: Iterable[bytes], now: float) -> set[bytes]:
        self._folders |= {one: found for one in folders if (found := self._look_at_folder(one, now))}
        return self._inside(folders)

    def _inside(self, folders: Iterable[bytes]) -> set[bytes]:
        return {
            name + b"/" + inner if name else inner
            for name in folders
            if name in self._folders
            for inner in self._folders[name].folders
        }

    def _is_folder(self, path: bytes) -> bool:
        try:
            return not path or stat.S_ISDIR(os.lstat(self._tree.location(path)).st_mode)
        except OSError:
            return False

    def _is_repository(self, path: bytes) -> bool:
        return os.path.lexists(self._tree.location(path) + b"/.git")

    def _look_at_sources(self, now: float) -> list[Stamp | None]:
        """Of what decides which names count; None for a stamp that cannot be believed."""
        found: list[Stamp | None] = []
        for place in self._sources:
            try:
                status = place.stat()
            except OSError:
                found.append((0, 0, 0))
                continue
            settled = settled_ctime(status, now) is not None
            found.append(_stamp_of(status) if settled else None)
        return found


def _stamp_of(status: os.stat_result) -> Stamp:
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _is_folder_with(permissions: int, status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and stat.S_IMODE(status.st_mode) == permissions


def _folders_of(names: Iterable[bytes]) -> set[bytes]:
    """All folders on the way to these files, the root among them."""
    found = {b""}
    for name in names:
        folder = name.rpartition(b"/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition(b"/")[0]
    return found
