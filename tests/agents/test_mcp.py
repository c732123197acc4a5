"""Holdfast's tools, called from within each real agent."""

from __future__ import annotations

from collections import Counter
from typing import Any

from agents.driver import Driver
from agents.fakes.turns import Seen, Turn, say
from holdfast.cli.mcp import TOOLS

TODOS = [
    {"text": "Write the parser", "status": "completed"},
    {"text": "Measure the parser", "status": "in_progress"},
]
CALLS: dict[str, dict[str, Any]] = {
    "status": {},
    "threads": {},
    "record_decision": {"decision": "Use SQLite", "reason": "one file, no server"},
    "record_constraint": {"text": "Never touch the public API."},
    "set_todos": {"todos": TODOS},
    "record_handover": {"text": "Goal: the cache. Next: write test_cache.py."},
    "request_pause": {"reason": "lunch"},
    "context": {},
    "history": {"category": "decisions"},
    "undo_preview": {},
}


ANSWERS = {
    "status": '"project"',
    "threads": "Make a file",
    "record_decision": '"recorded"',
    "record_constraint": '"recorded"',
    "set_todos": '"open": 1',
    "record_handover": "for session",
    "request_pause": '"snapshot"',
    "context": "Never touch the public API.",
    "history": "Use SQLite",
    "undo_preview": "made.txt",
}
"""Of each tool, what its answer holds."""


def test_every_tool_answers_and_what_is_recorded_reaches_the_next_session(agent: Driver) -> None:
    assert set(CALLS) == set(ANSWERS) == {tool.__name__ for tool in TOOLS}
    agent.model.then(agent.shell("echo made > made.txt"), say("Made."))
    session = agent.ask("Make a file").session_id
    agent.workshop.settled()
    to_do = list(CALLS)
    asked: dict[int, str] = {}

    def next_call(request: Seen) -> Turn:
        if "undo_preview" not in request.text:  # the server is still starting
            return agent.shell("sleep 0.5")
        if not to_do:
            return say("Recorded.")
        asked[len(agent.model.main)] = to_do[0]
        return agent.tool(to_do[0], **CALLS[to_do.pop(0)])

    agent.model.then(*[next_call] * 400)
    assert agent.go_on(session, "Record all of it").answer.endswith("Recorded.")
    assert list(asked.values()) == list(CALLS)
    for place, name in asked.items():
        told = _new(agent.model.main[place - 1], agent.model.main[place])
        assert ANSWERS[name] in told, f"{name}: {told[-2000:]}"
    agent.workshop.settled(2)
    agent.ask("Go on")
    context = agent.model.main[-1].text
    for words in ("Use SQLite", "Never touch the public API.", "Measure the parser", "write test_cache.py"):
        assert words in context


def _new(before: Seen, after: Seen) -> str:
    """What a request says that the one before it did not."""
    return "\n".join(Counter(after.pieces) - Counter(before.pieces)).replace('\\"', '"')
