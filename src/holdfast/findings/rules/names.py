"""Names and values in play: what the work is about right now, ranked.

Only the newest text is looked at, and only once, at the end: what was talked about a
thousand steps ago does not tell what comes next, and scanning a gigabyte for names
would cost more than reading it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from typing import Literal

from holdfast.base.text import clipped, head_and_tail, one_line
from holdfast.model.gathered import Name

NameSource = Literal[
    "said",
    "thought",
    "user",
    "new",
    "old",
    "path",
    "command",
    "search",
    "asked",
    "read",
    "printed",
    "listed",
    "answered",
    "summary",
]

_PIECE = 24_000
_WINDOW = 1_500_000
_HALF_LIFE = 90.0  # in messages
_NEVER_FORGOTTEN = 0.05  # what was once central may be again
_MOST_NAMES = 600

# What the agent itself wrote says more about its next step than what a tool showed it.
_WEIGHTS: dict[NameSource, float] = {
    "user": 3.0,
    "said": 2.5,
    "new": 2.0,
    "thought": 1.5,
    "search": 1.5,
    "summary": 1.0,
    "old": 1.0,
    "command": 0.7,
    "read": 0.6,
    "listed": 0.6,
    "path": 0.5,
    "asked": 0.4,
    "answered": 0.5,
    "printed": 0.4,
}
_IDENTIFIER = re.compile(r"(?<![\\\w])[A-Za-z_]\w{4,59}", re.ASCII)
_RANDOM = re.compile(r"\d[A-Za-z]+\d")  # generated, not named
_HUMP = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")
_TERM = re.compile(r"`([\w.$@#/:*=+\[\]-]{3,59}[\w/*\]])(\(\))?`")
_IDS, _KEYS, _PLACES = 1, 2, 3
_VALUE = re.compile(
    r"(?<![\w/.-])([0-9a-f]{7,12}|[0-9a-f]{40}|#\d{1,6})(?![\w-])"  # commits, issues
    r"|\b([A-Z]{2,8}-\d{1,6}|v?\d{1,3}\.\d{1,3}\.\d{1,4}(?:-[\w.]{1,12})?)\b"  # ticket keys, versions
    r"|(https?://[^\s\"'`<>)\]]{6,110}|\b(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}\b)"
)
_VALUE_SOURCES = frozenset(("user", "said", "thought", "command", "printed", "answered", "summary"))
# An id is needed as it is; a version or an address can be read again where it stands.
_VALUE_WEIGHTS = {_IDS: 1.0, _KEYS: 0.5, _PLACES: 0.3}
_SUBJECT = re.compile(r"^[* ]*([0-9a-f]{7,12}) (?:\([^)]*\) )?(\S.{4,200})$", re.MULTILINE)


_DATE = re.compile(r"^\d{4}-\d\d-\d\d[ T][\d:]{5,8}(?: [+-]\d{4})?\s*")


class Names:
    def __init__(self) -> None:
        self._pieces: deque[tuple[int, NameSource, str, str]] = deque()
        self._size = 0

    def met(self, index: int, source: NameSource, text: str, path: str = "") -> None:
        if not text:
            return
        piece = text if len(text) <= _PIECE else head_and_tail(text, _PIECE)
        self._pieces.append((index, source, path, piece))
        self._size += len(piece)
        while self._size > _WINDOW:
            self._size -= len(self._pieces.popleft()[3])

    def ranked(self, newest: int) -> tuple[Name, ...]:
        ranking = _Ranking()
        for index, source, path, text in self._pieces:
            fresh = 2.0 ** ((index - newest) / _HALF_LIFE) + _NEVER_FORGOTTEN
            ranking.add(text, source, path, _WEIGHTS[source] * fresh)
        return ranking.best()


class _Ranking:
    def __init__(self) -> None:
        self._scores: defaultdict[str, float] = defaultdict(float)
        self._talked: defaultdict[str, float] = defaultdict(float)
        self._homes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._values: defaultdict[str, float] = defaultdict(float)
        self._called: set[str] = set()
        self._written: set[str] = set()
        self._glosses: dict[str, str] = {}

    def add(self, text: str, source: NameSource, path: str, weight: float) -> None:
        counts = Counter(
            name for name in _IDENTIFIER.findall(text) if _HUMP.search(name) and not _RANDOM.search(name)
        )
        if source in ("said", "summary") and "`" in text:
            self._add_terms(text, weight, counts)
        if source != "thought":
            self._written.update(counts)
        for name, count in counts.items():
            self._scores[name] += weight * count**0.3
            if path:
                self._homes[name][path] += 1
        if source in _VALUE_SOURCES:
            self._add_values(text, weight)
        if source == "printed":
            self._glosses.update((found[1], found[2]) for found in _SUBJECT.finditer(text))

    def _add_terms(self, text: str, weight: float, counts: Counter[str]) -> None:
        for term, call in _TERM.findall(text):
            counts[term] += 1
            self._talked[term] += weight
            if call:
                self._called.add(term)

    def _add_values(self, text: str, weight: float) -> None:
        seen: set[str] = set()
        for found in _VALUE.finditer(text):
            kind = found.lastindex or _IDS
            value = found[kind].rstrip(".,;:")
            if value not in seen and (kind != _IDS or _looks_like_id(value)):
                seen.add(value)
                small = value[0] == "#" and len(value) < 4  # a number in a list more often than an issue
                self._values[value] += weight * _VALUE_WEIGHTS[kind] * (0.6 if small else 1.0)

    def best(self) -> tuple[Name, ...]:
        # A word that stands in the agent's thoughts alone is a draft.
        names = sorted(self._written - self._values.keys(), key=lambda name: (-self._scores[name], name))
        values = sorted(self._values, key=lambda value: (-self._values[value], value))
        return tuple(map(self._name, names[:_MOST_NAMES])) + tuple(
            map(self._value, values[: _MOST_NAMES // 4])
        )

    def _name(self, name: str) -> Name:
        home = self._homes[name].most_common(1)[0][0] if name in self._homes else ""
        written = f"{name}()" if name in self._called else name
        return Name(written, self._scores[name], home, talked=self._talked.get(name, 0.0))

    def _value(self, value: str) -> Name:
        gloss = clipped(one_line(_DATE.sub("", self._glosses.get(value, ""))), 70)
        return Name(value, self._values[value], value=True, gloss=gloss)


def _looks_like_id(value: str) -> bool:
    return value.startswith("#") or 0 < sum(character.isdigit() for character in value) < len(value)
