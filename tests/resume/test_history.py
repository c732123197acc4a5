"""All of one kind that a snapshot holds, through `ResumeContextCompiler.get_detailed_history`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import ResumeContextCompiler
from holdfast.base.errors import InvalidInputError
from holdfast.cli.context import _CATEGORIES as ON_THE_COMMAND_LINE
from holdfast.model.snapshot import SessionSnapshot
from holdfast.resume.compiler import _FETCHED_BY, fetch_command
from holdfast.resume.snapshots import CATEGORIES
from model.strategies import snapshots
from resume.test_snapshots import decided, failed, reviewed, rich
from store.samples import full_snapshot, snapshot


def history(found: SessionSnapshot, category: str) -> str:
    return ResumeContextCompiler().get_detailed_history(found, category)


def test_the_names_are_the_same_everywhere() -> None:
    assert CATEGORIES == ON_THE_COMMAND_LINE
    assert set(_FETCHED_BY.values()) <= set(CATEGORIES)
    assert fetch_command("something new", "s").split()[-1] in CATEGORIES


@pytest.mark.parametrize("category", ["decisions", "errors", "reviewer_feedback", "git_changes"])
def test_the_seeds_names(category: str) -> None:
    found = full_snapshot()
    assert history(found, category) == history(found, category.replace("_", "-"))
    assert not history(found, category).startswith("No ")


@pytest.mark.parametrize("category", ["", "weather", "Decisions", "decisions ", "git changes"])
def test_a_category_there_is_not(category: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        history(snapshot(), category)
    assert repr(category) in refused.value.message
    assert refused.value.hint == f"one of: {', '.join(CATEGORIES)}"


@pytest.mark.parametrize("category", CATEGORIES)
def test_nothing_of_a_kind(category: str) -> None:
    found = snapshot()
    assert history(found, category) == f"No {category} in {found.session_id}.\n"


@given(snapshots(), st.sampled_from(CATEGORIES))
def test_any_snapshot_has_a_history_of_each_kind(found: SessionSnapshot, category: str) -> None:
    text = history(found, category)
    assert text.endswith("\n")
    assert text == history(found, category)


def test_every_record_is_there_whatever_their_number() -> None:
    found = rich(
        decisions=tuple(decided(number) for number in range(200)),
        errors=tuple(failed(number, "fixed" if number % 2 else "unresolved") for number in range(200)),
        reviewer_feedback=tuple(reviewed(review_id=f"r{n}", comments=(f"point {n}",)) for n in range(50)),
    )
    assert sum(f"Take plan {n} for" in history(found, "decisions") for n in range(200)) == 200
    assert sum(f"board {n} is" in history(found, "errors") for n in range(200)) == 200
    assert sum(f"- point {n}\n" in history(found, "reviewer-feedback") for n in range(50)) == 50


def test_unresolved_errors_first_then_as_they_came() -> None:
    found = rich(errors=(failed(1, "fixed"), failed(2), failed(3, "deferred"), failed(4)))
    lines = [line for line in history(found, "errors").splitlines() if line.startswith("- ")]
    assert lines == [
        "- UNRESOLVED: ValueError: board 2 is too short",
        "- UNRESOLVED: ValueError: board 4 is too short",
        "- FIXED: ValueError: board 1 is too short",
        "- DEFERRED: ValueError: board 3 is too short",
    ]


def test_a_decision_with_what_else_was_considered() -> None:
    found = rich(decisions=(decided(1, alternatives_considered=("tin", "slate")),))
    assert history(found, "decisions") == (
        "- [approach] Take plan 1 for the roof\n"
        "  Because: because reason 1 is good\n"
        "  Instead of: tin; slate\n"
    )


def test_verdicts_of_reviews() -> None:
    found = rich(
        reviewer_feedback=(
            reviewed(review_id="a", approved=True),
            reviewed(review_id="b", addressed=True),
            reviewed(review_id="c"),
        )
    )
    heads = [line for line in history(found, "reviewer-feedback").splitlines() if line.startswith("- ")]
    assert heads == [
        "- the carpenter (major, approved)",
        "- the carpenter (major, addressed)",
        "- the carpenter (major, NOT ADDRESSED)",
    ]


def test_tests_and_what_is_expected_to_fail() -> None:
    assert history(rich(), "tests") == (
        "Phase: red\n"
        "Last run: pytest -q\n"
        "It said: 2 failed\n"
        "- failing: test_door\n"
        "- failing: test_latch\n"
        "- expected to fail: test_latch\n"
    )


def test_git_and_tasks() -> None:
    assert history(rich(), "git_changes") == (
        "Branch: red-door\nCommit: 0123456789abcdef\nUncommitted: nothing\n- src/door.py\n- new.txt\n"
    )
    assert history(rich(), "tasks") == (
        "- pending: [roof] Lay the roof\n"
        "- pending: [walls] Raise the walls\n"
        "- completed: [floor] Pour the floor\n"
        "  dry\n"
    )
