"""Builds session logs in the form in which Gemini CLI writes them."""

from __future__ import annotations

import json
from typing import Any

CONTEXT = """<session_context>
This is the set-up.
- **Workspace Directories:**
  - /home/ada/shop
</session_context>"""


def user(identifier: str, *texts: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": identifier,
        "timestamp": "2026-03-01T10:00:00.000Z",
        "type": "user",
        "content": [{"text": text} for text in texts],
        **fields,
    }


def gemini(identifier: str, text: str = "", **fields: Any) -> dict[str, Any]:
    return {
        "id": identifier,
        "timestamp": "2026-03-01T10:00:01.000Z",
        "type": "gemini",
        "content": text,
        "thoughts": [],
        "tokens": tokens(100),
        "model": "gemini-x",
        **fields,
    }


def tokens(given: int, cached: int = 0, thoughts: int = 0) -> dict[str, int]:
    return {
        "input": given,
        "output": 5,
        "cached": cached,
        "thoughts": thoughts,
        "tool": 0,
        "total": given + 5 + thoughts,
    }


def response(call_id: str, name: str, **result: str) -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": name, "response": result}}


def tool(
    call_id: str, name: str, arguments: dict[str, Any], status: str = "success", **result: str
) -> dict[str, Any]:
    return {
        "id": call_id,
        "name": name,
        "args": arguments,
        "status": status,
        "result": [response(call_id, name, **result)],
    }


def answered(
    identifier: str, *call_ids: str, name: str = "run_shell_command", **result: str
) -> dict[str, Any]:
    """The results once more, as the message that goes to the model."""
    return {
        "id": identifier,
        "type": "user",
        "content": [response(call, name, **result) for call in call_ids],
    }


def as_history(
    record: dict[str, Any], identifier: str | None = None, *, with_call_ids: bool = True
) -> dict[str, Any]:
    """A message as it looks after Gemini CLI took it from its memory and wrote it again."""
    said: Any = record["content"]
    content: list[Any] = [{"text": said}] if said and isinstance(said, str) else [*said]
    for call in record.get("toolCalls", ()):
        fields = {"name": call["name"], "args": call["args"]}
        content.append({"functionCall": {"id": call["id"], **fields} if with_call_ids else fields})
    return {
        "id": identifier or record["id"],
        "timestamp": "2026-03-01T11:00:00.000Z",
        "type": record["type"],
        "content": content,
    }


class Log:
    def __init__(self, session_id: str = "g-1", **fields: Any) -> None:
        self.lines: list[bytes] = []
        self.add(
            {
                "sessionId": session_id,
                "projectHash": "00",
                "startTime": "2026-03-01T10:00:00.000Z",
                "kind": "main",
                **fields,
            }
        )
        self.set(messages=[user("ctx", CONTEXT)])

    def add(self, *records: dict[str, Any]) -> Log:
        self.lines.extend(json.dumps(record).encode() + b"\n" for record in records)
        return self

    def say(self, *records: dict[str, Any]) -> Log:
        for record in records:
            self.add(record).set(lastUpdated="2026-03-01T10:00:02.000Z")
        return self

    def set(self, **fields: Any) -> Log:
        return self.add({"$set": fields})

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)
