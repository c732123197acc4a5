"""What a reader of the first half must know to go on with the second: facts, by category.

Nothing is judged: a fact is a piece of text, and a context has it or has it not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from handoff.story import (
    Asked,
    Case,
    Changed,
    Delegated,
    Event,
    Looked,
    Planned,
    Ran,
    Refused,
    Said,
    Wrote,
    texts,
)

CATEGORIES = {
    "files_changed": "files that were changed",
    "files_again": "files that are touched again",
    "commands_again": "commands run again, verbatim",
    "user_words": "what the user said, verbatim",
    "newest_request": "the newest request",
    "open_items": "items of the plan that are open",
    "failures": "what the newest failures said",
    "terms_again": "terms the agent speaks of again",
    "names_again": "names it works with again",
    "values_again": "commits, numbers, versions, addresses",
    "decisions": "decisions and their reasons",
    "review": "review comments not acted on",
}
_MOST_WORDS = 300
_NEWEST_FAILURES = 8
_FAILS = re.compile(r"error|fail|denied|refused|not found|panicked|cannot|unable", re.IGNORECASE)
_TERM = re.compile(r"`([^`\n]{3,50})`")
_NAME = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]{4,50}\b")
_COMPOUND = re.compile(r"[a-z0-9][A-Z]|[A-Za-z0-9]_[A-Za-z0-9]")
_VALUE = re.compile(
    r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,12}\b|#[0-9A-F]{3,6}\b|\b[A-Z]{2,6}-[0-9-]{2,12}\b"
    r"|\bv?\d+\.\d+\.\d+\b|https?://[^\s'\"`,)]+"
)


def facts_of(case: Case) -> dict[str, tuple[str, ...]]:
    """The facts of a case, in the order of the categories; each one stands in its first half."""
    before, after = case.before, case.after
    known = "\n".join(texts(before))
    found: dict[str, Iterable[str]] = {
        "files_changed": map(_short, _changed(before)),
        "files_again": map(_short, (path for path in _touched(before) if path in set(_touched(after)))),
        "commands_again": (command for command in _commands(before) if command in set(_commands(after))),
        "user_words": (words for words in _user_words(before) if len(words) <= _MOST_WORDS),
        "newest_request": [list(_user_words(before))[-1][:200]],
        "open_items": _open_items(before),
        "failures": list(_failures(before))[-_NEWEST_FAILURES:],
        "terms_again": (term for term in _terms(after) if f"`{term}`" in known),
        "names_again": (name for name in _names(after) if re.search(rf"\b{name}\b", known)),
        "values_again": (value for value in _values(after) if value in known),
    }
    for category, extra in case.extra.items():
        found[category] = (*found.get(category, ()), *extra)
    return {category: tuple(dict.fromkeys(found.get(category, ()))) for category in CATEGORIES}


def _short(path: str) -> str:
    """The last two parts: how much of a path is written is a matter of taste."""
    return "/".join(path.split("/")[-2:])


def _changed(events: Sequence[Event]) -> Iterator[str]:
    return (event.path for event in events if isinstance(event, Wrote | Changed) and not _failed(event))


def _touched(events: Sequence[Event]) -> Iterator[str]:
    return (event.path for event in events if isinstance(event, Wrote | Changed | Looked))


def _commands(events: Sequence[Event]) -> Iterator[str]:
    return (event.command for event in events if isinstance(event, Ran))


def _user_words(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, Asked):
            yield event.text
        elif isinstance(event, Refused):
            yield event.words


def _open_items(events: Sequence[Event]) -> list[str]:
    plans = [event for event in events if isinstance(event, Planned)]
    return [text for text, status in plans[-1].items if status != "completed"] if plans else []


def _failed(event: Event) -> bool:
    return bool(isinstance(event, Changed) and event.error) or bool(isinstance(event, Ran) and event.status)


def _failures(events: Sequence[Event]) -> Iterator[str]:
    """The first line that tells what went wrong; its beginning will do."""
    for event in events:
        if isinstance(event, Ran) and event.status:
            lines = [line.strip() for line in event.printed.split("\n") if line.strip()]
            yield next(filter(_FAILS.search, lines), lines[0])[:80]


def _terms(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if isinstance(event, Said):
            yield from _TERM.findall(event.text)


def _names(events: Sequence[Event]) -> list[str]:
    """Names met in at least two steps."""
    counted: Counter[str] = Counter()
    for event in events:
        counted.update({name for text in texts([event]) for name in _NAME.findall(text)})
    return [name for name, steps in counted.items() if steps > 1 and _COMPOUND.search(name)]


def _values(events: Sequence[Event]) -> Iterator[str]:
    for event in events:
        if not isinstance(event, Delegated):
            for text in texts([event]):
                yield from _VALUE.findall(text)
