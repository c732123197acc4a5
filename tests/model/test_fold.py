"""A session's state is a fold over its entries; a snapshot is a place to start from."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.model.entry import (
    ConstraintPinned,
    DecisionRecorded,
    Entry,
    ErrorRecorded,
    Event,
    TaskFinished,
    TaskStarted,
    TodosSet,
    UnknownEntry,
    UsageReported,
    WorkflowCreated,
    WorkflowResumed,
    entry_from_json,
)
from holdfast.model.fold import SessionFold
from holdfast.model.gathered import Gathered
from holdfast.model.message import TodoItem
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Issue
from holdfast.resume.snapshots import history
from model.strategies import PLAN, entries
from store.samples import DECISION, ERROR, NOON, ONE_OF_EACH, USAGE, snapshot

CREATED = WorkflowCreated(
    issue=Issue(id="7", title="x"), worktree="/w", task_dag=PLAN, constraints=("first",)
)


def events(*happened: Entry, after: int = 0) -> list[Event]:
    return [
        Event(seq=number, workflow_id="wf_1", at=NOON, entry=entry)
        for number, entry in enumerate(happened, start=after + 1)
    ]


def folded(*happened: Entry) -> SessionFold:
    return SessionFold().take(events(CREATED, *happened))


def kept(fold: SessionFold) -> SessionSnapshot:
    """The fold as a snapshot, nothing added."""
    return snapshot(
        task_dag=fold.tasks(),
        current_task_id=fold.current_task_id,
        decisions=tuple(fold.decisions.values()),
        errors=tuple(fold.errors.values()),
        reviewer_feedback=tuple(fold.feedback.values()) or None,
        test_state=fold.test_state,
        constraints=tuple(fold.constraints),
        usage=fold.usage,
        folded_through=fold.through,
    )


@given(before=st.lists(entries, max_size=8), after=st.lists(entries, max_size=8))
@example(
    before=[TaskFinished(task_id="a", outcome="failed", result="it tore")], after=[TaskStarted(task_id="a")]
)
def test_folding_on_from_a_snapshot_is_folding_from_the_start(
    before: list[Entry], after: list[Entry]
) -> None:
    # A session starts with its resumption, which is where the count of usage starts anew.
    later = [WorkflowResumed(session_number=2), *after]
    whole = folded(*before, *later)
    first = folded(*before)
    onwards = SessionFold.starting_from(kept(first)).take(events(*later, after=first.through))
    assert kept(onwards) == kept(whole)


@given(happened=st.lists(entries, max_size=8), cut=st.integers(0, 8))
def test_folding_in_two_parts_is_folding_at_once(happened: list[Entry], cut: int) -> None:
    all_events = events(CREATED, *happened)
    assert kept(SessionFold().take(all_events[:cut]).take(all_events[cut:])) == kept(
        SessionFold().take(all_events)
    )


@given(happened=st.lists(entries, min_size=1, max_size=8))
def test_it_knows_how_far_it_has_read(happened: list[Entry]) -> None:
    assert folded(*happened).through == len(happened) + 1


def test_it_starts_from_the_plan_and_the_constraints_of_the_workflow() -> None:
    fold = folded()
    assert (fold.tasks(), list(fold.constraints)) == (PLAN, ["first"])


def test_a_started_task_runs_until_it_is_finished() -> None:
    fold = folded(TaskStarted(task_id="a"))
    assert (fold.tasks().by_id["a"].status, fold.current_task_id) == ("in_progress", "a")
    fold = folded(TaskStarted(task_id="a"), TaskFinished(task_id="a", outcome="completed", result="ok"))
    assert (fold.tasks().by_id["a"].status, fold.tasks().by_id["a"].result) == ("completed", "ok")
    assert fold.current_task_id is None


def test_an_interrupted_task_did_not_happen() -> None:
    fold = folded(TaskStarted(task_id="a"), TaskFinished(task_id="a", outcome="interrupted"))
    again = PLAN.updated({"a": {"attempts": 1}})  # but that it was tried is remembered
    assert fold.tasks() == again


def test_finishing_one_task_leaves_the_other_current() -> None:
    fold = folded(
        TaskStarted(task_id="a"), TaskStarted(task_id="b"), TaskFinished(task_id="a", outcome="failed")
    )
    assert fold.current_task_id == "b"


def test_the_newer_word_on_an_error_takes_its_place() -> None:
    second = ERROR.changed(id="e2")
    solved = ERROR.changed(resolution="fixed")
    fold = folded(*(ErrorRecorded(error=error) for error in (ERROR, second, solved)))
    assert list(fold.errors.values()) == [solved, second]


def test_a_decision_recorded_twice_is_one() -> None:
    fold = folded(DecisionRecorded(decision=DECISION), DecisionRecorded(decision=DECISION))
    assert list(fold.decisions.values()) == [DECISION]


def test_a_constraint_pinned_twice_keeps_its_first_place() -> None:
    fold = folded(*(ConstraintPinned(text=text) for text in ("b", "a", "b", "first")))
    assert list(fold.constraints) == ["first", "b", "a"]


def test_an_open_to_do_outlives_sessions_that_do_not_touch_it() -> None:
    done, left = TodoItem("write it", "completed"), TodoItem("write docs", "pending")
    first = snapshot(todos=(done, left))
    assert SessionFold.starting_from(first).todos == (left,)
    assert history(snapshot(todos=(left,), gathered=Gathered()), "tasks") == "- pending: write docs\n"
    finished = TodosSet(todos=(TodoItem("write docs", "completed"),))
    second = snapshot(todos=SessionFold.starting_from(first).take(events(finished)).todos)
    assert SessionFold.starting_from(second).todos == ()
    assert SessionFold.starting_from(first.changed(closed=True)).todos == ()


def test_usage_is_the_newest_report_of_this_session() -> None:
    assert folded(UsageReported(usage=UsageMetrics()), UsageReported(usage=USAGE)).usage == USAGE
    assert folded(UsageReported(usage=USAGE), WorkflowResumed(session_number=2)).usage == UsageMetrics()


def test_an_entry_of_an_unknown_kind_has_no_effect() -> None:
    unknown = UnknownEntry.model_validate({"type": "sail_set", "area": 3})
    assert kept(folded(unknown)).changed(folded_through=1) == kept(folded())


def test_every_kind_of_entry_is_the_same_after_json() -> None:
    for entry in ONE_OF_EACH:
        assert entry_from_json(entry.type, entry.model_dump_json()) == entry


@given(entry=entries)
def test_an_entry_is_the_same_after_json(entry: Entry) -> None:
    assert entry_from_json(entry.type, entry.model_dump_json()) == entry
