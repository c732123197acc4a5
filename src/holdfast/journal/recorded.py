"""What the actions of a wind-down say, in words: the user's own verbatim, the others in a line each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from holdfast.base.text import clipped, one_line
from holdfast.journal.log import PauseAction

MOST_SAID = 200
MOST_NOTES = 100
MOST_TOOL_CALLS = 50
_LONGEST_SAID = 4_000
_LONGEST_OTHER = 600
_DEEPEST = 4
_WORDS = ("text", "message", "prompt", "content", "note", "summary", "detail")
"""Fields that are what somebody said; their name adds nothing."""
_TECHNICAL = ("agent", "agent_session", "model", "tokens_used", "tokens_total", "context_window")
"""Of the state at the start: told elsewhere in the snapshot."""


@dataclass(frozen=True, slots=True)
class Words:
    type: str
    timestamp: str
    text: str
    rule: bool = False
    from_hook: bool = False


@dataclass
class RecordedWords:
    """Takes actions in as they are read, and keeps what fits into a snapshot: the newest, and every rule."""

    is_rule: Callable[[str], bool]
    said: int = 0
    others: int = 0
    _rules: deque[Words] = field(default_factory=lambda: deque[Words](maxlen=MOST_SAID))
    _said: deque[Words] = field(default_factory=lambda: deque[Words](maxlen=MOST_SAID))
    _notes: deque[Words] = field(default_factory=lambda: deque[Words](maxlen=MOST_NOTES))
    _calls: deque[Words] = field(default_factory=lambda: deque[Words](maxlen=MOST_TOOL_CALLS))

    def add(self, action: PauseAction) -> None:
        by_user = action.type == "user_message"
        text = clipped(words_of(action), _LONGEST_SAID if by_user else _LONGEST_OTHER)
        if not text:
            return
        self.said += by_user
        self.others += not by_user
        rule = by_user and self.is_rule(text)
        kept = self._rules if rule else self._said if by_user else self._notes
        kept = self._calls if action.type == "tool_call" else kept
        kept.append(Words(action.type, action.timestamp, text, rule, _is_from_hook(action)))

    @property
    def said_dropped(self) -> int:
        return self.said - len(self._rules) - len(self._said)

    @property
    def others_dropped(self) -> int:
        return self.others - len(self._notes) - len(self._calls)

    def kept(self) -> tuple[Words, ...]:
        """Rules first, then what else the user said, notes, tool calls; each in its order."""
        return (*self._rules, *self._said, *self._notes, *self._calls)


def _is_from_hook(action: PauseAction) -> bool:
    """Whether it has the form in which hooks record what stands in the agent's transcript, too."""
    keys = action.data.keys()
    return (action.type == "tool_call" and {"tool", "input"} <= keys) or (
        action.type == "system_event" and keys == {"event", "detail"}
    )


def words_of(action: PauseAction) -> str:
    data = action.data
    if action.type == "pause_finalized":
        return ""
    if action.type == "pause_started":
        state = data.get("initial_state")
        data = cast("dict[str, Any]", state) if isinstance(state, dict) else {}
        data = {key: value for key, value in data.items() if key not in _TECHNICAL}
    if action.type == "user_message":
        return _plain(data, 0).strip()
    return one_line(_call(data) if action.type == "tool_call" else _plain(data, 0))


def _call(data: dict[str, Any]) -> str:
    """`Bash (command: make test): stdout: 3 failed`."""
    known = ("tool", "input", "response", "error")
    tool, given, *came = (_plain(data.get(key), 1) for key in known)
    given = "; ".join(filter(None, (given, _plain({k: v for k, v in data.items() if k not in known}, 0))))
    return ": ".join(filter(None, (f"{tool or 'a tool'} ({given})" if given else tool, *came)))


def _plain(value: object, depth: int) -> str:
    """A JSON value as a person would note it down."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return "; ".join(_pairs(cast("dict[str, object]", value), depth))
    if isinstance(value, list):
        return ", ".join(filter(None, (_plain(one, depth + 1) for one in cast("list[object]", value))))
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(fields: dict[str, object], depth: int) -> Iterable[str]:
    for key in sorted(fields, key=lambda name: name not in _WORDS):
        text = _plain(fields[key], depth + 1)
        if text:
            yield text if key in _WORDS else f"{key}: {text}"
