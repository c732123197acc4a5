"""Agents' own session files, read into one stream of messages: an agent a file.

Each reader is a module here, named after its agent, with
``read(source, report) -> Iterator[Message]``. It is imported only when a file of
that agent is opened.
"""

from __future__ import annotations

import gzip
import importlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from holdfast.base.errors import DamagedDataError, InvalidInputError, NotFoundError
from holdfast.model.message import Message, ReadReport
from holdfast.project import formats

AGENTS = (*formats.AGENTS, "model")
_GZIP = b"\x1f\x8b"
_HEAD_BYTES = 64 * 1024
_BUFFER_BYTES = 1024 * 1024  # session lines are long

TranscriptReader = Callable[[BinaryIO, ReadReport], Iterator[Message]]


def detect(head: bytes, path: Path | None = None) -> str:
    """Which agent wrote a session file, told from its first bytes, then from its name."""
    if head.startswith(b"SQLite format 3\x00"):
        return "opencode"
    votes = {agent: sum(head.count(mark) for mark in marks) for agent, marks in _MARKS.items()}
    best = max(votes, key=lambda agent: votes[agent])
    if votes[best]:
        return best
    return _by_name(path) if path else "claude-code"


_MARKS = {
    "claude-code": (b'"parentUuid"', b'"leafUuid"', b'"queue-operation"', b'"isSidechain"'),
    "codex": (b'"session_meta"', b'"response_item"', b'"event_msg"', b'"turn_context"'),
    "gemini": (b'"$set"', b'"projectHash"', b'"toolCalls"', b'"type":"gemini"', b'"type": "gemini"'),
    "opencode": (b'"messageID"', b'"providerID"', b'"step-start"', b'"modelID"'),
    "model": (b'"part_kind"',),
}


def _by_name(path: Path) -> str:
    parts = " ".join(path.parts[-6:]).lower()
    for agent in ("codex", "gemini", "opencode"):
        if f".{agent}" in parts or f"{agent} " in parts:
            return agent
    return "codex" if path.name.startswith("rollout-") else "claude-code"


def open_transcript(
    path: Path, agent: str | None = None, session_id: str | None = None
) -> tuple[ReadReport, Iterator[Message]]:
    """The report, filled while the messages are consumed, and the messages.

    ``session_id`` chooses among several in one file, as OpenCode keeps them.
    """
    agent = formats.agent_called(agent) if agent else None
    if agent is not None and agent not in AGENTS:
        raise InvalidInputError(f"no reader for the agent {agent!r}", hint=f"one of: {', '.join(AGENTS)}")
    try:
        if path.is_dir():
            raise InvalidInputError(f"{path} is a folder", hint="give the session file itself")
        if not path.exists():
            raise NotFoundError(
                f"no session file at {path}", hint="`holdfast sessions list` shows where they are"
            )
        name = agent or _detect_file(path)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DamagedDataError(
            f"{path} cannot be read: {error}", hint="check that the file is complete"
        ) from error
    except OSError as error:
        raise NotFoundError(
            f"{path} cannot be read: {error.strerror or error}", hint="check its name and permissions"
        ) from error
    report = ReadReport(agent=name)
    return report, _messages(path, name, report, session_id)


def _reader_of(agent: str) -> Any:
    return importlib.import_module(f"holdfast.transcripts.{agent.replace('-', '_')}")


def read_end(path: Path, agent: str, most: int) -> Iterator[Message]:
    """The newest messages, from the last `most` bytes of a record that is written line by line."""
    reader: Any = _reader_of(agent)
    with path.open("rb") as source:
        if source.seek(0, os.SEEK_END) > most:
            source.seek(-most, os.SEEK_END)
            source.readline()  # a part of one
        else:
            source.seek(0)
        yield from reader.read(source, ReadReport(agent=agent))


def _detect_file(path: Path) -> str:
    with closing(_opened(path)) as source:
        head = b""
        try:
            while len(head) < _HEAD_BYTES and (line := source.readline(_HEAD_BYTES)):
                head += line
        except (EOFError, zlib.error):
            if not head:
                raise  # of a cut archive, the beginning is enough
        return detect(head, path)


def _opened(path: Path) -> BinaryIO:
    plain = path.open("rb", buffering=_BUFFER_BYTES)
    if plain.read(2) != _GZIP:
        plain.seek(0)
        return plain
    plain.close()
    return cast(BinaryIO, gzip.open(path, "rb"))


def subagent_files(path: Path) -> dict[str, Path]:
    """The records that sub-agents keep beside their session's file, by their ids, as Claude Code has it."""
    folder = path.with_suffix("") / "subagents"
    try:
        found = sorted(folder.glob("agent-*.jsonl"))
        return {one.stem.removeprefix("agent-"): one for one in found if one.is_file()}
    except OSError:
        return {}


def _messages(path: Path, agent: str, report: ReadReport, session_id: str | None) -> Iterator[Message]:
    module: Any = _reader_of(agent)
    read: TranscriptReader = module.read
    if agent == "opencode":
        read = partial(module.read, session_id=session_id)
    with closing(_opened(path)) as source:
        try:
            yield from read(source, report)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            # A cut or damaged archive: what came before the damage is still good.
            report.torn += 1
        except (OSError, sqlite3.Error) as error:
            raise DamagedDataError(
                f"{path} cannot be read: {error}", hint="check that the file is complete"
            ) from error
