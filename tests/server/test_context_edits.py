"""The context for the next session, changed by a person: pinned, dropped, put in order, kept."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.gathered import Choice, Gathered, Turn
from holdfast.sessions.transitions import Core, Facts
from holdfast.store.sql import SqlStore
from holdfast.testing import FixedClock
from store.samples import new, snapshot, workflow

from .harness import Served

ADDRESS = "/api/workflows/wf_1/snapshots/snap_1/context"


@pytest.fixture
def sql_store(sqlite_store: SqlStore) -> SqlStore:
    return sqlite_store


@pytest.fixture
def edited(served: Served, sql_store: SqlStore) -> Served:
    found = Gathered(
        issue="7: Mend the sail",
        turns=tuple(Turn(number, f"Please sew seam number {number} with care.") for number in range(1, 6)),
        choices=(
            Choice(6, "library", "Use canvas", "it holds"),
            Choice(7, "approach", "Sew twice", "it tears"),
        ),
        messages=8,
    )
    shown = snapshot(gathered=found, constraints=("Never cut the mast.",))
    sql_store.apply(new(workflow(status="paused"), save=shown))
    return served


def asked(served: Served, method: str = "POST", **edits: Any) -> dict[str, Any]:
    answer = served.ask(method, ADDRESS, {"edits": edits} if edits else {})
    assert answer.status == 200, answer
    return answer.data


def movable(told: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in told["statements"] if not one["is_fixed"]]


def test_drop_and_pin_change_the_text_and_its_tokens_at_once(edited: Served) -> None:
    before = asked(edited)
    assert before["context"] == edited.get(ADDRESS)["context"]
    gone = next(one for one in movable(before) if one["is_carried"])
    dropped = asked(edited, dropped=[gone["key"]])
    assert gone["text"].strip() not in dropped["context"]
    assert dropped["cost"]["tokens"] < before["cost"]["tokens"]
    (told,) = [one for one in dropped["statements"] if one["key"] == gone["key"]]
    assert (told["is_dropped"], told["is_carried"]) == (True, False)
    pinned = asked(edited, pins=[{"part": "wants", "text": "Mind the tide at six."}])
    assert "Mind the tide at six." in pinned["context"]
    assert edited.get(ADDRESS)["context"] == before["context"], "nothing was saved"


def test_order_within_a_part(edited: Served) -> None:
    said = [one for one in movable(asked(edited)) if one["part"] == "wants" and one["is_carried"]]
    assert len(said) > 1
    keys = [one["key"] for one in reversed(said)]
    told = asked(edited, order=keys)
    after = [one["key"] for one in told["statements"] if one["key"] in keys]
    assert after == keys
    places = [told["context"].index(one["text"].strip()[:40]) for one in reversed(said)]
    assert places == sorted(places)


def test_saved_edits_hold_for_this_context_and_the_ones_that_follow(
    edited: Served, sql_store: SqlStore
) -> None:
    gone = next(one for one in movable(asked(edited)) if one["is_carried"])
    pin = {"part": "wants", "text": "Mind the tide at six."}
    state = {"part": "state", "text": "The build is red."}
    asked(edited, "PUT", pins=[pin, state], dropped=[gone["key"]])
    now = edited.get(ADDRESS)["context"]
    assert "Mind the tide at six." in now
    assert gone["text"].strip() not in now
    preview = edited.get("/api/workflows/wf_1/resume/preview")["context"]
    assert "Mind the tide at six." in preview
    core = Core(sql_store, FixedClock())
    core.claim("wf_1")
    later = core.settle("wf_1", Facts(trigger="pause", reason="again"))
    assert later.context_edits is not None
    other = edited.get(f"/api/workflows/wf_1/snapshots/{later.id}/context")["context"]
    assert "Mind the tide at six." in other
    assert "The build is red." not in other, "a state of then is not the state of now"
    asked(edited, "PUT", pins=[])
    assert "Mind the tide" not in edited.get(ADDRESS)["context"]


def test_what_says_where_the_work_stands_cannot_be_dropped(edited: Served) -> None:
    told = asked(edited)
    fixed = [one for one in told["statements"] if one["is_fixed"]]
    assert fixed
    after = asked(edited, dropped=[one["key"] for one in fixed])
    assert after["context"] == told["context"]


@pytest.mark.parametrize(
    "edits",
    [
        {"pins": [{"part": "none", "text": "x"}]},
        {"pins": [{"part": "wants", "text": ""}]},
        {"pins": [{"part": "wants", "text": "x" * 4_001}]},
        {"drop": ["x"]},
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_refused(edited: Served, method: str, edits: dict[str, Any]) -> None:
    assert edited.ask(method, ADDRESS, {"edits": edits}).status == 422
