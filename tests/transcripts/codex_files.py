"""Builds rollout files in the form in which Codex writes them."""

from __future__ import annotations

import json
from typing import Any


class Rollout:
    def __init__(self, *, cwd: str = "/home/ada/shop", session_id: str = "s-1", **meta: Any) -> None:
        self.lines: list[bytes] = []
        self.turn = "t-1"
        self.add("session_meta", {"id": session_id, "cwd": cwd, "source": "exec", **meta})
        self.add("turn_context", {"turn_id": self.turn, "cwd": cwd, "model": "gpt-x"})

    def add(self, kind: str, payload: dict[str, Any], **extra: Any) -> Rollout:
        number = len(self.lines)
        line = {"timestamp": f"2026-03-01T10:00:{number % 60:02d}.{number:03d}Z", "ordinal": number}
        self.lines.append(json.dumps({**line, "type": kind, "payload": payload, **extra}).encode() + b"\n")
        return self

    def item(self, kind: str, metadata: dict[str, Any] | None = None, **fields: Any) -> Rollout:
        extra = {"metadata": metadata} if metadata else {}
        return self.add("response_item", {"type": kind, "id": f"i{len(self.lines)}", **fields}, **extra)

    def prompt(self, text: str, *, kind: str | None = "user.text", role: str = "user") -> Rollout:
        about = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": [kind]}} if kind else {}
        return self.item("message", role=role, content=[{"type": "input_text", "text": text}], **about)

    def says(self, text: str, metadata: dict[str, Any] | None = None) -> Rollout:
        content = [{"type": "output_text", "text": text}]
        return self.item("message", metadata, role="assistant", content=content)

    def thinks(self, text: str) -> Rollout:
        return self.item(
            "reasoning", summary=[{"type": "summary_text", "text": text}], encrypted_content="xx"
        )

    def calls(self, name: str, arguments: object, call_id: str) -> Rollout:
        return self.item("function_call", name=name, arguments=json.dumps(arguments), call_id=call_id)

    def answers(self, call_id: str, output: object, kind: str = "function_call_output") -> Rollout:
        return self.item(kind, call_id=call_id, output=output)

    def event(self, kind: str, **fields: Any) -> Rollout:
        return self.add("event_msg", {"type": kind, **fields})

    def used(self, response: str, tokens: int, cached: int = 0, output: int = 5) -> Rollout:
        usage = {"input_tokens": tokens, "cached_input_tokens": cached, "output_tokens": output}
        record = {"turn_id": self.turn, "response_id": response, "usage": usage}
        return self.add("token_usage_record", record)

    def token_count(self, total: int, last: int, cached: int = 0) -> Rollout:
        info = {
            "total_token_usage": {"input_tokens": total, "output_tokens": 0},
            "last_token_usage": {"input_tokens": last, "cached_input_tokens": cached, "output_tokens": 5},
        }
        return self.event("token_count", info=info)

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)


def ran(code: int, printed: str) -> str:
    """What the model reads of a command that ended."""
    head = f"Chunk ID: a1b2c3\nWall time: 0.0100 seconds\nProcess exited with code {code}"
    return f"{head}\nOriginal token count: 7\nOutput:\n{printed}"
