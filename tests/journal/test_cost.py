"""What it costs to read a context."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.journal.usage import _INPUT_PRICES, characters_for, reading_cost


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("claude-opus-4-20250514", 15.0),
        ("claude-opus-4-5-20251101", 5.0),
        ("Claude-Sonnet-4-5", 3.0),
        ("anthropic/claude-haiku-4-5", 1.0),
        ("gpt-5", 1.25),
        ("gpt-5-mini-2025", 0.25),
        ("gpt-4o-mini", 0.15),
        ("gemini-2.5-flash-lite", 0.3),
    ],
)
def test_the_longest_name_that_fits_counts(model: str, dollars: float) -> None:
    cost = reading_cost(3_500_000, model)
    assert (cost.tokens, cost.model) == (1_000_000, model)
    assert cost.dollars == pytest.approx(dollars)


@pytest.mark.parametrize("model", [None, "", "homegrown-7b", "my-gpt-5", "/"])
def test_no_price_is_made_up(model: str | None) -> None:
    cost = reading_cost(7000, model)
    assert cost.dollars is None
    assert str(cost) == "about 2,000 tokens to read"


def test_in_words() -> None:
    assert str(reading_cost(9500, "claude-sonnet-4-5")) == (
        "about 2,715 tokens to read, about $0.0081 with claude-sonnet-4-5"
    )
    assert str(reading_cost(0, "gpt-5")) == "about 0 tokens to read, about $0.0000 with gpt-5"


@given(st.integers(0, 10**9))
def test_a_text_that_was_cut_to_a_budget_costs_no_more_than_it(tokens: int) -> None:
    assert reading_cost(characters_for(tokens)).tokens <= tokens


@given(st.integers(0, 10**7), st.sampled_from(sorted(_INPUT_PRICES)))
def test_more_text_never_costs_less(characters: int, model: str) -> None:
    less, more = reading_cost(characters, model), reading_cost(characters + 1, model)
    assert less.tokens <= more.tokens
    assert less.dollars is not None
    assert more.dollars is not None
    assert 0 <= less.dollars <= more.dollars
