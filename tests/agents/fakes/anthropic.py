"""A scripted Anthropic Messages API, as Claude Code uses it."""

from __future__ import annotations

import json
from typing import Any

from agents.fakes.server import Exchange, FakeModel
from agents.fakes.turns import Tokens


class FakeAnthropic(FakeModel):
    summary = "<analysis>short</analysis><summary>SCRIPTED-SUMMARY of the talk.</summary>"
    summary_marks = (
        "create a detailed summary of the conversation",
        "create a detailed summary of this conversation",
        "detailed summary of the RECENT portion",
        "CRITICAL: Respond with TEXT ONLY",
    )

    def kind_of(self, path: str, body: dict[str, Any]) -> str:
        if path != "/v1/messages":
            return "other"
        last = json.dumps(body.get("messages", [])[-3:])  # what a hook says may come after the question
        if any(mark in last for mark in self.summary_marks):
            return "summary"
        return "main" if body.get("tools") else "side"

    def answer(self, exchange: Exchange) -> None:
        if exchange.path == "/v1/messages/count_tokens":
            return exchange.send_json({"input_tokens": 1 + len(json.dumps(exchange.body)) // 4})
        if exchange.kind == "other":
            return exchange.send_json({"type": "error", "error": {"type": "not_found_error"}}, 404)
        message = _message(exchange)
        if not exchange.body.get("stream"):
            return exchange.send_json(message)
        return exchange.send_events(_streamed(message))


def _message(exchange: Exchange) -> dict[str, Any]:
    turn = exchange.turn
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    for index, one in enumerate(turn.calls):
        name = f"toolu_{exchange.number:03d}_{index}"
        blocks.append({"type": "tool_use", "id": name, "name": one.tool, "input": one.arguments})
    return {
        "id": f"msg_{exchange.number:03d}",
        "type": "message",
        "role": "assistant",
        "model": exchange.body.get("model"),
        "content": blocks,
        "stop_reason": "tool_use" if turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": _usage(turn.tokens),
    }


def _usage(tokens: Tokens) -> dict[str, int]:
    return {
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "output_tokens": tokens.output,
    }


def _streamed(message: dict[str, Any]) -> list[tuple[str | None, Any]]:
    opening = {
        **message,
        "content": [],
        "stop_reason": None,
        "usage": {**message["usage"], "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opening}]
    for index, block in enumerate(message["content"]):
        empty, delta = _halves(block)
        events += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": message["usage"]})
    events.append({"type": "message_stop"})
    return [(event["type"], event) for event in events]


def _halves(block: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A content block as the stream brings it: announced empty, then filled."""
    if block["type"] == "text":
        return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
