"""A scripted OpenAI API: Responses as Codex uses it, Chat Completions as OpenCode does."""

from __future__ import annotations

import json
from typing import Any

from agents.fakes.server import Exchange, FakeModel
from agents.fakes.turns import Tokens


class FakeOpenAI(FakeModel):
    summary = "SCRIPTED-SUMMARY of the talk."
    side = "A scripted title"
    summary_marks = ("CONTEXT CHECKPOINT COMPACTION", "Create a new anchored summary", "anchored summary")

    def kind_of(self, path: str, body: dict[str, Any]) -> str:
        if not path.endswith(("/responses", "/chat/completions")):
            return "other"
        if any(mark in json.dumps(body)[-8000:] for mark in self.summary_marks):
            return "summary"
        if "single-line task title" in json.dumps(body["input"][-1:] if "input" in body else ""):
            return "side"
        return "main" if body.get("tools") else "side"

    def answer(self, exchange: Exchange) -> None:
        if exchange.path.endswith("/models"):
            model = {"id": "scripted", "object": "model", "owned_by": "tests"}
            return exchange.send_json({"object": "list", "data": [model]})
        if exchange.path.endswith("/responses"):
            return exchange.send_events([(event["type"], event) for event in _response(exchange)])
        if exchange.path.endswith("/chat/completions"):
            return _chat(exchange)
        return exchange.send_json({"error": {"message": "not found"}}, 404)


def _response(exchange: Exchange) -> list[dict[str, Any]]:
    number, turn = exchange.number, exchange.turn
    items: list[dict[str, Any]] = []
    if turn.text:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content})
    for index, one in enumerate(turn.calls):
        namespace, _, name = one.tool.rpartition("/")
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{number}_{index}",
                "call_id": f"call_{number:03d}_{index}",
                "name": name,
                "arguments": json.dumps(one.arguments),
                **({"namespace": namespace} if namespace else {}),
            }
        )
    head = {"id": f"resp_{number}", "object": "response"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**head, "status": "in_progress"}}
    ]
    for index, item in enumerate(items):
        for stage, status in (("added", "in_progress"), ("done", "completed")):
            events.append(
                {
                    "type": f"response.output_item.{stage}",
                    "output_index": index,
                    "item": {**item, "status": status},
                }
            )
    done = {**head, "status": "completed", "output": [], "usage": _usage(turn.tokens)}
    return [*events, {"type": "response.completed", "response": done}]


def _usage(tokens: Tokens) -> dict[str, Any]:
    """OpenAI counts what came from the cache as a part of the input."""
    total_input = tokens.input + tokens.cache_read
    return {
        "input_tokens": total_input,
        "input_tokens_details": {"cached_tokens": tokens.cache_read},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total_input + tokens.output,
    }


def _chat(exchange: Exchange) -> None:
    turn = exchange.turn
    message: dict[str, Any] = {"role": "assistant", "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {
                "index": index,
                "id": f"call_{exchange.number:03d}_{index}",
                "type": "function",
                "function": {"name": one.tool, "arguments": json.dumps(one.arguments)},
            }
            for index, one in enumerate(turn.calls)
        ]
    finish = "tool_calls" if turn.calls else "stop"
    total = turn.tokens.input + turn.tokens.cache_read
    usage = {
        "prompt_tokens": total,
        "completion_tokens": turn.tokens.output,
        "total_tokens": total + turn.tokens.output,
        "prompt_tokens_details": {"cached_tokens": turn.tokens.cache_read},
    }
    head = {"id": f"chat_{exchange.number}", "created": 0, "model": exchange.body.get("model")}
    if not exchange.body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return exchange.send_json({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    head["object"] = "chat.completion.chunk"
    first = {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    last = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage}
    return exchange.send_events([(None, first), (None, last), (None, "[DONE]")])
