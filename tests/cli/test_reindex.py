"""The database is an index: away, lost or damaged, the session files bring it back."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.sessions.pause import open_store

from .harness import Place

NOON = 1_767_700_800.0
NAMES = ["session-20260106-120000", "session-20260106-120100", "session-20260106-120200"]


@pytest.fixture
def three(place: Place) -> Place:
    for minute in range(3):
        place.paused("tool_call", reason=f"pause {minute}", at=NOON + minute * 60)
    return place


def remove_database(place: Place) -> None:
    for path in place.home.glob("holdfast.db*"):
        path.unlink()


def listed(place: Place) -> list[tuple[str, int, str]]:
    """What the database holds, as it is."""
    with open_store(place.settings()) as store:
        return [
            (line.session_id, line.session_number, str(line.pause_reason))
            for flow in store.workflows(worktree=str(place.project))
            for line in store.snapshots(flow.id)
        ]


def everything(place: Place) -> list[tuple[str, int, str]]:
    return [(name, number, f"pause {number - 1}") for number, name in enumerate(NAMES, start=1)]


def test_a_lost_database_is_rebuilt(three: Place) -> None:
    [before] = three.many(["snapshot", "show", NAMES[1], "--json"])
    remove_database(three)
    assert three.ok("reindex").out == "3 sessions added, 0 already present, in 1 project.\n"
    assert listed(three) == everything(three)
    after, status, again = three.many(
        ["snapshot", "show", NAMES[1], "--json"], ["status", "--json"], ["reindex", "--json"]
    )
    assert {**after.data, "folded_through": 0, "workflow": 0} == {
        **before.data,
        "folded_through": 0,
        "workflow": 0,
    }
    assert status.data["workflow"]["session_count"] == 3
    assert again.data == {
        "projects": 1,
        "added": [],
        "held": [],
        "strange": [],
        "already_there": 3,
        "damaged": [],
        "database_set_aside": None,
        "engine_set_aside": None,
    }


def test_all_projects_come_back(three: Place) -> None:
    other = three.beside("other")
    other.paused()
    remove_database(three)
    assert three.ok("reindex").out == "4 sessions added, 0 already present, in 2 projects.\n"
    remove_database(three)
    (three.home / "projects").unlink()
    assert three.ok("reindex", other.project).out == "4 sessions added, 0 already present, in 2 projects.\n"
    three.run("reindex", "nowhere").failed(2, error="'nowhere' does not exist")


def moved(place: Place) -> Place:
    """The same project under another name."""
    there = place.beside("moved")
    shutil.rmtree(there.project)
    place.project.rename(there.project)
    return there


def test_a_moved_folder_names_what_is_ignored_in_it_and_the_command(three: Place) -> None:
    there = moved(three)
    why = f"3 sessions of this folder are ignored, recorded in {three.project}"
    status, context, threads = there.many(["status"], ["context"], ["threads"])
    assert f"Ignored:   {why}: holdfast reindex\n" in status.out
    assert "Start with" not in status.out
    context.failed(1, error=why, hint="`holdfast reindex` adds them")
    assert f"{why}: holdfast reindex" in threads.out
    newer = there.paused("tool_call")
    status, context = there.many(["status"], ["context"])
    assert newer in status.out
    assert f"Ignored:   {why}" in status.out
    assert context.code == 0
    assert context.err == f"warning: {why}; `holdfast reindex` adds them\n"
    there.ok("reindex")
    status, context = there.many(["status"], ["context"])
    assert "Ignored" not in status.out
    assert context.err == ""


def test_a_copied_folder_names_what_is_ignored_in_it_and_the_command(three: Place) -> None:
    copy = three.beside("copy")
    shutil.rmtree(copy.project)
    shutil.copytree(three.project, copy.project)
    assert "run `holdfast trust` to inspect it" in copy.run("status").err
    copy.run("trust", "--yes")
    status, context, there = copy.many(["status"], ["context"], ["context", NAMES[2]])
    why = f"3 sessions of this folder are ignored, recorded in {three.project}"
    assert f"Ignored:   {why}: holdfast context {NAMES[2]}\n" in status.out
    context.failed(1, error=why, hint=f"`holdfast context {NAMES[2]}` prints the newest")
    assert there.code == 0
    copy.paused("tool_call")
    assert "Ignored" not in copy.ok("status").out  # the copy goes its own way
    assert "Ignored" not in three.ok("status").out


def test_sessions_that_the_database_lost_are_named(three: Place) -> None:
    remove_database(three)
    why = "3 sessions of this folder are ignored, missing from the database"
    assert f"Ignored:   {why}: holdfast reindex\n" in three.ok("status").out
    assert three.json("status")["ignored"] == {
        "sessions": NAMES[::-1],
        "recorded_in": None,
        "command": "holdfast reindex",
        "reason": why,
    }


GARBAGE = {"no database at all": b"garbage " * 1000, "a database cut short": None}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_damaged_database_is_set_aside(three: Place, content: bytes | None) -> None:
    content = content or three.database.read_bytes()[:8192]
    remove_database(three)
    three.database.write_bytes(content)

    three.run("list").failed(4, error=r"the database .*holdfast\.db is damaged", hint="`holdfast reindex`")
    assert three.database.read_bytes() == content

    result = three.run("reindex")
    assert (result.code, result.err) == (0, ""), result
    kept = Path(result.lines[0].removeprefix("The damaged database was renamed to "))
    assert kept.read_bytes() == content
    assert result.lines[1:] == ["3 sessions added, 0 already present, in 1 project."]
    assert listed(three) == everything(three)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"session_id": "session-2026',
        b"[]",
        b"{}",
        b'{"schema_version": 99, "session_id": "x"}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_session_file_is_told(three: Place, content: bytes) -> None:
    path = three.sessions / f"{NAMES[1]}.json"
    path.write_bytes(content)
    remove_database(three)
    result = three.run("reindex")
    assert (result.code, result.out) == (4, "2 sessions added, 0 already present, in 1 project.\n")
    assert result.err.startswith("warning: "), result
    assert NAMES[1] in result.err
    assert path.read_bytes() == content
    assert [name for name, _, _ in listed(three)] == [NAMES[0], NAMES[2]]


def test_files_of_another_version_are_not_lost_in_json(three: Place) -> None:
    path = three.sessions / f"{NAMES[0]}.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "schema_version": 2}))
    remove_database(three)
    result = three.run("reindex", "--json")
    assert (result.code, result.data["added"], len(result.data["damaged"])) == (4, NAMES[1:], 1)
    assert "version 2" in result.data["damaged"][0]


def test_a_moved_project(three: Place) -> None:
    moved = three.project.rename(three.root / "moved")
    result = three.ok("reindex", cwd=moved)
    assert result.out.endswith(", in 1 project.\n")
    assert [line["session_id"] for line in three.json("snapshot", "list", cwd=moved)] == NAMES


# ── a database that is away ────────────────────────────────────────────────────────────────


@pytest.fixture
def refusing() -> Iterator[str]:
    """The address of a server that refuses: the port is taken, but nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"postgresql://ada:secret@127.0.0.1:{taken.getsockname()[1]}/holdfast"


