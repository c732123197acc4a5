"""What all parts of a briefing share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.model.gathered import Gathered
from holdfast.resume import worth
from holdfast.resume.outline import Item
from holdfast.resume.paths import short_path

# Below this many characters every block is one paragraph with a label.
ROOMY_FROM = 4500


@dataclass(frozen=True, slots=True)
class Setting:
    """The findings, the room there is, and how things are written in it."""

    found: Gathered
    room: int
    labels: dict[str, str]

    @property
    def roomy(self) -> bool:
        return self.room >= ROOMY_FROM

    def label(self, roomy: str, compact: str) -> str:
        return roomy if self.roomy else compact

    def path(self, path: str) -> str:
        label = self.labels.get(path) or short_path(path)
        return f"`{label}`" if self.roomy else label

    def age(self, index: int) -> int:
        """How many messages ago."""
        return self.found.messages - index


def ranked(category: str, texts: Iterable[str], value: float, half: float) -> list[Item]:
    """Items in order of rank, the worth halved every ``half`` of them."""
    return [Item(category, text, worth.falling(value, rank, half)) for rank, text in enumerate(texts)]


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
