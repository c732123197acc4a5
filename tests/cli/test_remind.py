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
