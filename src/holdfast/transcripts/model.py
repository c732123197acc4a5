"""The conversation of the driver `model`: pydantic-ai's messages, one JSON array.

A request holds what the user said and what tools gave back; a response what the model
said, thought and called. Tools answer a command with its exit code in the first line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from holdfast.model.message import (
    Message,
    ReadReport,
    TokenUsage,
    ToolCall,
    ToolOutcome,
    ToolResult,
)
from holdfast.transcripts.fields import (
    MAX_LINE_BYTES,
    arguments_of,
    count_of,
    count_unknown,
    joined,
    json_of,
    kind_of,
    list_of,
    mapping_of,
    mappings_of,
    text_of,
    text_or_none,
    told,
)

_GOOD = "exit code 0"


def read(source: BinaryIO, report: ReadReport) -> Iterator[Message]:
    for index, message in enumerate(_messages(source, report)):
        parts = mappings_of(message.get("parts"))
        if message.get("kind") == "response":
            yield _response(index, message, parts, report)
        else:
            yield _request(index, message, parts, report)


def _messages(source: BinaryIO, report: ReadReport) -> list[dict[str, Any]]:
    data = source.read(MAX_LINE_BYTES + 1)
    report.lines += 1
    if len(data) > MAX_LINE_BYTES:
        report.oversized += 1
        return []
    messages = json_of(data)
    report.torn += messages is None
    return mappings_of(messages)


def _request(index: int, message: dict[str, Any], parts: list[dict[str, Any]], report: ReadReport) -> Message:
    said: list[str] = []
    results: list[ToolResult] = []
    for part in parts:
        kind = kind_of(part.get("part_kind"))
        if kind == "user-prompt":
            said.append(_content(part.get("content")))
        elif kind in ("tool-return", "retry-prompt") and text_of(part.get("tool_call_id")):
            results.append(_result(part, kind))
        elif kind not in ("system-prompt", "retry-prompt", "retry-feedback"):
            count_unknown(report, kind)
    text, by_program = told(joined(said))
    at = next((when for part in parts if (when := text_or_none(part.get("timestamp")))), None)
    return Message(
        index,
        "user",
        text=text,
        at=at or text_or_none(message.get("timestamp")),
        tool_results=tuple(results),
        injected=by_program if said else not results,
    )


def _response(
    index: int, message: dict[str, Any], parts: list[dict[str, Any]], report: ReadReport
) -> Message:
    said: list[str] = []
    thought: list[str] = []
    calls: list[ToolCall] = []
    for part in parts:
        kind = kind_of(part.get("part_kind"))
        if kind == "text":
            said.append(text_of(part.get("content")))
        elif kind == "thinking":
            thought.append(text_of(part.get("content")))
        elif kind == "tool-call":
            name, call_id = text_of(part.get("tool_name")), text_of(part.get("tool_call_id"))
            calls.append(ToolCall(call_id, name, arguments_of(part.get("args"))))
        else:
            count_unknown(report, kind)
    report.model = text_or_none(message.get("model_name")) or report.model
    return Message(
        index,
        "assistant",
        text=joined(said),
        thinking=joined(thought),
        at=text_or_none(message.get("timestamp")),
        id=text_or_none(message.get("provider_response_id")),
        tool_calls=tuple(calls),
        turn=None if calls else "ended",  # an answer that calls nothing is the last of a run
        usage=_usage(mapping_of(message.get("usage")), report.model),
    )


def _result(part: dict[str, Any], kind: str) -> ToolResult:
    text = _content(part.get("content"))
    is_bad = text.startswith("error: ")
    if part.get("tool_name") == "run_command":
        is_bad = text.partition("\n")[0] != _GOOD
    if kind == "retry-prompt" or part.get("outcome") not in (None, "success"):
        is_bad = True
    outcome: ToolOutcome = "error" if is_bad else "ok"
    return ToolResult(text_of(part.get("tool_call_id")), text, outcome)


def _usage(usage: dict[str, Any], model: str | None) -> TokenUsage | None:
    read_, written = count_of(usage.get("cache_read_tokens")), count_of(usage.get("cache_write_tokens"))
    given = max(0, count_of(usage.get("input_tokens")) - read_ - written)  # pydantic-ai counts these in
    tokens = TokenUsage(given, count_of(usage.get("output_tokens")), read_, written, model)
    return tokens if tokens.context else None


def _content(content: object) -> str:
    if isinstance(content, list):
        return joined(text_of(piece) for piece in list_of(content))  # pyright: ignore[reportUnknownArgumentType]
    return text_of(content)
