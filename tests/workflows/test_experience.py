"""Predictions: what they rest on, and what they keep from being started."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.entry import TaskFinished, WorkflowPaused
from holdfast.model.policy import Expectation, PausePolicy, Situation, does_not_fit
from holdfast.store.protocol import Store
from holdfast.workflows.experience import Experience, pauses_by_trigger
from store.samples import new, workflow


def ended(seconds: float, share: float | None, driver: str = "codex", **fields: Any) -> TaskFinished:
    how = {"task_id": "t", "outcome": "completed", "driver": driver, **fields}
    return TaskFinished.model_validate({**how, "seconds": seconds, "context_share": share})


def test_what_earlier_tasks_needed(store: Store) -> None:
    tasks = [ended(seconds, seconds / 100) for seconds in (1, 2, 3, 4, 10)]
    other = [ended(1, None, "shell", outcome="failed"), ended(99, None, "shell", outcome="interrupted")]
    paused = WorkflowPaused(
        snapshot_id="s", session_id="session-20260106-120000", session_number=1, trigger="exhaustion"
    )
    store.apply(new(workflow(), *tasks, *other, paused, paused))
    codex, shell = Experience.of(store).drivers
    assert (codex.tasks, codex.seconds_median, codex.seconds_high) == (5, 3, 5.2)
    assert (codex.share_median, codex.share_high) == (0.03, 0.052)
    assert (shell.tasks, shell.failed, shell.share_high) == (1, 1, None)
    assert pauses_by_trigger(store) == {"exhaustion": 2}
    expected = Experience.of(store).expectation("codex")
    assert expected is not None
    assert "last 5 codex tasks" in expected.basis
    assert Experience.of(store).expectation("shell") is None  # too few to judge by


EXPECTED = Expectation(seconds=60, context_share=0.3, basis="of 9")


@pytest.mark.parametrize(
    ("now", "policy", "trigger"),
    [
        (Situation(0.5, 1, 0), PausePolicy(), None),
        (Situation(0.6, 1, 0), PausePolicy(), "exhaustion"),
        (Situation(0.6, 0, 0), PausePolicy(), None),  # a new session would have no more room
        (Situation(None, 1, 0), PausePolicy(), None),
        (Situation(None, 1, 50), PausePolicy(timeout_seconds=100), "timeout"),
        (Situation(None, 1, 30), PausePolicy(timeout_seconds=100), None),
    ],
)
def test_what_does_not_fit_is_not_started(now: Situation, policy: PausePolicy, trigger: str | None) -> None:
    cause = does_not_fit(policy, now, "t7", EXPECTED)
    assert (cause.trigger if cause else None) == trigger
    if cause:
        assert "task t7 would not fit" in cause.reason
        assert "(of 9)" in cause.reason
    assert does_not_fit(policy, now, "t7", None) is None
