"""Gemini CLI: messages, each written again when its tools have ended, and a note of every write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from handoff.formats.numbering import Numbering
from handoff.story import (
    Asked,
    Case,
    Changed,
    Compacted,
    Delegated,
    Event,
    Looked,
    Planned,
    Ran,
    Refused,
    Said,
    Searched,
    Tool,
    Wrote,
)

_SETTING = """<session_context>
This is the Gemini CLI. We are setting up the context for our chat.
- **Workspace Directories:**
  - {folder}
</session_context>"""


def lines(case: Case, numbering: Numbering) -> Iterator[bytes]:
    writer = _Writer(case, numbering)
    yield from writer.opening()
    for event in case.before:
        yield from writer.event(event)


class _Writer:
    def __init__(self, case: Case, numbering: Numbering) -> None:
        self._case = case
        self._numbering = numbering
        self._tokens = 12_000

    def opening(self) -> Iterator[bytes]:
        numbering = self._numbering
        yield _line(
            {
                "sessionId": numbering.uuid(),
                "projectHash": f"{numbering.next():064x}",
                "startTime": numbering.at(),
                "kind": "main",
            }
        )
        setting = self._record("user", [{"text": _SETTING.format(folder=self._case.folder)}])
        yield _line({"$set": {"messages": [setting], "lastUpdated": numbering.at()}})

    def event(self, event: Event) -> Iterator[bytes]:
        match event:
            case Asked():
                yield from self._said(self._record("user", [{"text": event.text}]))
            case Said():
                thoughts = [{"subject": "Thinking", "description": event.thought}] if event.thought else []
                yield from self._said(self._answer(event.text, thoughts=thoughts))
            case Compacted():
                summary = f"<state_snapshot>\n{event.summary}\n</state_snapshot>"
                record = self._record("user", [{"text": summary}])
                yield _line({"$set": {"messages": [record], "lastUpdated": self._numbering.at()}})
            case _:
                yield from self._tool(event)

    def _tool(self, tool: Tool) -> Iterator[bytes]:
        name, arguments = _call(self._case.folder, tool)
        text, status = _result(tool)
        call_id = f"{name}_{self._numbering.next()}"
        answer = self._answer("")
        key = "output" if status == "success" else "error"
        response = {"functionResponse": {"id": call_id, "name": name, "response": {key: text}}}
        yield from self._said(answer)
        record = {
            "id": call_id,
            "name": name,
            "args": arguments,
            "result": [response],
            "status": status,
            "timestamp": self._numbering.at(),
            "resultDisplay": text[:400],
            "description": next(iter(arguments.values()), ""),
        }
        yield _line({**answer, "toolCalls": [record]})
        yield from self._said(self._record("user", [response]))
        if isinstance(tool, Refused):
            yield from self.event(Asked(tool.words))

    def _said(self, record: dict[str, Any]) -> Iterator[bytes]:
        yield _line(record)
        yield _line({"$set": {"lastUpdated": record["timestamp"]}})

    def _answer(self, text: str, thoughts: list[dict[str, str]] | None = None) -> dict[str, Any]:
        self._tokens += 350
        tokens = {
            "input": self._tokens,
            "output": 60,
            "cached": self._tokens - 350,
            "thoughts": 0,
            "tool": 0,
            "total": self._tokens + 60,
        }
        record = self._record("gemini", text)
        return {**record, "thoughts": thoughts or [], "tokens": tokens, "model": "gemini-2.5-pro"}

    def _record(self, kind: str, content: object) -> dict[str, Any]:
        uuid = self._numbering.uuid()
        return {"id": uuid, "timestamp": self._numbering.at(), "type": kind, "content": content}


def _line(fields: dict[str, Any]) -> bytes:
    return orjson.dumps(fields) + b"\n"


def _call(folder: str, tool: Tool) -> tuple[str, dict[str, Any]]:
    match tool:
        case Ran():
            return "run_shell_command", {"command": tool.command, "description": tool.about or "Run it"}
        case Looked():
            return "read_file", {"absolute_path": f"{folder}/{tool.path}"}
        case Searched():
            return "search_file_content", {"pattern": tool.pattern, "path": tool.path}
        case Changed():
            arguments = {"file_path": f"{folder}/{tool.path}", "old_string": tool.old}
            return "replace", {**arguments, "new_string": tool.new}
        case Refused():
            return _call(folder, tool.change)
        case Wrote():
            return "write_file", {"file_path": f"{folder}/{tool.path}", "content": tool.text}
        case Planned():
            todos = [{"description": text, "status": status} for text, status in tool.items]
            return "write_todos", {"todos": todos}
        case Delegated():
            return "task", {"description": tool.about, "prompt": tool.prompt}


def _result(tool: Tool) -> tuple[str, str]:
    match tool:
        case Ran():
            ending = f"\nExit Code: {tool.status}" if tool.status else ""
            return f"Output: {tool.printed}{ending}\nProcess Group PGID: 20035", "success"
        case Looked():
            return tool.text, "success"
        case Searched():
            return tool.printed, "success"
        case Changed(error=error) if error:
            return error, "error"
        case Refused():
            return "[Operation Cancelled] Reason: User did not allow tool call", "cancelled"
        case Delegated():
            return tool.answer, "success"
        case _:
            return "Done.", "success"
