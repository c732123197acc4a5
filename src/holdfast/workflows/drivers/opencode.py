"""OpenCode, headless: `opencode run --format json`.

- The prompt, with the resume context at its head, goes in on stdin, in a new and in a resumed session alike.
- Each step of its events is a model call, with its tokens and its cost.
- Its own compaction is off, unless OPENCODE_DISABLE_AUTOCOMPACT is set otherwise: a full window is a pause.
- It keeps its sessions in one database, which also knows the model of a call.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from holdfast.base.text import clipped, one_line
from holdfast.journal.windows import context_window
from holdfast.transcripts.fields import count_of, mapping_of, text_of
from holdfast.transcripts.opencode import connect
from holdfast.workflows.drivers.cli_agent import (
    AgentConversation,
    CliAgent,
    StreamReader,
    agent_home,
    failure_of_api,
    json_object,
    safe_words,
    window_usage,
)
from holdfast.workflows.drivers.guarded import meaning
from holdfast.workflows.drivers.prompts import REVIEW_FORM
from holdfast.workflows.drivers.protocol import (
    Assignment,
    Done,
    DriverSession,
    Exhausted,
    Failed,
    Report,
    TaskOutcome,
)

_NO_COMPACTION = "OPENCODE_DISABLE_AUTOCOMPACT"
_NO_CONVERSATION = re.compile(r"session not found", re.IGNORECASE)


class OpenCodeDriver(CliAgent):
    name = "opencode"
    agent = "opencode"
    program = "opencode"
    installing = "npm install -g opencode-ai"
    review_form = REVIEW_FORM

    def words(self, assignment: Assignment, conversation: AgentConversation, scratch: Path) -> Sequence[str]:  # noqa: ARG002 - it needs no files
        words = ["run", "--format", "json", *self._settings.opencode_args]
        return [*words, "--session", conversation.session.id] if conversation.session else words

    def environ(self) -> dict[str, str]:
        return {} if _NO_COMPACTION in os.environ else {_NO_COMPACTION: "1"}

    def reader(self, assignment: Assignment, report: Report, conversation: AgentConversation) -> StreamReader:  # noqa: ARG002 - nothing of it is needed
        return _OpenCodeReader(report, self._settings.context_window)


class _OpenCodeReader(StreamReader):
    def __init__(self, report: Report, window: int | None) -> None:
        self._report, self._window = report, window
        self._session: str | None = None
        self._tools = 0
        self._answer = ""
        self._is_complete = False
        self._error: dict[str, Any] = {}

    def take(self, event: dict[str, Any]) -> None:
        kind, part = event.get("type"), mapping_of(event.get("part"))
        if self._session is None and (session := text_of(event.get("sessionID"))):
            self._session = session
            self._report.agent_session(DriverSession(session, "opencode", _database()))
        if kind == "tool_use":
            self._tools += 1
            about = next(iter(mapping_of(mapping_of(part.get("state")).get("input")).values()), "")
            self._report.say(f"{text_of(part.get('tool'))} {clipped(one_line(str(about)), 160)}")
        elif kind == "text":
            self._answer = text_of(part.get("text"))
            self._report.say(clipped(one_line(self._answer), 200))
        elif kind == "step_finish":
            self._is_complete = part.get("reason") == "stop"
            self._count(part)
        elif kind == "error":
            self._error = mapping_of(event.get("error"))
            self._report.say(safe_words(self._words))

    def finish(self) -> None:
        """All was told as it came."""

    @property
    def _words(self) -> str:
        return text_of(mapping_of(self._error.get("data")).get("message")) or text_of(self._error.get("name"))

    def outcome(self, code: int, told: str) -> TaskOutcome | None:
        if self._session is None and _NO_CONVERSATION.search(told):
            return None
        if self._is_complete and code == 0 and not self._error:
            return Done(self._answer or None)
        if self._error.get("name") == "ContextOverflowError":
            return Exhausted(f"OpenCode: the context window is full ({safe_words(self._words)})")
        words = safe_words(self._words or told)
        failed = Failed(f"OpenCode failed ({meaning(code)}): {words or 'it said nothing'}")
        return failure_of_api("OpenCode", str(self._error) + told, words) or failed

    def _count(self, step: dict[str, Any]) -> None:
        tokens = mapping_of(step.get("tokens"))
        cache = mapping_of(tokens.get("cache"))
        prompt = sum(count_of(one) for one in (tokens.get("input"), cache.get("read"), cache.get("write")))
        completion = count_of(tokens.get("output")) + count_of(tokens.get("reasoning"))
        if not prompt + completion:
            return
        tools, self._tools = self._tools, 0
        window = self._window or context_window(_model_of(text_of(step.get("messageID"))))
        cost = step.get("cost")
        told = float(cost) if isinstance(cost, int | float) and cost else None
        self._report.usage(window_usage(prompt, completion, window), tool_calls=tools, cost_usd=told)


def _database() -> Path | None:
    data = agent_home("XDG_DATA_HOME", ".local/share", dict(os.environ)) / "opencode"
    path = data / os.environ.get("OPENCODE_DB", "opencode.db")
    return path if path.is_file() else None


def _model_of(message: str) -> str | None:
    path = _database()
    if path is None:
        return None
    try:
        with closing(connect(path)) as connection:
            row = connection.execute("SELECT data FROM message WHERE id = ?", (message,)).fetchone()
    except sqlite3.Error:
        return None  # another version's tables, or it is busy
    return text_of((json_object(row[0]) or {}).get("modelID")) if row else None
