from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast import IncrementalPauseManager, SessionPauseManager
from holdfast.base.errors import HeldElsewhereError, InvalidInputError
from holdfast.journal.log import NotActiveError
from holdfast.project.settings import Settings
from holdfast.project.trust import note_start
from holdfast.sessions.contexts import asides_since, newest_with_work
from holdfast.sessions.pause import open_store
from holdfast.sessions.threads import threads_in
from holdfast.store.session_files import SessionFiles
from holdfast.testing import FixedClock

NAME = "session-20260106-120000"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    project = tmp_path / "project"
    project.mkdir()
    return Settings(project=project, home=tmp_path / "home", db=str(tmp_path / "home" / "holdfast.db"))


@pytest.fixture
def manager(settings: Settings, clock: FixedClock) -> IncrementalPauseManager:
    return IncrementalPauseManager(settings=settings, clock=clock)


def names(manager: IncrementalPauseManager) -> set[str]:
    return {path.name for path in manager.layout.sessions.iterdir() if not path.name.startswith(".")}


def test_the_whole_path(manager: IncrementalPauseManager, clock: FixedClock) -> None:
    assert not manager.is_pause_active()
    assert manager.start_incremental_pause(0.90, {"tokens": 180_000}) == NAME
    clock.advance(60)
    manager.append_action("tool_call", {"tool": "Read", "path": "/src/main.py"}, 0.91)
    clock.advance(30.5)
    manager.append_action("assistant_response", {"summary": "done"}, 0.93)
    assert manager.get_pause_summary() == {
        "session_id": NAME,
        "action_count": 3,
        "duration_seconds": 90,
        "context_range": (0.90, 0.93),
        "pause_started_at": "2026-01-06T12:00:00.000Z",
        "last_action_type": "assistant_response",
        "last_updated": "2026-01-06T12:01:30.500Z",
    }
    path = manager.layout.sessions / f"{NAME}.json"
    assert manager.finalize_pause() == path
    assert names(manager) == {
        "LATEST-SESSION.txt",
        f"{NAME}.json",
        f"{NAME}.yaml",
        f"{NAME}.md",
        f"{NAME}-incremental.jsonl",
    }
    assert not manager.is_pause_active()
    document = json.loads(path.read_bytes())
    assert document["context_usage"] == {"tokens_used": 186_000, "tokens_total": 200_000, "percentage": 93.0}
    pause = dict(document["incremental_pause"])
    assert pause["actions_summary"][1] == {"type": "tool_call", "timestamp": "2026-01-06T12:01:00.000Z"}
    del pause["actions_summary"]
    assert [(one["type"], one["text"]) for one in pause.pop("recorded")] == [
        ("pause_started", "tokens: 180000"),
        ("assistant_response", "done"),
        ("tool_call", "Read (path: /src/main.py)"),
    ]
    assert pause == {
        "enabled": True,
        "action_count": 4,
        "duration_seconds": 90,
        "context_range": [0.90, 0.93],
        "tool_calls": 1,
        "said_dropped": 0,
        "others_dropped": 0,
        "agent_session": None,
        "skipped_lines": 0,
    }
    assert yaml.safe_load(path.with_suffix(".yaml").read_text(encoding="utf-8")) == document


def test_the_archive_holds_every_action_and_ends_with_the_closing_one(
    manager: IncrementalPauseManager,
) -> None:
    manager.start_incremental_pause(0.90, {})
    manager.append_action("user_message", {"message": "Grüße\n你好"}, 0.92)
    manager.finalize_pause()
    lines = (manager.layout.sessions / f"{NAME}-incremental.jsonl").read_text(encoding="utf-8").splitlines()
    actions = [json.loads(line) for line in lines]
    assert [action["type"] for action in actions] == ["pause_started", "user_message", "pause_finalized"]
    assert [list(action) for action in actions] == [
        ["type", "timestamp", "session_id", "data", "context_percentage"]
    ] * 3
    assert actions[1]["data"] == {"message": "Grüße\n你好"}
    assert actions[2]["data"]["action_count"] == 3
    assert actions[2]["context_percentage"] == 0.92


def test_the_summary_of_actions_holds_the_last_ten(manager: IncrementalPauseManager) -> None:
    manager.start_incremental_pause(0.90, {})
    for _ in range(30):
        manager.append_action("tool_call", {"tool": "Bash"}, 0.95)
    path = manager.finalize_pause()
    assert path is not None
    pause = json.loads(path.read_bytes())["incremental_pause"]
    assert pause["action_count"] == 32
    assert [action["type"] for action in pause["actions_summary"]] == ["tool_call"] * 9 + ["pause_finalized"]


