"""What tokens cost, in dollars: from a table with a date, and before it from the user's own settings.

A model that neither has by its name has no price: what a newer one of the family costs is not known.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from holdfast.model.message import TokenUsage
from holdfast.project.settings import Price

CHARACTERS_PER_TOKEN = 3.5
"""Of a briefing in English with code in it; by measure, models need 3.2 to 4.2."""
_MILLION = 1_000_000
# After its name a model may say its date, its version, how new it is, and that its window is long.
_ENDING = re.compile(r"([-@]\d{4}-?\d{2}-?\d{2}|[-@]\d{4})?(-v\d+(:\d+)?)?(-latest|[-@]default)?(\[1m\])?")
_FAMILY = re.compile(r"(?:^|[./])(claude-.*)")


@cache
def price_table() -> dict[str, Any]:
    """`as_of` is the day on which the prices were taken, `models` dollars for a million tokens each."""
    return json.loads(files("holdfast.journal").joinpath("prices.json").read_bytes())


def price_of(model: str | None, own: Mapping[str, Price] | None = None) -> Price | None:
    if own and model and model in own:
        return own[model]
    name = (model or "").lower()
    family = _FAMILY.search(name)
    name = family[1] if family else name.rsplit("/", 1)[-1]
    models = price_table()["models"]
    known = [one for one in models if name.startswith(one) and _ENDING.fullmatch(name[len(one) :])]
    return Price(*models[max(known, key=len)]) if known else None


def cost_of(used: TokenUsage, own: Mapping[str, Price] | None = None) -> float | None:
    price = price_of(used.model, own)
    if price is None:
        return None
    read = price.input if price.cache_read is None else price.cache_read
    written = price.input if price.cache_write is None else price.cache_write
    given = used.input_tokens * price.input + used.cache_read * read + used.cache_write * written
    return (given + used.output_tokens * price.output) / _MILLION


# --- what a context costs to read


@dataclass(frozen=True, slots=True)
class ReadingCost:
    tokens: int
    model: str | None = None
    dollars: float | None = None

    def __str__(self) -> str:
        price = f", about ${self.dollars:.4f} with {self.model}" if self.dollars is not None else ""
        return f"about {self.tokens:,} tokens to read{price}"


def reading_cost(
    characters: int, model: str | None = None, own: Mapping[str, Price] | None = None
) -> ReadingCost:
    tokens = math.ceil(characters / CHARACTERS_PER_TOKEN)
    price = price_of(model, own)
    return ReadingCost(tokens, model, None if price is None else tokens * price.input / _MILLION)
