"""What to improve first: how bad its documentation is, times how much it matters."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from holdfast.docaudit.items import CodeItem
from holdfast.model.base import Value

_NEED_BY_RATING = {1: 0.9, 2: 0.6, 3: 0.25, 4: 0.0}
_WORDS = {1: "rated 1: missing or misleading", 2: "rated 2: weak", 3: "rated 3: good, could be better"}

Outcome = Literal["accepted", "skipped"]


class Pending(Value):
    """A write about to happen: what the file held and will hold, as SHA-256."""

    before: str
    after: str


class PlanItem(Value):
    """An item to improve and, once its turn has come, what became of it."""

    filepath: str
    name: str
    kind: Literal["function", "class", "method"]
    language: str
    line: int
    score: float
    reason: str
    documented: str | None = Field(default=None, description="SHA-256 of what it had when it was planned")
    proposal: str | None = None
    withheld: bool = Field(default=False, description="Its proposal held a secret, so it is not on the disk")
    pending: Pending | None = None
    outcome: Outcome | None = None
    change_id: str | None = Field(default=None, description="The side-car's change that wrote it")
    step: int = Field(default=0, ge=0, description="When it was decided, counting decisions")


def rank(items: Iterable[CodeItem], ratings: Mapping[str, Mapping[str, int | None]]) -> list[PlanItem]:
    """Worst and most important first. What is documented and not rated is left out."""
    planned: list[PlanItem] = []
    for item in items:
        rating = ratings.get(item.filepath, {}).get(item.name)
        need, reason = _need(item, rating)
        if need > 0:
            planned.append(
                PlanItem(
                    filepath=item.filepath,
                    name=item.name,
                    kind=item.kind,
                    language=item.language,
                    line=item.line,
                    score=round(100 * need * _weight(item), 1),
                    reason=f"{reason}; {_size(item)}",
                    documented=text_hash(item.documentation),
                )
            )
    return sorted(planned, key=lambda one: (-one.score, one.filepath, one.line))


def text_hash(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _need(item: CodeItem, rating: int | None) -> tuple[float, str]:
    if rating is not None:
        return _NEED_BY_RATING[rating], _WORDS.get(rating, "")
    return (1.0, "undocumented") if item.documentation is None else (0.0, "")


def _weight(item: CodeItem) -> float:
    """From 0 to 1: branches and length, each counting less the more there are; public things count more."""
    complexity = min(1.0, math.log1p(item.branches) / math.log1p(20))
    length = min(1.0, math.log1p(item.lines) / math.log1p(200))
    inner = 0.35 if not item.public else 0.6 if item.name.rpartition(".")[2].startswith("__") else 1.0
    return (0.3 + 0.4 * complexity + 0.3 * length) * inner


def _size(item: CodeItem) -> str:
    told = [] if item.public else ["private"]
    told.append(f"{item.lines} line{'s' if item.lines != 1 else ''}")
    if item.branches:
        told.append(f"{item.branches} branch{'es' if item.branches != 1 else ''}")
    return ", ".join(told)
