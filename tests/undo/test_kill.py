"""`kill -9` inside every side-car command, at every fault point: the next command recovers."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fork_server import start_script
from holdfast.project.trust import Trust
from holdfast.testing import points_passed
from holdfast.undo.transactions import SideCar

from . import dying
from .trees import git, git_folder_of, new_project, tree_of

RESTORING = [
    "object", "written", "promised", "published", "intended", "staged", "swapped", "aside", "fetched",
    "set-aside", "step",
]  # fmt: skip
POINTS = {
    "begin": ["object", "written", "promised", "published"],
    "watch": ["object", "written", "promised", "published", "watching"],
    "record": ["object", "written", "promised", "published"],
    "write": ["object", "written", "promised", "published", "watching", "staged", "swapped", "exchanged"],
    "write over": [
        "object",
        "written",
        "promised",
        "published",
        "watching",
        "staged",
        "swapped",
        "set-aside",
        "exchanged",
    ],
    "go on": ["object", "written", "promised", "published"],
    "take up": ["object", "written", "promised", "published", "watching"],
    "finish": ["object", "written", "promised", "published"],
    "commit": ["object", "written", "promised", "published"],
    "undo": [*RESTORING],
    "rollback": [*RESTORING],
    "collect": ["object", "repacked"],
}
CASES = [(name, point, after) for name, points in POINTS.items() for point in points for after in (0, 1)]


@pytest.fixture(scope="module")
def prepared() -> Iterator[Path]:
    project = new_project()
    dying.prepare(project)
    yield project
    shutil.rmtree(project.parent)


@pytest.mark.parametrize("name", POINTS)
def test_these_are_all_the_points(name: str, prepared: Path, tmp_path: Path) -> None:
    project = copy_of(prepared, tmp_path)
    with dying.opened(project) as sidecar:
        sidecar.transactions()
        with points_passed() as seen:
            dying.COMMANDS[name](sidecar)
    assert seen == {f"sidecar.{point}" for point in POINTS[name]}


@pytest.mark.some_of("after")
@pytest.mark.parametrize(("name", "point", "after"), CASES)
def test_killed(name: str, point: str, after: int, prepared: Path, tmp_path: Path) -> None:
    untouched = copy_of(prepared, tmp_path / "untouched")
    finished = copy_of(prepared, tmp_path / "finished")
    project = copy_of(prepared, tmp_path / "killed")
    with dying.opened(finished) as sidecar:
        dying.COMMANDS[name](sidecar)
    was_killed = run_and_kill(project, name, f"sidecar.{point}", after)
    assert was_killed or after > 0  # not every point is passed twice
    with dying.opened(project) as sidecar:
        found = {one.id: one for one in sidecar.transactions()}
        assert tree_of(project) in (tree_of(untouched), tree_of(finished))
        assert list((sidecar.folder / "stage").iterdir()) == []
        assert not (sidecar.folder / "kept").exists()
        done = tree_of(project) == tree_of(finished)
        if name == "rollback":
            assert found["tx"].status == ("rolled-back" if done else "in-progress")
        if name in ("undo", "rollback") and done:
            sidecar.undo(found["tx"].entries[-1].id)  # nothing is gone, however large
            assert tree_of(project) == tree_of(untouched)
            assert sidecar.all_set_aside() == []
            return
        if not was_killed:
            return
        repeat(sidecar, name)
        assert tree_of(project) == tree_of(finished)
    assert git_folder_of(project) == git_folder_of(untouched)
    git(project, f"--git-dir={project}/.holdfast/sidecar", "fsck", "--strict", "--no-dangling")


def repeat(sidecar: SideCar, name: str) -> None:
    """The same command once more: it may have been done already, and says so then."""
    found = {one.id: one for one in sidecar.transactions()}
    if name == "begin" and "third" in found:
        return
    if name in ("commit", "finish") and found["tx"].status == "committed":
        return
    if name in ("record", "go on") and len(found["tx"].changes) == 2:
        return
    if name in ("write", "write over") and found["other"].changes:
        return
    dying.COMMANDS[name](sidecar)


def copy_of(project: Path, folder: Path) -> Path:
    copy = Path(shutil.copytree(project, folder / "project", symlinks=True))
    Trust().accept(str(copy))
    return copy


def run_and_kill(project: Path, name: str, point: str, after: int) -> bool:
    with start_script(dying.__file__, project, name, point, after, stderr=subprocess.PIPE) as process:
        _, said = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode != 0