def test_a_pause_does_not_wait_for_the_database(place: Place, refusing: str) -> None:
    away = {"HOLDFAST_DB": refusing}
    name = place.started("tool_call")
    result = place.run("winddown", "finalize", "-r", "lunch", env=away)
    assert (result.code, result.lines[0]) == (0, f"Paused: {name}"), result
    warnings = result.err.splitlines()
    assert all(line.startswith("warning: ") for line in warnings)
    assert f"{name} is safe in {place.sessions} but not in the database yet" in warnings[-1]
    assert "secret" not in result.err
    second = place.started("tool_call")
    assert place.run("winddown", "finalize", env=away).code == 0
    assert place.latest() == f"{second}\n"

    asked = place.run("list", env=away)
    asked.failed(1, error="the database postgresql://ada:.*@127.0.0.1:.* cannot be used", hint="HOLDFAST_DB")
    assert "secret" not in asked.err

    assert place.json("status")["workflow"]["session_count"] == 2
    assert [(session, number) for session, number, _ in listed(place)] == [(name, 1), (second, 2)]
    assert not list(place.sessions.glob(".unindexed-*"))


UNUSABLE = {
    "another kind": ("mysql://host/db", 2),
    "no port": ("postgresql://ada:secret@host:port/db", 2),
    "a name too long": ("x" * 300, 1),
    "inside a file": ("file/holdfast.db", 1),
    "a folder": (".", 1),
}


