"""What a disk may hold after the power went: seen while a block runs, and put back afterwards.

Only what was synced is sure: the content of a file since its last `fsync`, the names in a folder since the
folder's. Whatever else was done may be there or not. So at every step that changes the disk three states are
taken down: only what is sure; all names, and only the content that is sure, as a file system that writes its
journal ahead of the data leaves them; and all names, with some of the content that is not sure. SQLite syncs
by itself, out of our sight: its files are taken as they are, for it promises that a commit is on the disk.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

CHANGES = ("mkdir", "rmdir", "rename", "replace", "unlink", "remove", "link", "ftruncate", "write", "open")
Names = dict[str, int]
"""Of a folder: what its entries are, by inode."""


Live = dict[int, Path]
Keeps = Callable[[str], bool]
"""Whether the disk kept the names of a folder, or the content of a file, that were not synced."""
Entry = tuple[str, int, bytes | None]
"""Path, mode and content; no content is a folder."""
KEEPS: dict[str, Keeps] = {
    "only what is sure": lambda _: False,
    "names before content": lambda what: what == "names",
    "some content": lambda what: what == "names" or random.random() < 0.5,
}


class State(NamedTuple):
    how: str
    acknowledged: tuple[str, ...]
    files: tuple[Entry, ...]


class Disk:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.acknowledged: list[str] = []
        self.opened: dict[int, Path] = {}
        self.states: dict[State, None] = {}
        self._held: list[int] = []
        self._names: dict[int, Names] = {}
        self._contents: dict[int, bytes] = {}
        self._modes: dict[int, int] = {}
        for place, _, files in os.walk(root):
            self._folder_is_synced(Path(place))
            for name in files:
                path = Path(place, name)
                self._contents[path.stat().st_ino] = path.read_bytes()

    def synced(self, descriptor: int) -> None:
        self._held.append(os.dup(descriptor))  # or its inode would be given to another file
        path, found = self.opened[descriptor], os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            self._folder_is_synced(path)
        else:
            assert path.stat().st_ino == found.st_ino, f"{path} was renamed before it was synced"
            self._contents[found.st_ino] = path.read_bytes()

    def _folder_is_synced(self, folder: Path) -> None:
        self._names[folder.stat().st_ino] = self._found(folder)

    def _found(self, folder: Path) -> Names:
        with os.scandir(folder) as entries:
            return {entry.name: entry.inode() for entry in entries}

    def take_down(self) -> None:
        live = {self.root.stat().st_ino: self.root}
        for place, folders, files in os.walk(self.root):
            for path in (Path(place, name) for name in (*folders, *files)):
                found = path.lstat()
                live[found.st_ino], self._modes[found.st_ino] = path, found.st_mode
        for how, keeps in KEEPS.items():
            files = tuple(self._left("", self.root.stat().st_ino, live, keeps))
            self.states[State(how, tuple(self.acknowledged), files)] = None

    def _left(self, prefix: str, folder: int, live: Live, keeps: Keeps) -> Generator[Entry]:
        for name, inode in sorted(self._names_left(folder, live, keeps).items()):
            path, shown = live.get(inode), prefix + name
            if path.is_dir() if path else inode in self._names:  # one that is gone may still be on the disk
                yield shown, self._modes.get(inode, 0o700), None
                yield from self._left(f"{shown}/", inode, live, keeps)
            elif path and (".db" in name or keeps("content")):
                yield shown, self._modes[inode], path.read_bytes()
            else:
                yield shown, self._modes.get(inode, 0o600), self._contents.get(inode, b"")

    def _names_left(self, folder: int, live: Live, keeps: Keeps) -> Names:
        now = self._found(live[folder]) if folder in live else {}
        if folder in live and keeps("names"):
            return now
        sqlites = {name: inode for name, inode in now.items() if ".db" in name}
        return {**self._names.get(folder, {}), **sqlites}

    def put_back(self, state: State) -> None:
        shutil.rmtree(self.root)
        self.root.mkdir(mode=0o700)
        for name, mode, content in state.files:
            path = self.root / name
            if content is None:
                path.mkdir(mode=stat.S_IMODE(mode))
            else:
                path.write_bytes(content)
                path.chmod(stat.S_IMODE(mode))

    def close(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)


@contextmanager
def power_may_go(root: Path) -> Generator[Disk]:
    """Take down what the disk may hold at every step of the block, and at its end."""
    disk = Disk(root)
    with pytest.MonkeyPatch.context() as patch:
        looking = [False]

        def seen(name: str) -> Callable[..., Any]:
            real = getattr(os, name)

            def wrapped(*arguments: Any, **options: Any) -> Any:
                if not looking[0]:
                    looking[0] = True
                    disk.take_down()
                    looking[0] = False
                done = real(*arguments, **options)
                if name == "open":
                    disk.opened[done] = Path(os.fsdecode(arguments[0])).absolute()
                return done

            return wrapped

        def synced(name: str) -> Callable[[int], None]:
            real = getattr(os, name)

            def wrapped(descriptor: int) -> None:
                real(descriptor)
                looking[0] = True
                disk.synced(descriptor)
                looking[0] = False

            return wrapped

        for name in CHANGES:
            patch.setattr(os, name, seen(name))
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, synced(name))
        yield disk
    disk.take_down()
    disk.close()
