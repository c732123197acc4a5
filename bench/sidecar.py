"""Recording a session's change of a file, against the least that git itself can do with one.

`git hash-object -w` stores the blob alone: no before, no tree, no commit, no branch, and it does not
wait for the disk. With `core.fsync` it does, as we do. What it leaves unsynced is put on the disk before
the next one is timed: whoever syncs first would pay for it.

The first look at a large tree, which a session's first turn waits for, against `git status` of the same tree.
What is left to do afterwards, where nobody waits, is timed beside it.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

from measure import Figure, Subject, alone, compared, interleave, make_project, scratch_folder

from holdfast.undo.transactions import SideCar

TOPIC = "sidecar"
BAR = 2.0
FIRST_LOOK_BAR = 3.0
DISK_BAR = 0.1


class _Ours:
    def __init__(self, project: Path) -> None:
        self._file = project / "file.txt"
        self._sidecar = SideCar(project)
        self._transaction = self._sidecar.begin("bench").id
        self._number = itertools.count()

    def prepare(self) -> None:
        self._sidecar.watch(self._transaction, ["file.txt"])
        self._file.write_text(f"{next(self._number)} ours\n" * 200)
        os.sync()

    def record(self) -> None:
        assert self._sidecar.record(self._transaction, "Edit") is not None

    def close(self) -> None:
        self._sidecar.close()


class _Theirs:
    def __init__(self, project: Path, *options: str) -> None:
        self._project = project
        self._command = ["git", *options, "hash-object", "-w", "file.txt"]
        self._number = itertools.count()

    def prepare(self) -> None:
        (self._project / "file.txt").write_text(f"{next(self._number)} theirs\n" * 200)
        os.sync()

    def store(self) -> None:
        subprocess.run(self._command, cwd=self._project, stdout=subprocess.DEVNULL, check=True)


class _Tree:
    """Some thousand lines of code in many files, committed, which nobody has watched yet."""

    def __init__(self, project: Path, files: int) -> None:
        chance = random.Random(1)
        self._project = project
        self.size = 0
        for number in range(files):
            place = project / f"p{number // 5_000:02}" / f"m{number // 50 % 100:02}" / f"f{number:06}.py"
            place.parent.mkdir(parents=True, exist_ok=True)
            lines = (f"def f{one}():\n    return {chance.random()}\n" for one in range(chance.randint(3, 60)))
            self.size += place.write_text(f"# file {number}\n{''.join(lines)}")
        self._git("add", ".")
        self._git("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid", "commit", "-qm", "More")
        time.sleep(3)  # until the stamps of the files can be believed
        self.status()

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self._project, stdout=subprocess.DEVNULL, check=True)

    def status(self) -> None:
        self._git("status", "--porcelain")

    def forget(self) -> None:
        shutil.rmtree(self._project / ".holdfast", ignore_errors=True)
        os.sync()

    def look(self) -> None:
        with SideCar(self._project) as sidecar:
            sidecar.take_up("bench")

    def seen(self) -> None:
        self.forget()
        self.look()
        os.sync()

    def complete(self) -> None:
        with SideCar(self._project) as sidecar:
            sidecar.complete_first_look()

    def disk(self) -> int:
        kept = (self._project / ".holdfast").rglob("*")
        return sum(path.lstat().st_size for path in kept if path.is_file())


def _first_look(folder: Path, files: int, rounds: int) -> list[Figure]:
    tree = _Tree(make_project(folder), files)
    subjects = [
        Subject(f"git status, {files:,} files", tree.status),
        Subject(f"first look, {files:,} files", tree.look, tree.forget),
        Subject("completing it, in the background", tree.complete, tree.seen),
    ]
    status, look, complete = interleave(subjects, rounds, 1).values()
    tree.seen()
    tree.complete()
    share = tree.disk() / tree.size
    return [
        alone(TOPIC, status),
        compared(TOPIC, look, status, FIRST_LOOK_BAR),
        compared(TOPIC, complete, status),
        Figure(TOPIC, "its disk", tree.disk() / 1e6, "MB", against="the tree", ratio=share, bar=DISK_BAR),
    ]


def run(quick: bool) -> list[Figure]:
    with scratch_folder() as folder:
        first_look = _first_look(folder / "large", 10_000 if quick else 100_000, 3 if quick else 15)
        shutil.rmtree(folder / "large")
    with scratch_folder() as folder:
        ours = _Ours(make_project(folder / "ours"))
        plain = _Theirs(make_project(folder / "plain"))
        synced = _Theirs(make_project(folder / "synced"), "-c", "core.fsync=loose-object")
        try:
            subjects = [
                Subject("git hash-object -w", plain.store, plain.prepare),
                Subject("git hash-object -w, synced", synced.store, synced.prepare),
                Subject("record a change", ours.record, ours.prepare),
            ]
            first, second, record = interleave(subjects, 30 if quick else 300).values()
        finally:
            ours.close()
    return [
        alone(TOPIC, first),
        alone(TOPIC, second),
        compared(TOPIC, record, first, BAR),
        compared(TOPIC, record, second),
        *first_look,
    ]
