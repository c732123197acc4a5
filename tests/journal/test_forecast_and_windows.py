from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.base.errors import InvalidInputError
from holdfast.journal.usage import seconds_until_full
from holdfast.journal.windows import DEFAULT_WINDOW, context_window
from holdfast.model.policy import Level, Levels


def test_a_steady_rise_is_carried_on() -> None:
    assert seconds_until_full([(0, 0.5), (10, 0.6), (20, 0.7)]) == pytest.approx(30)


@pytest.mark.parametrize(
    "samples", [[], [(0, 0.5)], [(0, 0.5), (0, 0.9)], [(0, 0.9), (10, 0.9)], [(0, 0.9), (10, 0.4)]]
)
def test_what_does_not_rise_has_no_end_in_sight(samples: list[tuple[float, float]]) -> None:
    assert seconds_until_full(samples) is None


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1)), max_size=50))
def test_a_forecast_is_never_in_the_past(samples: list[tuple[float, float]]) -> None:
    left = seconds_until_full(sorted(samples))
    assert left is None or left >= 0


@pytest.mark.parametrize(
    ("model", "window"),
    [
        (None, DEFAULT_WINDOW),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-sonnet-4-5[1m]", 1_000_000),
        ("anthropic/claude-opus-4-1", 200_000),
        ("GPT-4o-mini", 128_000),
        ("gpt-5-codex", 400_000),
        ("gemini-2.5-pro", 1_048_576),
        ("something-new", DEFAULT_WINDOW),
    ],
)
def test_windows(model: str | None, window: int) -> None:
    assert context_window(model) == window


@given(st.floats(0, 2))
def test_levels_rise_with_the_share(share: float) -> None:
    levels = Levels()
    assert levels.at(share) >= levels.at(share / 2)
    assert isinstance(levels.at(share), Level)


@pytest.mark.parametrize("bounds", [(0.9, 0.8, 0.95, 0.99), (0, 0.5, 0.6, 0.7), (0.5, 0.6, 0.7, 1.1)])
def test_levels_out_of_order_are_refused(bounds: tuple[float, float, float, float]) -> None:
    with pytest.raises(InvalidInputError):
        Levels(*bounds)
