"""The conversation as Gemini CLI holds it: what a restated history adds, and what it drops.

Gemini CLI often writes its whole history again: on resume with the same ids; with new ones
after it compressed the talk, and before every call of the model once it masks bulky tool
output. A message is therefore known by its id *or* by what it says; tool output is left out
of that comparison, since masking replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.transcripts.fields import Recent

_MOST_REMEMBERED = 50_000


class Known(NamedTuple):
    id: str
    content: int  # a hash of what the message says
    place: int  # where the message stands in the stream


class History:
    """The live conversation, and a bounded memory of every message that was ever in it."""

    def __init__(self) -> None:
        self._live: list[Known] = []
        self._positions: dict[str, int] = {}
        self._ids: Recent[str, int] = Recent(_MOST_REMEMBERED)
        self._contents: Recent[int, int] = Recent(_MOST_REMEMBERED)

    def __len__(self) -> int:
        return len(self._live)

    def index_of(self, identifier: str, content: int | None = None) -> int | None:
        """Where a message stands in the stream, if it was ever passed on."""
        index = self._ids.get(identifier)
        return self._contents.get(content) if index is None and content is not None else index

    def put(self, identifier: str, content: int, index: int) -> None:
        """A message was added, or the one of this id was completed."""
        first = self.index_of(identifier)
        known = Known(identifier, content, index if first is None else first)
        self._ids.put(identifier, known.place)
        self._contents.put(content, known.place)
        position = self._positions.get(identifier)
        if position is not None:
            self._live[position] = known
            return
        self._positions[identifier] = len(self._live)
        self._live.append(known)
        if len(self._live) > _MOST_REMEMBERED:
            self._hold(self._live[_MOST_REMEMBERED // 2 :])

    def remember(self, identifier: str, index: int) -> None:
        """A message that was passed on but is no part of the conversation."""
        self._ids.put(identifier, index)

    def replace(self, restated: Iterable[Known]) -> None:
        self._hold(list(restated)[-_MOST_REMEMBERED:])
        for known in self._live:
            self._ids.put(known.id, known.place)
            self._contents.put(known.content, known.place)

    def cut_at(self, identifier: str) -> tuple[int | None, int]:
        """Drop the message of this id and all after it: the first index dropped, and how many."""
        position = self._positions.get(identifier, 0)
        dropped = self._live[position:]
        self._hold(self._live[:position])
        return (dropped[0].place if dropped else None), len(dropped)

    def _hold(self, live: list[Known]) -> None:
        self._live = live
        self._positions = {known.id: position for position, known in enumerate(live)}
