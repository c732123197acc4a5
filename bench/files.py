"""Noticing that nothing changed, against `git status`; hashing everything, against `sha256sum`."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from measure import Figure, Subject, alone, compared, interleave, scratch_folder

from holdfast import FileTracker

TOPIC = "files"
NUMBER = 10_000
SIZE = 10_000


def run(quick: bool) -> list[Figure]:
    with scratch_folder() as folder:
        paths = _make_tree(folder)
        return _measure(folder, paths, repetitions=5 if quick else 25)


def _make_tree(folder: Path) -> list[str]:
    paths = [f"part{number % 100}/file{number}.txt" for number in range(NUMBER)]
    for number in range(100):
        (folder / f"part{number}").mkdir()
    for number, path in enumerate(paths):
        (folder / path).write_bytes(f"{number:>99}\n".encode() * (SIZE // 100))
    author = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
    for arguments in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "Start"), ("status",)):
        subprocess.run(["git", "-C", folder, *arguments], check=True, stdout=subprocess.DEVNULL)
    return paths


def _measure(folder: Path, paths: list[str], repetitions: int) -> list[Figure]:
    names = "\0".join(paths).encode()
    # An hour on, all stamps are old enough to be believed, as they are on a tree that is at rest.
    snapshot = FileTracker.create_snapshot(paths, root=folder, clock=lambda: time.time() + 3600)

    def unchanged() -> None:
        assert FileTracker.detect_changes(snapshot, root=folder) == []

    def git_status() -> None:
        done = subprocess.run(
            ["git", "-C", folder, "status", "--porcelain"], stdout=subprocess.PIPE, check=True
        )
        assert done.stdout == b""

    def sha256sum() -> None:
        subprocess.run(
            ["xargs", "-0", "sha256sum"], input=names, cwd=folder, stdout=subprocess.DEVNULL, check=True
        )

    status, detect = interleave(
        [Subject("git status", git_status), Subject("detect_changes, 10,000 unchanged", unchanged)],
        repetitions,
    ).values()
    peer, create = interleave(
        [
            Subject("sha256sum", sha256sum),
            Subject(
                "create_snapshot, 10,000 of 10 kB",
                lambda: FileTracker.create_snapshot(paths, root=folder),
            ),
        ],
        max(3, repetitions // 3),
        warmup=1,
    ).values()
    return [
        alone(TOPIC, status),
        compared(TOPIC, detect, status, 1.5),
        alone(TOPIC, peer),
        compared(TOPIC, create, peer, 1.3),
    ]
