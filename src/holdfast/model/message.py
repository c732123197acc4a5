"""One message of an agent's session, whichever agent wrote it.

Readers in ``transcripts/`` turn each agent's own file into a stream of these.
They are plain slotted dataclasses, neither pydantic models nor frozen: a session file
may hold a gigabyte, and the stream must cost little more than parsing its JSON (a frozen
one takes three times as long to make). Nobody changes one that was passed on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["user", "assistant", "system"]
ToolOutcome = Literal["ok", "error", "interrupted", "unknown"]
TurnState = Literal["open", "ended", "stopped", "failed"]


@dataclass(slots=True)
class ToolCall:
    """A tool the agent called: what it asked for."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class ToolResult:
    """What came back; joined to its call by ``call_id``."""

    call_id: str
    text: str
    outcome: ToolOutcome


@dataclass(slots=True)
class TokenUsage:
    """Tokens of one model call, already de-duplicated by the reader."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    model: str | None = None

    @property
    def context(self) -> int:
        """How much of the window was filled when the call ended."""
        return self.input_tokens + self.cache_read + self.cache_write + self.output_tokens


@dataclass(frozen=True, slots=True)
class TodoItem:
    text: str
    status: Literal["pending", "in_progress", "completed"]


@dataclass(slots=True)
class Message:
    """One step of the conversation, in file order.

    ``index`` is its position in the stream: the evidence that decisions and
    errors cite. ``text`` is what was said; thinking is kept apart, since it is
    not part of the talk. ``todos`` is the whole list as of this message, where
    the message changed it. A ``compaction`` message carries the agent's own
    summary as text and marks that what came before it left the window.
    """

    index: int
    role: Role
    text: str = ""
    thinking: str = ""
    at: str | None = None
    id: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    usage: TokenUsage | None = None
    todos: tuple[TodoItem, ...] | None = None
    subagent: str | None = None
    compaction: bool = False
    injected: bool = False  # put there by the agent's program, not typed by the user
    undone_from: int | None = None  # the user took back every message from this index on
    turn: TurnState | None = None  # how the agent's turn stands after it, where the record says so


@dataclass(slots=True)
class ReadReport:
    """What a reader met on its way; filled while the stream is consumed."""

    agent: str = ""
    session_id: str | None = None
    cwd: str | None = None
    branch: str | None = None
    model: str | None = None
    title: str | None = None  # a name for the session, where the agent gave it one
    lines: int = 0
    torn: int = 0
    unknown: int = 0
    duplicated: int = 0
    oversized: int = 0
    taken_back: int = 0  # messages the user had already undone, left out of the stream
    unknown_types: dict[str, int] = field(default_factory=dict[str, int])
