"""The power goes at any step: what was acknowledged is there, and the rest as if it had never been begun."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from cli.harness import IDENTITY, Place
from crash.power import Disk, power_may_go
from holdfast.cli.main import run
from holdfast.hooks.fast.notes import ensure_folder
from holdfast.journal import log
from holdfast.project.trust import Trust
from holdfast.store.session_files import SessionFiles
from soak import repeated
from store.faults import crash_at
from undo import dying
from undo.trees import new_project, tree_of


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(log, "_sync_data", lambda descriptor: os.fsync(descriptor))  # noqa: PLW0108 - the one of then


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "root").mkdir()
    return Place(tmp_path / "root")


@pytest.mark.some_of("first")
@pytest.mark.parametrize("first", ["command", "hook"])
def test_a_wind_down(place: Place, first: str) -> None:
    with power_may_go(place.root) as disk:
        if first == "hook":
            ensure_folder(f"{place.project}/.holdfast/state/hooks/a-session")
        manager = place.manager()
        name = manager.start_incremental_pause(0.9, {})
        disk.acknowledged.append("started")
        for number in range(2):
            manager.append_action("tool_call", {"tool": f"step-{number}"}, 0.91)
            disk.acknowledged.append(f"step-{number}")
        assert manager.finalize_pause() is not None
        disk.acknowledged.append("paused")
        place.manager().start_incremental_pause(0.9, {})
        place.manager().discard_pause()
        disk.acknowledged.append("discarded")
    check(place, disk, name)


def check(place: Place, disk: Disk, name: str) -> None:
    states = list(disk.states)
    for state in random.sample(states, min(len(states), repeated(200, least=4))):
        disk.put_back(state)
        found = recovered(place)
        told = (
            state.how,
            state.acknowledged,
            found,
            [one[0] for one in state.files if "/.git/" not in one[0]],
        )
        assert set(state.acknowledged) <= found | {"discarded"}, told
        if "discarded" in state.acknowledged:
            assert not place.manager().is_pause_active(), told
        if "paused" in state.acknowledged:
            assert place.latest() == f"{name}\n", told


def recovered(place: Place) -> set[str]:
    """What the next command finds."""
    found: set[str] = set()
    result = place.run("status", "--json")
    assert (result.code, result.err) == (0, ""), result
    workflow = result.data["workflow"]
    if workflow and workflow["latest_snapshot"]:
        found |= {"paused", "started"}
    journals = [place.journal, *place.sessions.glob("*-incremental.jsonl")]
    for path in journals:
        if path.exists():
            found.add("started")
            found |= {action.data["tool"] for action in log.Reader(path) if action.type == "tool_call"}
    assert SessionFiles(place.sessions).latest() is None or "paused" in found
    return found


@pytest.mark.some_of("name")
@pytest.mark.parametrize("name", ["record", "write", "write over", "commit", "undo", "rollback"])
def test_a_command_of_undo(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's files are as before or as after; no file is empty or half of one and half of the other."""
    new = new_project()
    dying.prepare(new)
    project = Path(shutil.move(new, tmp_path / "root" / "project"))
    Trust().accept(str(project))
    before = tree_of(project)
    with power_may_go(tmp_path / "root") as disk, dying.opened(project) as sidecar:
        dying.COMMANDS[name](sidecar)
        disk.acknowledged.append("done")
    after = tree_of(project)
    states = list(disk.states)
    for number, state in enumerate(random.sample(states, min(len(states), repeated(100, least=4)))):
        disk.put_back(state)
        monkeypatch.setattr("holdfast.undo.work.boot_mark", lambda number=number: f"boot {number}")
        told = (state.how, state.acknowledged, [one[0] for one in state.files])
        with dying.opened(project) as sidecar:
            found = {one.id: one for one in sidecar.transactions()}
            assert tree_of(project) in ([after] if state.acknowledged else [before, after]), told
            if state.acknowledged and name == "record":
                assert len(found["tx"].changes) == 2, told
            if state.acknowledged and name in ("undo", "rollback"):
                sidecar.undo(found["tx"].entries[-1].id)
                assert tree_of(project) == before, told


COMMANDS = {
    "remind": ("remind water", "remind", "water"),
    "export": ("export ../work", "import ../work", "1 already existed"),
    "import": ("import ../bundle", "snapshot list --json", "session-20260106-120000"),
    "docs": ("docs audit .", "status", "Project"),
    "install": ("install codex --project", "install codex --project", "already installed"),
    "reindex": ("reindex", "snapshot list", "session"),
    "token": ("token create laptop", "token list", "laptop"),
    "revoke": ("token revoke phone", "token list", "No tokens"),
    "trust": ("trust --yes", "remind", "wine"),
    "distrust": ("trust --revoke", "remind", "No reminders"),
    "delete": ("snapshot delete latest --yes", "snapshot list", "No snapshots yet"),
}


@pytest.mark.some_of("name")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(name: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    words, look, expected = COMMANDS[name]
    for variable, value in place.environment.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.chdir(place.root)
    monkeypatch.setenv("HOLDFAST_PROJECT", str(place.project))
    place.paused("tool_call", at=1_767_700_800.0)
    place.ok("export", place.root / "bundle")
    place.ok("remind", "wine")
    place.ok("token", "create", "phone")
    if name == "trust":
        place.ok("trust", "--revoke")
    if name == "import":
        place = place.beside("other")
        monkeypatch.setenv("HOLDFAST_PROJECT", str(place.project))
    words = words.replace("../", f"{place.root}/").replace(" .", f" {place.project}")
    with power_may_go(place.root) as disk:
        assert run(words.split()) == 0
        disk.acknowledged.append("done")
    states = list(disk.states)
    for state in random.sample(states, min(len(states), repeated(100, least=4))):
        disk.put_back(state)
        result = place.run(*look.split())
        told = (
            state.how,
            state.acknowledged,
            result,
            [one[0] for one in state.files if "/.git/" not in one[0]],
        )
        assert "unexpected" not in result.err, told
        if state.acknowledged:
            assert expected in result.out, told


def test_an_import_that_was_killed_is_finished_by_the_next(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the ids it had: nothing is there twice."""
    for variable, value in place.environment.items():
        monkeypatch.setenv(variable, value)
    names = sorted(place.paused("tool_call", at=1_767_700_800.0 + n) for n in range(2))
    bundle = str(place.root / "bundle")
    place.ok("export", bundle)
    for round_number in range(repeated(30, least=2)):
        other = place.beside(f"other-{round_number}")
        other.home = place.root / f"data-{round_number}"
        other.environment["HOLDFAST_HOME"] = str(other.home)
        monkeypatch.setenv("HOLDFAST_HOME", str(other.home))
        monkeypatch.setenv("HOLDFAST_PROJECT", str(other.project))
        with crash_at(random.randrange(1, 90)):
            run(["import", bundle])
        assert other.run("import", bundle).code == 0
        listed = other.json("snapshot", "list")
        assert sorted(line["session_id"] for line in listed) == names, listed
        assert len({line["workflow_id"] for line in listed}) == 1
