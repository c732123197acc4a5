"""States of a workflow, and which may follow which."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from holdfast.base.errors import IllegalTransitionError
from holdfast.model.workflow import ACTIVE, OPEN, VALID_TRANSITIONS, WorkflowStatus
from store.samples import NOON, at, full_workflow, workflow

STATUSES: tuple[WorkflowStatus, ...] = (
    "pending",
    "in_progress",
    "blocked",
    "paused",
    "completed",
    "failed",
    "cancelled",
)
ALLOWED = {
    ("pending", "in_progress"),
    ("pending", "cancelled"),
    ("in_progress", "blocked"),
    ("in_progress", "paused"),
    ("in_progress", "completed"),
    ("in_progress", "failed"),
    ("in_progress", "cancelled"),
    ("blocked", "in_progress"),
    ("blocked", "failed"),
    ("blocked", "cancelled"),
    ("paused", "in_progress"),
    ("paused", "cancelled"),
    ("failed", "in_progress"),
    ("failed", "cancelled"),
}


@pytest.mark.parametrize("after", STATUSES)
@pytest.mark.parametrize("before", STATUSES)
def test_a_step_is_taken_or_refused_as_the_table_says(before: WorkflowStatus, after: WorkflowStatus) -> None:
    flow = workflow(status=before)
    if (before, after) in ALLOWED:
        assert flow.moved(after, at(1)).status == after
    else:
        with pytest.raises(IllegalTransitionError, match=f"is {before} and cannot become {after}"):
            flow.moved(after, at(1))


def test_the_table_knows_every_status() -> None:
    assert set(VALID_TRANSITIONS) == set(STATUSES)


def test_a_refused_step_says_what_is_allowed() -> None:
    with pytest.raises(IllegalTransitionError, match=r"allowed: cancelled, in_progress"):
        workflow(status="paused").moved("completed", NOON)
    with pytest.raises(IllegalTransitionError, match="it has ended"):
        workflow(status="cancelled").moved("in_progress", NOON)


def test_active_means_running_or_blocked_and_open_all_that_can_still_run() -> None:
    assert {"in_progress", "blocked"} == ACTIVE
    assert {"pending", "in_progress", "blocked", "paused"} == OPEN


def test_each_change_is_the_next_revision_at_its_moment() -> None:
    flow = full_workflow()
    after = flow.touched(NOON + timedelta(hours=1), pause_reason="new")
    assert (after.revision, after.updated_at, after.pause_reason) == (2, NOON + timedelta(hours=1), "new")
    assert after.changed(revision=1, updated_at=flow.updated_at, pause_reason=flow.pause_reason) == flow


def test_a_change_is_validated_like_a_new_one() -> None:
    with pytest.raises(ValidationError):
        workflow().changed(revision=0)
    with pytest.raises(ValidationError):
        workflow().changed(status="asleep")


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        workflow(created_at=NOON.replace(tzinfo=None))
