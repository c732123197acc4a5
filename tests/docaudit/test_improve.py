"""An improvement run: killed anywhere and resumed, undone, changed under (E4, E5, E7, E8)."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fork_server import start_script
from holdfast.base.errors import ConflictError
from holdfast.docaudit.improve import accept_all
from holdfast.undo.transactions import SideCar

from . import improving
from .improving import DOCUMENTED, FILES, Scripted, begin, contents, go_on


@pytest.fixture
def project(tmp_path: Path) -> Path:
    improving.make_project(tmp_path)
    return tmp_path


@pytest.fixture
def sidecar(project: Path) -> Iterator[SideCar]:
    with SideCar(project) as opened:
        yield opened


def run_and_kill(project: Path, point: str, after: int, what: str = "improve") -> bool:
    with start_script(improving.__file__, project, point, after, what, stderr=subprocess.PIPE) as process:
        _, said = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode != 0


SIDECAR = ("watching", "object", "staged", "swapped", "exchanged", "written", "promised", "published")
POINTS = ["docs.pending", "docs.written", "docs.committed", *(f"sidecar.{name}" for name in SIDECAR)]


@pytest.mark.some_of("after")
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("after", [0, 1])
def test_killed_anywhere_and_resumed(project: Path, point: str, after: int) -> None:
    with SideCar(project) as opened:
        begin(project, opened)
    was_killed = run_and_kill(project, point, after)
    assert was_killed or point == "docs.committed"  # which is passed once
    with SideCar(project) as opened:
        session, _ = go_on(project, opened)
        proposer = Scripted()
        assert accept_all(session, proposer) == {}
        session.finish()
        assert contents(project) == DOCUMENTED
        assert [item.outcome for item in session.plan] == ["accepted"] * 3
        assert all(item.change_id for item in session.plan)
        assert session.state.completed_at is not None
        assert list((opened.folder / "stage").iterdir()) == []
        assert not (opened.folder / "kept").exists()
        for _ in range(3):
            session.undo()
        assert contents(project) == FILES


@pytest.mark.parametrize("point", ["docs.undone", "sidecar.intended", "sidecar.swapped", "sidecar.promised"])
def test_killed_in_an_undo_and_resumed(project: Path, point: str) -> None:
    with SideCar(project) as opened:
        session = begin(project, opened)
        proposer = Scripted()
        for _ in range(2):
            item = session.current
            assert item is not None
            text = session.propose(item, proposer).text
            assert text is not None
            session.accept(item, text)
    assert run_and_kill(project, point, 0, "undo")
    with SideCar(project) as opened:
        session, notices = go_on(project, opened)
        reopened = session.done == 1
        assert reopened == any("undone in the meantime" in line for line in notices)
        accept_all(session, Scripted())
        assert contents(project) == DOCUMENTED


def test_undoing_keeps_what_was_added_elsewhere_in_the_file(project: Path, sidecar: SideCar) -> None:
    session = begin(project, sidecar)
    accept_all(session, Scripted())
    path = project / "a.py"
    path.write_text(path.read_text() + "# mine\n")
    for _ in range(3):
        session.undo()
    assert path.read_text() == FILES["a.py"] + "# mine\n"


def test_an_undo_that_would_lose_something_is_refused(project: Path, sidecar: SideCar) -> None:
    session = begin(project, sidecar)
    accept_all(session, Scripted())
    path = project / "b.js"
    path.write_text("/** My own words. */\r\nfunction third() {}\r\n")
    assert max(session.plan, key=lambda item: item.step).filepath == "b.js"
    with pytest.raises(ConflictError, match="without losing changes"):
        session.undo()
    assert path.read_text() == "/** My own words. */\nfunction third() {}\n"
    assert session.done == 3


def test_two_processes_on_one_session(project: Path, sidecar: SideCar) -> None:
    """The second is told before it has written anything."""
    first = begin(project, sidecar)
    second, _ = go_on(project, sidecar)
    item = first.current
    assert item is not None
    first.skip(item)
    with pytest.raises(ConflictError, match="changed by another process"):
        second.accept(item, "Text.")
    assert contents(project) == FILES


def test_the_session_alone_tells_where_one_stands(project: Path, sidecar: SideCar) -> None:
    session = begin(project, sidecar)
    names = [item.name for item in session.plan]
    assert session.current is not None
    session.skip(session.current)
    again, notices = go_on(project, sidecar)
    assert notices == []
    assert again.current is not None
    assert (again.current.name, again.done) == (names[1], 1)
    assert again.undo() is not None
    assert again.current.name == names[0]
    assert again.undo() is None
