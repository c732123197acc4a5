"""Claude Code session files, invented for the tests."""

from __future__ import annotations

import io
import json
from typing import Any

from holdfast.model.message import Message, ReadReport
from holdfast.transcripts.claude_code import read


def typed(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}, **fields}


def said(
    text: str, *, message_id: str = "m1", usage: dict[str, int] | None = None, **fields: Any
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": message_id,
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
    }
    if usage:
        body["usage"] = usage
    return {"type": "assistant", "message": body, **fields}


def called(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    return {"type": "assistant", "message": {"id": f"msg-{call_id}", "role": "assistant", "content": [block]}}


def answered(call_id: str, text: str, *, error: bool = False, structured: Any = None) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "toolUseResult": structured}


def file_of(*lines: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def read_bytes(data: bytes) -> tuple[list[Message], ReadReport]:
    report = ReadReport()
    return list(read(io.BytesIO(data), report)), report


def read_lines(*lines: dict[str, Any]) -> list[Message]:
    return read_bytes(file_of(*lines))[0]
