"""`holdfast sessions list` and `delete` for audits and improvements."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from holdfast import SessionStateManager
from holdfast.model.item_session import AuditSessionState, ImproveSessionState

from .harness import Place
from .test_context import kept_session

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
TUESDAY = datetime(2026, 1, 6, tzinfo=UTC)


@pytest.fixture
def own(place: Place) -> Place:
    manager = SessionStateManager(place.project)
    manager.save_session_state(
        AuditSessionState(session_id="first", started_at=MONDAY, total_items=9, current_index=4), "audit"
    )
    manager.save_session_state(
        ImproveSessionState(
            session_id="second", started_at=TUESDAY, transaction_id="tx", completed_at=TUESDAY
        ),
        "improve",
    )
    return place


def test_listed_newest_first(own: Place) -> None:
    lines = own.ok("sessions", "list").lines
    assert lines[0].split() == ["KIND", "SESSION", "STARTED", "PROGRESS", "STATE"]
    assert [line.split()[:2] for line in lines[1:]] == [["improve", "second"], ["audit", "first"]]
    assert lines[2].endswith("4/9       in progress")
    assert {one["session_id"] for one in own.json("sessions", "list")} == {"first", "second"}


def test_beside_those_of_agents(own: Place) -> None:
    kept_session(own, "claude-code", "claude-1")
    out = own.ok("sessions", "list").out
    assert "claude-1" in out
    assert "first" in out
    own.run("sessions", "delete", "claude-1", "--force").failed(
        1, error="no such session of yours here: claude-1"
    )


def test_deleted_by_name_and_all(own: Place) -> None:
    own.run("sessions", "delete", "first").failed(2, error="requires confirmation", hint="--force")
    own.run("sessions", "delete").failed(2, error="or pass --all")
    own.run("sessions", "delete", "first", "gone", "--force").failed(1, error="no such session of yours")
    assert own.json("sessions", "delete", "first", "--force") == {"deleted": ["first"]}
    assert own.ok("sessions", "delete", "--all", "--force").out == "Deleted: second\n"
    assert own.ok("sessions", "list").out == "No agent sessions found for this project.\n"


def test_a_damaged_one_is_set_aside_and_told_about(own: Place) -> None:
    (own.sessions / "audit-session-first.json").write_text("{")
    result = own.run("sessions", "list")
    assert result.code == 0
    assert "second" in result.out
    assert "audit-session-first.json is damaged and was renamed to" in result.err
