"""Why and when a session is paused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.base.errors import InvalidInputError
from holdfast.model.policy import Level, Levels, PausePolicy, Situation, must_force, pause_cause
from holdfast.model.thresholds import LEVELS

ALL = PausePolicy(exhaustion_at=0.85, every_tasks=3, timeout_seconds=60)


@pytest.mark.parametrize(
    ("policy", "share", "tasks", "seconds", "trigger"),
    [
        (PausePolicy(), None, 0, 0, None),
        (PausePolicy(), 0.849, 0, 0, None),
        (PausePolicy(), 0.85, 0, 0, "exhaustion"),
        (PausePolicy(), 1.2, 0, 0, "exhaustion"),
        (PausePolicy(exhaustion_at=0.5), 0.5, 0, 0, "exhaustion"),
        (PausePolicy(), None, 10_000, 1e9, None),
        (PausePolicy(every_tasks=3), None, 2, 0, None),
        (PausePolicy(every_tasks=3), None, 3, 0, "task_complete"),
        (PausePolicy(every_tasks=3), None, 4, 0, "task_complete"),
        (PausePolicy(timeout_seconds=60), None, 0, 59.9, None),
        (PausePolicy(timeout_seconds=60), None, 0, 60, "timeout"),
        (ALL, 0.1, 0, 0, None),
        (ALL, 0.9, 3, 60, "exhaustion"),
        (ALL, 0.1, 3, 60, "timeout"),
        (ALL, 0.1, 3, 59, "task_complete"),
        (ALL, None, 3, 60, "timeout"),
    ],
)
def test_the_most_pressing_cause_asks_for_the_pause(
    policy: PausePolicy, share: float | None, tasks: int, seconds: float, trigger: str | None
) -> None:
    cause = pause_cause(policy, Situation(context_share=share, tasks_done=tasks, seconds_running=seconds))
    assert (cause.trigger if cause else None) == trigger


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        (Situation(context_share=0.91), "context is 91% full (limit 85%)"),
        (Situation(seconds_running=61), "the session has run for 60 s"),
        (Situation(tasks_done=4), "4 tasks done in this session"),
    ],
)
def test_a_cause_says_why_in_words(situation: Situation, words: str) -> None:
    cause = pause_cause(ALL, situation)
    assert cause is not None
    assert cause.reason == words


@pytest.mark.parametrize(("seconds", "forced"), [(0, False), (299.9, False), (300, True), (301, True)])
def test_a_request_waits_five_minutes_for_its_boundary(seconds: float, forced: bool) -> None:
    assert must_force(PausePolicy(), seconds) is forced


def test_how_long_a_request_waits_can_be_chosen() -> None:
    assert must_force(PausePolicy(force_after_seconds=1), 1)


@pytest.mark.parametrize(
    ("share", "level"),
    [
        (0, Level.NORMAL),
        (0.699, Level.NORMAL),
        (0.70, Level.CAUTION),
        (0.849, Level.CAUTION),
        (0.85, Level.WARNING),
        (0.90, Level.AUTO_PAUSE),
        (0.95, Level.CRITICAL),
        (1.5, Level.CRITICAL),
    ],
)
def test_each_level_begins_at_its_share(share: float, level: Level) -> None:
    assert Levels().at(share) is level


def test_levels_are_called_as_people_write_them() -> None:
    assert [level.label for level in Level] == ["normal", "caution", "warning", "auto-pause", "critical"]


@given(st.dictionaries(st.sampled_from(sorted(LEVELS)), st.floats(0.01, 1)))
def test_levels_that_nobody_set_give_way_to_those_that_are(chosen: dict[str, float]) -> None:
    bounds = [chosen[name] for name in LEVELS if name in chosen]
    if bounds != sorted(bounds):
        with pytest.raises(InvalidInputError, match="levels must increase"):
            Levels.given(chosen)
        return
    levels = Levels.given(chosen)
    for name, default in LEVELS.items():
        now = getattr(levels, name)
        assert now == chosen.get(name, now)
        assert now in (default, *bounds)


@pytest.mark.parametrize(
    "bounds", [(0.9, 0.8, 0.95, 1), (0, 0.8, 0.9, 1), (0.7, 0.8, 0.9, 1.1), (-1, 0.1, 0.2, 0.3)]
)
def test_levels_that_do_not_rise_within_the_window_are_refused(bounds: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="increase"):
        Levels(*bounds)
