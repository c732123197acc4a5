"""The one pause, cut off by kills: what the database took is finished, what it did not never happened."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.harness import Place
from fork_server import start_script
from holdfast.base.errors import StorageError
from holdfast.model.workflow import Workflow
from holdfast.sessions.pause import FolderWork, SessionPauseManager, open_store, pause_session
from holdfast.sessions.transitions import Facts, Settled
from holdfast.store.session_files import Answer
from sessions import dying

POINTS = ["pause.staged", "pause.decided", "pause.moving", "pause.placed"]
NAMED = Facts(reason="by hand", session_id="session-20260106-120000")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def killed(place: Place, point: str, *arguments: str | Path) -> None:
    """The program, which gets a SIGKILL at that point."""
    how: Any = {"cwd": place.project, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start_script(dying.__file__, point, *arguments, env=place.environment, **how) as process:
        out, err = process.communicate()
    assert process.returncode == -signal.SIGKILL, (out, err)


def assert_one_whole_session(place: Place, snapshots: int = 1) -> str:
    """In the database and in the folder, with nothing half-done beside it; its name."""
    found = place.json("snapshot", "list")
    assert len(found) == snapshots
    name = found[0]["session_id"]
    hidden = [path.name for path in place.sessions.iterdir() if path.name.startswith((".s", ".c", ".u"))]
    assert (place.latest(), hidden) == (f"{name}\n", [])
    assert json.loads((place.sessions / f"{name}.json").read_bytes())["id"] == found[0]["id"]
    return name


@pytest.mark.parametrize("point", POINTS)
def test_a_wind_down_cut_off_while_it_is_finalised_becomes_one_session(place: Place, point: str) -> None:
    name = place.started("tool_call", "tool_call")
    killed(place, point, "winddown", "finalize")
    place.run("status")
    if place.journal.exists():
        assert point == "pause.staged"
        place.ok("winddown", "finalize")
    assert assert_one_whole_session(place) == name
    archive = (place.sessions / f"{name}-incremental.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["type"] for line in archive]
    assert kinds == ["pause_started", "tool_call", "tool_call", "pause_finalized"]


@pytest.mark.parametrize("point", POINTS[1:])
def test_who_reads_the_latest_handover_finishes_what_was_cut_off(place: Place, point: str) -> None:
    """The one before it was given, though the database had the newer one."""
    place.paused("user_message", reason="the first")
    place.started("user_message")
    killed(place, point, "winddown", "finalize", "--reason", "the second")
    assert "the second" in place.ok("context", "latest").out


@pytest.mark.parametrize("point", POINTS)
def test_what_was_cut_off_is_finished_by_the_files_alone_while_the_database_is_away(
    place: Place, point: str, tmp_path: Path
) -> None:
    """Whether the database has the pause or not: it is the same snapshot when it is back."""
    name = place.started("tool_call")
    killed(place, point, "winddown", "finalize")
    (tmp_path / "away").write_text("a file where the folder should be")
    place.manager(db=str(tmp_path / "away" / "holdfast.db")).finalize_pause()
    assert not place.journal.exists()
    assert assert_one_whole_session(place) == name
    archive = (place.sessions / f"{name}-incremental.jsonl").read_text()
    assert archive.count('"pause_finalized"') == 1


@pytest.mark.parametrize("point", POINTS)
def test_a_runner_killed_while_it_pauses_loses_nothing(place: Place, point: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "issue: {id: W, title: Work}\npause_every: 1\ntasks:\n"
        "  - {id: a, run: 'echo a >> log'}\n  - {id: b, run: 'echo b >> log', depends_on: [a]}\n"
    )
    killed(place, point, "run", plan)
    before = place.json("status")["workflow"]
    assert before["status"] == ("in_progress" if point == "pause.staged" else "paused")
    assert "✓ Workflow completed" in place.run("resume").out
    assert (place.project / "log").read_text().split() == ["a", "b"]
    assert_one_whole_session(place)
    trigger = place.json("snapshot", "list")[0]["trigger"]
    assert trigger == ("crash" if point == "pause.staged" else "task_complete")


class Forgetful(FolderWork):
    """A database that took the pause and was cut off before it could say so."""

    def commit(self, settled: Settled) -> Answer:
        super().commit(settled)
        raise StorageError("the connection was lost")


def test_an_answer_that_was_lost_is_asked_for_again(place: Place) -> None:
    pauses = SessionPauseManager(settings=place.settings())
    pauses.layout.ensure()
    with pauses.locked(), pytest.raises(StorageError):
        pause_session(pauses.files, Forgetful(pauses.settings, pauses.files, lambda: 0.0), NAMED)
    assert pauses.list_sessions() == []
    assert assert_one_whole_session(place) == NAMED.session_id


def test_a_workflow_that_changes_meanwhile_is_paused_as_it_is_then(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.paused()
    pauses = SessionPauseManager(settings=place.settings())
    commit, seen = FolderWork.commit, list[Workflow]()

    def late(work: FolderWork, settled: Settled) -> Answer:
        if not seen:
            seen.append(settled.workflow)
            other = SessionPauseManager(settings=place.settings())
            with open_store(other.settings) as store:
                store.apply(FolderWork(other.settings, other.files, lambda: 2e9).prepared(Facts()).change)
        return commit(work, settled)

    monkeypatch.setattr(FolderWork, "commit", late)
    name = pauses.create_pause_session("second")
    shown = pauses.load_session(name)
    assert shown["session_number"] == seen[0].session_count + 1
    assert [path.name for path in place.sessions.glob(".staging-*")] == []
