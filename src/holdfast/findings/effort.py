"""Whether a session did anything that the next one could need. In doubt, it did."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.findings.actions import action_of
from holdfast.model.gathered import Gathered
from holdfast.model.message import Message, ToolCall

_FEW_TURNS = 5
_FEW_WORDS = 600
"""Characters, of the agent; who says more may have planned or explained something."""
_FEW_WORDS_OF_A_USER = 2
_SHORT_QUESTION = 12
"""Words."""
_STATES_SOMETHING = re.compile(
    r"[,;:\n]|[.!?]\s|\b(?:we|us|our|i|i'd|always|never|only|must|should|shall|please|remember|mind|keep|use|make"
    r"|not|no|don't|let's|(?:can|could|would|will) (?:you|u))\b",
    re.IGNORECASE,
)
"""In a question: it may be a rule or a decision that is put as one."""
_POINT = re.compile(r"^[ \t]*[-*•+][ \t]|(?:^|\s)\d{1,2}[.)]\s", re.MULTILINE)
_ONLY_LOOKS = re.compile(
    r"(?:date|cal|uptime|whoami|hostname|uname|pwd|ls|cat|head|tail|wc|echo|which|file|stat|du|df|tree|grep|rg"
    r"|git (?:status|log|diff|show))(?:[ \t]+(?!--output)[\w./:=+%@,'\"-]+)*"
)
_READS_THE_WEB = frozenset(("webfetch", "websearch", "web_fetch", "web_search", "google_web_search"))


def did_work(found: Gathered, messages: Sequence[Message]) -> bool:
    """`messages` are the newest ones; of a session that has more, it is not asked any further."""
    return (
        found.messages > len(messages)
        or _left_something(found)
        or _begins_with_a_summary(messages)
        or _said_much(found, messages)
        or not _only_asks(found)
        or not _is_over(found, messages)
        or any(_may_change(call) for message in messages for call in message.tool_calls)
    )


def _left_something(found: Gathered) -> bool:
    git = found.git
    told = (found.todos, found.choices, found.insights, found.constraints, git.commits, git.pull_requests)
    is_ruled = any(turn.constraint or turn.correction for turn in found.turns)
    return any(told) or is_ruled or found.tests is not None


def _begins_with_a_summary(messages: Sequence[Message]) -> bool:
    """The first part of the conversation stands in the summary alone."""
    seen = next((one for one in messages if one.compaction or not one.injected), None)
    return seen is not None and seen.compaction


def _said_much(found: Gathered, messages: Sequence[Message]) -> bool:
    by_agent = [one.text for one in messages if one.role == "assistant"]
    is_listed = any(len(_POINT.findall(text)) > 1 for text in by_agent)
    return len(found.turns) > _FEW_TURNS or sum(map(len, by_agent)) > _FEW_WORDS or is_listed


def _only_asks(found: Gathered) -> bool:
    """What the user says beyond plain questions and "go on" may be a decision or a rule, in any language."""
    return all(_is_plain_question(turn.said.strip()) for turn in found.turns)


def _is_plain_question(said: str) -> bool:
    words = len(said.split())
    is_short = said.endswith("?") and words <= _SHORT_QUESTION
    return words <= _FEW_WORDS_OF_A_USER or (is_short and _STATES_SOMETHING.search(said) is None)


def _is_over(found: Gathered, messages: Sequence[Message]) -> bool:
    """A session that was killed, or whose record lags behind, may have been about to do anything.

    One that ran into a limit or was stopped by the user before it did something has done nothing.
    """
    if found.stop.kind in ("failed", "stopped"):
        return True
    talk = [one for one in messages if one.role == "assistant" or (one.role == "user" and not one.injected)]
    return bool(talk) and talk[-1].role == "assistant" and bool(talk[-1].text) and not talk[-1].tool_calls


def _may_change(call: ToolCall) -> bool:
    action = action_of(call)
    if action.kind == "shell":
        return _ONLY_LOOKS.fullmatch(action.command) is None
    return action.kind not in ("read", "search") and call.name.lower() not in _READS_THE_WEB
