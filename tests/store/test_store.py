"""What every store does, in memory, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta, timezone
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings

from holdfast.base.errors import ConflictError, HeldElsewhereError, HoldfastError, NotFoundError
from holdfast.model.entry import AnyEntry
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import VALID_TRANSITIONS, Issue, WorkflowStatus
from holdfast.store.protocol import Change, SnapshotSummary, Store
from model.strategies import snapshots
from soak import repeated
from store.samples import (
    NOON,
    NOTE,
    ONE_OF_EACH,
    at,
    everything,
    full_snapshot,
    full_workflow,
    new,
    next_of,
    numbered,
    snapshot,
    workflow,
)


def test_a_workflow_comes_back_with_every_field(store: Store) -> None:
    store.apply(new(full_workflow()))
    assert store.workflow("wf_1") == full_workflow()


def test_a_workflow_without_its_optional_fields_comes_back_without_them(store: Store) -> None:
    store.apply(new(workflow()))
    assert store.workflow("wf_1") == workflow()


def test_a_change_replaces_every_field_of_the_workflow(store: Store) -> None:
    store.apply(new(workflow()))
    after = full_workflow().changed(revision=2)
    store.apply(Change(after, 1, (NOTE,)))
    assert store.workflow("wf_1") == after


def test_originals_are_kept_until_the_workflow_never_runs_again(store: Store) -> None:
    store.apply(new(workflow(), originals={"task a": "first", "message": "old"}))
    store.apply(new(workflow("wf_2")))
    store.apply(next_of(store.workflow("wf_1"), originals={"message": "new"}))
    for status in ("paused", "failed"):
        change = next_of(store.workflow("wf_1"))
        store.apply(replace(change, workflow=change.workflow.changed(status=status)))
        assert store.originals("wf_1") == {"task a": "first", "message": "new"}
    assert store.originals("wf_2") == store.originals("wf_3") == {}


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_then_they_are_gone(store: Store, status: WorkflowStatus) -> None:
    store.apply(new(workflow(), originals={"task a": "first"}))
    change = next_of(store.workflow("wf_1"))
    store.apply(replace(change, workflow=change.workflow.changed(status=status)))
    assert store.originals("wf_1") == {}


def test_originals_of_a_change_that_is_refused_are_not_kept(store: Store) -> None:
    store.apply(new(workflow()))
    with pytest.raises(HoldfastError):
        store.apply(new(workflow(), originals={"task a": "first"}))
    assert store.originals("wf_1") == {}


def test_a_snapshot_comes_back_with_every_field(store: Store) -> None:
    store.apply(new(workflow(), save=full_snapshot()))
    assert store.snapshot("snap_1") == full_snapshot()


@settings(
    max_examples=repeated(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(drawn=snapshots())
def test_any_snapshot_comes_back_as_it_was(store: Store, drawn: SessionSnapshot) -> None:
    # What stands in columns of its own is text to PostgreSQL, which has no zero character.
    saved = drawn.changed(
        id="snap_1", workflow_id="wf_1", session_number=1, session_id="session", pause_reason=None
    )
    known = store.workflows()
    store.apply(next_of(known[0], save=saved) if known else new(workflow(), save=saved))
    assert store.snapshot("snap_1") == saved == store.latest_snapshot("wf_1")


def test_an_entry_of_each_kind_comes_back_with_every_field(store: Store) -> None:
    store.apply(new(workflow(), *ONE_OF_EACH))
    assert [event.entry for event in store.events()] == list(ONE_OF_EACH)


def test_there_is_a_sample_of_each_kind_of_entry() -> None:
    assert {type(entry) for entry in ONE_OF_EACH} == set(get_args(get_args(AnyEntry)[0]))


def test_what_apply_returns_is_what_is_read_later(store: Store) -> None:
    recorded = store.apply(new(workflow(), *ONE_OF_EACH))
    assert list(recorded) == list(store.events())


def test_moments_are_the_same_instant_whatever_zone_they_came_in(store: Store) -> None:
    there = NOON.astimezone(timezone(timedelta(hours=9)))
    store.apply(new(workflow("wf_1", updated_at=there)))
    assert store.workflow("wf_1").updated_at == NOON


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.workflow("wf_none"),
        lambda store: store.snapshot("snap_none"),
    ],
    ids=["workflow", "snapshot"],
)
def test_what_is_not_there_is_not_found(store: Store, read: Callable[[Store], object]) -> None:
    with pytest.raises(NotFoundError, match="_none"):
        read(store)


def test_a_workflow_that_is_not_there_has_no_snapshots_and_no_events(store: Store) -> None:
    assert store.latest_snapshot("wf_none") is None
    assert list(store.snapshots("wf_none")) == []
    assert list(store.events(workflow_id="wf_none")) == []


def test_a_change_made_from_an_older_revision_is_refused(store: Store) -> None:
    first = workflow()
    store.apply(new(first))
    store.apply(next_of(first, numbered(1)))
    before = everything(store)
    with pytest.raises(ConflictError, match="wf_1"):
        store.apply(next_of(first, numbered(2), save=snapshot()))
    assert everything(store) == before


def test_a_change_of_a_workflow_that_is_not_there_is_refused(store: Store) -> None:
    with pytest.raises(ConflictError):
        store.apply(next_of(workflow()))
    assert everything(store) == ([], [], [])


def test_an_id_is_given_to_one_workflow_only(store: Store) -> None:
    store.apply(new(workflow(status="paused")))
    before = everything(store)
    with pytest.raises(ConflictError):
        store.apply(new(workflow(status="paused", worktree="/elsewhere")))
    assert everything(store) == before


@pytest.mark.parametrize("holder", ["in_progress", "blocked"])
@pytest.mark.parametrize("comer", ["in_progress", "blocked"])
def test_a_worktree_holds_one_active_workflow(
    store: Store, holder: WorkflowStatus, comer: WorkflowStatus
) -> None:
    store.apply(new(workflow("wf_1", worktree="/one", status=holder)))
    before = everything(store)
    with pytest.raises(HeldElsewhereError, match="/one") as raised:
        store.apply(new(workflow("wf_2", worktree="/one", status=comer)))
    assert not isinstance(raised.value, ConflictError)
    assert everything(store) == before


@pytest.mark.parametrize("status", sorted(VALID_TRANSITIONS.keys() - {"in_progress", "blocked"}))
def test_workflows_that_are_not_active_share_a_worktree_with_one_that_is(
    store: Store, status: WorkflowStatus
) -> None:
    store.apply(new(workflow("wf_1", worktree="/one", status="in_progress")))
    store.apply(new(workflow("wf_2", worktree="/one", status=status)))
    store.apply(new(workflow("wf_3", worktree="/one", status=status)))
    assert len(store.workflows(worktree="/one")) == 3


def test_a_paused_workflow_cannot_go_on_while_another_is_active_in_its_worktree(store: Store) -> None:
    paused = workflow("wf_1", worktree="/one", status="paused")
    store.apply(new(paused))
    store.apply(new(workflow("wf_2", worktree="/one")))
    with pytest.raises(HeldElsewhereError, match="/one"):
        store.apply(Change(paused.moved("in_progress", at(5)), 1, (NOTE,)))
    assert store.workflow("wf_1") == paused


def test_a_worktree_is_free_again_once_its_workflow_has_ended(store: Store) -> None:
    first = workflow("wf_1", worktree="/one")
    store.apply(new(first))
    store.apply(Change(first.moved("completed", at(1)), 1, (NOTE,)))
    store.apply(new(workflow("wf_2", worktree="/one")))
    assert store.workflow("wf_2").status == "in_progress"


def test_an_active_workflow_may_change_again_in_its_own_worktree(store: Store) -> None:
    first = workflow()
    store.apply(new(first))
    store.apply(Change(first.moved("blocked", at(1)), 1, (NOTE,)))
    assert store.workflow("wf_1").status == "blocked"


def test_saving_a_snapshot_again_replaces_it(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow, save=snapshot(pause_reason="first")))
    store.apply(next_of(flow, save=full_snapshot()))
    assert store.snapshot("snap_1") == full_snapshot()
    assert list(store.snapshots("wf_1")) == [SnapshotSummary.of(full_snapshot())]


def test_a_snapshot_that_takes_another_ones_number_leaves_no_trace_of_its_change(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow, save=snapshot("snap_1", number=1)))
    before = everything(store)
    with pytest.raises(ConflictError):
        store.apply(next_of(flow, numbered(1), numbered(2), save=snapshot("snap_2", number=1)))
    assert everything(store) == before


def test_a_workflow_whose_snapshot_clashes_is_not_made(store: Store) -> None:
    store.apply(new(workflow("wf_1"), save=snapshot("snap_1")))
    before = everything(store)
    with pytest.raises(HoldfastError):
        store.apply(new(workflow("wf_2"), numbered(1), delete="snap_none"))
    assert everything(store) == before
    with pytest.raises(NotFoundError):
        store.workflow("wf_2")


def test_two_workflows_number_their_sessions_apart(store: Store) -> None:
    store.apply(new(workflow("wf_1"), save=snapshot("snap_1", of="wf_1", number=1)))
    store.apply(new(workflow("wf_2"), save=snapshot("snap_2", of="wf_2", number=1)))
    assert [line.id for line in store.snapshots("wf_2")] == ["snap_2"]


def test_a_deleted_snapshot_is_gone_and_the_one_before_is_the_latest(store: Store) -> None:
    first = workflow()
    store.apply(new(first, save=snapshot("snap_1", number=1)))
    second = next_of(first, save=snapshot("snap_2", number=2))
    store.apply(second)
    store.apply(next_of(second.workflow, delete="snap_2"))
    with pytest.raises(NotFoundError):
        store.snapshot("snap_2")
    assert store.latest_snapshot("wf_1") == snapshot("snap_1", number=1)


def test_deleting_a_snapshot_that_is_not_there_leaves_no_trace(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow, save=snapshot()))
    before = everything(store)
    with pytest.raises(NotFoundError, match="snap_none"):
        store.apply(next_of(flow, delete="snap_none"))
    assert everything(store) == before


def test_a_snapshot_may_take_the_place_of_the_one_its_change_deletes(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow, save=snapshot("snap_1", number=1)))
    store.apply(next_of(flow, save=snapshot("snap_2", number=1), delete="snap_1"))
    assert [line.id for line in store.snapshots("wf_1")] == ["snap_2"]


def test_a_snapshot_is_removed_before_one_of_the_same_name_is_saved(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow, save=snapshot(pause_reason="old")))
    store.apply(next_of(flow, save=snapshot(pause_reason="new"), delete="snap_1"))
    assert store.snapshot("snap_1").pause_reason == "new"


def test_the_latest_snapshot_is_the_one_of_the_last_session(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow))
    for number in (1, 2, 10, 9):
        change = next_of(flow, save=snapshot(f"snap_{number}", number=number, created_at=at(number)))
        store.apply(change)
        flow = change.workflow
    latest = store.latest_snapshot("wf_1")
    assert latest is not None
    assert latest.id == "snap_10"


def test_snapshots_are_listed_in_the_order_of_their_sessions(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow))
    for number in (2, 10, 1):
        change = next_of(flow, save=snapshot(f"snap_{number}", number=number))
        store.apply(change)
        flow = change.workflow
    assert [line.session_number for line in store.snapshots("wf_1")] == [1, 2, 10]


def test_a_line_of_the_list_tells_what_the_snapshot_tells(store: Store) -> None:
    store.apply(new(workflow(), save=full_snapshot()))
    assert list(store.snapshots("wf_1")) == [SnapshotSummary.of(full_snapshot())]
    assert list(store.find_snapshots("snap_1")) == [SnapshotSummary.of(full_snapshot())]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("snap_01a", ["snap_01a", "snap_01ab"]),
        ("snap_01ab", ["snap_01ab"]),
        ("snap_0", ["snap_01a", "snap_01ab", "snap_02"]),
        ("", ["snap_01a", "snap_01ab", "snap_02"]),
        ("snap_01az", []),
        ("SNAP_0", []),
        ("snap%", []),
        ("snap_0_", []),
        ("snap-0", []),
        ("session-20260106-120002", ["snap_02"]),
        ("session-20260106", []),
        ("' OR 1=1 --", []),
    ],
)
def test_a_snapshot_is_found_by_how_its_id_begins_or_by_its_whole_session_name(
    store: Store, name: str, found: list[str]
) -> None:
    for number, each in enumerate(("snap_01a", "snap_02", "snap_01ab"), start=1):
        store.apply(new(workflow(f"wf_{number}"), save=snapshot(each, of=f"wf_{number}", number=number)))
    assert sorted(line.id for line in store.find_snapshots(name)) == found


def test_found_snapshots_come_newest_first_whatever_the_clock_said(store: Store) -> None:
    for number, seconds in enumerate((5, 9, 5, 1), start=1):
        saved = snapshot(f"snap_{number}", of=f"wf_{number}", created_at=at(seconds))
        store.apply(new(workflow(f"wf_{number}"), save=saved))
    assert [line.id for line in store.find_snapshots("snap_")] == ["snap_4", "snap_3", "snap_2", "snap_1"]


def test_a_snapshot_that_comes_late_stands_before_those_that_followed_it(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow))
    for number in (2, 4, 3, 1):  # 3 and 1 from a file
        change = next_of(flow, save=snapshot(f"snap_{number}", number=number, created_at=at(number)))
        store.apply(change)
        flow = change.workflow
        store.apply(new(workflow(f"wf_9{number}"), save=snapshot(f"snap_9{number}", of=f"wf_9{number}")))
    changed = snapshot("snap_2", number=2, created_at=at(2), pause_reason="told later")
    store.apply(next_of(flow, save=changed))
    names = [line.id.removeprefix("snap_") for line in store.find_snapshots("snap_")]
    assert names == ["91", "93", "94", "4", "3", "92", "2", "1"]


def test_a_session_name_that_two_projects_use_finds_both(store: Store) -> None:
    for number in (1, 2):
        saved = snapshot(f"snap_{number}", of=f"wf_{number}", session_id="session-20260106-120000")
        store.apply(new(workflow(f"wf_{number}"), save=saved))
    assert len(store.find_snapshots("session-20260106-120000")) == 2


def test_workflows_come_most_recently_changed_first_whatever_the_clock_said(store: Store) -> None:
    for number, seconds in enumerate((5, 9, 5, 1.000001, 1), start=1):
        store.apply(new(workflow(f"wf_{number}", updated_at=at(seconds), run_id="run")))
    assert [flow.id for flow in store.workflows()] == ["wf_5", "wf_4", "wf_3", "wf_2", "wf_1"]
    assert [flow.id for flow in store.queued()] == ["wf_1", "wf_2", "wf_3", "wf_4", "wf_5"]


def test_a_change_brings_a_workflow_to_the_front(store: Store) -> None:
    first = workflow("wf_1")
    store.apply(new(first))
    store.apply(new(workflow("wf_2", updated_at=at(1))))
    store.apply(Change(first.changed(revision=2, updated_at=at(-9)), 1, (numbered(1),)))
    assert [flow.id for flow in store.workflows()] == ["wf_1", "wf_2"]


def test_workflows_can_be_asked_for_by_worktree_and_status_and_number(store: Store) -> None:
    for number, (worktree, status) in enumerate(
        [("/a", "paused"), ("/a", "in_progress"), ("/b", "paused"), ("/a", "completed")], start=1
    ):
        store.apply(new(workflow(f"wf_{number}", worktree=worktree, status=status, updated_at=at(number))))

    def found(**question: object) -> list[str]:
        return [flow.id for flow in store.workflows(**question)]  # type: ignore[arg-type]

    assert found(worktree="/a") == ["wf_4", "wf_2", "wf_1"]
    assert found(statuses={"paused"}) == ["wf_3", "wf_1"]
    assert found(statuses=frozenset({"paused", "completed"}), worktree="/a") == ["wf_4", "wf_1"]
    assert found(statuses=set[str]()) == []
    assert found(limit=2) == ["wf_4", "wf_3"]
    assert found(worktree="/a", limit=1) == ["wf_4"]
    assert found(worktree="/A") == []


def test_pages_of_workflows_follow_each_other_without_a_gap_or_an_overlap(store: Store) -> None:
    for number, seconds in enumerate((5, 9, 5, 1.000001, 1, 5), start=1):
        store.apply(new(workflow(f"wf_{number}", updated_at=at(seconds))))
    whole = list(store.workflows())
    pages: list[list[str]] = []
    page, position = store.workflow_page(limit=2)
    pages.append([flow.id for flow in page])
    store.apply(next_of(store.workflow("wf_1")))  # comes to the front, and is missed by nobody who is there
    while position is not None:
        page, position = store.workflow_page(limit=2, before=position)
        pages.append([flow.id for flow in page])
    assert [one for page in pages for one in page] == [flow.id for flow in whole if flow.id != "wf_1"]
    assert [len(page) for page in pages] == [2, 2, 1]


def test_workflows_are_searched_by_title_issue_id_and_worktree(store: Store) -> None:
    store.apply(new(workflow("wf_1", issue=Issue(id="NET-4", title="Mend 50% of the nets"))))
    store.apply(new(workflow("wf_2", issue=Issue(id="SAIL-9", title="Hoist it"), worktree="/srv/Boat_house")))

    def found(text: str) -> list[str]:
        return [flow.id for flow in store.workflows(search=text)]

    assert found("mend") == found("net-4") == found("50%") == ["wf_1"]
    assert found("boat_h") == found("WF_2") == ["wf_2"]
    assert found("") == found("srv") == ["wf_2", "wf_1"]
    assert found("5%f") == found("boat-h") == []


def test_the_range_of_the_events(store: Store) -> None:
    assert store.event_range() == (0, 0)
    store.apply(new(workflow(), numbered(1), numbered(2)))
    events = store.events()
    assert store.event_range() == (events[0].seq, events[-1].seq)


def test_events_can_be_asked_for_by_type(store: Store) -> None:
    store.apply(new(workflow(), numbered(1), NOTE, numbered(2)))
    assert [event.entry for event in store.events(types=[NOTE.type])] == [NOTE]
    assert store.events(types=["nothing_like_it"]) == []


def test_events_come_in_the_order_they_were_recorded(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow, *(numbered(number) for number in range(12))))
    store.apply(new(workflow("wf_2"), numbered(12)))
    store.apply(next_of(flow, numbered(13)))
    events = store.events()
    assert [event.entry for event in events] == [numbered(number) for number in range(14)]
    numbers = [event.seq for event in events]
    assert numbers == sorted(set(numbers))


def test_events_of_one_workflow_leave_out_the_others(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow, numbered(1)))
    store.apply(new(workflow("wf_2"), numbered(2)))
    store.apply(next_of(flow, numbered(3)))
    assert [event.entry for event in store.events(workflow_id="wf_1")] == [numbered(1), numbered(3)]


def test_since_asks_for_what_came_after_a_number(store: Store) -> None:
    store.apply(new(workflow(), *(numbered(number) for number in range(5))))
    events = list(store.events())
    for position, event in enumerate(events):
        assert list(store.events(since=event.seq)) == events[position + 1 :]


@pytest.mark.parametrize("since", [0, -1, -100])
def test_since_zero_or_less_means_from_the_start(store: Store, since: int) -> None:
    store.apply(new(workflow(), numbered(1), numbered(2)))
    assert len(store.events(since=since)) == 2


def test_a_limit_takes_the_earliest_events(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow, numbered(1), numbered(2)))
    store.apply(new(workflow("wf_2"), numbered(3)))
    store.apply(next_of(flow, numbered(4), numbered(5)))
    events = list(store.events())
    assert list(store.events(limit=2)) == events[:2]
    assert list(store.events(since=events[1].seq, limit=2)) == events[2:4]
    assert list(store.events(workflow_id="wf_1", since=events[0].seq, limit=2)) == [events[1], events[3]]
    assert list(store.events(limit=99)) == events


def test_an_event_carries_the_moment_of_its_change(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow))
    store.apply(next_of(flow, numbered(1), seconds=7))
    assert [event.at for event in store.events()] == [NOON, at(7)]


def test_what_one_event_holds_may_be_large(store: Store) -> None:
    large = numbered(1).changed(result="é" * 1_000_000)
    store.apply(new(workflow(), large))
    assert store.events()[0].entry == large


def test_a_zero_character_in_a_text_is_kept_or_refused_in_our_words(store: Store) -> None:
    odd = workflow(pause_reason="a\0b")
    try:
        store.apply(new(odd))
    except HoldfastError:
        assert everything(store) == ([], [], [])
    else:
        assert store.workflow("wf_1") == odd


def test_a_failed_change_does_not_spoil_the_next(store: Store) -> None:
    flow = workflow()
    store.apply(new(flow))
    with pytest.raises(ConflictError):
        store.apply(replace(next_of(flow), seen=99))
    store.apply(next_of(flow, numbered(1)))
    assert store.workflow("wf_1").revision == 2
