"""Where a session stopped: told from the last that happened in its main thread."""

from __future__ import annotations

import re
from typing import Any, cast

from holdfast.base.text import clipped, is_list_item, one_line, sentences
from holdfast.findings.actions import Action, step_of
from holdfast.model.gathered import LastStep, Stop, StoppingPoint
from holdfast.model.message import Message, ToolCall, ToolResult

_TAIL = 3000
_QUESTION_KEPT = 400
_NOTICE_KEPT = 300
_MOST_OPEN = 100
# Who is asked for a handover by the agent itself runs inside one of its calls.
_OURS = re.compile(r"\bholdfast\s+(?:context|handoff|pause|snapshot|winddown)\b")
# Tools by which an agent asks the user something, and waits.
_ASKING = ("askuserquestion", "ask_user", "question", "request_user_input", "exitplanmode", "exit_plan_mode")
_NOT_BY_THE_USER = ("<tool_use_error>Sibling tool call errored", "Sibling tool call errored")
_AFTER_A_QUESTION = ("let me know", "tell me", "just say", "please let me know", "happy to")


class Stopping:
    def __init__(self) -> None:
        self._kind: Stop = "unknown"
        self._said = ""  # the end of what the agent said, or the notice of its program
        self._open: dict[str, LastStep] = {}
        self._stale: set[str] = set()
        self._asks: str | None = None
        self._compacted = False

    def take(self, message: Message) -> None:
        """A message, but for its calls."""
        if message.compaction:
            self._compacted = True
            return
        for result in message.tool_results:
            self._answered(result)
        if message.role == "assistant" and not message.injected:
            self._agent(message)
        elif message.role == "user" and message.text:
            self._user(message)
        if message.turn is not None:
            self._turned(message)

    def called(self, call: ToolCall, action: Action) -> None:
        self._kind = "in_flight"
        self._asks = _question_put(call) if call.name.lower() in _ASKING else None
        if len(self._open) < _MOST_OPEN:
            self._open[call.id] = step_of(action, "unknown")

    def _agent(self, message: Message) -> None:
        self._compacted = False
        for call_id in self._stale:
            self._open.pop(call_id, None)
        self._stale.clear()
        self._kind = "spoke" if message.text.strip() else "working"
        self._said = message.text[-_TAIL:]

    def _user(self, message: Message) -> None:
        # Either the user went on without these results, or the program did for the user.
        self._stale.update(self._open)
        if not message.injected:
            self._kind, self._compacted = "unanswered", False

    def _answered(self, result: ToolResult) -> None:
        if result.outcome == "unknown":
            self._stale.add(result.call_id)  # still running: until the agent goes on without it
            return
        self._open.pop(result.call_id, None)
        made_before_the_request = self._kind == "unanswered" and result.call_id in self._stale
        self._stale.discard(result.call_id)
        if stopped_by_user(result):
            self._kind = "stopped"
        elif not made_before_the_request:
            self._kind = "in_flight" if self._open else "working"

    def _turned(self, message: Message) -> None:
        if message.turn == "stopped":
            self._kind = "stopped"
        elif message.turn == "failed":
            self._kind, self._said = "failed", message.text[:_TAIL]
        elif self._kind == "spoke":
            self._kind = "answered" if message.turn == "ended" else "working"

    def found(self) -> StoppingPoint:
        kind, compacted = self._kind, self._compacted
        if kind in ("answered", "spoke"):
            question = question_at_end(self._said)
            return StoppingPoint("asked" if question else kind, question, compacted=compacted)
        if kind == "in_flight" and self._asks is not None:
            return StoppingPoint("asked", self._asks, compacted=compacted)
        calls = tuple(call for call in self._open.values() if not _OURS.search(call.target[:_TAIL]))
        if kind == "in_flight" and not calls:
            kind = "working"
        words = clipped(one_line(self._said), _NOTICE_KEPT) if kind == "failed" else ""
        return StoppingPoint(kind, words, calls, compacted)


def stopped_by_user(result: ToolResult) -> bool:
    """A call that merely has no result says nothing of who ended it."""
    return (
        result.outcome == "interrupted" and bool(result.text) and not result.text.startswith(_NOT_BY_THE_USER)
    )


def question_at_end(text: str) -> str:
    """The question that a text ends with, its list of options aside; else nothing."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    for line in reversed(lines):
        told = sentences(line)
        if told and told[-1].lower().startswith(_AFTER_A_QUESTION) and len(told) > 1:
            told.pop()
        if told and told[-1].rstrip("*_`\"') ").endswith("?"):
            return clipped(told[-1], _QUESTION_KEPT)
        if not is_list_item(line):
            return ""
    return ""


def _question_put(call: ToolCall) -> str:
    """What a tool asks the user; agents differ in how they wrap it."""
    listed: object = call.arguments.get("questions")
    one_by_one = cast(list[object], listed) if isinstance(listed, list) else []
    asked = [call.arguments, *(cast(dict[str, Any], one) for one in one_by_one if isinstance(one, dict))]
    words = " ".join(text for one in asked if isinstance(text := one.get("question"), str))
    return clipped(one_line(words[:_TAIL]), _QUESTION_KEPT)
