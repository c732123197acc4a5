"""`holdfast import .claude-mpm/sessions`: what another pause manager saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .harness import Place

FINISHED = "session-20260106-120000"
SILENT = "session-20260107-090000"
UNFINISHED = "session-20260109-120000"
SECRET = "ghp_" + "9fK2mQ7xW4tR8vB1nL5cZ3pY6hJ0sD2gA4eU"


def action(kind: str, at: str, name: str, share: float, **data: Any) -> str:
    line = {"type": kind, "timestamp": at, "session_id": name, "data": data, "context_percentage": share}
    return json.dumps(line) + "\n"


def document(name: str, at: str, **parts: Any) -> str:
    """As claude-mpm writes it where nobody said anything, but for these parts."""
    talk = {
        "primary_task": "Manual pause - see message below",
        "current_phase": "In progress",
        "summary": "No summary provided",
        "accomplishments": [],
        "next_steps": [],
    }
    return json.dumps(
        {
            "session_id": name,
            "paused_at": at,
            "duration_hours": 0,
            "context_usage": {"tokens_used": 0, "tokens_total": 200_000, "percentage": 0},
            "git_context": {"is_git_repo": False},
            "todos": {"active": [], "completed": []},
            **parts,
            "conversation": talk | parts.get("conversation", {}),
        }
    )


@pytest.fixture
def saved(place: Place) -> Path:
    folder = place.project / ".claude-mpm" / "sessions"
    folder.mkdir(parents=True)
    told = {
        "context_usage": {"tokens_used": 186_000, "tokens_total": 200_000, "percentage": 93.0},
        "conversation": {
            "primary_task": "Port the parser to the new grammar",
            "summary": "the window is nearly full",
            "accomplishments": ["the lexer is ported"],
            "next_steps": [{"task": "port the error recovery", "priority": "high"}, "run the corpus"],
        },
        "git_context": {
            "is_git_repo": True,
            "branch": "grammar",
            "status": {"modified_files": ["parser.py"]},
        },
        "important_reminders": ["the tables are generated"],
        "todos": {"active": ["port the error recovery"], "completed": [{"content": "port the lexer"}]},
        "task_list": {"pending_tasks": [{"title": "of quite another project"}]},
    }
    (folder / f"{FINISHED}.json").write_text(document(FINISHED, "2026-01-06T12:05:00+00:00", **told))
    (folder / f"{FINISHED}-incremental.jsonl").write_text(
        action("pause_started", "2026-01-06T12:00:00Z", FINISHED, 0.9, initial_state={})
        + action("tool_call", "2026-01-06T12:01:00Z", FINISHED, 0.91, tool="Read", path="src/parser.py")
        + action("user_message", "2026-01-06T12:02:00Z", FINISHED, 0.92, message=f"never commit {SECRET}")
        + action("pause_finalized", "2026-01-06T12:05:00Z", FINISHED, 0.93)
    )
    (folder / f"{SILENT}.json").write_text(document(SILENT, "2026-01-07T09:00:00.5+00:00"))
    return folder


def test_its_sessions_become_sessions_here(place: Place, saved: Path) -> None:
    before = {path: path.read_bytes() for path in saved.iterdir()}
    report = place.json("import", ".claude-mpm/sessions")
    assert report["sessions"] == [FINISHED, SILENT]
    assert {path: path.read_bytes() for path in saved.iterdir()} == before

    shown = place.json("snapshot", "show", FINISHED)
    assert shown["created_at"] == "2026-01-06T12:05:00Z"
    assert (shown["pause_reason"], shown["trigger"]) == ("the window is nearly full", "exhaustion")
    assert shown["context_usage"]["tokens_used"] == 186_000
    assert shown["git_state"] is None
    assert shown["incremental_pause"]["action_count"] == 4

    context = place.ok("context", "latest").out  # the newest says nothing
    for told in ("new grammar", "lexer is ported", "run the corpus", "tables are generated", "never commit"):
        assert told in context
    assert "At that pause the branch was grammar" in context
    assert "Cannot tell whether the files changed" in context
    assert "another project" not in context
    kept = b"".join(path.read_bytes() for path in place.sessions.iterdir())
    assert SECRET.encode() not in kept
    assert SECRET not in context


def test_importing_again_adds_what_is_new(place: Place, saved: Path) -> None:
    place.ok("import", saved)
    (saved / "ACTIVE-PAUSE.jsonl").write_text(
        action("pause_started", "2026-01-09T12:00:00Z", UNFINISHED, 0.9, initial_state={})
        + action("user_message", "2026-01-09T12:02:00Z", UNFINISHED, 0.92, message="now the command line")
    )
    report = place.json("import", ".claude-mpm")
    assert (report["sessions"], report["already_there"]) == ([UNFINISHED], [FINISHED, SILENT])
    assert "now the command line" in place.ok("context", "latest").out
    assert [one["workflow_id"] for one in place.json("snapshot", "list")] == [place.json("list")[0]["id"]] * 3
    assert [one["session_number"] for one in place.json("snapshot", "list")] == [1, 2, 3]
    assert place.json("import", saved)["sessions"] == []


def test_what_cannot_be_read_is_named_and_the_rest_taken(place: Place, saved: Path) -> None:
    (saved / "session-20260108-090000.json").write_text('{"session_id": "ses')
    (saved / "session-20260108-100000.json").write_text('{"session_id": 7, "conversation": [1], "todos": 3}')
    with (saved / f"{FINISHED}-incremental.jsonl").open("a") as journal:
        journal.write("half a line")
    result = place.run("import", saved)
    assert result.code == 4
    assert "Imported 2 sessions" in result.out
    assert "left out: session-20260108-090000.json is damaged" in result.err
    assert "left out: session-20260108-100000.json does not say when" in result.err
    assert place.json("snapshot", "show", FINISHED)["incremental_pause"]["skipped_lines"] == 1


def test_a_folder_without_its_sessions_is_refused(place: Place) -> None:
    place.run("import", place.project).failed(
        1, error="no sessions of claude-mpm", hint=".claude-mpm/sessions"
    )
    assert not place.sessions.exists()


def test_the_newest_session_of_a_bundle_is_the_latest(place: Place) -> None:
    """Into a project without sessions: its own, or the first import's, stay the latest."""
    for hour, reason in enumerate(("first of them", "second of them")):
        place.paused("user_message", reason=reason, at=1_767_700_800.0 + 3_600 * hour)
    place.ok("export", place.root / "both.holdfast")
    other = place.beside("other")
    other.ok("import", place.root / "both.holdfast")
    assert "second of them" in other.ok("context", "latest").out
