"""A bare git repository: objects, one branch a transaction, and nothing checked out, ever.

Objects and branches are written here and not by a git process: a change is four small files, and
four processes would cost several times as much (`docs/decisions/0013-sidecar.md`). The format is git's
own, so every git can read, check and repack it; reading packs and repacking is left to git.
"""

# A change is a handful of small files: `Path` would cost more than they do.
# ruff: noqa: PTH105, PTH110, PTH208

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from holdfast.base.durable import (
    NO_FOLLOW,
    opened,
    private_folder,
    private_folders,
    replace_file,
    sync_folder,
    write_whole,
)
from holdfast.base.errors import ConflictError, DamagedDataError
from holdfast.base.faults import fault_point
from holdfast.base.git import git_command, sealed_environment
from holdfast.project.formats import UNDO_BRANCHES
from holdfast.undo.git import run_git

_CONFIG = b"""[core]
\trepositoryformatversion = 0
\tbare = true
\tlogAllRefUpdates = false
[gc]
\tauto = 0
\tpackRefs = false
"""
_ATTRIBUTES = b"* -text -filter -ident -working-tree-encoding -diff -merge\n"
_OID = re.compile(r"[0-9a-f]{40}")

_TEMPORARY = "tmp_obj_"  # git sweeps what is called so
_FEW = 256
_SMALL = 4 << 20

