"""The briefing as statements: each knows what it is about, what it rests on and how much it matters.

They are written down last, within the room there is. What matters most is taken first in its shortest
form; then, again by rank, what is left of the room goes to longer forms. Room that nobody needs stays empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from holdfast.model.snapshot import ContextEdits

Part = Literal["corrections", "now", "summary", "wants", "decisions", "state", "half-done", "map", "earlier"]

TITLES: dict[Part, str] = {
    "corrections": "Where the record and the summary below disagree",
    "now": "Now",
    "summary": "The outgoing agent's own summary (its view: causes and fixes in it are not checked)",
    "wants": "What the user wants",
    "decisions": "Decisions and why",
    "state": "State",
    "half-done": "The work at hand",
    "map": "Map",
    "earlier": "Earlier",
}
LUXURY = 6
"""From this rank on a statement is only written while the briefing is short."""
ENOUGH = 9_500
"""Characters: what a reader takes in. Longer only for what must not be missing, or to say it in full."""
_MUCH = 13_000


@dataclass(frozen=True, slots=True, eq=False)
class Statement:
    """``kind`` is what the fidelity report counts it as; ``index`` is the message it rests on."""

    part: Part
    kind: str
    text: str
    rank: int
    short: str = ""
    index: int = -1
    counts: int = 1  # how many of its kind it names
    longer: int = 0  # the rank of its longer form, where that matters less than the shortest

    @property
    def least(self) -> str:
        return self.short or self.text

    @property
    def key(self) -> str:
        """A name for it that holds in another briefing of the same record."""
        return sha256("\n".join((self.part, self.kind, self.least)).encode(errors="replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Briefing:
    head: str
    statements: tuple[Statement, ...]


@dataclass(slots=True)
class Written:
    """What was chosen of a briefing, and in which form."""

    briefing: Briefing
    forms: dict[int, str] = field(default_factory=dict[int, str])

    def text(self, *, bare: bool) -> str:
        parts: list[str] = [self.briefing.head]
        for part, title in TITLES.items():
            lines = [
                _line(self.forms[place])
                for place, one in enumerate(self.briefing.statements)
                if one.part == part and place in self.forms
            ]
            if lines:
                parts += [_title(title, bare), *lines]
        return "".join(parts)

    def carried(self, statement: Statement) -> bool:
        return any(self.briefing.statements[place] is statement for place in self.forms)

    def shortened(self, place: int) -> bool:
        return self.forms.get(place, "") != self.briefing.statements[place].text


def _title(title: str, bare: bool) -> str:
    return f"{title}:\n" if bare else f"\n## {title}\n"


def _line(text: str) -> str:
    return f"- {text}\n" if not text.startswith("\n") else f"{text[1:]}\n"


def write(briefing: Briefing, room: int, *, bare: bool) -> Written:
    """What fits, the most important first; each in its shortest form before any gets a longer one."""
    written = Written(briefing)
    writer = _Writer(written, room - len(briefing.head), bare)
    order = sorted(
        range(len(briefing.statements)), key=lambda place: _order(briefing.statements[place], place)
    )
    needed = [place for place in order if briefing.statements[place].rank < LUXURY]
    for place in needed:
        writer.take(place)
        if briefing.statements[place].rank <= 0:
            writer.lengthen(place)  # the first lines are never shortened for what comes after them
    for place in sorted(
        needed, key=lambda place: max(briefing.statements[place].longer, briefing.statements[place].rank)
    ):
        writer.lengthen(place)
    for place in order[len(needed) :]:
        writer.take(place)
        writer.lengthen(place)
    return written


def _order(one: Statement, place: int) -> tuple[int, int, int]:
    """By rank; of what the user said, the newest first."""
    return one.rank, -one.index if one.part == "wants" else 0, place


class _Writer:
    def __init__(self, written: Written, left: int, bare: bool) -> None:
        self._written = written
        self._left = left
        self._bare = bare
        self._enough = min(_MUCH, ENOUGH + max(0, left - ENOUGH) // 2)
        self._used = len(written.briefing.head)
        self._opened: set[Part] = set()

    def take(self, place: int) -> None:
        one = self._written.briefing.statements[place]
        cost = len(_line(one.least))
        if one.part not in self._opened:
            cost += len(_title(TITLES[one.part], self._bare))
        if cost <= self._left and (one.rank < LUXURY or self._used + cost <= ENOUGH):
            self._written.forms[place] = one.least
            self._opened.add(one.part)
            self._spend(cost)

    def lengthen(self, place: int) -> None:
        one = self._written.briefing.statements[place]
        more = len(one.text) - len(one.least)
        if place not in self._written.forms or not 0 < more <= self._left:
            return
        if one.rank < 2 or self._used + more <= self._enough:
            self._written.forms[place] = one.text
            self._spend(more)

    def _spend(self, cost: int) -> None:
        self._left -= cost
        self._used += cost


# ── what a person changed in it ───────────────────────────────────────────────────────────────────

FIXED: tuple[Part, ...] = ("corrections", "now")
"""Parts that say where the work stands and what is wrong in it: always there, and in their order."""
PINNED = "pinned"


def edited(briefing: Briefing, edits: ContextEdits | None) -> Briefing:
    """With what was pinned, without what was dropped, in the order that was chosen within each part."""
    if edits is None:
        return briefing
    pinned = {(pin.part, pin.text) for pin in edits.pins}
    dropped, places = set(edits.dropped), {key: place for place, key in enumerate(edits.order)}
    kept = [
        replace(one, rank=0, short="") if (one.part, one.text) in pinned else one
        for one in briefing.statements
        if one.part in FIXED or (one.part, one.text) in pinned or one.key not in dropped
    ]
    known = {(one.part, one.text) for one in kept}
    kept += [
        Statement(pin.part, PINNED, pin.text, 0)
        for pin in edits.pins
        if pin.part in TITLES and (pin.part, pin.text) not in known
    ]
    return Briefing(briefing.head, tuple(_in_order(kept, places)))


def _in_order(statements: list[Statement], places: Mapping[str, int]) -> Iterable[Statement]:
    """Those with a place of their own take the places that such ones have, part by part."""
    queues = {
        part: iter(
            sorted(
                (one for one in statements if one.part == part and one.key in places),
                key=lambda one: places[one.key],
            )
        )
        for part in TITLES
        if part not in FIXED
    }
    for one in statements:
        yield next(queues[one.part]) if one.key in places and one.part in queues else one


def without_repeats(statements: Iterable[Statement]) -> list[Statement]:
    """What stands word for word in a statement that matters more is not said twice."""
    kept: list[Statement] = []
    seen: set[str] = set()
    for one in statements:
        if one.text not in seen:
            kept.append(one)
            seen.add(one.text)
    return kept
