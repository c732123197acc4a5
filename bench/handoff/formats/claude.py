"""Claude Code: one line a content block, each with everything that is known about the session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

_CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context. "
    "The summary below covers the earlier portion of the conversation.\n\nSummary:\n"
)
_REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected. "
    "To tell you how to proceed, the user said:\n"
)


def lines(case: Case, numbering: Numbering) -> Iterator[bytes]:
    writer = _Writer(case, numbering)
    for event in case.before:
        yield from writer.event(event)


class _Writer:
    def __init__(self, case: Case, numbering: Numbering) -> None:
        self._case = case
        self._numbering = numbering
        self._session = numbering.uuid()
        self._parent: str | None = None
        self._subagent: str | None = None
        self._tokens = 18_000
        self._seen: dict[str, str] = {}

    def event(self, event: Event) -> Iterator[bytes]:
        match event:
            case Asked():
                yield self._user(event.text)
            case Said():
                if event.thought:
                    yield self._thinking(event.thought)
                yield self._assistant({"type": "text", "text": event.text})
            case Compacted():
                yield self._line(
                    {
                        "type": "system",
                        "subtype": "compact_boundary",
                        "content": "Conversation compacted",
                        "compactMetadata": {"trigger": "auto", "preTokens": 168_000},
                    }
                )
                yield self._user(_CONTINUED + event.summary, isCompactSummary=True)
            case _:
                yield from self._tool(event)

    def _tool(self, tool: Tool) -> Iterator[bytes]:
        call_id = self._numbering.id("toolu")
        name, arguments = _call(self._case.folder, tool)
        yield self._thinking("")  # mostly it is there, and empty
        yield self._assistant({"type": "tool_use", "id": call_id, "name": name, "input": arguments})
        if isinstance(tool, Delegated):
            self._subagent = self._numbering.id("agent")
            for step in tool.steps:
                yield from self._tool(step)
            self._subagent = None
        if isinstance(tool, Ran):
            yield self._progress(call_id, tool)
        text, failed, structured = _result(tool)
        if isinstance(tool, Looked):
            self._seen[tool.path] = tool.text
        elif isinstance(tool, Changed) and not failed:
            structured |= _patch(tool, self._seen.get(tool.path, ""))
        block = {"tool_use_id": call_id, "type": "tool_result", "content": text, "is_error": failed}
        yield self._user([block], toolUseResult=structured)

    def _thinking(self, thought: str) -> bytes:
        return self._assistant({"type": "thinking", "thinking": thought, "signature": "Eo4C" + "kQ7x" * 200})

    def _progress(self, call_id: str, tool: Ran) -> bytes:
        """While a command runs, its newest output is told again and again."""
        data = {"type": "bash_progress", "output": tool.printed[-1500:], "elapsedTimeSeconds": 3}
        return self._line({"type": "progress", "data": data, "toolUseID": call_id})

    def _user(self, content: object, **fields: Any) -> bytes:
        return self._line({"type": "user", "message": {"role": "user", "content": content}, **fields})

    def _assistant(self, block: Mapping[str, Any]) -> bytes:
        self._tokens += 400
        message = {
            "id": self._numbering.id("msg"),
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-5",
            "content": [block],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {
                "input_tokens": 4,
                "cache_creation_input_tokens": 400,
                "cache_read_input_tokens": self._tokens,
                "output_tokens": 150,
                "service_tier": "standard",
                "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 400},
            },
        }
        return self._line({"type": "assistant", "message": message, "requestId": self._numbering.id("req")})

    def _line(self, fields: Mapping[str, Any]) -> bytes:
        uuid = self._numbering.uuid()
        line = {
            "parentUuid": self._parent,
            "isSidechain": self._subagent is not None,
            **fields,
            "uuid": uuid,
            "timestamp": self._numbering.at(),
            "userType": "external",
            "cwd": self._case.folder,
            "sessionId": self._session,
            "version": "2.1.325",
            "gitBranch": self._case.branch,
        }
        if self._subagent:
            line["agentId"] = self._subagent
        self._parent = uuid
        return orjson.dumps(line) + b"\n"


def _call(folder: str, tool: Tool) -> tuple[str, dict[str, Any]]:
    match tool:
        case Ran():
            return "Bash", {"command": tool.command, "description": tool.about or "Run it"}
        case Looked():
            return "Read", {"file_path": f"{folder}/{tool.path}"}
        case Searched():
            return "Grep", {"pattern": tool.pattern, "path": tool.path, "output_mode": "content"}
        case Changed():
            return "Edit", {
                "file_path": f"{folder}/{tool.path}",
                "old_string": tool.old,
                "new_string": tool.new,
            }
        case Refused():
            return _call(folder, tool.change)
        case Wrote():
            return "Write", {"file_path": f"{folder}/{tool.path}", "content": tool.text}
        case Planned():
            todos = [{"content": text, "status": status, "activeForm": text} for text, status in tool.items]
            return "TodoWrite", {"todos": todos}
        case Delegated():
            return "Task", {
                "description": tool.about,
                "prompt": tool.prompt,
                "subagent_type": "general-purpose",
            }


def _result(tool: Tool) -> tuple[str, bool, Any]:  # noqa: C901, PLR0911 - one line a tool
    match tool:
        case Ran(status=0):
            return tool.printed, False, {"stdout": tool.printed, "stderr": "", "interrupted": False}
        case Ran():
            return f"Exit code {tool.status}\n{tool.printed}", True, f"Error: {tool.printed}"
        case Looked():
            shown = "\n".join(f"{number:6}→{line}" for number, line in enumerate(tool.text.split("\n"), 1))
            return shown, False, {"type": "text", "file": {"filePath": tool.path, "content": tool.text}}
        case Searched():
            return tool.printed, False, {"mode": "content", "content": tool.printed}
        case Changed(error=""):
            told = {"filePath": tool.path, "oldString": tool.old, "newString": tool.new}
            return f"The file {tool.path} has been updated.", False, told
        case Changed():
            return f"<tool_use_error>{tool.error}</tool_use_error>", True, f"Error: {tool.error}"
        case Refused():
            return _REFUSED + tool.words, True, "User rejected tool use"
        case Wrote():
            return f"File created successfully at: {tool.path}", False, {"type": "create"}
        case Planned():
            return "Todos have been modified successfully.", False, {"newTodos": len(tool.items)}
        case Delegated():
            return tool.answer, False, {"status": "completed"}


def _patch(change: Changed, original: str) -> dict[str, Any]:
    """Claude Code keeps the whole file as it was, and the change line by line."""
    around = [f" {line}" for line in original.split("\n")[:12]]
    lines = [*around, *(f"-{line}" for line in change.old.split("\n"))]
    lines += [f"+{line}" for line in change.new.split("\n")]
    hunk = {"oldStart": 1, "oldLines": 12, "newStart": 1, "newLines": 14, "lines": lines}
    return {"originalFile": original, "structuredPatch": [hunk], "userModified": False, "replaceAll": False}
