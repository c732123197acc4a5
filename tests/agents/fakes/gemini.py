"""A scripted Gemini API, as Gemini CLI uses it."""

from __future__ import annotations

import json
from typing import Any

from agents.fakes.server import Exchange, FakeModel


class FakeGemini(FakeModel):
    side = json.dumps(
        {
            "reasoning": "scripted",
            "next_speaker": "user",
            "model_choice": "flash",
            "complexity_score": 10,
            "complexity_reasoning": "scripted",
        }
    )
    summary = "<state_snapshot>SCRIPTED-SUMMARY of the talk.</state_snapshot>"
    summary_marks = ("<state_snapshot>",)

    def kind_of(self, path: str, body: dict[str, Any]) -> str:
        if path.endswith(":streamGenerateContent") and body.get("tools"):
            return "main"
        if any(mark in json.dumps(body) for mark in self.summary_marks):
            return "summary"
        return "side" if "enerateContent" in path else "other"

    def answer(self, exchange: Exchange) -> None:
        if exchange.path.endswith(":countTokens"):
            return exchange.send_json({"totalTokens": len(json.dumps(exchange.body)) // 4})
        if exchange.kind == "other":
            return exchange.send_json({"error": {"code": 404, "message": "not found"}}, 404)
        document = _document(exchange)
        if exchange.path.endswith(":streamGenerateContent"):
            return exchange.send_events([(None, document)])
        return exchange.send_json(document)


def _document(exchange: Exchange) -> dict[str, Any]:
    turn, number = exchange.turn, exchange.number
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for index, one in enumerate(turn.calls):
        call = {"name": one.tool, "args": one.arguments, "id": f"call_{number}_{index}"}
        parts.append({"functionCall": call})
    prompt = turn.tokens.input + turn.tokens.cache_read
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": prompt,
            "cachedContentTokenCount": turn.tokens.cache_read,
            "candidatesTokenCount": turn.tokens.output,
            "totalTokenCount": prompt + turn.tokens.output,
        },
        "modelVersion": "scripted",
        "responseId": f"response_{number}",
    }
