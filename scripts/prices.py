#!/usr/bin/env python3
"""Write src/holdfast/journal/prices.json: what vendors ask for their models, as genai-prices has it today.

Run with the project's own Python after an update of the lock: .venv/bin/python scripts/prices.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices import data_snapshot
from genai_prices.types import ClauseEquals, ClauseOr, ClauseStartsWith, ModelInfo

# In this order: a name that two of them use means the first one's model.
VENDORS = ("anthropic", "openai", "google", "deepseek", "mistral", "x-ai", "moonshotai", "zai", "minimax")
KINDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
TARGET = Path(__file__).parent.parent / "src" / "holdfast" / "journal" / "prices.json"


def main() -> None:
    now = datetime.now(UTC)
    providers = {one.id: one for one in data_snapshot.get_snapshot().providers}
    models: dict[str, list[float | None]] = {}
    for vendor in VENDORS:
        for model in providers[vendor].models:
            price = model.get_prices(now)
            figures = [_dollars(getattr(price, kind)) for kind in KINDS]
            if figures[0] is not None and figures[1] is not None:
                for name in _names(model):
                    models.setdefault(name, figures)
    head = {"as_of": f"{now:%Y-%m-%d}", "source": f"genai-prices {version('genai-prices')}"}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(models[name])}" for name in sorted(models))
    TARGET.write_text(json.dumps(head)[:-1] + ', "models": {\n' + lines + "\n}}\n", encoding="utf-8")


def _names(model: ModelInfo) -> Iterator[str]:
    """The names that it has exactly, and those that others of the same price begin with."""
    clauses = model.match.or_ if isinstance(model.match, ClauseOr) else [model.match]
    yield model.id.lower()
    for clause in clauses:
        if isinstance(clause, ClauseEquals):
            yield clause.equals.lower()
        elif isinstance(clause, ClauseStartsWith):
            yield clause.starts_with.lower().rstrip("-@:")


def _dollars(price: Any) -> float | None:
    """For a million tokens; where a long context costs more, what a short one costs."""
    base = getattr(price, "base", price)
    return None if base is None else float(base)


if __name__ == "__main__":
    main()
