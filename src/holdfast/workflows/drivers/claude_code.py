"""Claude Code, headless: `claude -p` with its stream of events.

- The prompt, with the resume context at its head, goes in on stdin: the one place that is read
  whole in a new and in a resumed session alike (a system prompt is ignored on `--resume`).
- The tasks of one session talk on in one conversation, so that there is one window to fill.
- Its own compaction is off, unless DISABLE_AUTO_COMPACT is set otherwise: a full window is a pause.
- Usage is told as a message begins, without its output; the stream's `message_delta` has it whole.
- Sub-agents have windows of their own: their tokens count, the share of the window does not.
- A run may close more than one result, as background work wakes it up: the last one counts.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.base.text import clipped, one_line
from holdfast.journal.windows import context_window
from holdfast.transcripts.fields import count_of, mapping_of, mappings_of, text_of
from holdfast.workflows.drivers.cli_agent import (
    AgentConversation,
    CliAgent,
    StreamReader,
    agent_home,
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

_STREAM = ("-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages")
_FULL = frozenset(("prompt_too_long", "blocking_limit", "rapid_refill_breaker"))
_FULL_WORDS = re.compile(
    r"prompt is too long|context (?:limit|window)|exceeds? .{0,40}context", re.IGNORECASE
)
_LIMIT_ERRORS = frozenset(("rate_limit", "overloaded", "billing_error"))
_LIMIT_STATUSES = frozenset((429, 503, 529))
_OLD_LIMIT = re.compile(r"usage limit reached\|(\d{9,13})")
_NO_CONVERSATION = "No conversation found"
_NOT_LETTERS = re.compile(r"[^A-Za-z0-9]")


class ClaudeCodeDriver(CliAgent):
    name = "claude-code"
    agent = "claude-code"
    program = "claude"
    installing = "npm install -g @anthropic-ai/claude-code"

    def words(self, assignment: Assignment, conversation: AgentConversation, scratch: Path) -> Sequence[str]:  # noqa: ARG002 - it needs no files
        words = [*_STREAM, *self._settings.claude_args]
        if conversation.session:
            words += ["--resume", conversation.session.id]
        if assignment.wraps_up:
            words += ["--max-turns", "1"]
        elif is_review(assignment.task):
            words += ["--json-schema", json.dumps(REVIEW_SCHEMA)]
        return words

    def environ(self) -> dict[str, str]:
        return {} if "DISABLE_AUTO_COMPACT" in os.environ else {"DISABLE_AUTO_COMPACT": "1"}

    def reader(self, assignment: Assignment, report: Report, conversation: AgentConversation) -> StreamReader:  # noqa: ARG002 - nothing of it is needed
        return _ClaudeReader(report, self._settings.context_window)


@dataclass
class _Call:
    """A model call under way."""

    message_id: str
    model: str
    prompt: int = 0
    completion: int = 0
    parent: str | None = None
    tools: int = 0

    def count(self, usage: dict[str, Any]) -> None:
        self.prompt = sum(
            count_of(usage.get(name))
            for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        self.completion = max(self.completion, count_of(usage.get("output_tokens")))


class _ClaudeReader(StreamReader):
    def __init__(self, report: Report, window: int | None) -> None:
        self._report = report
        self._window = window
        self._windows: dict[str, int] = {}
        self._session: DriverSession | None = None
        self._open: dict[str | None, _Call] = {}
        """The call under way of the agent itself (None) and of each sub-agent."""
        self._told: set[str] = set()
        self._in_window = 0
        self._cost: float | None = None
        self._resets_at: datetime | None = None
        self._api_error: dict[str, Any] = {}
        self._result: dict[str, Any] | None = None

    def take(self, event: dict[str, Any]) -> None:
        if not self._session and text_of(event.get("session_id")) and event.get("type") != "result":
            self._begun(event)
        kind = event.get("type")
        if kind == "stream_event":
            self._streamed(mapping_of(event.get("event")), event)
        elif kind == "assistant":
            self._said(event)
        elif kind == "rate_limit_event":
            self._limited(mapping_of(event.get("rate_limit_info")))
        elif kind == "system" and event.get("subtype") == "api_retry":
            wait = count_of(event.get("retry_delay_ms")) / 1000
            self._report.say(f"the API returned {text_of(event.get('error'))}; retrying in {wait:.0f} s")
        elif kind == "result":
            self._ended(event)

    def finish(self) -> None:
        for call in list(self._open.values()):
            self._tell(call)
        if self._session and self._session.transcript and not self._session.transcript.exists():
            projects = self._session.transcript.parent.parent
            for path in projects.glob(f"*/{self._session.id}.jsonl"):
                self._report.agent_session(DriverSession(self._session.id, "claude-code", path))

    def outcome(self, code: int, told: str) -> TaskOutcome | None:
        result = self._result
        if result is None:
            return Failed(f"claude ended without a result ({meaning(code)}){_and(safe_words(told))}")
        words = safe_words(text_of(result.get("result")) or " ".join(map(str, result.get("errors") or ())))
        if any(_NO_CONVERSATION in str(error) for error in result.get("errors") or ()):
            return None
        reason = text_of(result.get("terminal_reason"))
        if reason in _FULL or self._cut_by_window():
            return Exhausted(f"Claude Code: the context window is full ({words or reason})")
        if reason == "hook_stopped":
            return self._stopped_by_hook(result)
        if result.get("is_error") is True:
            return self._failure(result, words)
        if text_of(result.get("subtype")) != "success":
            return Failed(f"Claude Code: {text_of(result.get('subtype'))}{_and(words)}")
        return Done(text_of(result.get("result")) + _denials(result) or None)

    @property
    def structured(self) -> object:
        return (self._result or {}).get("structured_output")

    def _begun(self, event: dict[str, Any]) -> None:
        session_id = text_of(event["session_id"])
        folder = os.path.realpath(text_of(event.get("cwd")) or Path.cwd())
        projects = agent_home("CLAUDE_CONFIG_DIR", ".claude", dict(os.environ)) / "projects"
        path = projects / _NOT_LETTERS.sub("-", folder) / f"{session_id}.jsonl"
        self._session = DriverSession(session_id, "claude-code", path)
        self._report.agent_session(self._session)

    def _streamed(self, event: dict[str, Any], around: dict[str, Any]) -> None:
        parent = _parent(around)
        if event.get("type") == "message_start":
            self._calling(mapping_of(event.get("message")), parent)
        elif event.get("type") == "message_delta" and (call := self._open.get(parent)):
            usage = mapping_of(event.get("usage"))
            call.completion = count_of(usage.get("output_tokens")) or call.completion
            if usage.get("input_tokens") is not None:
                call.count(usage)
            # The last call waits for the result, which brings what all of them cost.
            if mapping_of(event.get("delta")).get("stop_reason") == "tool_use":
                self._tell(call)

    def _said(self, event: dict[str, Any]) -> None:
        message = mapping_of(event.get("message"))
        if event.get("is_api_error_message") is True or message.get("model") == "<synthetic>":
            self._api_error = event
            return
        parent = _parent(event)
        self._calling(message, parent)
        call = self._open.get(parent)
        for block in mappings_of(message.get("content")):
            if block.get("type") == "tool_use":
                if call:
                    call.tools += 1
                self._report.say(f"{text_of(block.get('name'))} {_about(mapping_of(block.get('input')))}")
            elif block.get("type") == "text" and parent is None and text_of(block.get("text")).strip():
                self._report.say(clipped(one_line(text_of(block.get("text"))), 200))

    def _calling(self, message: dict[str, Any], parent: str | None) -> None:
        """A message begins, or another piece of it came: each piece repeats its id and its usage."""
        message_id = text_of(message.get("id"))
        call = self._open.get(parent)
        if call and call.message_id != message_id:
            self._tell(call)
            call = None
        if call is None:
            if message_id in self._told:
                return
            call = self._open[parent] = _Call(message_id, text_of(message.get("model")), parent=parent)
        call.count(mapping_of(message.get("usage")))

    def _tell(self, call: _Call) -> None:
        self._open.pop(call.parent, None)
        if call.message_id in self._told or not call.prompt + call.completion:
            return
        self._told.add(call.message_id)
        if call.parent is None:
            self._in_window = call.prompt + call.completion
        window = self._window or self._windows.get(call.model) or context_window(call.model)
        usage = window_usage(call.prompt, call.completion, window, in_window=self._in_window)
        cost, self._cost = self._cost, None
        self._report.usage(usage, tool_calls=call.tools, cost_usd=cost)

    def _ended(self, event: dict[str, Any]) -> None:
        self._result = event
        since = mapping_of(event.get("model_usage_since_last_result"))
        self._windows = {
            model: count_of(mapping_of(usage).get("contextWindow"))
            for model, usage in mapping_of(event.get("modelUsage")).items()
        }
        costs = [mapping_of(usage).get("costUSD") for usage in since.values()]
        known = [float(cost) for cost in costs if isinstance(cost, int | float)]
        self._cost = sum(known) if known else None
        for call in list(self._open.values()):
            self._tell(call)

    def _limited(self, info: dict[str, Any]) -> None:
        if info.get("status") == "rejected":
            self._resets_at = moment_of(info.get("resetsAt")) or self._resets_at

    def _cut_by_window(self) -> bool:
        cut = mapping_of(self._api_error.get("api_error_params")).get("cut")
        return cut == "context_window" and self._api_error.get("is_api_error_message") is True

    def _stopped_by_hook(self, result: dict[str, Any]) -> TaskOutcome:
        words = text_of(result.get("stop_reason_text")) or text_of(result.get("result"))
        if "holdfast" in json.dumps(result).lower():
            reason = f"Claude Code was stopped at its exhaustion level{_and(safe_words(words))}"
            return Exhausted(reason, has_room=True)
        return Failed(f"Claude Code was stopped by a hook{_and(safe_words(words))}")

    def _failure(self, result: dict[str, Any], words: str) -> TaskOutcome:
        status = result.get("api_error_status")
        error = text_of(self._api_error.get("error"))
        if status in (None, 400, 413) and _FULL_WORDS.search(words):
            return Exhausted(f"Claude Code: the context window is full ({words})")
        params = mapping_of(self._api_error.get("api_error_params"))
        resets_at = moment_of(mapping_of(params.get("rate_limit_info")).get("resetsAt")) or self._resets_at
        if old := _OLD_LIMIT.search(words):
            return RateLimited("Claude Code: the usage limit is reached", moment_of(int(old[1])))
        if error in _LIMIT_ERRORS or status in _LIMIT_STATUSES:
            return RateLimited(f"Claude Code: {words}", resets_at)
        if result.get("api_error") == "connection_failed":
            return RateLimited(f"Claude Code: the API cannot be reached ({words})")
        what = f"the API refused ({error or status})" if error or status else "it failed"
        return Failed(f"Claude Code: {what}{_and(words)}")


def _parent(event: dict[str, Any]) -> str | None:
    return text_of(event.get("parent_tool_use_id")) or None


def _about(arguments: dict[str, Any]) -> str:
    for name in ("command", "file_path", "path", "pattern", "description", "prompt"):
        if text := text_of(arguments.get(name)):
            return clipped(one_line(text), 160)
    return ""


def _and(words: str) -> str:
    return f": {words}" if words else ""


def _denials(result: dict[str, Any]) -> str:
    """Nobody was there to ask: worth knowing, and easily changed."""
    names = sorted({text_of(one.get("tool_name")) for one in mappings_of(result.get("permission_denials"))})
    if not names:
        return ""
    return f"\n\nNot permitted: {', '.join(names)} (see the setting claude_args)."
