"""Programs that move from claude-mpm's tracker find its methods and fields."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import ContextUsageTracker
from holdfast.base.errors import InvalidInputError
from holdfast.model.policy import Levels


@pytest.mark.parametrize(
    ("tokens", "level"),
    [
        (0, None),
        (139_999, None),
        (140_000, "caution"),
        (170_000, "warning"),
        (180_000, "auto_pause"),
        (190_000, "critical"),
    ],
)
def test_the_thresholds_have_its_names(tmp_path: Path, tokens: int, level: str | None) -> None:
    tracker = ContextUsageTracker(tmp_path)
    state = tracker.update_usage(input_tokens=tokens, output_tokens=0)
    again = ContextUsageTracker(tmp_path)
    for told in (state, again.get_current_state()):
        assert told.threshold_reached == tracker.check_thresholds(told) == again.check_thresholds() == level
        assert told.auto_pause_active is (level in ("auto_pause", "critical"))


def test_the_summary_and_the_fields(tmp_path: Path) -> None:
    tracker = ContextUsageTracker(tmp_path, session_id="mpm")
    state = tracker.update_usage(1_000, 200, cache_creation=30, cache_read=4)
    assert (state.cumulative_input_tokens, state.cumulative_output_tokens) == (1_000, 200)
    assert (state.cache_creation_tokens, state.cache_read_tokens) == (30, 4)
    assert tracker.get_usage_summary() == {
        "session_id": "mpm",
        "total_tokens": 1_234,
        "budget": 200_000,
        "percentage_used": 0.62,
        "threshold_reached": None,
        "auto_pause_active": False,
        "breakdown": {
            "input_tokens": 1_000,
            "output_tokens": 200,
            "cache_creation_tokens": 30,
            "cache_read_tokens": 4,
        },
        "last_updated": state.last_updated,
    }


def test_levels_of_the_user_count(tmp_path: Path) -> None:
    tracker = ContextUsageTracker(tmp_path, levels=Levels(0.1, 0.2, 0.3, 0.4))
    assert tracker.update_usage(70_000, 0).threshold_reached == "auto_pause"
    assert tracker.get_current_state().auto_pause_active


def test_a_reset_empties_the_window(tmp_path: Path) -> None:
    tracker = ContextUsageTracker(tmp_path, session_id="first")
    tracker.update_usage(190_000, 0, report_id="a")
    tracker.reset_session("second")
    assert (tracker.get_current_state().session_id, tracker.get_current_state().total_tokens) == ("second", 0)
    assert ContextUsageTracker(tmp_path, session_id="first").get_current_state().total_tokens == 190_000
    first = ContextUsageTracker(tmp_path, session_id="first")
    first.reset_session()
    assert first.get_current_state().total_tokens == 0
    assert first.update_usage(5, 0, report_id="a").total_tokens == 5  # ids of before count no more


def test_a_negative_count_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        ContextUsageTracker(tmp_path).update_usage(1, 1, cache_creation=-1)
