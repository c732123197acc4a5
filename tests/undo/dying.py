"""One side-car command in a process that is killed at a fault point; for `test_kill`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from holdfast.base.process import identify
from holdfast.testing import die_at
from holdfast.undo.transactions import SideCar, UndoLimits

ALIVE = identify(1)
"""A process that outlives every test; watches of the killed one are another test's matter."""

LARGE = 2_000


def opened(project: Path | str) -> SideCar:
    """With a limit that a small test can go beyond."""
    return SideCar(project, limits=UndoLimits(largest_file=LARGE - 1))


def prepare(project: Path) -> None:
    """A session with one change recorded, in large files too, and another one under way."""
    (project / "grown").write_text("small\n")
    (project / "old").write_bytes(b"old".ljust(LARGE))
    with opened(project) as sidecar:
        sidecar.begin("s1", transaction_id="tx")
        sidecar.watch("tx", owner=ALIVE)
        (project / "a").write_text("agent\n")
        (project / "b").unlink()
        (project / "d" / "new").write_text("agent\n")
        (project / "grown").write_bytes(b"grown".ljust(LARGE))
        (project / "made").write_bytes(b"made".ljust(LARGE))
        (project / "old").rename(project / "renamed")
        sidecar.record("tx", "first")
        sidecar.begin("s2", transaction_id="other")
        sidecar.watch("tx", ["d/c"], owner=ALIVE)
        (project / "d" / "c").write_text("agent, later\n")


def change_id(sidecar: SideCar) -> str:
    return sidecar.transaction("tx").changes[0].id


COMMANDS: dict[str, Callable[[SideCar], object]] = {
    "begin": lambda sidecar: sidecar.begin("s3", transaction_id="third"),
    "watch": lambda sidecar: sidecar.watch("other", owner=ALIVE),
    "record": lambda sidecar: sidecar.record("tx", "second"),
    "write": lambda sidecar: sidecar.write("other", "a", b"agent\n", b"agent\nwritten\n"),
    "write over": lambda sidecar: sidecar.write("other", "made", b"made".ljust(LARGE), b"small\n"),
    "go on": lambda sidecar: sidecar.record("tx", "second", keeps_watching=True),
    "take up": lambda sidecar: sidecar.take_up("fourth", owner=ALIVE),
    "finish": lambda sidecar: sidecar.finish("tx", "second"),
    "commit": lambda sidecar: sidecar.commit("tx"),
    "undo": lambda sidecar: sidecar.undo(change_id(sidecar)),
    "rollback": lambda sidecar: sidecar.rollback("tx"),
    "collect": lambda sidecar: sidecar.collect(),
}

if __name__ == "__main__":
    folder, name, point, after = sys.argv[1:]
    with opened(folder) as sidecar:
        if name == "undo":
            change_id(sidecar)  # so that the trap is in the undo itself
        die_at(point, after=int(after))
        COMMANDS[name](sidecar)