def test_finalising_without_a_snapshot_archives_the_journal_alone(manager: IncrementalPauseManager) -> None:
    manager.start_incremental_pause(0.90, {})
    path = manager.finalize_pause(create_full_snapshot=False)
    assert path == manager.layout.sessions / f"{NAME}-incremental.jsonl"
    assert names(manager) == {f"{NAME}-incremental.jsonl"}


def test_nothing_active_is_none_false_or_a_clear_error(manager: IncrementalPauseManager) -> None:
    assert manager.get_pause_summary() is None
    assert manager.finalize_pause() is None
    assert manager.discard_pause() is False
    assert manager.get_recorded_actions() == []
    with pytest.raises(NotActiveError):
        manager.append_action("tool_call", {}, 0.9)


def test_discarding_leaves_nothing_behind(manager: IncrementalPauseManager) -> None:
    manager.start_incremental_pause(0.90, {})
    assert manager.discard_pause() is True
    assert names(manager) == set()


def test_a_second_start_is_refused_and_the_first_goes_on(manager: IncrementalPauseManager) -> None:
    manager.start_incremental_pause(0.90, {})
    with pytest.raises(HeldElsewhereError, match=NAME):
        manager.start_incremental_pause(0.95, {})
    assert len(manager.get_recorded_actions()) == 1


@pytest.mark.parametrize(
    ("action", "data", "share"),
    [
        ("reboot", {}, 0.9),
        ("tool_call", {"x": object()}, 0.9),
        ("tool_call", {"x": float("nan")}, 0.9),
        ("tool_call", [], 0.9),
        ("tool_call", {}, 90),
    ],
)
def test_a_bad_action_is_refused_and_nothing_is_written(
    manager: IncrementalPauseManager, action: str, data: dict[str, Any], share: float
) -> None:
    manager.start_incremental_pause(0.90, {})
    before = manager.layout.journal.read_bytes()
    with pytest.raises(InvalidInputError):
        manager.append_action(action, data, share)
    assert manager.layout.journal.read_bytes() == before


def test_twenty_pauses_in_one_second_are_twenty_sessions(settings: Settings, clock: FixedClock) -> None:
    manager = IncrementalPauseManager(settings=settings, clock=clock)
    paths = set[Path | None]()
    for _ in range(20):
        manager.start_incremental_pause(0.90, {})
        paths.add(manager.finalize_pause())
    assert len(paths) == 20
    assert len(SessionPauseManager(settings=settings).list_sessions()) == 20
    with open_store(settings) as store:
        (workflow,) = store.workflows()
        assert [line.session_number for line in store.snapshots(workflow.id)] == list(range(1, 21))
    latest = (manager.layout.sessions / "LATEST-SESSION.txt").read_text().strip()
    assert latest == f"{NAME}-20"


def test_the_name_of_a_wind_down_going_on_is_nobody_elses(
    settings: Settings, manager: IncrementalPauseManager, clock: FixedClock
) -> None:
    """A pause of the same second got it; the agent that wound down took that for its own afterwards."""
    assert manager.start_incremental_pause(0.90, {}) == NAME
    pauses = SessionPauseManager(settings=settings, clock=clock)
    assert pauses.create_pause_session("lunch") == f"{NAME}-2"
    path = manager.finalize_pause()
    assert path is not None
    assert path.stem == NAME


def test_damage_inside_the_journal_costs_only_the_damaged_lines(manager: IncrementalPauseManager) -> None:
    manager.start_incremental_pause(0.90, {})
    with manager.layout.journal.open("ab") as file:
        file.write(b"\x00" * 50 + b"\n" + b'{"half": \n')
    manager.append_action("tool_call", {"tool": "Read"}, 0.94)
    path = manager.finalize_pause()
    assert path is not None
    pause = json.loads(path.read_bytes())["incremental_pause"]
    assert (pause["action_count"], pause["skipped_lines"], pause["context_range"]) == (3, 2, [0.90, 0.94])


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b'{"type": "pause_star', b"\n\n"])
def test_a_journal_without_one_whole_line_can_still_be_finalised(
    manager: IncrementalPauseManager, content: bytes
) -> None:
    note_start(str(manager.layout.ensure().folder), "session-20260106-115820")
    manager.layout.journal.write_bytes(content)
    os.utime(manager.layout.journal, (1_767_700_700, 1_767_700_700))
    assert manager.get_pause_summary() is not None
    path = manager.finalize_pause()
    assert path is not None
    assert path.name == "session-20260106-115820.json"
    archive = path.with_name("session-20260106-115820-incremental.jsonl")
    assert archive.read_bytes().startswith(content.rstrip(b"\n"))


