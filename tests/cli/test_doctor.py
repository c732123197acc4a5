"""`doctor --fix` and `prune`: they say what they do, and take away nothing that somebody may need."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.cli.common import INSTALL_STEP
from holdfast.undo.transactions import SideCar
from workflows.harness import Workshop, wait_for

from .harness import Place, tree_of

PLAN = """
issue: {id: A, title: A}
tasks:
  - {id: t1, run: "touch began; sleep 60"}
"""


def old(path: Path, days: float = 30) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text("rubbish")
    moment = time.time() - days * 86_400
    os.utime(path, (moment, moment))
    return path


def test_what_is_not_usable_is_not_ok_for_programs_either(place: Place) -> None:
    """A driver that nobody set up fails no check, and no program takes it for usable."""
    told = {one["name"]: one for one in place.json("doctor")}
    assert (told["driver shell"]["ok"], told["driver shell"]["hint"]) == (True, None)
    assert (told["driver model"]["ok"], told["driver model"]["optional"]) == (False, True)
    assert "agent_model" in told["driver model"]["hint"]
    assert [one["name"] for one in told.values() if one["ok"] and "unusable" in one["told"]] == []


def test_drivers_that_nobody_asked_for_take_one_line(place: Place) -> None:
    def lines(**environment: str) -> list[str]:
        return [line for line in place.ok("doctor", env=environment).lines if line[2:].startswith("driver")]

    programs = place.root / "bin"  # none of the agents'
    programs.mkdir()
    for name in ("git", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    place.environment["PATH"] = str(programs)
    usable, unasked = lines()
    assert usable == "✓ driver shell: usable"
    assert unasked == "· drivers that are not set up: claude-code, codex, gemini, opencode, model"
    place.ok("install", "codex")
    told = lines(HOLDFAST_AGENT_MODEL="nobody:has-it")
    assert any(line.startswith("· driver codex: unusable: ") for line in told)
    assert any(line.startswith(("✓ driver model: ", "· driver model: ")) for line in told)
    assert told[-1] == "· drivers that are not set up: claude-code, gemini, opencode"


def agents_told(place: Place) -> dict[str, tuple[bool, str | None]]:
    return {
        one["name"]: (one["ok"], one["hint"])
        for one in place.json("doctor")
        if one["name"].startswith("agent")
    }


def test_it_tells_which_agents_are_recorded(place: Place) -> None:
    """Hooks that name another installation do nothing once that is gone, and say nothing."""
    assert agents_told(place) == {"agents": (False, INSTALL_STEP)}
    place.ok("install", "gemini")
    place.ok("install", "codex", "--project")
    place.ok("install", "claude-code")
    place.ok("install", "opencode")
    assert agents_told(place) == {
        f"agent {name}": (True, None) for name in ("claude-code", "codex", "gemini", "opencode")
    }
    home = Path(place.environment["HOME"])
    changed = {"claude-code": ".claude/settings.json", "opencode": ".config/opencode/plugin/holdfast.js"}
    for name in changed.values():
        text = (home / name).read_text()
        (home / name).write_text(text.replace(sys.executable, "/gone/bin/python"))
    told = agents_told(place)
    for agent in changed:
        assert told[f"agent {agent}"] == (False, f"holdfast install {agent}")
        place.ok("install", agent)
    assert all(ok for ok, _ in agents_told(place).values())


def test_doctor_repairs_what_it_can_and_says_so(place: Place) -> None:
    shop = Workshop(place, str(place.database))
    (place.root / "plan.yaml").write_text(PLAN)
    with shop.program("run", str(place.root / "plan.yaml")) as running:
        wait_for((place.project / "began").exists)
        running.send_signal(signal.SIGKILL)
    session = place.orphaned(actions=2)
    temporary = old(place.home / ".projects.1.2.tmp")
    open_file = next((place.project / ".holdfast" / "state").iterdir())
    open_file.chmod(0o644)
    sick = place.run("doctor")
    assert sick.code == 1
    before = tree_of(place.root)
    for name in ("workflows", "wind-down", "private files", "temporary files"):
        assert f"✗ {name}: " in sick.out, sick
    assert tree_of(place.root).keys() == before.keys(), "it only looks"
    fixed = place.run("doctor", "--fix")
    assert fixed.code == 0, fixed
    assert fixed.err.count("Fixing ") == 4
    assert (place.sessions / f"{session}.json").exists()
    assert not temporary.exists()
    assert open_file.stat().st_mode & 0o077 == 0
    assert place.json("list")[0]["status"] == "paused"
    assert place.ok("doctor", "--fix").err == ""


def test_doctor_rebuilds_a_damaged_database(place: Place) -> None:
    session = place.paused("tool_call")
    for beside in place.home.glob("holdfast.db-*"):
        beside.unlink()
    place.database.write_bytes(damaged := b"not a database" * 500)
    assert place.run("doctor").code == 1
    fixed = place.run("doctor", "--fix")
    assert fixed.code == 0, fixed
    assert "Fixing database: rebuilding it" in fixed.err
    assert place.json("snapshot", "list")[0]["session_id"] == session
    (kept,) = place.home.glob("holdfast.db.damaged-*")
    assert kept.read_bytes() == damaged
    assert str(kept) in fixed.err


def _made_newer(place: Place) -> None:
    place.paused("tool_call")
    with contextlib.closing(sqlite3.connect(place.database)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")


def _damaged(place: Place) -> None:
    place.home.mkdir(exist_ok=True)
    place.database.write_bytes(b"not a database" * 500)


@pytest.mark.parametrize(("spoil", "told"), [(_made_newer, "newer holdfast"), (_damaged, "is damaged")])
def test_what_cannot_use_the_database_says_so_and_changes_nothing(
    place: Place, spoil: Callable[[Place], None], told: str
) -> None:
    """A newer program migrated it, and this one is the older; or it is broken."""
    spoil(place)
    (place.project / "plan.yaml").write_text(PLAN)
    before = place.database.read_bytes()
    for words in ("serve --port 0", "worker --until-idle", "run plan.yaml", "list --all", "status"):
        place.run(*words.split()).failed(4, error=told)
    if spoil is _made_newer:
        place.run("reindex").failed(4, error=told)
        assert told in place.run("doctor", "--fix").out
    assert place.database.read_bytes() == before
    assert place.run("winddown", "start", "--percent", "0.9").code == 0
    assert "Paused" in place.run("winddown", "finalize").out  # in files, for the one that can read it


def test_doctor_finds_a_damaged_database_of_the_engine(place: Place) -> None:
    (place.root / "plan.yaml").write_text(PLAN.replace("touch began; sleep 60", "false"))
    place.run("run", place.root / "plan.yaml")
    for beside in place.home.glob("holdfast-engine.db-*"):
        beside.unlink()
    database = place.home / "holdfast-engine.db"
    data = database.read_bytes()
    database.write_bytes(damaged := data[:4096] + bytes(len(data) - 4096))
    assert "✗ database: the database " in place.run("doctor").out
    assert "`holdfast reindex` sets it aside" in place.run("resume", "--yes").err
    fixed = place.run("doctor", "--fix")
    assert fixed.code == 0, fixed
    (kept,) = place.home.glob("holdfast-engine.db.damaged-*")
    assert kept.read_bytes() == damaged
    assert str(kept) in fixed.err
    assert place.json("list")[0]["status"] == "paused"
    assert "task t1: exit code 1" in place.run("resume", "--yes").err


def test_prune_removes_what_can_be_made_again_and_nothing_else(place: Place) -> None:
    first, latest = place.paused("tool_call", at=1_767_700_800.0), place.paused("tool_call")
    with SideCar(place.project) as sidecar:
        sidecar.look()
    notes = place.project / ".holdfast" / "state" / "hooks"
    doomed = [
        old(place.sessions / f"{first}.context-5000.md", days=0),
        old(place.home / ".projects.1.2.tmp"),
        old(notes / "one" / "settled"),
        old(notes / "one" / "who"),
    ]
    safe = [
        old(place.sessions / f"{latest}.context-5000.md"),
        old(place.sessions / f"{first}.context-for-codex.md"),
        old(notes / "two" / "settled", days=1),
        old(notes / "three" / "who"),
        old(place.home / ".projects.3.4.tmp", days=0),
        old(place.sessions / f"{first}.json.damaged-20260101-000000"),
        old(place.home / "holdfast.db.damaged-20260101-000000"),
        # Whatever they are called: what an undo set aside, and what a worker has checked out.
        old(place.project / ".holdfast" / "sidecar" / "set-aside" / "1-dump.tmp"),
        old(place.home / "worktrees" / "wf_1" / "fixtures" / "data.tmp"),
    ]
    before = tree_of(place.root)
    told = place.json("prune", "--dry-run")
    assert {one["path"] for one in told["files"]} == set(map(str, doomed))
    assert place.run("prune").code == 130, "nobody was there to say yes"
    assert tree_of(place.root) == before
    assert "Removed 4 files" in place.ok("prune", "--yes").out
    assert not any(path.exists() for path in doomed)
    assert not (notes / "one").exists()
    assert all(path.exists() for path in safe)
    assert before.keys() - tree_of(place.root).keys() <= {
        *(str(path.relative_to(place.root)) for path in doomed),
        str((notes / "one").relative_to(place.root)),
    }
    assert place.ok("prune", "--yes").out == "There is nothing to remove.\n"
