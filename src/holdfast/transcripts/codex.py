"""Codex: a rollout file, one ``{timestamp, type, payload}`` object a line.

What makes this file format its own:

- The talk stands in ``response_item`` lines; ``event_msg`` lines repeat it for the screen
  and add what the talk does not say (how a command ended, that a turn was aborted).
- One answer of the model is several items: reasoning, message, calls. They become one message.
- Usage is told as ``token_usage_record`` (once an answer) and as ``token_count`` (repeated, and
  with a running total that starts again after a crash); the first is used where there is one.
- Messages of role ``user`` may come from the program: a list of kinds beside the content tells.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import orjson

from holdfast.model.message import Message, Outcome, ReadReport, TokenUsage, ToolCall, ToolResult
from holdfast.transcripts.codex_output import outcome_of_status, read_output
from holdfast.transcripts.fields import (
    Recent,
    count_of,
    count_unknown,
    joined,
    kind_of,
    list_of,
    mapping_of,
    mappings_of,
    text_of,
    text_or_none,
    todos_of,
)
from holdfast.transcripts.lines import json_objects

_IGNORED_LINES = frozenset(
    (
        "world_state",
        "security_risk_score",
        "inter_agent_communication_metadata",
        "realtime_item",
        "state",
    )
)
_IGNORED_ITEMS = frozenset(
    (
        "ghost_snapshot",
        "compaction",
        "compaction_summary",
        "context_compaction",
        "additional_tools",
        "other",
    )
)
_IGNORED_EVENTS = frozenset(
    (
        "task_complete",
        "turn_complete",
        "thread_settings_applied",
        "user_message",
        "agent_message",
        "agent_reasoning",
        "agent_reasoning_raw_content",
        "agent_reasoning_section_break",
        "item_started",
        "context_compacted",
        "entered_review_mode",
        "exited_review_mode",
        "thread_name_updated",
        "thread_goal_updated",
        "exec_command_begin",
        "plan_update",
        "undo_completed",
        "web_search_begin",
        "web_search_end",
        "view_image_tool_call",
        "image_generation_end",
        "turn_diff",
        "background_event",
        "warning",
        "model_reroute",
        "session_configured",
        "deprecation_notice",
        "stream_error",
        "collab_agent_spawn_end",
        "collab_agent_interaction_end",
        "collab_waiting_end",
        "collab_close_end",
    )
)
_TOOL_ENDS = frozenset(("exec_command_end", "patch_apply_end", "mcp_tool_call_end"))
_CALLS = frozenset(
    (
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "tool_search_call",
        "web_search_call",
        "image_generation_call",
    )
)
_OUTPUTS = frozenset(("function_call_output", "custom_tool_call_output", "tool_search_output"))
# These run on the model's side: no output item follows, their own status is the outcome.
_ANSWERED_BY_THEMSELVES = frozenset(("web_search_call", "image_generation_call"))

_PROGRAM_TAGS = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions instructions>",
    "<skill",
    "<subagent_notification>",
    "<model_switch>",
    "<collaboration_mode>",
    "<personality_spec>",
    "<hook_prompt",
    "<goal_context>",
    "# AGENTS.md instructions",
)
_EDITOR_CONTEXT = "# Context from my IDE setup:"
_EDITOR_REQUEST = "## My request for Codex:"
_SUMMARY_LEAD = "Another language model started to solve this problem"
_REMEMBERED = 4096
_REMEMBERED_TURNS = 1000


def read(source: BinaryIO, report: ReadReport) -> Iterator[Message]:
    """The messages of a Codex rollout file, in file order, in one pass."""
    report.agent = "codex"
    return _Reader(report).messages(source)


@dataclass(slots=True)
class _Answer:
    """One answer of the model while its items arrive, and the tool results that followed it."""

    at: str | None
    id: str | None = None
    said: list[str] = field(default_factory=list[str])
    thought: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[tuple[str | None, ToolResult]] = field(default_factory=list[tuple[str | None, ToolResult]])
    usage: TokenUsage | None = None


class _Reader:
    def __init__(self, report: ReadReport) -> None:
        self._report = report
        self._index = 0
        self._at: str | None = None
        self._subagent: str | None = None
        self._started = False
        self._answer: _Answer | None = None
        self._summary: str | None = None
        self._summary_usage: TokenUsage | None = None
        self._lines: Recent[object, None] = Recent(_REMEMBERED)
        self._open_calls: Recent[str, ToolCall] = Recent(_REMEMBERED)
        self._event_outcomes: Recent[str, Outcome] = Recent(_REMEMBERED)
        self._prompts: deque[int] = deque(maxlen=_REMEMBERED_TURNS)
        self._has_usage_records = False
        self._usage_keys: Recent[object, None] = Recent(_REMEMBERED)
        self._last_total: object = None

    def messages(self, source: BinaryIO) -> Iterator[Message]:
        for line in json_objects(source, self._report):
            kind, payload = _kind_and_payload(line)
            self._at = text_or_none(line.get("timestamp")) or self._at
            if kind != "event_msg" or not self._is_only_noted(payload):
                yield from self._line(line, kind, payload)
        yield from self._finished_answer()
        if self._summary is not None:
            yield self._made("assistant", text=self._summary, injected=True)

    def _line(self, line: dict[str, Any], kind: str, payload: dict[str, Any]) -> Iterator[Message]:
        if kind == "response_item":
            if self._is_new(line, payload):
                yield from self._item(payload, mapping_of(line.get("metadata")))
        elif kind == "event_msg":
            yield from self._event(payload)
        elif kind == "token_usage_record":
            self._has_usage_records = True
            yield from self._count_record(payload)
        elif kind == "compacted":
            yield from self._compacted(payload)
        elif kind == "session_meta":
            self._note_session(payload)
        elif kind == "turn_context":
            self._note_turn(payload)
        elif kind not in _IGNORED_LINES:
            count_unknown(self._report, kind)

    # --- the talk

    def _item(self, item: dict[str, Any], about: dict[str, Any]) -> Iterator[Message]:
        kind = kind_of(item.get("type"))
        if kind == "message" and item.get("role") == "assistant":
            yield from self._assistant_text(item, about)
        elif kind == "message":
            yield from self._finished_answer()
            yield self._prompt(item)
        elif kind == "reasoning":
            (yield from self._open_answer()).thought.append(_reasoning(item))
        elif kind in _CALLS:
            yield from self._call(item, kind)
        elif kind in _OUTPUTS:
            yield from self._output(item)
        elif kind not in _IGNORED_ITEMS:
            count_unknown(self._report, f"response_item/{kind}")

    def _assistant_text(self, item: dict[str, Any], about: dict[str, Any]) -> Iterator[Message]:
        text = joined(_texts(item))
        if about.get("compaction_output") is True:
            # The `compacted` line that follows marks the boundary; this is its text.
            yield from self._finished_answer()
            self._summary = text
            return
        answer = yield from self._open_answer()
        answer.id = answer.id or text_or_none(item.get("id"))
        answer.said.append(text)

    def _prompt(self, item: dict[str, Any]) -> Message:
        text, injected = _typed(item)
        if item.get("role") != "user":
            return self._made("system", text=text, injected=True, id=text_or_none(item.get("id")))
        if not injected:
            self._prompts.append(self._index)
        return self._made("user", text=text, injected=injected, id=text_or_none(item.get("id")))

    def _call(self, item: dict[str, Any], kind: str) -> Iterator[Message]:
        answer = yield from self._open_answer()
        call = _tool_call(item, kind)
        answer.calls.append(call)
        if kind in _ANSWERED_BY_THEMSELVES:
            outcome = outcome_of_status(item.get("status")) or "unknown"
            answer.results.append((self._at, ToolResult(call.id, "", outcome)))
        else:
            self._open_calls.put(call.id, call)

    def _output(self, item: dict[str, Any]) -> Iterator[Message]:
        call_id = text_of(item.get("call_id"))
        text, outcome = read_output(
            item.get("output") or item.get("tools"), self._event_outcomes.pop(call_id)
        )
        result = ToolResult(call_id, text, outcome)
        if self._answer is not None:
            self._answer.results.append((self._at, result))
        else:
            yield self._result_message(self._at, result)

    def _open_answer(self) -> Generator[Message, None, _Answer]:
        """The answer to add to; results in the one at hand mean that a new one begins."""
        if self._answer is not None and self._answer.results:
            yield from self._finished_answer()
        if self._answer is None:
            self._answer = _Answer(at=self._at)
        return self._answer

    def _finished_answer(self) -> Iterator[Message]:
        answer, self._answer = self._answer, None
        if answer is None:
            return
        yield self._made(
            "assistant",
            at=answer.at,
            id=answer.id,
            text=joined(answer.said),
            thinking=joined(answer.thought),
            tool_calls=tuple(answer.calls),
            usage=answer.usage,
        )
        for at, result in answer.results:
            yield self._result_message(at, result)

    def _result_message(self, at: str | None, result: ToolResult) -> Message:
        call = self._open_calls.pop(result.call_id)
        planned = call is not None and call.name == "update_plan" and result.outcome != "error"
        todos = todos_of(call.arguments.get("plan"), "step") if call is not None and planned else None
        return self._made("user", at=at, tool_results=(result,), todos=todos)

    # --- what happened around it

    def _event(self, event: dict[str, Any]) -> Iterator[Message]:
        kind = kind_of(event.get("type"))
        if kind == "token_count":
            yield from self._count_total(mapping_of(event.get("info")))
        elif kind in ("turn_aborted", "task_started", "turn_started"):
            yield from self._interrupted_calls()
        elif kind == "thread_rolled_back":
            yield from self._rolled_back(count_of(event.get("num_turns")))
        elif kind == "error":
            yield from self._finished_answer()
            yield self._made("system", text=text_of(event.get("message")), injected=True)
        else:
            count_unknown(self._report, f"event_msg/{kind}")

    def _is_only_noted(self, event: dict[str, Any]) -> bool:
        """Half of all lines are events that become no message: they are dealt with here."""
        kind = kind_of(event.get("type"))
        if kind == "item_completed":
            self._note_outcome(mapping_of(event.get("item")), "id")
        elif kind in _TOOL_ENDS:
            self._note_outcome(event, "call_id")
        else:
            return kind in _IGNORED_EVENTS or (kind == "token_count" and self._has_usage_records)
        return True

    def _note_outcome(self, event: dict[str, Any], id_key: str) -> None:
        outcome = outcome_of_status(event.get("status"))
        if outcome is None and isinstance(event.get("success"), bool):
            outcome = "ok" if event["success"] else "error"
        identifier = text_or_none(event.get(id_key))
        if identifier is not None and outcome is not None:
            self._event_outcomes.put(identifier, outcome)

    def _interrupted_calls(self) -> Iterator[Message]:
        """Calls without a result when their turn is over: nobody will answer them now."""
        yield from self._finished_answer()
        for call_id in self._open_calls.known():
            yield self._result_message(self._at, ToolResult(call_id, "", "interrupted"))

    def _rolled_back(self, turns: int) -> Iterator[Message]:
        yield from self._finished_answer()
        first = self._index
        for _ in range(min(turns, len(self._prompts))):
            first = self._prompts.pop()
        yield self._made("system", text=f"The user took back {turns} turns", injected=True, undone_from=first)

    def _compacted(self, payload: dict[str, Any]) -> Iterator[Message]:
        yield from self._finished_answer()
        summary, self._summary = self._summary, None
        usage, self._summary_usage = self._summary_usage, None
        if summary is None:
            summary = _without_lead(text_of(payload.get("message")))
        yield self._made("system", text=summary, compaction=True, injected=True, usage=usage)

    # --- usage

    def _count_record(self, record: dict[str, Any]) -> Iterator[Message]:
        key = (text_of(record.get("turn_id")), text_of(record.get("response_id")))
        if any(key):
            if key in self._usage_keys:
                self._report.duplicated += 1
                return
            self._usage_keys.put(key, None)
        yield from self._count(mapping_of(record.get("usage")))

    def _count_total(self, info: dict[str, Any]) -> Iterator[Message]:
        total = info.get("total_token_usage")
        if not info or total == self._last_total:
            return
        self._last_total = total
        yield from self._count(mapping_of(info.get("last_token_usage")))

    def _count(self, usage: dict[str, Any]) -> Iterator[Message]:
        read = count_of(usage.get("cached_input_tokens"))
        written = count_of(usage.get("cache_write_input_tokens"))
        tokens = TokenUsage(
            input_tokens=max(0, count_of(usage.get("input_tokens")) - read - written),
            output_tokens=count_of(usage.get("output_tokens")),
            cache_read=read,
            cache_write=written,
            model=self._report.model,
        )
        if not tokens.context:
            return
        if self._answer is not None and self._answer.usage is None:
            self._answer.usage = tokens
            yield from self._finished_answer()
        elif self._summary is not None and self._summary_usage is None:
            self._summary_usage = tokens
        else:
            yield self._made("assistant", usage=tokens, injected=True)

    # --- the session

    def _note_session(self, meta: dict[str, Any]) -> None:
        if self._started:
            # A fork carries its ancestor's first line along; the file's own comes first.
            return
        self._started = True
        report = self._report
        report.session_id = text_or_none(meta.get("id")) or report.session_id
        report.cwd = text_or_none(meta.get("cwd")) or report.cwd
        report.branch = text_or_none(mapping_of(meta.get("git")).get("branch")) or report.branch
        if "subagent" in mapping_of(meta.get("source")) or meta.get("thread_source") == "subagent":
            self._subagent = text_or_none(meta.get("agent_nickname")) or report.session_id or "subagent"

    def _note_turn(self, turn: dict[str, Any]) -> None:
        self._report.model = text_or_none(turn.get("model")) or self._report.model
        self._report.cwd = self._report.cwd or text_or_none(turn.get("cwd"))

    def _is_new(self, line: dict[str, Any], item: dict[str, Any]) -> bool:
        ordinal, at = line.get("ordinal"), line.get("timestamp")
        # Only newer versions number their lines; then there is an id, at least a call's.
        number = ordinal if isinstance(ordinal, int) else item.get("id") or item.get("call_id")
        if not isinstance(at, str) or not isinstance(number, int | str):
            return True
        key = (at, number, text_of(item.get("type")))
        if key in self._lines:
            self._report.duplicated += 1
            return False
        self._lines.put(key, None)
        return True

    def _made(self, role: Any, *, at: str | None = None, **fields: Any) -> Message:
        message = Message(index=self._index, role=role, at=at or self._at, subagent=self._subagent, **fields)
        self._index += 1
        return message


def _kind_and_payload(line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if "payload" in line:
        return kind_of(line.get("type")), mapping_of(line["payload"])
    # The first Codex versions wrote items bare, after a first line without a type.
    if "type" in line:
        return "response_item", line
    return ("session_meta" if "id" in line else kind_of(line.get("record_type"))), line


def _texts(item: dict[str, Any]) -> list[str]:
    content = item.get("content")
    if isinstance(content, str):
        return [content]
    return [text_of(part.get("text")) for part in mappings_of(content)]


def _reasoning(item: dict[str, Any]) -> str:
    summary = joined(text_of(part.get("text")) for part in mappings_of(item.get("summary")))
    return summary or joined(_texts(item))


def _typed(item: dict[str, Any]) -> tuple[str, bool]:
    """What the user typed, or else what the program put in the user's mouth."""
    texts = _texts(item)
    about = mapping_of(item.get("internal_chat_message_metadata_passthrough"))
    kinds = list_of(about.get("content_item_kinds"))
    if texts and len(kinds) == len(texts):
        own = [text for text, kind in zip(texts, kinds, strict=True) if text_of(kind).startswith("user.")]
    else:
        own = [text for text in texts if not text.lstrip().startswith(_PROGRAM_TAGS)]
    if not any(own):
        return joined(texts), not any(texts) or not own
    text = joined(own).strip()
    if text.startswith(_EDITOR_CONTEXT) and _EDITOR_REQUEST in text:
        text = text.split(_EDITOR_REQUEST, 1)[1].strip()
    return text, False


def _tool_call(item: dict[str, Any], kind: str) -> ToolCall:
    call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
    name = text_of(item.get("name")) or kind.removesuffix("_call")
    if kind in ("local_shell_call", "web_search_call"):
        return ToolCall(call_id, name, mapping_of(item.get("action")))
    if kind == "custom_tool_call":
        return ToolCall(call_id, name, {"input": item.get("input")})
    return ToolCall(call_id, name, _arguments(item.get("arguments")))


def _arguments(raw: object) -> dict[str, Any]:
    if not isinstance(raw, str):
        return mapping_of(raw)
    try:
        parsed: object = orjson.loads(raw)
    except (orjson.JSONDecodeError, RecursionError):
        return {"arguments": raw} if raw else {}
    return mapping_of(parsed) or ({} if parsed == {} else {"arguments": parsed})


def _without_lead(message: str) -> str:
    """The summary without the words that hand it to the next model."""
    if not message.startswith(_SUMMARY_LEAD):
        return message
    _, _, summary = message.partition(":\n")
    return summary or message
