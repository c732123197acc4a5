"""Gemini CLI, headless: `gemini --output-format stream-json`.

- The prompt, with the resume context at its head, goes in on stdin, in a new and in a resumed session alike.
- Its events tell usage only at the end, and then of all calls together. The chat it keeps has a line a model
  call: it is followed.
- Its own compression comes when the window is full and not before, unless your settings say otherwise: until
  then a pause is due.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.base.clock import to_datetime
from holdfast.base.durable import private_folder, replace_file
from holdfast.base.text import clipped, one_line
from holdfast.journal.windows import context_window
from holdfast.transcripts.fields import count_of, mapping_of, text_of
from holdfast.workflows.drivers.cli_agent import (
    AgentConversation,
    CliAgent,
    FollowedFile,
    StreamReader,
    agent_home,
    failure_of_api,
    json_object,
    safe_words,
    window_usage,
)
from holdfast.workflows.drivers.guarded import meaning
from holdfast.workflows.drivers.prompts import REVIEW_FORM
from holdfast.workflows.drivers.protocol import Assignment, Done, DriverSession, Failed, Report, TaskOutcome

_DEFAULTS = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
_SYSTEM_DEFAULTS = Path("/etc/gemini-cli/system-defaults.json")
_NO_CONVERSATION = re.compile(r"Error resuming session|Invalid session identifier", re.IGNORECASE)
_RETRY_IN = re.compile(r"retry in (\d+(?:\.\d+)?)s", re.IGNORECASE)


class GeminiDriver(CliAgent):
    name = "gemini"
    agent = "gemini"
    program = "gemini"
    installing = "npm install -g @google/gemini-cli"
    review_form = REVIEW_FORM

    def words(self, assignment: Assignment, conversation: AgentConversation, scratch: Path) -> Sequence[str]:  # noqa: ARG002 - it needs no files
        words = ["--output-format", "stream-json", *self._settings.gemini_args]
        return [*words, "--resume", conversation.session.id] if conversation.session else words

    def environ(self) -> dict[str, str]:
        """Defaults below all settings of the user and the machine; not in place of those of the machine."""
        if _DEFAULTS in os.environ or _SYSTEM_DEFAULTS.exists():
            return {}
        path = private_folder(self._settings.home) / "gemini-defaults.json"
        replace_file(path, json.dumps({"model": {"compressionThreshold": 1}}).encode())
        return {_DEFAULTS: str(path)}

    def reader(self, assignment: Assignment, report: Report, conversation: AgentConversation) -> StreamReader:  # noqa: ARG002 - the task is not needed
        now = to_datetime(self._clock())
        return _GeminiReader(report, self._settings.context_window, conversation.session, now)


class _GeminiReader(StreamReader):
    def __init__(
        self, report: Report, window: int | None, resumed: DriverSession | None, began: datetime
    ) -> None:
        self._report, self._chosen_window, self._began = report, window, began
        self._model = ""
        self._positions = {path: path.stat().st_size for path in _chats(resumed.id)} if resumed else {}
        self._session: str | None = None
        self._chat: FollowedFile | None = None
        self._told: set[str] = set()
        self._tools = 0
        self._answer = ""
        self._result: dict[str, Any] | None = None

    def take(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "init":
            self._session, self._model = text_of(event.get("session_id")), text_of(event.get("model"))
            self._report.agent_session(DriverSession(self._session, "gemini"))
        elif kind == "tool_use":
            self._tools += 1
            self._answer = ""
            about = next(iter(mapping_of(event.get("parameters")).values()), "")
            self._report.say(f"{text_of(event.get('tool_name'))} {clipped(one_line(str(about)), 160)}")
        elif kind == "message" and event.get("role") == "assistant":
            self._answer += text_of(event.get("content"))
        elif kind == "error":
            self._report.say(safe_words(text_of(event.get("message"))))
        elif kind == "result":
            self._result = event
            self._report.say(clipped(one_line(self._answer), 200))

    def look_around(self) -> None:
        if self._chat is None and self._session:
            for path in _chats(self._session):
                self._chat = FollowedFile(path, self._positions.get(path, 0))
                self._report.agent_session(DriverSession(self._session, "gemini", path))
                break
        for line in self._chat.new_lines() if self._chat else ():
            if (record := json_object(line)) is not None and record.get("type") == "gemini":
                self._count(text_of(record.get("id")), mapping_of(record.get("tokens")))

    def finish(self) -> None:
        self.look_around()
        if self._chat:
            self._chat.close()
        if not self._told and self._result:
            stats = mapping_of(self._result.get("stats"))
            self._count("all", {"input": stats.get("input_tokens"), "output": stats.get("output_tokens")})

    def outcome(self, code: int, told: str) -> TaskOutcome | None:
        if self._session is None and _NO_CONVERSATION.search(told):
            return None
        result = self._result or {}
        if result.get("status") == "success":
            return Done(self._answer or None)
        error = text_of(mapping_of(result.get("error")).get("message")) or told
        again = _RETRY_IN.search(error)
        resets_at = self._began + timedelta(seconds=float(again[1])) if again else None
        words = safe_words(error)
        failed = Failed(f"Gemini CLI failed ({meaning(code)}): {words or 'it said nothing'}")
        return failure_of_api("Gemini CLI", error, words, resets_at) or failed

    def _count(self, call: str, tokens: dict[str, Any]) -> None:
        """A line is written again when its tools have ended."""
        prompt = count_of(tokens.get("input"))
        completion = count_of(tokens.get("output")) + count_of(tokens.get("thoughts"))
        if call in self._told or not prompt + completion:
            return
        self._told.add(call)
        tools, self._tools = self._tools, 0
        window = self._chosen_window or context_window(self._model)
        self._report.usage(window_usage(prompt, completion, window), tool_calls=tools)


def _chats(session: str) -> list[Path]:
    """Files of this session; their names end in the first part of its id."""
    if not re.fullmatch(r"[\w-]+", session):
        return []
    root = agent_home("GEMINI_CLI_HOME", "", dict(os.environ)) / ".gemini" / "tmp"
    return sorted(root.glob(f"*/chats/session-*-{session[:8]}.jsonl"))
