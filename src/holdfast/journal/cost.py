"""What a context costs to read, in tokens and money, and when the window will be full."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.journal.windows import by_model

CHARACTERS_PER_TOKEN = 3.5
"""Of a briefing in English with code in it; by measure, models need 3.2 to 4.2."""
_SAFE_CHARACTERS_PER_TOKEN = 3.0

# Dollars a million input tokens, as listed by the vendors; the longest name that fits counts.
_INPUT_PRICES: dict[str, float] = {
    "claude-opus-4": 15.0,
    "claude-opus-4-5": 5.0,
    "claude-sonnet-4": 3.0,
    "claude-haiku-4-5": 1.0,
    "claude-3-5-haiku": 0.8,
    "claude-3-5-sonnet": 3.0,
    "gpt-5": 1.25,
    "gpt-5-mini": 0.25,
    "gpt-4.1": 2.0,
    "gpt-4o": 2.5,
    "gpt-4o-mini": 0.15,
    "o3": 2.0,
    "gemini-2.5-pro": 1.25,
    "gemini-2.5-flash": 0.3,
}


@dataclass(frozen=True, slots=True)
class ReadingCost:
    tokens: int
    model: str | None = None
    dollars: float | None = None

    def __str__(self) -> str:
        price = f", about ${self.dollars:.4f} with {self.model}" if self.dollars is not None else ""
        return f"about {self.tokens:,} tokens to read{price}"


def reading_cost(characters: int, model: str | None = None) -> ReadingCost:
    tokens = math.ceil(characters / CHARACTERS_PER_TOKEN)
    price = by_model(_INPUT_PRICES, model)
    return ReadingCost(tokens, model, None if price is None else tokens * price / 1_000_000)


def characters_for(tokens: int) -> int:
    """How long a text may be that must fit into so many tokens."""
    return int(tokens * _SAFE_CHARACTERS_PER_TOKEN)


# ── forecast ──────────────────────────────────────────────────────────────────────────────────────

# When the window will be full, judging by how it filled so far.


def seconds_until_full(samples: Sequence[tuple[float, float]], *, full: float = 1.0) -> float | None:
    """From (seconds, share) samples in order; None where the share does not grow.

    A least-squares line through all of them: one large tool result must not decide it.
    """
    if len(samples) < 2:
        return None
    mean_time = sum(time for time, _ in samples) / len(samples)
    mean_share = sum(share for _, share in samples) / len(samples)
    spread = sum((time - mean_time) ** 2 for time, _ in samples)
    if spread == 0:
        return None
    slope = sum((time - mean_time) * (share - mean_share) for time, share in samples) / spread
    if slope <= 0:
        return None
    return max(0.0, (full - samples[-1][1]) / slope)
