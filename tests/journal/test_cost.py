"""What tokens cost: by a table with a date, by the user's own prices, or not known."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.journal.prices import cost_of, price_of, price_table, reading_cost
from holdfast.journal.usage import characters_for
from holdfast.model.message import TokenUsage
from holdfast.project.settings import Price

MODELS = sorted(price_table()["models"])


def test_the_table_says_of_which_day_it_is() -> None:
    assert date.fromisoformat(price_table()["as_of"]) > date(2026, 1, 1)
    assert all(price > 0 for price, *_ in price_table()["models"].values())


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("claude-opus-4-20250514", 15.0),
        ("claude-opus-4-5-20251101", 5.0),
        ("Claude-Sonnet-4-5", 3.0),
        ("claude-sonnet-4-5-20250929[1m]", 3.0),
        ("anthropic/claude-haiku-4-5", 1.0),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", 3.0),
        ("claude-opus-4-5@20251101", 5.0),
        ("gpt-5", 1.25),
        ("gpt-5-mini-2025-08-07", 0.25),
        ("gpt-4o-mini", 0.15),
        ("gemini-2.5-flash-lite", 0.1),
    ],
)
def test_a_model_is_known_by_its_name_and_date(model: str, dollars: float) -> None:
    cost = reading_cost(3_500_000, model)
    assert (cost.tokens, cost.model) == (1_000_000, model)
    assert cost.dollars == pytest.approx(dollars)


NO_PRICE = [None, "", "homegrown-7b", "my-gpt-5", "/", "gpt-5.99", "gpt-5-giant", "claude-opus-47", "claude"]


@pytest.mark.parametrize("model", NO_PRICE)
def test_no_price_is_made_up(model: str | None) -> None:
    cost = reading_cost(7000, model)
    assert cost.dollars is None
    assert str(cost) == "about 2,000 tokens to read"


def test_each_kind_of_token_has_its_price() -> None:
    own = {"mine": Price(2.0, 10.0, 0.2, 2.5), "plain": Price(1.0, 3.0)}
    used = TokenUsage(1_000_000, 100_000, 10_000_000, 1_000_000, "mine")
    assert cost_of(used, own) == pytest.approx(2.0 + 1.0 + 2.0 + 2.5)
    without_cache_price = TokenUsage(0, 0, 1_000_000, 1_000_000, "plain")
    assert cost_of(without_cache_price, own) == pytest.approx(2.0)
    assert cost_of(TokenUsage(1, 1, model="homegrown-7b"), own) is None
    assert cost_of(TokenUsage(1, 1), own) is None


def test_the_users_price_comes_first() -> None:
    own = {"gpt-5": Price(0.5, 1.0), "our/gpt-5.99": Price(7.0, 8.0)}
    assert price_of("gpt-5", own) == Price(0.5, 1.0)
    assert price_of("our/gpt-5.99", own) == Price(7.0, 8.0)
    assert reading_cost(3_500_000, "gpt-5", own).dollars == pytest.approx(0.5)


def test_in_words() -> None:
    assert str(reading_cost(9500, "claude-sonnet-4-5")) == (
        "about 2,715 tokens to read, about $0.0081 with claude-sonnet-4-5"
    )
    assert str(reading_cost(0, "gpt-5")) == "about 0 tokens to read, about $0.0000 with gpt-5"


@given(st.integers(0, 10**9))
def test_a_text_that_was_cut_to_a_budget_costs_no_more_than_it(tokens: int) -> None:
    assert reading_cost(characters_for(tokens)).tokens <= tokens


@given(st.integers(0, 10**7), st.sampled_from(MODELS))
def test_more_text_never_costs_less(characters: int, model: str) -> None:
    less, more = reading_cost(characters, model), reading_cost(characters + 1, model)
    assert less.tokens <= more.tokens
    assert less.dollars is not None
    assert more.dollars is not None
    assert 0 <= less.dollars <= more.dollars
