"""Codex: a rollout file, one ``{timestamp, type, payload}`` object a line."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from holdfast.model.message import (
    Message,
    ReadReport,
    Role,
    TokenUsage,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from holdfast.transcripts.fields import (
    MessageMaker,
    Recent,
    answers_told,
    arguments_of,
    count_of,
    count_unknown,
    joined,
    json_objects,
    json_of,
    kind_of,
    list_of,
    mapping_of,
    mappings_of,
    text_of,
    text_or_none,
    todos_of,
    told,
)

# ── what tools printed ────────────────────────────────────────────────────────────────────────────

# What a Codex tool printed, taken out of the envelope that Codex puts around it.
#
# The envelope changed over time: a JSON object with an exit code, then a few header lines
# before ``Output:``. Either holds the only exact word on whether a command failed.

_ENVELOPE_STARTS = ("Chunk ID:", "Exit code:", "Wall time:")
_ENVELOPE_BYTES = 1000
_BODY_MARK = "\nOutput:\n"
_EXIT_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d+)\s*$", re.MULTILINE)
_STILL_RUNNING = re.compile(r"^Process running with session ID", re.MULTILINE)
_ABORTED = re.compile(r"\A(?:Wall time: [^\n]*\n)?(?:aborted|Command aborted)\b")
# Codex refuses or fails a call in plain words, with no field that says so.
_REFUSALS = (
    "unsupported call:",
    "unsupported custom tool call:",
    "failed to parse function arguments",
    "apply_patch verification failed",
    "exec_command failed",
    "write_stdin failed",
    "execution error",
    "unable to locate ",
    "unable to read ",
    "failed in sandbox",
    "sandbox error",
    "tool call error",
    "tool call failed",
    "Err(",
    "err: ",
    "Error:",
    "error:",
)
_REJECTIONS = ("exec command rejected by user", "patch rejected by user", "rejected by user", "user rejected")
_STATUS_OUTCOMES: dict[str, ToolOutcome] = {
    "completed": "ok",
    "failed": "error",
    "declined": "interrupted",
    "interrupted": "interrupted",
}


def outcome_of_status(status: object) -> ToolOutcome | None:
    return _STATUS_OUTCOMES.get(text_of(status))


def read_output(output: object, from_event: ToolOutcome | None) -> tuple[str, ToolOutcome]:
    """The printed text and how the call ended; ``from_event`` is what Codex noted of it elsewhere."""
    text, success = _plain(output)
    if _ABORTED.match(text) or text.startswith(_REJECTIONS):
        return text, "interrupted"
    body, exit_code, running = _unwrapped(text)
    if exit_code is not None:
        return (body, "ok") if exit_code == 0 else (f"Exit code {exit_code}\n{body}", "error")
    if running:
        return body, "unknown"
    if from_event is not None:
        return body, from_event
    failed = success is False or text.startswith(_REFUSALS)
    return body, "error" if failed else "ok"


def _plain(output: object) -> tuple[str, bool | None]:
    if isinstance(output, str):
        return output, None
    if isinstance(output, list):
        return joined(text_of(item.get("text")) for item in mappings_of(cast(list[object], output))), None
    fields = mapping_of(output)
    success = fields.get("success")
    text, _ = _plain(fields.get("content") or fields.get("content_items")) if fields else ("", None)
    return text, success if isinstance(success, bool) else None


def _unwrapped(text: str) -> tuple[str, int | None, bool]:
    if text.startswith('{"output":'):
        return _out_of_json(text)
    if not text.startswith(_ENVELOPE_STARTS):
        return text, None, False
    mark = text.find(_BODY_MARK, 0, _ENVELOPE_BYTES)
    head, body = (
        (text[:mark], text[mark + len(_BODY_MARK) :]) if mark >= 0 else (text[:_ENVELOPE_BYTES], text)
    )
    code = _EXIT_CODE.search(head)
    return body, _small(code[1]) if code else None, bool(_STILL_RUNNING.search(head))


def _out_of_json(text: str) -> tuple[str, int | None, bool]:
    fields = mapping_of(json_of(text))
    if not fields:
        return text, None, False
    code = mapping_of(fields.get("metadata")).get("exit_code")
    exact = code if isinstance(code, int) and not isinstance(code, bool) else None
    return text_of(fields.get("output")), exact, False


def _small(digits: str) -> int:
    return int(digits[:12])


# ── the rollout ───────────────────────────────────────────────────────────────────────────────────

# Codex: a rollout file, one ``{timestamp, type, payload}`` object a line.
#
# What makes this file format its own:
#
# - The talk stands in ``response_item`` lines; ``event_msg`` lines repeat it for the screen
# and add what the talk does not say (how a command ended, that a turn was aborted).
# - One answer of the model is several items: reasoning, message, calls. They become one message.
# - Usage is told as ``token_usage_record`` (once an answer) and as ``token_count`` (repeated, and
# with a running total that starts again after a crash); the first is used where there is one.
# - Messages of role ``user`` may come from the program: a list of kinds beside the content tells.

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
# Codex writes its fields in this order, without spaces; a line written otherwise is parsed.
_EVENT = re.compile(
    rb'\{"timestamp":"[^"\\]{0,40}",(?:"ordinal":\d{1,15},)?"type":"event_msg","payload":\{"type":"(\w{1,60})"'
)
_NOISE_EVENTS = frozenset(kind.encode() for kind in _IGNORED_EVENTS)
# What was said stands in the talk; of a command only the outcome is noted.
_COMPLETED_ITEM = re.compile(
    rb'(?:,"\w{1,40}":"[^"\\]{0,80}"){0,4},"item":\{"type":"'
    rb'(?:(?:UserMessage|AgentMessage|Reasoning|ContextCompaction)"|CommandExecution","id":"([^"\\]{1,80})")'
)
_ENDED_WELL = b'"status":"completed"'
_TURN_EVENTS = frozenset(("task_started", "turn_started", "turn_aborted", "task_complete", "turn_complete"))
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

_AGENT_NOTICE = "<subagent_notification>"
_PROGRAM_TAGS = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<permissions instructions>",
    "<skill",
    _AGENT_NOTICE,
    "<model_switch>",
    "<collaboration_mode>",
    "<personality_spec>",
    "<hook_prompt",
    "<user_shell_command>",
    "<user_action>",
    "<goal_context>",
    "# AGENTS.md instructions",
)
_ASKS_USER = "request_user_input"
_SPAWNS, _HEAR_OF_AGENTS = "spawn_agent", ("wait", "wait_agent")
_AGENT_ENDS: dict[str, ToolOutcome] = {"completed": "ok", "errored": "error"}
_EDITOR_CONTEXT = "# Context from my IDE setup:"
_EDITOR_REQUEST = "## My request for Codex:"
_SUMMARY_LEAD = "Another language model started to solve this problem"
_REMEMBERED = 4096
_REMEMBERED_TURNS = 1000


def read(source: BinaryIO, report: ReadReport) -> Iterator[Message]:
    """The messages of a Codex rollout file, in file order, in one pass."""
    report.agent = "codex"
    return _Reader(report).messages(source)


class _Answer:
    """One answer of the model while its items arrive, and the tool results that followed it."""

    __slots__ = ("at", "calls", "id", "results", "said", "thought", "usage")

    def __init__(self, at: str | None) -> None:
        self.at = at
        self.id: str | None = None
        self.said: list[str] = []
        self.thought: list[str] = []
        self.calls: list[ToolCall] = []
        self.results: list[tuple[str | None, ToolResult]] = []
        self.usage: TokenUsage | None = None


class _Reader(MessageMaker):
    def __init__(self, report: ReadReport) -> None:
        super().__init__(report)
        self._at: str | None = None
        self._started = False
        self._answer: _Answer | None = None
        self._summary: str | None = None
        self._summary_usage: TokenUsage | None = None
        self._lines: Recent[object, bool] = Recent(_REMEMBERED)
        self._open_calls: Recent[str, ToolCall] = Recent(_REMEMBERED)
        self._agents: Recent[str, str] = Recent(_REMEMBERED)  # the calls that started them, by their ids
        self._event_outcomes: Recent[str, ToolOutcome] = Recent(_REMEMBERED)
        self._prompts: deque[int] = deque(maxlen=_REMEMBERED_TURNS)
        self._has_usage_records = False
        self._usage_keys: Recent[object, bool] = Recent(_REMEMBERED)
        self._last_total: object = None

    def messages(self, source: BinaryIO) -> Iterator[Message]:
        yield from self._made_of(json_objects(source, self._report, is_noise=self._is_noise), self._line)
        self._finish_answer()
        if self._summary is not None:
            self._make("assistant", text=self._summary, injected=True)
        yield from self._ready

    def _is_noise(self, line: bytes) -> bool:
        """Half of all lines are events that say nothing new: they are not even parsed."""
        found = _EVENT.match(line)
        if found is None:
            return False
        kind = found[1]
        if kind == b"token_count":
            return self._has_usage_records
        if kind == b"item_completed":
            item = _COMPLETED_ITEM.match(line, found.end())
            return item is not None and (item[1] is None or self._ended_well(item[1], line))
        return kind in _NOISE_EVENTS

    def _ended_well(self, call_id: bytes, line: bytes) -> bool:
        """Most commands do; the rest of the line is what they printed, which stands elsewhere as well."""
        if _ENDED_WELL not in line:
            return False
        self._event_outcomes.put(call_id.decode(errors="replace"), "ok")
        return True

    def _line(self, line: dict[str, Any]) -> None:
        kind, payload = _kind_and_payload(line)
        at = line.get("timestamp")
        if at and isinstance(at, str):
            self._at = at
        if kind == "response_item":
            if self._is_new(line, payload):
                self._item(payload, line.get("metadata"))
        elif kind == "event_msg":
            self._event(payload)
        elif kind == "token_usage_record":
            self._has_usage_records = True
            self._count_record(payload)
        elif kind == "compacted":
            self._compacted(payload)
        elif kind == "session_meta":
            self._note_session(payload)
        elif kind == "turn_context":
            self._note_turn(payload)
        elif kind not in _IGNORED_LINES:
            count_unknown(self._report, kind)

    # --- the talk

    def _item(self, item: dict[str, Any], about: object) -> None:
        kind = kind_of(item.get("type"))
        if kind in _OUTPUTS:
            self._output(item)
        elif kind in _CALLS:
            self._call(item, kind)
        elif kind == "reasoning":
            self._open_answer().thought.append(_reasoning(item))
        elif kind == "message" and item.get("role") == "assistant":
            self._assistant_text(item, mapping_of(about))
        elif kind == "message":
            self._finish_answer()
            self._prompt(item)
        elif kind not in _IGNORED_ITEMS:
            count_unknown(self._report, f"response_item/{kind}")

    def _assistant_text(self, item: dict[str, Any], about: dict[str, Any]) -> None:
        text = joined(_texts(item))
        if about.get("compaction_output") is True:
            # The `compacted` line that follows marks the boundary; this is its text.
            self._finish_answer()
            self._summary = text
            return
        answer = self._open_answer()
        answer.id = answer.id or text_or_none(item.get("id"))
        answer.said.append(text)

    def _prompt(self, item: dict[str, Any]) -> None:
        text, injected = _typed(item)
        if item.get("role") != "user":
            self._make("system", text=text, injected=True, id=text_or_none(item.get("id")))
            return
        if not injected:
            self._prompts.append(self._index)
        elif text.startswith(_AGENT_NOTICE):
            self._hear_of_agents(self._at, mapping_of(json_of(_between(text, _AGENT_NOTICE))))
        self._make("user", text=text, injected=injected, id=text_or_none(item.get("id")))

    def _call(self, item: dict[str, Any], kind: str) -> None:
        answer = self._open_answer()
        call = _tool_call(item, kind)
        answer.calls.append(call)
        if kind in _ANSWERED_BY_THEMSELVES:
            outcome = outcome_of_status(item.get("status")) or "unknown"
            answer.results.append((self._at, ToolResult(call.id, "", outcome)))
        else:
            self._open_calls.put(call.id, call)

    def _output(self, item: dict[str, Any]) -> None:
        call_id = text_of(item.get("call_id"))
        text, outcome = read_output(
            item.get("output") or item.get("tools"), self._event_outcomes.pop(call_id)
        )
        result = ToolResult(call_id, text, outcome)
        if self._answer is not None:
            self._answer.results.append((self._at, result))
        else:
            self._make_result(self._at, result)

    def _open_answer(self) -> _Answer:
        """The answer to add to; results in the one at hand mean that a new one begins."""
        answer = self._answer
        if answer is not None and answer.results:
            self._finish_answer()
            answer = None
        if answer is None:
            answer = self._answer = _Answer(self._at)
        return answer

    def _finish_answer(self) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            return
        self._make(
            "assistant",
            at=answer.at,
            id=answer.id,
            text=joined(answer.said) if answer.said else "",
            thinking=joined(answer.thought) if answer.thought else "",
            tool_calls=tuple(answer.calls),
            usage=answer.usage,
        )
        for at, result in answer.results:
            self._make_result(at, result)

    def _make_result(self, at: str | None, result: ToolResult) -> None:
        call = self._open_calls.pop(result.call_id)
        if call is not None and call.name == _SPAWNS and result.outcome == "ok":
            result = self._spawned(result)
        elif call is not None and call.name == _ASKS_USER and result.outcome == "ok":
            text = answers_told(call.arguments.get("questions"), result.text)
            result = ToolResult(result.call_id, text, "ok")
        planned = call is not None and call.name == "update_plan" and result.outcome != "error"
        todos = todos_of(call.arguments.get("plan"), "step") if call is not None and planned else None
        self._make("user", at=at, tool_results=(result,), todos=todos)
        if call is not None and call.name in _HEAR_OF_AGENTS:
            self._hear_of_agents(at, mapping_of(json_of(result.text)))

    def _spawned(self, result: ToolResult) -> ToolResult:
        """It works from now on; what it reports is told later, as the answer to another call."""
        agent = text_of(mapping_of(json_of(result.text)).get("agent_id"))
        if not agent:
            return result
        self._agents.put(agent, result.call_id)
        return ToolResult(result.call_id, result.text, "unknown")

    def _hear_of_agents(self, at: str | None, told: dict[str, Any]) -> None:
        by_agent = mapping_of(told.get("status"))
        if agent := text_of(told.get("agent_id")):
            by_agent = {agent: by_agent}
        for agent, status in by_agent.items():
            ended = next(
                ((key, text) for key, text in mapping_of(status).items() if key in _AGENT_ENDS), None
            )
            call_id = self._agents.pop(agent) if ended else None
            if ended and call_id:
                report = ToolResult(call_id, text_of(ended[1]), _AGENT_ENDS[ended[0]])
                self._make("user", at=at, tool_results=(report,))

    # --- what happened around it

    def _event(self, event: dict[str, Any]) -> None:
        kind = kind_of(event.get("type"))
        if kind == "token_count":
            if not self._has_usage_records:
                self._count_total(mapping_of(event.get("info")))
        elif kind == "item_completed":
            self._note_outcome(mapping_of(event.get("item")), "id")
        elif kind in _TOOL_ENDS:
            self._note_outcome(event, "call_id")
        elif kind in _TURN_EVENTS:
            self._turn(kind, event)
        elif kind == "thread_rolled_back":
            self._roll_back(count_of(event.get("num_turns")))
        elif kind == "error":
            self._finish_answer()
            self._make("system", text=text_of(event.get("message")), injected=True, turn="failed")
        elif kind not in _IGNORED_EVENTS:
            count_unknown(self._report, f"event_msg/{kind}")

    def _turn(self, kind: str, event: dict[str, Any]) -> None:
        if kind in ("task_complete", "turn_complete"):
            self._finish_answer()
            self._make("system", injected=True, turn="ended")
            return
        self._interrupt_calls()
        if kind == "turn_aborted" and event.get("reason", "interrupted") == "interrupted":
            self._make("system", injected=True, turn="stopped")

    def _note_outcome(self, event: dict[str, Any], id_key: str) -> None:
        outcome = outcome_of_status(event.get("status"))
        if outcome is None and isinstance(event.get("success"), bool):
            outcome = "ok" if event["success"] else "error"
        identifier = text_or_none(event.get(id_key))
        if identifier is not None and outcome is not None:
            self._event_outcomes.put(identifier, outcome)

    def _interrupt_calls(self) -> None:
        """Calls without a result when their turn is over: nobody will answer them now."""
        self._finish_answer()
        for call_id in self._open_calls.known():
            self._make_result(self._at, ToolResult(call_id, "", "interrupted"))

    def _roll_back(self, turns: int) -> None:
        self._finish_answer()
        first = self._index
        for _ in range(min(turns, len(self._prompts))):
            first = self._prompts.pop()
        self._make("system", text=f"The user reverted {turns} turns", injected=True, undone_from=first)

    def _compacted(self, payload: dict[str, Any]) -> None:
        self._finish_answer()
        summary, self._summary = self._summary, None
        usage, self._summary_usage = self._summary_usage, None
        if summary is None:
            summary = _without_lead(text_of(payload.get("message")))
        self._make("system", text=summary, compaction=True, injected=True, usage=usage)

    # --- usage

    def _count_record(self, record: dict[str, Any]) -> None:
        key = (text_of(record.get("turn_id")), text_of(record.get("response_id")))
        if any(key) and self._usage_keys.met(key):
            self._report.duplicated += 1
        else:
            self._count(mapping_of(record.get("usage")))

    def _count_total(self, info: dict[str, Any]) -> None:
        total = info.get("total_token_usage")
        if not info or total == self._last_total:
            return
        self._last_total = total
        self._count(mapping_of(info.get("last_token_usage")))

    def _count(self, usage: dict[str, Any]) -> None:
        read = count_of(usage.get("cached_input_tokens"))
        written = count_of(usage.get("cache_write_input_tokens"))
        given = max(0, count_of(usage.get("input_tokens")) - read - written)
        tokens = TokenUsage(given, count_of(usage.get("output_tokens")), read, written, self._report.model)
        if not tokens.context:
            return
        if self._answer is not None and self._answer.usage is None:
            self._answer.usage = tokens
            self._finish_answer()
        elif self._summary is not None and self._summary_usage is None:
            self._summary_usage = tokens
        else:
            self._make("assistant", usage=tokens, injected=True)

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
        if self._lines.met((at, number, text_of(item.get("type")))):
            self._report.duplicated += 1
            return False
        return True

    def _make(self, role: Role, *, at: str | None = None, **fields: Any) -> None:
        self._pass_on(Message(self._index, role, at=at or self._at, subagent=self._subagent, **fields))


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


def _between(text: str, tag: str) -> str:
    return text.removeprefix(tag).partition(tag.replace("<", "</"))[0].strip()


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
    return told(text)


def _tool_call(item: dict[str, Any], kind: str) -> ToolCall:
    call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
    name = text_of(item.get("name")) or kind.removesuffix("_call")
    if kind in ("local_shell_call", "web_search_call"):
        return ToolCall(call_id, name, mapping_of(item.get("action")))
    if kind == "custom_tool_call":
        return ToolCall(call_id, name, {"input": item.get("input")})
    return ToolCall(call_id, name, arguments_of(item.get("arguments")))


def _without_lead(message: str) -> str:
    """The summary without the words that hand it to the next model."""
    if not message.startswith(_SUMMARY_LEAD):
        return message
    _, _, summary = message.partition(":\n")
    return summary or message
