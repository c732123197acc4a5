"""What changed between two snapshots."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from holdfast.model.snapshot import FactChange, FileFingerprint, SessionSnapshot, TaskChange, diff
from holdfast.model.task import Task, TaskDAG
from model.strategies import snapshots
from store.samples import DECISION, ERROR, PLAN, full_snapshot


def file(path: str, digit: str) -> FileFingerprint:
    return FileFingerprint(path=path, hash=f"sha256:{digit * 64}", mtime_ns=0, size=0)


def changed(**fields: Any) -> SessionSnapshot:
    return full_snapshot().changed(**fields)


@given(value=snapshots())
def test_a_snapshot_does_not_differ_from_itself(value: SessionSnapshot) -> None:
    assert diff(value, value).is_empty


def test_it_names_both_sessions() -> None:
    found = diff(full_snapshot(), changed(session_id="session-20260107-080000"))
    assert (found.before, found.after) == ("session-20260106-120001", "session-20260107-080000")


@pytest.mark.parametrize(
    ("what", "fields", "after"),
    [
        ("workflow", {"workflow_id": "wf_2"}, "wf_2"),
        ("session number", {"session_number": 2}, 2),
        ("trigger", {"trigger": "crash"}, "crash"),
        ("reason", {"pause_reason": None}, None),
        ("constraints", {"constraints": ()}, []),
    ],
)
def test_a_fact_that_changed_is_told_then_and_now(what: str, fields: dict[str, Any], after: object) -> None:
    [step] = diff(full_snapshot(), changed(**fields)).facts
    assert (step.what, step.after) == (what, after)


def test_facts_of_git_tests_and_usage_are_told() -> None:
    value = full_snapshot()
    assert value.git_state is not None
    assert value.test_state is not None
    after = value.changed(
        git_state=value.git_state.changed(
            branch="other", commit_at_snapshot="c" * 40, uncommitted_summary=None
        ),
        test_state=value.test_state.changed(phase="green", failing_tests=()),
        usage=value.usage.changed(tokens_used=1, tool_calls=2, context_utilization=0.1),
    )
    assert [step.what for step in diff(value, after).facts] == [
        "branch",
        "commit",
        "uncommitted changes",
        "test phase",
        "failing tests",
        "context used",
        "tokens used",
        "tool calls",
    ]


def test_a_repository_that_came_or_went_is_told() -> None:
    steps = diff(full_snapshot(), changed(git_state=None)).facts
    assert FactChange(what="branch", before="main", after=None) in steps


def test_tasks_that_moved_came_or_went_are_told_in_plan_order() -> None:
    after = TaskDAG(
        tasks=(
            *PLAN.updated({"t2": {"status": "completed"}}).tasks[:2],
            Task(id="t4", description="new"),
        )
    )
    assert diff(full_snapshot(), changed(task_dag=after)).tasks == (
        TaskChange(id="t2", before="pending", after="completed"),
        TaskChange(id="t3", before="blocked", after=None),
        TaskChange(id="t4", before=None, after="pending"),
    )


def test_new_findings_are_told() -> None:
    decision, error = DECISION.changed(id="d2"), ERROR.changed(id="e2")
    found = diff(full_snapshot(), changed(decisions=(DECISION, decision), errors=(ERROR, error)))
    assert (found.decisions_added, found.errors_added, found.errors_resolved) == ((decision,), (error,), ())


@pytest.mark.parametrize("resolution", ["fixed", "workaround", "deferred"])
def test_an_error_that_was_resolved_is_told(resolution: str) -> None:
    solved = ERROR.changed(resolution=resolution)
    found = diff(full_snapshot(), changed(errors=(solved,)))
    assert (found.errors_resolved, found.errors_added) == ((solved,), ())


def test_files_that_came_went_or_changed_are_told_by_name() -> None:
    before = changed(files=(file("same", "0"), file("b", "1"), file("a", "1"), file("gone", "2")))
    after = changed(files=(file("new", "3"), file("a", "4"), file("b", "4"), file("same", "0")))
    found = diff(before, after)
    assert (found.files_added, found.files_removed, found.files_changed) == (("new",), ("gone",), ("a", "b"))
