"""Where the session stopped, in words: no more than its record tells."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.model.gathered import Gathered, Stop
from holdfast.resume.quote import quoted

IN_ORDER: tuple[Stop, ...] = ("answered", "asked", "spoke")
"""The agent had the last word: what comes next is the user's to say."""

_ENDINGS: dict[Stop, str] = {
    "answered": "It ended after the agent had answered.",
    "asked": "It ended with a question of the agent to the user.",
    "spoke": "Its record ends with the agent's words.",
    "in_flight": "It ended while a call was running.",
    "working": "It ended in the middle of the agent's work, between two steps.",
    "unanswered": "It ended before the agent answered the latest request.",
    "stopped": "It ended when the user stopped the agent.",
    "failed": "It ended with an error notice of the agent's program.",
}
_NEXT: dict[Stop, str] = {
    "answered": "The agent had answered the latest request: wait for the user.",
    "spoke": "Wait for the user, unless the agent's last words announce a step that is not recorded.",
    "in_flight": "Look at what the call without a result has done before you repeat it.",
    "working": "Go on from the agent's last step: nothing followed it.",
    "unanswered": "Begin with the latest request: the agent had not answered it.",
    "stopped": "The user stopped the agent: read the latest request again before acting.",
}


def ending(found: Gathered) -> str:
    """One sentence; nothing where no conversation is known, as of a workflow's own tasks."""
    if not found.messages:
        return ""
    told = _ENDINGS.get(found.stop.kind, "How it ended is not recorded.")
    return f"{told} Its window had just been compacted." if found.stop.compacted else told


def advice(found: Gathered, has_open_tasks: bool) -> Iterator[str]:
    stop = found.stop
    if stop.kind == "asked":
        question = f": {quoted(stop.words, 300)}" if stop.words else ""
        yield f"The agent had asked the user, and has no answer yet{question}."
    elif stop.kind == "failed":
        yield f"The agent's program had said {quoted(stop.words, 200)}: go on from the last step."
    elif stop.kind == "answered" and has_open_tasks:
        yield "The agent had answered the latest request."
    elif stop.kind in _NEXT and not (stop.kind == "spoke" and has_open_tasks):
        yield _NEXT[stop.kind]
