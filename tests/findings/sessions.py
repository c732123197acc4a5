"""Small sessions to find things in, told as a chain of events."""

from __future__ import annotations

from typing import Any

from holdfast.findings.gather import gather
from holdfast.model.gathered import Gathered
from holdfast.model.message import Message, ReadReport, TodoItem, ToolCall, ToolOutcome, ToolResult


class Session:
    """Each method adds what happened next."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def _add(self, **fields: Any) -> Session:
        self.messages.append(Message(index=len(self.messages), **fields))
        return self

    def user(self, text: str, **fields: Any) -> Session:
        return self._add(role="user", text=text, **fields)

    def agent(self, text: str) -> Session:
        return self._add(role="assistant", text=text)

    def todos(self, *items: TodoItem) -> Session:
        return self._add(role="assistant", todos=items)

    def compacted(self, summary: str) -> Session:
        return self._add(role="user", text=summary, compaction=True, injected=True)

    def tool(
        self, name: str, answer: str = "", outcome: ToolOutcome = "ok", words: str = "", **arguments: Any
    ) -> Session:
        call_id = f"call-{len(self.messages)}"
        self._add(role="assistant", tool_calls=(ToolCall(call_id, name, arguments),))
        return self._add(role="user", text=words, tool_results=(ToolResult(call_id, answer, outcome),))

    def shell(
        self, command: str, answer: str = "", outcome: ToolOutcome = "ok", description: str = ""
    ) -> Session:
        return self.tool("Bash", answer, outcome, command=command, description=description)

    def edit(self, path: str, new: str = "x = 1", old: str = "x = 0", outcome: ToolOutcome = "ok") -> Session:
        return self.tool("Edit", "done", outcome, file_path=path, new_string=new, old_string=old)

    def found(self, **report: Any) -> Gathered:
        return gather(self.messages, ReadReport(**report))
