"""Merging: nothing known is lost, nothing stands twice, and doing it again changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from findings.model_samples import decision, error
from holdfast.findings.by_model import merge_decisions, merge_errors, same_decision, same_error
from holdfast.model.findings import Decision, ErrorRecord

# Few words, so that many descriptions resemble each other.
words = st.sampled_from(
    ["use", "not", "sqlite", "postgres", "cache", "store", "30", "60", "tests", "...", "for"]
)
texts = st.lists(words, min_size=1, max_size=7).map(" ".join)
places = st.lists(st.integers(0, 4), max_size=2, unique=True)
optional = st.one_of(st.just(""), texts)


@st.composite
def decisions(draw: st.DrawFn) -> Decision:
    evidence = {} if draw(st.booleans()) else {"evidence": ()}
    return decision(draw(texts), *draw(places), rationale=draw(optional), **evidence)


@st.composite
def errors(draw: st.DrawFn) -> ErrorRecord:
    return error(
        draw(texts),
        *draw(places),
        resolution=draw(st.sampled_from(["fixed", "unresolved"])),
        resolution_notes=draw(optional) or None,
    )


@given(st.lists(decisions(), max_size=8), st.lists(decisions(), max_size=8))
def test_merging_decisions_again_changes_nothing(known: list[Decision], found: list[Decision]) -> None:
    merged = merge_decisions(known, found)
    assert merge_decisions(merged, found) == merged
    assert merge_decisions(known, found) == merged
    assert merge_decisions(known, []) == known


@given(st.lists(errors(), max_size=8), st.lists(errors(), max_size=8))
def test_merging_errors_again_changes_nothing(known: list[ErrorRecord], found: list[ErrorRecord]) -> None:
    merged = merge_errors(known, found)
    assert merge_errors(merged, found) == merged
    assert merge_errors(known, []) == known


@given(st.lists(decisions(), max_size=8), st.lists(decisions(), max_size=8))
def test_known_ones_keep_their_order_words_and_evidence(known: list[Decision], found: list[Decision]) -> None:
    merged = merge_decisions(known, found)
    for before, after in zip(known, merged, strict=False):
        assert (after.id, after.description, after.decision_type) == (
            before.id,
            before.description,
            before.decision_type,
        )
        assert after.evidence[: len(before.evidence)] == before.evidence
        assert not before.rationale or after.rationale == before.rationale
    in_turn = iter([one.description for one in found])
    assert all(one.description in in_turn for one in merged[len(known) :])


@given(st.lists(decisions(), max_size=8))
def test_what_is_merged_with_nothing_holds_no_doubles(found: list[Decision]) -> None:
    merged = merge_decisions([], found)
    assert not any(same_decision(one, two) for at, one in enumerate(merged) for two in merged[at + 1 :])


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("Use SQLite for the store", "use sqlite for the store.", True),
        ("I'll use SQLite as the store of sessions", "Use SQLite as store for all the sessions", True),
        ("Use SQLite for the store", "Do not use SQLite for the store", False),
        (
            "Set the request timeout of the client to 30 s",
            "Set the request timeout of the client to 60 s",
            False,
        ),
        ("Use SQLite", "Use PostgreSQL", False),
        ("Skip the flaky browser test", "Rewrite the parser by hand", False),
        ("用 SQLite 保存", "用 SQLite 保存。", True),
    ],
)
def test_when_two_decisions_are_the_same(one: str, two: str, same: bool) -> None:
    assert same_decision(decision(one, 1), decision(two, 9)) is same
    assert same_decision(decision(two, 9), decision(one, 1)) is same


def test_a_shorter_wording_of_the_same_message_is_the_same_decision() -> None:
    said = "I'll go with FastAPI rather than Flask, the project depends on it already"
    assert same_decision(decision(said, 4), decision("Use FastAPI rather than Flask", 4))
    assert not same_decision(decision(said, 4), decision("Use FastAPI rather than Flask", 9))


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("Error: No module named 'x'", "no module  named 'x'", True),
        ("ModuleNotFoundError: No module named 'fastapi'", "No module named 'fastapi'", True),
        ("segfault at 0x7f3a", "segfault at 0x11", True),
        ("FAILED tests/test_a.py::test_x", "FAILED tests/test_b.py::test_x", False),
        ("failed", "the build failed", False),
    ],
)
def test_when_two_errors_are_the_same(one: str, two: str, same: bool) -> None:
    assert same_error(error(one, 1), error(two, 2)) is same
    assert same_error(error(two, 1), error(one, 2)) is same
