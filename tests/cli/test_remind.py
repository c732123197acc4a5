"""Reminders: kept until they are done, and listed on request."""

from __future__ import annotations

from .harness import Place


def test_add_list_and_clear(place: Place) -> None:
    assert place.run("remind").out == "No reminders.\n"
    assert "call Ada" in place.run("remind", "call", "Ada").out
    place.run("remind", "two\nlines")
    assert place.run("remind", "--json").data == {"reminders": ["call Ada", "two lines"]}
    assert place.run("remind", "--done").code == 0
    assert place.run("remind").out == "No reminders.\n"


def test_a_text_and_done_at_once(place: Place) -> None:
    result = place.run("remind", "--done", "x")
    assert result.code == 2
    assert "either TEXT" in result.err


def test_a_secret_in_a_reminder_is_not_stored(place: Place) -> None:
    told = place.ok("remind", "deploy with", "ACME_TOKEN=abc123def456ghi7").out
    stored = (place.project / ".holdfast" / "state" / "reminders").read_text()
    assert "abc123def456ghi7" not in told + stored
    assert "ACME_TOKEN=[redacted:assigned-secret]" in stored


def test_reminders_that_nobody_can_read_are_kept(place: Place) -> None:
    place.ok("remind", "one")
    path = place.project / ".holdfast" / "state" / "reminders"
    path.write_bytes(b"\xff\xfe broken\n")
    assert place.run("remind", "two").code == 0
    [kept] = path.parent.glob("reminders.damaged-*")
    assert kept.read_bytes() == b"\xff\xfe broken\n"
    assert "two" in place.run("remind").out
