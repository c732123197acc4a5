"""What a scripted model says, in words that fit every vendor's API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tokens:
    """What a model call is said to have cost; whole numbers that a test can find again."""

    input: int = 100
    output: int = 20
    cache_read: int = 0
    cache_write: int = 0


@dataclass(frozen=True)
class Call:
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """One answer of the model: something said, some tools called, or an error."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    tokens: Tokens = field(default_factory=Tokens)
    status: int = 200
    error: dict[str, Any] = field(default_factory=lambda: {"type": "api_error", "message": "as scripted"})
    """What an answer with another status than 200 says."""
    headers: dict[str, str] = field(default_factory=dict[str, str])


def say(text: str, tokens: Tokens | None = None) -> Turn:
    return Turn(text=text, tokens=tokens or Tokens())


def call(tool: str, tokens: Tokens | None = None, **arguments: Any) -> Turn:
    return Turn(calls=(Call(tool, arguments),), tokens=tokens or Tokens())


def fail(status: int, headers: dict[str, str] | None = None, **error: Any) -> Turn:
    return Turn(status=status, error=error, headers=headers or {})


Answer = Turn | Callable[["Seen"], Turn]
"""A turn, or how to make one out of what the model is asked."""


@dataclass(frozen=True)
class Seen:
    """A request as it reached the model."""

    kind: str
    """`main` (the agent's own loop), `summary` (a compaction), `side` (titles and the like) or `other`."""
    path: str
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """Every piece of text in it, unescaped: what the model would read."""
        return "\n".join(self.pieces)

    @property
    def pieces(self) -> list[str]:
        return list(_texts(self.body))

    @property
    def size(self) -> int:
        return len(json.dumps(self.body))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(inner)