@pytest.mark.parametrize(("database", "code"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_unusable_database(place: Place, database: str, code: int) -> None:
    """Told in our words by a command that needs it; no hindrance for one that does not."""
    (place.project / "file").touch()
    name = place.started()
    env = {"HOLDFAST_DB": database}
    result = place.run("winddown", "finalize", env=env)
    assert (result.code, result.lines[:1]) == (0, [f"Paused: {name}"]), result
    asked = place.run("list", env=env)
    asked.failed(asked.code, error="HOLDFAST_DB|database|folder")
    assert asked.code == code
    assert "secret" not in result.err + asked.err


def test_a_damaged_database_does_not_stop_a_pause(place: Place) -> None:
    place.database.write_bytes(b"garbage " * 1000)
    name = place.started()
    result = place.run("winddown", "finalize")
    assert (result.code, result.lines[0]) == (0, f"Paused: {name}"), result
    assert "`holdfast reindex` adds it" in result.err
    assert place.database.read_bytes() == b"garbage " * 1000
    place.ok("reindex")
    assert [session for session, _, _ in listed(place)] == [name]


def test_a_database_of_a_newer_version(three: Place) -> None:
    import sqlite3

    connection = sqlite3.connect(three.database)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    for result in three.many(["list"], ["reindex"]):
        result.failed(4, error="was written by a newer holdfast", hint="upgrade holdfast")
    assert not list(three.home.glob("*damaged*"))


PLAN = """
issue: {id: D, title: Ship it}
tasks:
  - {id: a, run: "echo a >> a.out"}
  - {id: b, run: "test -e ok", depends_on: [a]}
  - {id: c, run: "echo c >> c.out", depends_on: [b]}
"""


@pytest.mark.parametrize("end", ["completed", "cancelled"])
def test_a_workflow_that_ended_stays_ended(place: Place, end: str) -> None:
    (place.project / "plan.yaml").write_text(PLAN)
    assert place.run("run", "plan.yaml").code != 0
    flow = place.json("list")[0]["id"]
    (place.project / "ok").touch()
    place.run(*(("retry",) if end == "completed" else ("cancel",)))
    file = place.root / "ended.holdfast"
    place.ok("export", file)
    remove_database(place)
    for _ in range(2):
        place.ok("reindex")
        assert [(one["id"], one["status"]) for one in place.json("list", "--all")] == [(flow, end)]
        assert place.json("threads") == []
        counts = place.json("status")["workflow"]
        assert (counts["tasks_remaining"] == 0) == (end == "completed")
        assert place.run("resume", "--yes", "--accept-commands").code != 0
    other = place.beside("other")
    other.ok("import", file)
    assert [one["status"] for one in other.json("list")] == [end]
    assert other.json("threads") == []
    assert other.run("resume", "--yes", "--accept-commands").code != 0
    assert not (other.project / "a.out").exists()


def test_an_end_that_only_one_side_knows_of_reaches_the_other(place: Place) -> None:
    (place.project / "plan.yaml").write_text(PLAN)
    assert place.run("run", "plan.yaml").code != 0
    [path] = place.sessions.glob("session-*.json")
    failed = path.read_bytes()
    place.run("cancel")
    ended = path.read_bytes()
    path.write_bytes(failed)  # as if killed before the file was written
    place.ok("reindex")
    assert json.loads(path.read_bytes())["workflow"]["status"] == "cancelled"
    path.write_bytes(failed)
    remove_database(place)
    place.ok("reindex")
    assert place.json("list")[0]["status"] == "failed"
    path.write_bytes(ended)  # a database from a copy that is older than the files
    place.ok("reindex")
    assert place.json("list")[0]["status"] == "cancelled"
    path.write_bytes(b"{")  # what cannot be read changes nothing
    assert place.run("reindex").code == 4
    assert place.json("list")[0]["status"] == "cancelled"
    assert path.read_bytes() == b"{"
