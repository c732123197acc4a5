"""A session told without regard to any agent's file format: what was asked, said and done.

A case holds two halves of one story. The first half is written as a session file; the second
tells what the agent did next, and so what it needed to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["completed", "in_progress", "pending"]


@dataclass(frozen=True)
class Asked:
    text: str


@dataclass(frozen=True)
class Said:
    text: str
    thought: str = ""


@dataclass(frozen=True)
class Ran:
    command: str
    printed: str = ""
    status: int = 0
    about: str = ""


@dataclass(frozen=True)
class Looked:
    path: str
    text: str


@dataclass(frozen=True)
class Searched:
    pattern: str
    printed: str
    path: str = "."


@dataclass(frozen=True)
class Changed:
    path: str
    old: str
    new: str
    error: str = ""


@dataclass(frozen=True)
class Wrote:
    path: str
    text: str


@dataclass(frozen=True)
class Planned:
    items: tuple[tuple[str, Status], ...]


@dataclass(frozen=True)
class Delegated:
    """A sub-agent: what it was asked, the steps it took by itself, what it answered."""

    about: str
    prompt: str
    answer: str
    steps: tuple[Ran | Looked | Searched, ...] = ()


@dataclass(frozen=True)
class Refused:
    """A change the user stopped, and the words that came with it."""

    change: Changed
    words: str


@dataclass(frozen=True)
class Compacted:
    summary: str


Tool = Ran | Looked | Searched | Changed | Wrote | Planned | Delegated | Refused
Event = Asked | Said | Compacted | Tool


@dataclass(frozen=True)
class Case:
    name: str
    agent: Literal["claude-code", "codex", "gemini", "opencode"]
    folder: str
    branch: str
    before: Sequence[Event]
    after: Sequence[Event]
    size: int
    """Characters that a summary of such a session would take: the whole budget."""
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Facts that no rule can tell from the second half, by category."""


def plan(*, done: Sequence[str] = (), doing: str = "", left: Sequence[str] = ()) -> Planned:
    items: dict[str, Status] = {}
    items |= dict.fromkeys(done, "completed")
    if doing:
        items[doing] = "in_progress"
    items |= dict.fromkeys(left, "pending")
    return Planned(tuple(items.items()))


def texts(events: Sequence[Event]) -> Iterator[str]:
    """All there is to read of a story, in order: what the last characters are taken from."""
    for event in events:
        yield from _texts_of(event)


def _texts_of(event: Event) -> tuple[str, ...]:  # noqa: C901, PLR0911 - one line a kind of event
    match event:
        case Asked() | Said():
            return (event.text,)
        case Compacted():
            return (event.summary,)
        case Ran():
            return event.command, event.printed
        case Looked():
            return event.path, event.text
        case Searched():
            return event.pattern, event.printed
        case Changed():
            return event.path, event.old, event.new, event.error
        case Wrote():
            return event.path, event.text
        case Planned():
            return tuple(text for text, _ in event.items)
        case Delegated():
            return event.prompt, *texts(event.steps), event.answer
        case Refused():
            return *_texts_of(event.change), event.words
