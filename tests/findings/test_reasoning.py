"""What the agent found out, in its own words: whole passages, the newest view, and no guesses."""

from __future__ import annotations

import pytest

from findings.sessions import Session


def told(*texts: str) -> list[str]:
    session = Session().user("why is it red?")
    for text in texts:
        session.agent(text)
    return [one.text for one in session.found().insights]


def test_a_cause_is_told_with_what_follows_from_it():
    cause = "The bug is in `listAll` at line 86. It looks for the old name, so the session is dropped."
    assert told(f"Let me look at it.\n\n{cause}\n") == [cause]


def test_what_refers_back_is_told_with_what_it_refers_to():
    text = (
        "`BaseCommit` is the first commit. So `findSessions` never matches after another, which is the bug."
    )
    assert told(text) == [text]


def test_a_cause_that_a_list_completes_is_told_with_the_list():
    text = "Two blockers:\n1. `test.json` is stale\n2. `onStart` revives the session\n\nLet me fix them."
    assert told(text) == ["Two blockers: `test.json` is stale; `onStart` revives the session."]


@pytest.mark.parametrize(
    "guess",
    [
        "The issue might be that `BaseCommit` is short.",
        "The problem is likely in `findSessions`, or is it?",
        "Let me check whether the bug is in `findSessions`.",
        "The user wants me to fix the bug in `findSessions`.",
        "The issue is that the import of `paths` is missing.",
    ],
)
def test_guesses_and_what_is_mended_at_once_are_not_told(guess: str):
    assert told(guess) == []


def test_what_the_same_text_takes_back_is_not_told():
    assert told("The `cwd` is set by `os.Getwd()`, but that is a copy.\n\nWait, this is fine.") == []


def test_of_two_that_say_the_same_the_newer_is_told():
    older = "The tests are failing because `listAll` expects the legacy branch name of the session."
    newer = "The tests are failing because `listAll` expects the legacy branch name of the commit."
    assert told(older, newer) == [newer]


def test_a_list_of_places_is_kept_and_a_list_of_guesses_is_not():
    places = (
        "These need the fix:\n- `a.go:12` - the lookup. Let me check it.\n- `b.go:40` - the log\n- `c.go:7`"
    )
    guesses = "The issue could be:\n- `a.go` is stale\n- `b.go` is stale\n- `c.go` is stale"
    (listing,) = Session().user("go").agent(places).agent(guesses).found().listings
    assert listing.lead == "These need the fix:"
    assert listing.items == ("`a.go:12` - the lookup.", "`b.go:40` - the log", "`c.go:7`")