def test_the_database_being_away_costs_nothing(settings: Settings, clock: FixedClock, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    manager = IncrementalPauseManager(settings=settings, clock=clock)
    for _ in range(2):
        manager.start_incremental_pause(0.90, {})
        assert manager.finalize_pause() is not None
        clock.advance(100)
    (tmp_path / "home").unlink()
    manager.start_incremental_pause(0.90, {})
    manager.finalize_pause()
    numbers = [
        json.loads((manager.layout.sessions / f"{name}.json").read_bytes())["session_number"]
        for name in SessionPauseManager(settings=settings).list_sessions()
    ]
    assert len(numbers) == 3


@pytest.mark.parametrize(
    "ending", [{}, {"reason": "nothing done"}, {"trigger": "crash", "reason": "it died"}]
)
def test_one_in_which_nothing_was_recorded_hides_no_handover(
    settings: Settings, clock: FixedClock, manager: IncrementalPauseManager, ending: dict[str, Any]
) -> None:
    manager.start_incremental_pause(0.90, {"conversation": "c"})
    manager.append_action("user_message", {"text": "the port must be 5433"}, 0.91)
    manager.finalize_pause(reason="full")
    clock.advance(100)
    empty = manager.start_incremental_pause(0.90, {"conversation": "c"})
    manager.finalize_pause(**ending)
    assert SessionFiles(manager.layout.sessions).latest() == NAME
    with open_store(settings) as store:
        flows = [flow.id for flow in store.workflows()]
        newest = newest_with_work(store, flows)
        assert newest is not None
        assert newest.session_id == NAME
        assert [one.sessions for one in threads_in(store, settings.worktree)] == [(NAME,)]
        told = asides_since(store, newest)
        assert [line.session_id for flow in flows for line in store.snapshots(flow)].count(empty) == 1
    assert ("nothing done" in "".join(told)) == (ending.get("reason") == "nothing done")


@pytest.mark.parametrize("begun", [{"conversation": "c"}, {"agent_session": "c"}, {}])
def test_a_session_made_of_it_tells_from_the_first_whose_it_is(
    settings: Settings, manager: IncrementalPauseManager, begun: dict[str, Any]
) -> None:
    """A session that ended in that moment took it for nobody's, and handed it over as its own."""
    manager.start_incremental_pause(0.90, begun)
    manager.append_action("user_message", {"text": "the port must be 5433"}, 0.91)
    if not begun:
        manager.belongs_to("c")
    manager.finalize_pause()
    with open_store(settings) as store:
        newest = newest_with_work(store, [flow.id for flow in store.workflows()])
    assert newest is not None
    assert newest.conversation == "c"


def test_a_pause_without_a_wind_down(settings: Settings, clock: FixedClock) -> None:
    pauses = SessionPauseManager(settings=settings, clock=clock)
    name = pauses.create_pause_session("lunch")
    document = pauses.load_session(name)
    assert (document["pause_reason"], document["trigger"], document["incremental_pause"]) == (
        "lunch",
        "pause",
        None,
    )


def test_a_wind_down_whose_process_is_gone_is_an_orphan_until_somebody_takes_it_over(
    settings: Settings,
) -> None:
    program = (
        "import os, sys; from holdfast import IncrementalPauseManager\n"
        "IncrementalPauseManager(sys.argv[1]).start_incremental_pause(0.9, {})\n"
        "os.kill(os.getpid(), 9)\n"
    )
    environ = {**os.environ, "HOLDFAST_HOME": str(settings.home)}
    subprocess.run([sys.executable, "-c", program, str(settings.project)], env=environ, check=False)
    manager = IncrementalPauseManager(settings=settings)
    assert manager.is_orphaned()
    manager.continue_pause()
    assert not manager.is_orphaned()
    manager.append_action("system_event", {"event": "went on"}, 0.93)
    assert len(manager.get_recorded_actions()) == 2


def test_a_second_wind_down_with_a_taken_name_does_not_write_over_the_first(
    manager: IncrementalPauseManager, clock: FixedClock
) -> None:
    manager.start_incremental_pause(0.90, {})
    journal = manager.layout.journal.read_bytes()
    first = manager.finalize_pause()
    assert first is not None
    before = first.read_bytes()
    note_start(str(manager.layout.folder), first.stem)
    manager.layout.journal.write_bytes(journal)  # a copy restored from a backup
    second = manager.finalize_pause()
    assert second is not None
    assert second != first
    assert first.read_bytes() == before