TreeEntry = tuple[str, bytes, str]
"""Mode, name, object."""


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._objects = folder / "objects"
        self._branches = f"{folder}/{UNDO_BRANCHES}"
        self._written: set[str] = set()
        self.added = 0
        """Bytes that were written since the last `forget`."""
        self._unsynced: dict[str, bytes] = {}
        self._reader: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Make what is missing; HEAD comes last and says that the rest is there."""
        if (self.folder / "HEAD").exists():
            return
        names = ("objects/info", "objects/pack", UNDO_BRANCHES, "info")
        private_folders(*(self.folder / name for name in names))
        replace_file(self.folder / "config", _CONFIG, is_lasting=False)  # restored where it is missing
        replace_file(self.folder / "info" / "attributes", _ATTRIBUTES)
        replace_file(self.folder / "HEAD", b"ref: refs/heads/main\n")

    def _restore_settings(self) -> None:
        """Git obeys what it finds in this folder, so there must be nothing but ours when it starts."""
        place = self.folder / "config"
        if not place.exists() or place.read_bytes() != _CONFIG:
            replace_file(place, _CONFIG)
        (self.folder / "commondir").unlink(missing_ok=True)

    # ── objects ────────────────────────────────────────────────────────────────────────────

    def write(self, kind: str, data: bytes) -> str:
        """Store an object and return its id; durable once `take_unsynced` and its taker are through."""
        oid = object_id(kind, data)
        if oid not in self._written:
            if not os.path.exists(f"{self._objects}/{oid[:2]}/{oid[2:]}"):
                packed = zlib.compress(_header(kind, len(data)) + data, 1)
                self.write_loose(oid, packed)
                self.added += len(packed)
                self._unsynced[oid] = packed
            self._written.add(oid)
        return oid

    def write_loose(self, oid: str, packed: bytes) -> None:
        place = f"{self._objects}/{oid[:2]}/{oid[2:]}"
        temporary = f"{self._objects}/{_TEMPORARY}{os.getpid()}_{time.monotonic_ns()}"
        with opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            write_whole(descriptor, packed)
        fault_point("sidecar.object")
        try:
            os.replace(temporary, place)
        except FileNotFoundError:
            self._place(oid).parent.mkdir(mode=0o700, exist_ok=True)
            os.replace(temporary, place)

    def take_unsynced(self) -> dict[str, bytes]:
        """Objects that a power cut would take, for the caller to keep; many or large ones are synced here."""
        taken, self._unsynced = self._unsynced, {}
        if len(taken) > _FEW or sum(map(len, taken.values())) > _SMALL:
            self.sync(taken)
            return {}
        return taken

    def sync(self, oids: Iterable[str]) -> None:
        """Make these objects survive a power cut. Written long ago, they are on the disk by now."""
        places = [self._place(oid) for oid in oids]
        for place in places:
            with suppress(FileNotFoundError), opened(place, os.O_RDONLY) as descriptor:
                os.fsync(descriptor)  # not found: repacked meanwhile, and git has synced the pack
        for folder in {place.parent for place in places if place.parent.is_dir()} | {self._objects}:
            sync_folder(folder)

    def forget(self) -> None:
        """Another process may have repacked since: believe nothing about what is there."""
        self._written.clear()
        self.added = 0

    def read(self, oid: str) -> bytes:
        place = self._place(oid)
        try:
            content = zlib.decompress(place.read_bytes())
        except FileNotFoundError:
            return self._read_packed(oid)
        except zlib.error as error:
            raise DamagedDataError(f"object {oid} of the side-car is damaged: {error}") from error
        if hashlib.sha1(content, usedforsecurity=False).hexdigest() != oid:
            raise DamagedDataError(f"object {oid} of the side-car is damaged")
        return content.partition(b"\0")[2]

    def has(self, oid: str) -> bool:
        if self._place(oid).exists():
            return True
        try:
            self._read_packed(oid)
        except DamagedDataError:
            return False
        return True

    def _read_packed(self, oid: str) -> bytes:
        if self._reader is None or self._reader.poll() is not None:
            self._restore_settings()
            self._reader = subprocess.Popen(
                git_command(f"--git-dir={self.folder}", "cat-file", "--batch"),
                env=sealed_environment(),
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        source, sink = cast("IO[bytes]", self._reader.stdout), cast("IO[bytes]", self._reader.stdin)
        sink.write(f"{oid}\n".encode())
        sink.flush()
        head = source.readline().split()
        if len(head) != 3:
            raise DamagedDataError(
                f"object {oid} of the side-car is missing",
                hint="run `git fsck` in .holdfast/sidecar for details",
            )
        data = source.read(int(head[2]))
        source.read(1)
        return data

    def close(self) -> None:
        if self._reader is not None:
            self._reader.communicate()
            self._reader = None

    def _place(self, oid: str) -> Path:
        return self._objects / oid[:2] / oid[2:]

    # ── trees, commits, branches ───────────────────────────────────────────────────────────

    def write_tree(self, entries: Iterable[TreeEntry]) -> str:
        ordered = sorted(entries, key=lambda entry: entry[1])
        return self.write(
            "tree",
            b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(oid) for mode, name, oid in ordered),
        )

    def write_commit(self, tree: str, parent: str | None, seconds: float, message: str) -> str:
        who = f"Holdfast <holdfast@localhost> {int(seconds)} +0000"
        lines = [f"tree {tree}", *([f"parent {parent}"] if parent else [])]
        lines += [f"author {who}", f"committer {who}", "", message, ""]
        return self.write("commit", "\n".join(lines).encode())

    def read_commit(self, oid: str) -> tuple[str | None, str]:
        """Parent and message."""
        head, _, message = self.read(oid).partition(b"\n\n")
        parent = re.search(rb"^parent ([0-9a-f]{40})$", head, re.MULTILINE)
        return (parent[1].decode() if parent else None), message.decode()

    def branches(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._branches) if not name.startswith("."))
        except FileNotFoundError:
            return []

    def branch(self, name: str) -> str | None:
        try:
            with opened(f"{self._branches}/{name}", os.O_RDONLY | NO_FOLLOW) as descriptor:
                text = os.read(descriptor, 100).decode("ascii", "replace").strip()
        except FileNotFoundError:
            return None
        if not _OID.fullmatch(text):
            raise DamagedDataError(f"branch {name} of the side-car is damaged")
        return text

    def move_branch(self, name: str, old: str | None, new: str) -> None:
        """From `old` to `new`; anything else there means that somebody else was at work."""
        now = self.branch(name)
        if now == new:
            return
        if now != old:
            raise ConflictError(f"branch {name} of the side-car was moved by another process")
        self.set_branch(name, new)

    def set_branch(self, name: str, oid: str) -> None:
        """Not synced: the state remembers where every branch belongs."""
        temporary = f"{self._branches}/.{name}.{os.getpid()}.tmp"
        with opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
            write_whole(descriptor, f"{oid}\n".encode())
        os.replace(temporary, f"{self._branches}/{name}")

    def delete_branch(self, name: str) -> None:
        (self.folder / UNDO_BRANCHES / name).unlink(missing_ok=True)
        sync_folder(self.folder / UNDO_BRANCHES)

    # ── room ───────────────────────────────────────────────────────────────────────────────

    def size(self) -> int:
        return sum(path.stat().st_size for path in _files(self._objects))

    def repack(self, keep: Iterable[str]) -> None:
        """Put all that is reachable into one pack, and drop the rest; `keep` are blobs no branch holds."""
        tree = self.write_tree(("100644", oid.encode(), oid) for oid in set(keep))
        self.sync(self.take_unsynced())
        private_folder(self.folder / "refs" / "holdfast")
        replace_file(self.folder / "refs" / "holdfast" / "known", f"{tree}\n".encode())
        self.close()
        self._restore_settings()
        run_git(self.folder, "repack", "-a", "-d", "-q")
        fault_point("sidecar.repacked")
        run_git(self.folder, "prune", "--expire=now")
        self._written.clear()


def blob_id(data: bytes) -> str:
    return object_id("blob", data)


def object_id(kind: str, data: bytes) -> str:
    return hashlib.sha1(_header(kind, len(data)) + data, usedforsecurity=False).hexdigest()


def _header(kind: str, size: int) -> bytes:
    return f"{kind} {size}\0".encode()


def _files(folder: Path) -> Iterator[Path]:
    for path, _, names in os.walk(folder):
        for name in names:
            yield Path(path) / name
