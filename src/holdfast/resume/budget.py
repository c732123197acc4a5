"""Spending a budget of characters where they are worth most.

Greedy by worth per character. Opening a section or a block costs its heading, so the first
item of each pays for it; what follows is cheaper. Within a category the worth falls from
item to item (the builder sees to that), so no category can eat the others' room.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from holdfast.resume.rendering import Block, Item, Outline, Section

MUST = 40.0
"""An item worth this much is taken first, however long it is."""


class Selection:
    """What was chosen of an outline, and what it costs."""

    def __init__(self, outline: Outline, budget: int) -> None:
        self._outline = outline
        self._left = budget - len(outline.head)
        self._kept: set[int] = set()
        self._covered: set[int] = set()
        self._opened: set[int] = set()
        self._order: list[Item] = []
        self._written = outline.head

    @property
    def left(self) -> int:
        return self._left

    def kept(self, item: Item) -> bool:
        return id(item) in self._kept

    def carried(self, item: Item) -> bool:
        """Chosen, or named anyway in something that was chosen."""
        return id(item) in self._kept or id(item) in self._covered

    def cost(self, section: Section, block: Block, item: Item, parent: Item | None) -> int:
        if parent is not None:
            return self._outline.detail_cost(parent, item, id(parent) not in self._opened)
        cost = self._outline.item_cost(block, item, id(block) not in self._opened)
        if id(block) not in self._opened:
            cost += self._outline.block_cost(block)
        if id(section) not in self._opened:
            cost += self._outline.section_cost(section)
        return cost

    def take(self, section: Section, block: Block, item: Item, parent: Item | None) -> bool:
        if item.once and item.text in self._written:
            self._covered.add(id(item))
            return False
        cost = self.cost(section, block, item, parent)
        if cost > self._left:
            return False
        self._left -= cost
        self._kept.add(id(item))
        self._opened.update((id(section), id(block)) if parent is None else (id(parent),))
        self._order.append(item)
        self._written += "\n" + item.text
        return True

    def drop_last(self) -> bool:
        """Gives the least valuable choice back; ``False`` when nothing is left to give."""
        if not self._order:
            return False
        item = self._order.pop()
        self._kept.discard(id(item))
        for detail in item.details:
            self._kept.discard(id(detail))
        return True


def choose(outline: Outline, budget: int) -> Selection:
    choice = Selection(outline, budget)
    heap: list[tuple[float, int]] = []
    places = list(outline.items())
    ready: dict[int, list[int]] = {}
    for number, (section, block, item, parent) in enumerate(places):
        if parent is None:
            ready.setdefault(id(block), []).append(number)
            ready.setdefault(id(section), []).append(number)
            heapq.heappush(heap, (-_density(choice, section, block, item, parent), number))
        else:
            ready.setdefault(id(parent), []).append(number)
    done: set[int] = set()
    for number, place in enumerate(places):  # what must not be missing comes before what pays best
        if place[2].worth >= MUST and choice.take(*place):
            done.add(number)
    while heap:
        _, number = heapq.heappop(heap)
        section, block, item, parent = places[number]
        if number in done:
            continue
        if choice.take(section, block, item, parent):
            done.add(number)
            for key in (id(item), id(block), id(section)):
                # Their headings are paid for now, or they have become possible: weigh them anew.
                _push(heap, choice, places, (other for other in ready.pop(key, ()) if other not in done))
        elif choice.carried(item):
            done.add(number)
    return choice


_Place = tuple[Section, Block, Item, Item | None]


def _push(
    heap: list[tuple[float, int]], choice: Selection, places: list[_Place], numbers: Iterable[int]
) -> None:
    for number in numbers:
        heapq.heappush(heap, (-_density(choice, *places[number]), number))


def _density(choice: Selection, section: Section, block: Block, item: Item, parent: Item | None) -> float:
    return item.worth / max(1, choice.cost(section, block, item, parent))
