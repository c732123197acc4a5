"""Recording a session's change of a file, against the least that git itself can do with one.

`git hash-object -w` stores the blob alone: no before, no tree, no commit, no branch, and it does not
wait for the disk. With `core.fsync` it does, as we do. What it leaves unsynced is put on the disk before
the next one is timed: whoever syncs first would pay for it.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

from measure import Figure, Subject, alone, compared, interleave, make_project, scratch_folder

from holdfast.undo.transactions import SideCar

TOPIC = "sidecar"
BAR = 2.0


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


def run(quick: bool) -> list[Figure]:
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
    ]
