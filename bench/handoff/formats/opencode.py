"""OpenCode: a database with a row a message and a row a part of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
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

_SCHEMA = """
CREATE TABLE session (
    id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
    directory text NOT NULL, title text NOT NULL, version text NOT NULL, revert text,
    agent text, time_created integer NOT NULL, time_updated integer NOT NULL
);
CREATE TABLE message (
    id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL
);
CREATE TABLE part (
    id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL
);
CREATE INDEX message_of_session ON message (session_id, time_created, id);
CREATE INDEX part_of_message ON part (message_id, id);
"""


def write(path: Path, cases: Sequence[Case], size: int = 0) -> None:
    """One session holding the stories, told again and again until the database has ``size`` bytes."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_SCHEMA)
        writer = _Writer(connection, Numbering())
        told = False
        while not told or path.stat().st_size < size:
            with connection:
                for case in cases:
                    writer.tell(case)
            told = True


class _Writer:
    def __init__(self, connection: sqlite3.Connection, numbering: Numbering) -> None:
        self._connection = connection
        self._numbering = numbering
        self._session = ""
        self._tokens = 11_000

    def tell(self, case: Case) -> None:
        if not self._session:
            self._session = self._open(case, None, "build")
        for event in case.before:
            self._event(case, event)

    def _open(self, case: Case, parent: str | None, agent: str) -> str:
        session, now = self._numbering.id("ses"), self._numbering.milliseconds()
        row = (session, "p1", parent, case.name, case.folder, case.name, "1.18.33", None, agent, now, now)
        self._connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return session

    def _event(self, case: Case, event: Event) -> None:
        match event:
            case Asked():
                self._message(self._session, "user", [_text(event.text)])
            case Said():
                thought = [{"type": "reasoning", "text": event.thought}] if event.thought else []
                self._message(self._session, "assistant", [*thought, _text(event.text)])
            case Compacted():
                self._message(self._session, "assistant", [_text(event.summary)], summary=True)
            case Delegated():
                self._message(self._session, "assistant", [self._tool(case, event)])
                child = self._open(case, self._session, "general")
                self._message(child, "user", [_text(event.prompt)])
                for step in event.steps:
                    self._message(child, "assistant", [self._tool(case, step)])
                self._message(child, "assistant", [_text(event.answer)])
            case _:
                self._message(self._session, "assistant", [self._tool(case, event)])
                if isinstance(event, Refused):
                    self._message(self._session, "user", [_text(event.words)])

    def _tool(self, case: Case, tool: Tool) -> dict[str, Any]:
        name, arguments = _call(case.folder, tool)
        state = {"input": arguments, "title": name, **_state(tool)}
        return {"type": "tool", "tool": name, "callID": self._numbering.id("call"), "state": state}

    def _message(self, session: str, role: str, parts: list[dict[str, Any]], **info: Any) -> None:
        identifier, now = self._numbering.id("msg"), self._numbering.milliseconds()
        self._tokens += 350
        fields: dict[str, Any] = {"role": role, "time": {"created": now}, **info}
        if role == "assistant":
            tokens = {"input": 350, "output": 80, "cache": {"read": self._tokens, "write": 0}}
            fields |= {"modelID": "model-x", "providerID": "provider", "agent": "build", "tokens": tokens}
            parts = [{"type": "step-start"}, *parts, {"type": "step-finish", "tokens": tokens}]
        self._connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)", (identifier, session, now, now, _json(fields))
        )
        self._connection.executemany(
            "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", self._rows(identifier, session, now, parts)
        )

    def _rows(
        self, message: str, session: str, now: int, parts: list[dict[str, Any]]
    ) -> Iterator[tuple[Any, ...]]:
        for part in parts:
            yield self._numbering.id("prt"), message, session, now, now, _json(part)


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _json(fields: dict[str, Any]) -> str:
    return orjson.dumps(fields).decode()


def _call(folder: str, tool: Tool) -> tuple[str, dict[str, Any]]:
    match tool:
        case Ran():
            return "bash", {"command": tool.command, "description": tool.about or "Run it"}
        case Looked():
            return "read", {"filePath": f"{folder}/{tool.path}"}
        case Searched():
            return "grep", {"pattern": tool.pattern, "path": tool.path}
        case Changed():
            arguments = {"filePath": f"{folder}/{tool.path}", "oldString": tool.old}
            return "edit", {**arguments, "newString": tool.new}
        case Refused():
            return _call(folder, tool.change)
        case Wrote():
            return "write", {"filePath": f"{folder}/{tool.path}", "content": tool.text}
        case Planned():
            todos = [{"content": text, "status": status} for text, status in tool.items]
            return "todowrite", {"todos": todos}
        case Delegated():
            return "task", {"description": tool.about, "prompt": tool.prompt}


def _state(tool: Tool) -> dict[str, Any]:
    match tool:
        case Ran():
            return {"status": "completed", "output": tool.printed, "metadata": {"exit": tool.status}}
        case Looked():
            return {"status": "completed", "output": f"<file>\n{tool.text}\n</file>"}
        case Searched():
            return {"status": "completed", "output": tool.printed}
        case Changed(error=error) if error:
            return {"status": "error", "error": error}
        case Refused():
            return {"status": "error", "error": "The user rejected permission to use this tool call."}
        case Delegated():
            return {"status": "completed", "output": tool.answer}
        case _:
            return {"status": "completed", "output": "Done."}
