"""`holdfast history`: all of one kind that a snapshot holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.model.task import Task, TaskDAG
from holdfast.model.workflow import Issue
from holdfast.sessions.pause import SessionPauseManager, open_store
from holdfast.sessions.transitions import Core
from transcripts import claude_files as claude

from .harness import Place
from .test_context import (
    BROKEN,
    CHOICE,
    LATEST,
    OPEN_TODO,
    assert_not_in,
    enriched,
    kept_session,
    ran_tool,
    session_file,
    talk,
)

CATEGORIES = ("decisions", "errors", "reviewer-feedback", "git-changes", "tasks", "tests", "journal")


@pytest.fixture
def rich(place: Place) -> Place:
    (place.project / "door.py").write_text("x")
    enriched(place, session_file(place, "claude-code"))
    return place


def history(place: Place, *options: str, of: str = "latest") -> dict[str, Any]:
    results = place.many(*(["history", of, category, *options] for category in CATEGORIES))
    assert [(result.code, result.err) for result in results] == [(0, "")] * len(CATEGORIES)
    return {
        category: result.data if options else result.out
        for category, result in zip(CATEGORIES, results, strict=True)
    }


def test_each_category_as_text(rich: Place) -> None:
    told = history(rich)
    chosen, reason = CHOICE.split(", because")
    assert told["decisions"] == f"- [approach] {chosen}\n  Because: because{reason}\n"
    first, *others = told["errors"].splitlines()
    assert first.startswith("- UNRESOLVED: ")
    assert BROKEN in first
    assert any("unexpected indent" in line and line.startswith("- FIXED: ") for line in others)
    assert "  While: pytest -q" in others
    assert told["reviewer-feedback"].startswith("- review the door (comment, NOT ADDRESSED)\n  - The hinge")
    assert "Branch: main\nCommit: none yet\nUncommitted: " in told["git-changes"]
    assert "- door.py\n" in told["git-changes"]
    assert "- edited /home/ada/shop/src/door.py\n" in told["git-changes"]
    assert told["tasks"] == (
        f"- completed: Saw the boards\n- in_progress: Hang the door\n- pending: {OPEN_TODO}\n"
    )
    assert told["tests"].startswith("Phase: red\nLast run: pytest -q\nIt said: 1 failed, 3 passed")
    assert "- failing: tests/test_door.py::test_opens\n" in told["tests"]
    assert f"- user: {LATEST}\n" in told["journal"]
    assert "- ran 2 times, last worked: ruff check\n" in told["journal"]
    actions = [line for line in told["journal"].splitlines() if line.startswith('- {"type"')]
    assert [json.loads(line[2:])["type"] for line in actions] == [
        "pause_started",
        "tool_call",
        "pause_finalized",
    ]
    assert all(text.endswith("\n") and not text.endswith("\n\n") for text in told.values())


def test_each_category_as_json(rich: Place) -> None:
    told = history(rich, "--json")
    assert [item["decision_type"] for item in told["decisions"]] == ["approach"]
    assert told["decisions"][0]["evidence"] == [{"source": "s-1", "messages": [1], "quote": None}]
    assert {item["resolution"] for item in told["errors"]} == {"fixed", "unresolved"}
    assert all(item["evidence"][0]["messages"] for item in told["errors"])
    [feedback] = told["reviewer-feedback"]
    assert (len(feedback["comments"]), feedback["addressed"]) == (2, False)
    assert told["git-changes"]["git_state"]["files_modified"] == ["door.py"]
    assert [file["path"] for file in told["git-changes"]["files"]] == ["door.py"]
    assert [task["status"] for task in told["tasks"]] == ["completed", "in_progress", "pending"]
    assert told["tests"]["phase"] == "red"
    assert [turn["said"] for turn in told["journal"]["turns"]][-1] == LATEST
    assert told["journal"]["actions"][0]["type"] == "pause_started"
    assert {use["command"] for use in told["journal"]["commands"]} == {"ruff check", "pytest -q"}


def test_categories_with_nothing_in_them(place: Place) -> None:
    name = SessionPauseManager(settings=place.settings()).create_pause_session()
    told = history(place)
    for category in ("decisions", "errors", "reviewer-feedback", "tasks", "tests", "journal"):
        assert told[category] == f"No {category} in {name}.\n"
    as_data = history(place, "--json")
    for category in ("decisions", "errors", "reviewer-feedback", "tasks"):
        assert as_data[category] == []
    assert as_data["tests"] is None
    assert as_data["journal"] == {"actions": []}


def test_a_wind_down_without_a_session_file_has_its_journal(place: Place) -> None:
    place.paused("tool_call")
    lines = place.ok("history", "latest", "journal").lines
    assert [json.loads(line.removeprefix("- "))["type"] for line in lines] == [
        "pause_started",
        "tool_call",
        "pause_finalized",
    ]


def test_a_compressed_journal_is_read_too(place: Place) -> None:
    place.started("tool_call")
    place.ok("winddown", "finalize", env={"HOLDFAST_COMPRESS_AFTER_DAYS": "0"})
    assert list(place.sessions.glob("*-incremental.jsonl.gz"))
    assert len(place.ok("history", "latest", "journal").lines) == 3
    assert len(place.json("history", "latest", "journal")["actions"]) == 3


def test_the_tasks_of_a_plan(place: Place) -> None:
    plan = TaskDAG(
        tasks=(
            Task(id="saw", description="Saw", status="completed", result="two boards"),
            Task(id="nail", description="Nail", depends_on=("saw",)),
        )
    )
    settings = place.settings()
    with open_store(settings) as store:
        Core(store).open(Issue(id="7", title="A shed"), settings.worktree, task_dag=plan)
    SessionPauseManager(settings=settings).create_pause_session()
    assert place.ok("history", "latest", "tasks").out == (
        "- completed: [saw] Saw\n  two boards\n- pending: [nail] Nail\n"
    )
    assert [task["id"] for task in place.json("history", "latest", "tasks")] == ["saw", "nail"]


def test_by_name_id_and_what_is_not_there(rich: Place) -> None:
    [line] = rich.json("snapshot", "list")
    by_name, by_id, unknown, empty, odd, missing = rich.many(
        ["history", line["session_id"], "tasks"],
        ["history", line["id"], "tasks"],
        ["history", "session-20200101-000000", "tasks"],
        ["history", "", "tasks"],
        ["history", "latest", "weather"],
        ["history", "latest"],
    )
    assert by_name == by_id
    assert OPEN_TODO in by_name.out
    unknown.failed(1, error="no such snapshot", hint="snapshot list.*sessions list")
    empty.failed(2, error="name is empty")
    odd.failed(2, error="weather.*decisions.*journal")
    assert (missing.code, missing.out) == (2, "")
    assert "decisions" in missing.err


def test_an_agents_session_that_nobody_paused(place: Place) -> None:
    """By the id that `sessions list` shows: the same as a snapshot of it would hold."""
    file = kept_session(place, "claude-code", "claude-12345")
    kept_session(place, "codex", "codex-1")
    found = history(place, of="claude-12")
    assert not place.sessions.exists(), "it only looks"
    in_json, ambiguous = place.many(["history", "codex-1", "errors", "--json"], ["history", "c", "errors"])
    assert BROKEN in in_json.out
    ambiguous.failed(2, error="c is ambiguous: it matches 2 sessions")
    enriched(place, file)
    paused = history(place)
    for category in ("decisions", "errors", "reviewer-feedback", "tasks", "tests"):
        assert found[category] == paused[category] != ""
    assert found["git-changes"] in paused["git-changes"]
    assert found["journal"] in paused["journal"]


def test_nothing_paused_yet(place: Place) -> None:
    place.run("history", "latest", "errors").failed(1, error="nothing has been paused")


def test_a_secret_is_in_no_category(place: Place) -> None:
    secret = "gh" + "p_" + "Lm8" * 12
    file = talk(
        place,
        claude.typed(f"Take {secret} for it"),
        claude.said(f"I'll write {secret} down, because it is needed for the build."),
        *ran_tool(1, f"error: bad {secret}", error=True, command=f"pytest -q --key {secret}"),
        *ran_tool(2, f"- it should not show {secret} at all to anybody", tool="Task", description="review"),
        *ran_tool(3, "ok", tool="TodoWrite", todos=[{"content": f"Use {secret}", "status": "pending"}]),
    )
    kept_session(place, "claude-code", "talk-1").write_bytes(file.read_bytes())
    enriched(place, file)
    for of in ("latest", "talk-1"):
        for text in (*history(place, of=of).values(), *map(str, history(place, "--json", of=of).values())):
            assert_not_in(text, secret)
