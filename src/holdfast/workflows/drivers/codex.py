"""Codex, headless: `codex exec --json`.

- The prompt, with the resume context at its head, goes in on stdin; `resume` takes it there too.
- Its events tell usage only when the turn is over, and then of the whole conversation. The rollout it
  writes has a record a model call, the size of the window and when a limit resets: it is followed.
- Its own compaction is off, unless codex_args sets a limit: a full window is a pause.
- SIGINT lets it note in its rollout that the turn was cut off; SIGTERM does not.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from signal import SIGINT
from typing import Any

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
    moment_of,
    safe_words,
    window_usage,
)
from holdfast.workflows.drivers.guarded import meaning
from holdfast.workflows.drivers.prompts import REVIEW_SCHEMA, is_review
from holdfast.workflows.drivers.protocol import (
    Assignment,
    Done,
    DriverSession,
    Exhausted,
    Failed,
    RateLimited,
    Report,
    TaskOutcome,
)

_NEVER = "9223372036854775807"
_NO_CONVERSATION = re.compile(r"no rollout found|thread not found|no saved session", re.IGNORECASE)
_TOOLS = frozenset(("command_execution", "file_change", "mcp_tool_call", "web_search", "collab_tool_call"))


class CodexDriver(CliAgent):
    name = "codex"
    agent = "codex"
    program = "codex"
    installing = "npm install -g @openai/codex"
    asks_to_end = SIGINT

    def words(self, assignment: Assignment, conversation: AgentConversation, scratch: Path) -> Sequence[str]:
        words = ["exec", "--json", "--skip-git-repo-check"]
        words += ["-c", f"model_auto_compact_token_limit={_NEVER}", *self._settings.codex_args]
        if is_review(assignment.task) and not assignment.wraps_up:
            schema = scratch / "review.json"
            schema.write_text(json.dumps(REVIEW_SCHEMA))
            words += ["--output-schema", str(schema)]
        if conversation.session:
            words += ["resume", conversation.session.id]
        return [*words, "-"]

    def reader(self, assignment: Assignment, report: Report, conversation: AgentConversation) -> StreamReader:  # noqa: ARG002 - the task is not needed
        return _CodexReader(report, self._settings.context_window, conversation.session)


class _CodexReader(StreamReader):
    def __init__(self, report: Report, window: int | None, resumed: DriverSession | None) -> None:
        self._report = report
        self._chosen_window = window
        self._window = window
        self._model = ""
        self._resumed = resumed
        self._positions = {path: path.stat().st_size for path in _rollouts(resumed.id)} if resumed else {}
        self._thread: str | None = None
        self._rollout: FollowedFile | None = None
        self._told: set[str] = set()
        self._has_records = False
        self._last_total: object = None
        self._tools = 0
        self._tools_printed = 0
        self._calls = 0
        self._turn_usage: dict[str, Any] = {}
        self._answer = ""
        self._error = ""
        self._error_kind = ""
        self._resets_at: datetime | None = None
        self._is_complete = False

    def take(self, event: dict[str, Any]) -> None:
        kind, item = event.get("type"), mapping_of(event.get("item"))
        if kind == "thread.started":
            self._thread = text_of(event.get("thread_id"))
            self._report.agent_session(DriverSession(self._thread, "codex", self._known_path()))
        elif kind == "item.started" and item.get("type") in _TOOLS:
            self._tools_printed += 1
            self._report.say(f"{item['type']} {clipped(one_line(_about(item)), 160)}")
        elif kind == "item.completed" and item.get("type") == "agent_message":
            self._answer = text_of(item.get("text"))
            self._report.say(clipped(one_line(self._answer), 200))
        elif kind == "turn.completed":
            self._is_complete = True
            self._turn_usage = mapping_of(event.get("usage"))
        elif kind == "error":
            self._error = text_of(event.get("message"))
            self._report.say(safe_words(_plain(self._error)))  # it may wait long, and try again
        elif kind == "turn.failed":
            self._error = text_of(mapping_of(event.get("error")).get("message")) or self._error

    def look_around(self) -> None:
        if self._rollout is None and self._thread:
            self._follow(self._thread)
        if self._rollout:
            for line in self._rollout.new_lines():
                if (record := json_object(line)) is not None:
                    self._record(text_of(record.get("type")), mapping_of(record.get("payload")))

    def finish(self) -> None:
        self.look_around()
        if self._rollout:
            self._rollout.close()
        if not self._calls and self._turn_usage:
            self._tools = self._tools_printed
            self._count(self._turn_usage)

    def outcome(self, code: int, told: str) -> TaskOutcome | None:
        if self._is_complete and code == 0:
            return Done(self._answer or None)
        if self._thread is None and self._resumed and _NO_CONVERSATION.search(told):
            return None
        words = safe_words(_plain(self._error) or told)
        kind = self._error_kind
        if kind == "context_window_exceeded":
            return Exhausted(f"Codex: the context window is full ({words})")
        if kind in ("usage_limit_exceeded", "server_overloaded"):
            return RateLimited(f"Codex: {words}", self._resets_at)
        found = failure_of_api("Codex", self._error, words, self._resets_at)
        return found or Failed(f"Codex failed ({meaning(code)}): {words or 'it said nothing'}")

    def _known_path(self) -> Path | None:
        return next(iter(_rollouts(self._thread or "")), None)

    def _follow(self, thread: str) -> None:
        for path in _rollouts(thread):
            self._rollout = FollowedFile(path, self._positions.get(path, 0))
            self._report.agent_session(DriverSession(thread, "codex", path))
            return

    def _record(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "token_usage_record":
            self._has_records = True
            response = text_of(payload.get("response_id"))
            if response not in self._told:
                self._told.add(response)
                self._count(mapping_of(payload.get("usage")))
        elif kind == "response_item" and text_of(payload.get("type")).endswith("_call"):
            self._tools += 1
        elif kind == "turn_context":
            self._model = text_of(payload.get("model")) or self._model
        elif kind == "event_msg":
            self._event(text_of(payload.get("type")), payload)

    def _event(self, kind: str, payload: dict[str, Any]) -> None:
        if kind in ("task_started", "turn_started"):
            self._note_window(payload)
        elif kind == "token_count":
            info = mapping_of(payload.get("info"))
            self._note_window(info)
            self._note_limits(mapping_of(payload.get("rate_limits")))
            total = info.get("total_token_usage")
            if not self._has_records and info and total != self._last_total:
                self._last_total = total
                self._count(mapping_of(info.get("last_token_usage")))
        elif kind in ("task_complete", "turn_complete"):
            about = mapping_of(payload.get("error")).get("codex_error_info")
            self._error_kind = about if isinstance(about, str) else next(iter(mapping_of(about)), "")

    def _note_window(self, told: dict[str, Any]) -> None:
        self._window = self._chosen_window or count_of(told.get("model_context_window")) or self._window

    def _note_limits(self, limits: dict[str, Any]) -> None:
        used_up = [
            limit
            for name in ("primary", "secondary")
            if (limit := mapping_of(limits.get(name))) and _is_used_up(limit.get("used_percent"))
        ]
        resets = [moment for limit in used_up if (moment := moment_of(limit.get("resets_at")))]
        self._resets_at = max(resets, default=self._resets_at)

    def _count(self, usage: dict[str, Any]) -> None:
        prompt, completion = count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))
        if not prompt + completion:
            return
        self._calls += 1
        tools, self._tools = self._tools, 0
        window = self._window or context_window(self._model or "codex")
        self._report.usage(window_usage(prompt, completion, window), tool_calls=tools)


def _rollouts(thread: str) -> list[Path]:
    if not re.fullmatch(r"[\w-]+", thread):
        return []
    root = agent_home("CODEX_HOME", ".codex", dict(os.environ)) / "sessions"
    return sorted(root.glob(f"*/*/*/rollout-*-{thread}.jsonl"))


def _is_used_up(percent: object) -> bool:
    return isinstance(percent, int | float) and percent >= 100


def _about(item: dict[str, Any]) -> str:
    return text_of(item.get("command")) or text_of(item.get("query")) or text_of(item.get("tool"))


def _plain(error: str) -> str:
    """An API's answer is passed on as the JSON it is; its message is enough."""
    answer = json_object(error.encode()) if error.startswith("{") else None
    return text_of(mapping_of((answer or {}).get("error")).get("message")) or error
