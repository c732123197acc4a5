"""Builds databases and exports in the form in which OpenCode writes them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

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
CREATE TABLE session_message (id text PRIMARY KEY, session_id text NOT NULL, data text NOT NULL);
CREATE INDEX message_of_session ON message (session_id, time_created, id);
CREATE INDEX part_of_message ON part (message_id, id);
"""
START = 1_772_000_000_000


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


def tool(name: str, call_id: str, status: str = "completed", **state: Any) -> dict[str, Any]:
    return {
        "type": "tool",
        "tool": name,
        "callID": call_id,
        "state": {"status": status, "input": {}, **state},
    }


def shell(call_id: str, command: str, output: str, exit_code: int | None) -> dict[str, Any]:
    return tool("bash", call_id, input={"command": command}, output=output, metadata={"exit": exit_code})


def tokens(given: int, output: int = 5, read: int = 0, reasoning: int = 0) -> dict[str, Any]:
    return {"input": given, "output": output, "reasoning": reasoning, "cache": {"read": read, "write": 0}}


class Database:
    """Ids and times grow with every row, as OpenCode's do."""

    def __init__(self, path: Path, *, journal: str = "wal") -> None:
        self.path = path
        self._clock = START
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA journal_mode={journal}")
            connection.executescript(_SCHEMA)

    def _tick(self) -> int:
        self._clock += 1000
        return self._clock

    def run(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(statement, values)

    def session(
        self,
        identifier: str = "ses_1",
        *,
        parent: str | None = None,
        directory: str = "/home/ada/shop",
        title: str = "The shop",
        revert: dict[str, Any] | None = None,
    ) -> Database:
        now = self._tick()
        self.run(
            "INSERT INTO session VALUES (?, 'p', ?, 'slug', ?, ?, '1.0', ?, 'build', ?, ?)",
            identifier,
            parent,
            directory,
            title,
            json.dumps(revert) if revert else None,
            now,
            now,
        )
        return self

    def message(self, role: str, *parts: dict[str, Any], session: str = "ses_1", **info: Any) -> str:
        now = self._tick()
        identifier = f"msg_{now}"
        fields = {"role": role, "time": {"created": now}, **info}
        if role == "assistant":
            fields = {"modelID": "model-x", "agent": "build", "tokens": tokens(100), **fields}
        self.run(
            "INSERT INTO message VALUES (?, ?, ?, ?, ?)", identifier, session, now, now, json.dumps(fields)
        )
        for number, part in enumerate(parts):
            self.run(
                "INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)",
                f"prt_{now}_{number:03d}",
                identifier,
                session,
                now,
                now,
                json.dumps(part),
            )
        return identifier


def export(*messages: tuple[str, list[dict[str, Any]]], indent: int | None = 2, **about: Any) -> bytes:
    entries: list[dict[str, Any]] = []
    for number, (role, parts) in enumerate(messages):
        info = {"id": f"msg_{number}", "role": role, "time": {"created": START + number}}
        if role == "assistant":
            info |= {"modelID": "model-x", "tokens": tokens(100)}
        entries.append({"info": info, "parts": parts})
    session = {"id": "ses_1", "directory": "/home/ada/shop", "title": "The shop", **about}
    return json.dumps({"info": session, "messages": entries}, indent=indent).encode()
