"""Codex: items of the talk, and beside them events that tell much of it again.

Codex has a shell, a patch tool and a plan; it looks at files with ``sed`` and searches with ``rg``.
"""

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

_LEAD = "Another language model started to solve this problem and produced a summary. Here it is:\n"


def lines(case: Case, numbering: Numbering) -> Iterator[bytes]:
    writer = _Writer(case, numbering)
    yield from writer.opening()
    for event in case.before:
        yield from writer.event(event)


class _Writer:
    def __init__(self, case: Case, numbering: Numbering) -> None:
        self._case = case
        self._numbering = numbering
        self._thread = numbering.uuid()
        self._turn = numbering.uuid()
        self._tokens = 9000

    def opening(self) -> Iterator[bytes]:
        folder, git = self._case.folder, {"branch": self._case.branch}
        yield self._line(
            "session_meta",
            {"id": self._thread, "cwd": folder, "originator": "codex_exec", "source": "exec", "git": git},
        )
        yield self._line("turn_context", {"turn_id": self._turn, "cwd": folder, "model": "gpt-5-codex"})

    def event(self, event: Event) -> Iterator[bytes]:
        match event:
            case Asked():
                self._turn = self._numbering.uuid()
                yield self._event("task_started", turn_id=self._turn, model_context_window=258_400)
                yield self._message("user", "input_text", event.text, "user.text")
                yield self._completed({"type": "UserMessage", "content": [{"text": event.text}]})
            case Said():
                if event.thought:
                    yield self._item(
                        "reasoning",
                        summary=[{"type": "summary_text", "text": event.thought}],
                        encrypted_content="gAAAA" + "x" * 400,
                    )
                yield self._completed({"type": "AgentMessage", "content": [{"text": event.text}]})
                yield self._message("assistant", "output_text", event.text, "unknown")
                yield from self._used()
            case Compacted():
                yield self._line("compacted", {"message": _LEAD + event.summary, "replacement_history": []})
            case _:
                yield from self._tool(event)

    def _tool(self, tool: Tool) -> Iterator[bytes]:
        call_id = self._numbering.id("call")
        printed, status = _outcome(tool)
        if isinstance(tool, Changed | Wrote | Refused):
            change = tool.change if isinstance(tool, Refused) else tool
            yield self._item("custom_tool_call", call_id=call_id, name="apply_patch", input=_patch(change))
            yield from self._used()
            yield self._item("custom_tool_call_output", call_id=call_id, output=printed)
            if isinstance(tool, Refused):
                yield from self.event(Asked(tool.words))
            return
        name, arguments = _call(tool)
        yield self._item(
            "function_call", name=name, arguments=orjson.dumps(arguments).decode(), call_id=call_id
        )
        yield from self._used()
        if name == "exec_command":
            yield self._completed(
                {
                    "type": "CommandExecution",
                    "id": call_id,
                    "command": ["/bin/bash", "-lc", arguments["cmd"]],
                    "status": "failed" if status else "completed",
                    "aggregated_output": printed,
                    "exit_code": status,
                }
            )
            head = f"Chunk ID: 9a56ab\nWall time: 0.2000 seconds\nProcess exited with code {status}"
            printed = f"{head}\nOriginal token count: {len(printed) // 4}\nOutput:\n{printed}"
        yield self._item("function_call_output", call_id=call_id, output=printed)

    def _used(self) -> Iterator[bytes]:
        self._tokens += 350
        usage = {
            "input_tokens": self._tokens,
            "cached_input_tokens": self._tokens - 350,
            "cache_write_input_tokens": 0,
            "output_tokens": 90,
            "reasoning_output_tokens": 20,
            "total_tokens": self._tokens + 90,
        }
        record = {"thread_id": self._thread, "turn_id": self._turn, "response_id": self._numbering.id("resp")}
        yield self._line(
            "token_usage_record",
            {**record, "usage": usage, "turn_token_usage": usage, "thread_token_usage": usage},
        )
        info = {
            "total_token_usage": usage,
            "last_token_usage": usage,
            "model_context_window": 258_400,
        }
        yield self._event("token_count", info=info, rate_limits={"limit_id": "codex", "primary": None})

    def _message(self, role: str, part: str, text: str, kind: str) -> bytes:
        about = {"turn_id": self._turn, "content_item_kinds": [kind]}
        return self._item(
            "message",
            role=role,
            content=[{"type": part, "text": text}],
            internal_chat_message_metadata_passthrough=about,
        )

    def _completed(self, item: dict[str, Any]) -> bytes:
        item.setdefault("id", self._numbering.id("item"))
        return self._event("item_completed", thread_id=self._thread, turn_id=self._turn, item=item)

    def _item(self, kind: str, **fields: Any) -> bytes:
        return self._line("response_item", {"type": kind, "id": self._numbering.id("it"), **fields})

    def _event(self, kind: str, **fields: Any) -> bytes:
        return self._line("event_msg", {"type": kind, **fields})

    def _line(self, kind: str, payload: dict[str, Any]) -> bytes:
        ordinal = self._numbering.next()
        line = {"timestamp": self._numbering.at(), "ordinal": ordinal, "type": kind, "payload": payload}
        return orjson.dumps(line) + b"\n"


def _call(tool: Tool) -> tuple[str, dict[str, Any]]:
    match tool:
        case Ran():
            return "exec_command", {"cmd": tool.command}
        case Looked():
            return "exec_command", {"cmd": f"sed -n '1,200p' {tool.path}"}
        case Searched():
            return "exec_command", {"cmd": f"rg -n '{tool.pattern}' {tool.path}"}
        case Planned():
            return "update_plan", {"plan": [{"step": text, "status": status} for text, status in tool.items]}
        case Delegated():
            return "spawn_agent", {"description": tool.about, "prompt": tool.prompt}
        case _:
            raise TypeError(tool)


def _patch(change: Changed | Wrote) -> str:
    if isinstance(change, Wrote):
        body = "\n".join(f"+{line}" for line in change.text.split("\n"))
        return f"*** Begin Patch\n*** Add File: {change.path}\n{body}\n*** End Patch"
    old = "\n".join(f"-{line}" for line in change.old.split("\n"))
    new = "\n".join(f"+{line}" for line in change.new.split("\n"))
    return f"*** Begin Patch\n*** Update File: {change.path}\n@@\n{old}\n{new}\n*** End Patch"


def _outcome(tool: Tool) -> tuple[str, int]:
    match tool:
        case Ran():
            return tool.printed, tool.status
        case Looked():
            return tool.text, 0
        case Searched():
            return tool.printed, 0
        case Changed(error=error) if error:
            return f"apply_patch verification failed: {error}", 1
        case Refused():
            return "patch rejected by user", 1
        case Delegated():
            return tool.answer, 0
        case _:
            return "Plan updated" if isinstance(tool, Planned) else "Exit code: 0\nOutput:\nSuccess.", 0
