"""The sessions that the four agents kept of one project, or of all.

Each agent stores them elsewhere and names the project in its own way. Only the heads of
files are read. What cannot be read is counted and passed over: a listing must not fail
because of one odd file among a thousand.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Protocol

import orjson

from holdfast.base.errors import HoldfastError
from holdfast.model.message import Message, ReadReport
from holdfast.transcripts import claude_code, codex, gemini, open_transcript
from holdfast.transcripts.fields import iso_of_milliseconds, mapping_of, text_of, text_or_none
from holdfast.transcripts.opencode import connect, decoded

_HEAD_BYTES = 256 * 1024
_FIRST_LINE_BYTES = 1024 * 1024
_SMALL_FILE_BYTES = 64 * 1024
_TITLE_CHARACTERS = 80
_NOT_LETTERS = re.compile(r"[^A-Za-z0-9]")
_NEWEST_OPENCODE = 1000
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class FoundSession:
    agent: str
    session_id: str
    path: Path
    updated: datetime
    started: datetime | None = None
    size: int | None = None  # bytes; unknown where many sessions share a database
    title: str | None = None
    project: str | None = None  # its working folder, where the agent tells


@dataclass(slots=True)
class SearchReport:
    """What a search met on its way; filled while its results are consumed."""

    skipped: int = 0  # files that could not be read, or are not what their name says


@dataclass(frozen=True, slots=True)
class Head:
    """What the head of a session file tells."""

    size: int
    updated: datetime
    session_id: str | None
    cwd: str | None
    has_message: bool
    is_subagent: bool
    started: str | None
    title: str | None


class HeadStore(Protocol):
    """Remembers heads of files that have not changed since."""

    def head(self, path: Path, status: os.stat_result) -> Head | None: ...

    def keep_head(self, path: Path, status: os.stat_result, head: Head) -> None: ...


@dataclass(frozen=True, slots=True)
class _Search:
    project: Path | None
    home: Path
    env: Mapping[str, str]
    report: SearchReport
    heads: HeadStore | None = None

    def is_project(self, folder: str | None) -> bool:
        return self.project is None or folder in self.names

    @property
    def names(self) -> tuple[str, ...]:
        """The project as given and with its links resolved: agents write either. None: of all projects."""
        if self.project is None:
            return ()
        return os.path.normpath(self.project.absolute()), os.path.realpath(self.project)

    def folder(self, variable: str, *default: str) -> Path:
        told = self.env.get(variable)
        return Path(told) if told else self.home.joinpath(*default)

    def skip(self) -> None:
        self.report.skipped += 1


def find_sessions(
    project: Path | None,
    home: Path,
    env: Mapping[str, str],
    report: SearchReport | None = None,
    heads: HeadStore | None = None,
) -> Iterator[FoundSession]:
    """The sessions of all four agents whose working folder is ``project``, newest first.

    Without a project those of all projects, each looked at when it is asked for: there may be thousands.
    """
    search = _Search(project, home, env, report or SearchReport(), heads)
    finders = [finder(search) for finder in (_claude, _codex, _gemini, _opencode)]
    if project is None:
        yield from heapq.merge(*finders, key=_age, reverse=True)
    else:
        yield from sorted(chain.from_iterable(finders), key=_age, reverse=True)


def _age(session: FoundSession) -> tuple[datetime, str]:
    return session.updated, session.session_id


# --- what was said in a session


def mentions(session: FoundSession, words: Sequence[str], report: SearchReport) -> bool:
    """Whether all of the words occur in what was said, called and returned, in any case of letters."""
    try:
        may_occur = session.size is None or _has_bytes(session.path, words)
        return may_occur and _has_words(session, {word.lower() for word in words})
    except (OSError, HoldfastError):
        report.skipped += 1
        return False


def _has_bytes(path: Path, words: Sequence[str]) -> bool:
    """A quick look before the slow one: for what any JSON writes as it is, the longest and rarest first."""
    parts = {part.lower().encode() for word in words for part in _PLAIN.findall(word)}
    return all(_has_part(path, part) for part in sorted(parts, key=len, reverse=True))


def _has_part(path: Path, part: bytes) -> bool:
    rest = b""
    with path.open("rb", buffering=0) as source:
        while block := source.read(_HEAD_BYTES):
            text = rest + block.lower()
            if part in text:
                return True
            rest = text[-len(part) :]
    return False


def _has_words(session: FoundSession, missing: set[str]) -> bool:
    _, messages = open_transcript(session.path, session.agent, session.session_id)
    for message in messages:
        text = text_searched(message).lower()
        missing = {word for word in missing if word not in text}
        if not missing:
            return True
    return False


def text_searched(message: Message) -> str:
    calls = (str(value) for call in message.tool_calls for value in (call.name, *call.arguments.values()))
    return "\n".join((message.text, *calls, *(result.text for result in message.tool_results)))


# --- one finder an agent, each of which begins with the newest


def _claude(search: _Search) -> Iterator[FoundSession]:
    projects = search.folder("CLAUDE_CONFIG_DIR", ".claude") / "projects"
    folders = {_NOT_LETTERS.sub("-", folder) for folder in search.names} or {"*"}
    # Files called agent-* are sub-agents, which some versions put beside their session.
    for path in _files(search, projects, *(f"{name}/*.jsonl" for name in folders)):
        if not path.name.startswith("agent-"):
            yield from _looked_at(search, path, "claude-code", _belongs_to_claude)


def _belongs_to_claude(search: _Search, head: Head) -> bool:
    # Different folders may share a folder name here: the lines themselves tell.
    return head.cwd is None or search.is_project(head.cwd)


def _codex(search: _Search) -> Iterator[FoundSession]:
    root = search.folder("CODEX_HOME", ".codex")
    patterns = ("sessions/*/*/*/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl")
    for path in _files(search, root, *patterns):
        if _codex_first_line_fits(search, path):
            yield from _looked_at(search, path, "codex", lambda _search, head: not head.is_subagent)


def _codex_first_line_fits(search: _Search, path: Path) -> bool:
    """Most rollouts are of other projects: their first line, which names the folder, is enough."""
    try:
        with path.open("rb") as source:
            line = mapping_of(orjson.loads(source.readline(_FIRST_LINE_BYTES)))
    except (OSError, orjson.JSONDecodeError, RecursionError):
        search.skip()
        return False
    meta = mapping_of(line.get("payload")) or line
    return search.is_project(text_or_none(meta.get("cwd")))


def _gemini(search: _Search) -> Iterator[FoundSession]:
    root = search.folder("GEMINI_CLI_HOME") / ".gemini" / "tmp"
    hashes = {hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest() for name in search.names}
    largest: dict[str, FoundSession] = {}
    for folder in _matches(search, root, "*"):
        root_of_it = _project_root(folder)
        if folder.name not in hashes and not search.is_project(root_of_it):
            continue
        for path in _files(search, folder / "chats", "session-*.jsonl", "session-*.json"):
            for found in _looked_at(search, path, "gemini", _belongs_to_gemini, root_of_it):
                # A resume begins a second, empty file of the same session.
                known = largest.get(found.session_id)
                if known is None or (known.size or 0) < (found.size or 0):
                    largest[found.session_id] = found
    yield from sorted(largest.values(), key=_age, reverse=True)


def _belongs_to_gemini(_: _Search, head: Head) -> bool:
    return not head.is_subagent and (head.title is not None or head.size > _SMALL_FILE_BYTES)


def _project_root(folder: Path) -> str | None:
    try:
        with (folder / ".project_root").open("rb") as source:
            return source.read(8192).decode(errors="surrogateescape").strip()
    except OSError:
        return None


def _opencode(search: _Search) -> Iterator[FoundSession]:
    data = search.folder("XDG_DATA_HOME", ".local", "share") / "opencode"
    told = search.env.get("OPENCODE_DB")
    found: list[FoundSession] = []
    for path in [data / told] if told else _files(search, data, "opencode*.db"):
        try:
            if path.is_file():
                found.extend(_opencode_sessions(search, path))
        except (sqlite3.Error, OSError, ValueError):
            search.skip()
    yield from sorted(found, key=_age, reverse=True)


def _opencode_sessions(search: _Search, path: Path) -> Iterator[FoundSession]:
    with closing(connect(path)) as connection:
        names = search.names
        rows = connection.execute(
            "SELECT id, title, time_created, time_updated, directory FROM session"
            " WHERE parent_id IS NULL AND (directory IN (?, ?) OR ?) ORDER BY time_updated DESC LIMIT ?",
            (*(names or ("", "")), not names, _NEWEST_OPENCODE),
        )
        for identifier, title, created, updated, directory in rows.fetchall():
            yield FoundSession(
                agent="opencode",
                session_id=decoded(identifier),
                path=path,
                started=_moment(iso_of_milliseconds(created)),
                updated=_moment(iso_of_milliseconds(updated)) or datetime.fromtimestamp(0, UTC),
                title=_short(decoded(title)),
                project=decoded(directory) or None,
            )


# --- looking at a file


def _looked_at(
    search: _Search,
    path: Path,
    agent: str,
    belongs: Callable[[_Search, Head], bool],
    project: str | None = None,
) -> Iterator[FoundSession]:
    try:
        head = _head(search, path, agent)
    except (OSError, HoldfastError):
        search.skip()
        return
    if not head.has_message and head.size <= _HEAD_BYTES:
        # Not one message in all of it: an empty or a foreign file.
        search.skip()
        return
    if belongs(search, head):
        yield FoundSession(
            agent=agent,
            session_id=head.session_id or path.stem,
            path=path,
            updated=head.updated,
            started=_moment(head.started),
            size=head.size,
            title=head.title,
            project=project or head.cwd,
        )


def _head(search: _Search, path: Path, agent: str) -> Head:
    if search.heads is None:
        return _read_head(path, agent)[1]
    known = search.heads.head(path, path.stat())
    if known is not None:
        return known
    status, head = _read_head(path, agent)
    search.heads.keep_head(path, status, head)
    return head


def _read_head(path: Path, agent: str) -> tuple[os.stat_result, Head]:
    read = {"claude-code": claude_code.read, "codex": codex.read, "gemini": gemini.read}[agent]
    with path.open("rb") as source:
        status = os.fstat(source.fileno())
        data = source.read(_HEAD_BYTES)
    report = ReadReport()
    first: Message | None = None
    prompt: str | None = None
    for message in read(io.BytesIO(data), report):
        first = first or message
        if message.role == "user" and not message.injected and message.text:
            prompt = message.text
            break
    return status, Head(
        size=status.st_size,
        updated=datetime.fromtimestamp(status.st_mtime, UTC),
        session_id=report.session_id,
        cwd=report.cwd,
        has_message=first is not None,
        is_subagent=first is not None and first.subagent is not None,
        started=first.at if first else None,
        title=_short(prompt),
    )


def _files(search: _Search, folder: Path, *patterns: str) -> list[Path]:
    """The newest first."""
    found: list[tuple[float, Path]] = []
    for path in chain.from_iterable(_matches(search, folder, pattern) for pattern in patterns):
        try:
            status = path.stat()
        except OSError:
            status = None
        # Opening a pipe would wait for its other end.
        if status is not None and stat.S_ISREG(status.st_mode):
            found.append((status.st_mtime, path))
        else:
            search.skip()
    return [path for _, path in sorted(found, reverse=True)]


def _matches(search: _Search, folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        search.skip()
        return []


def _moment(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


def _short(text: str | None) -> str | None:
    words = " ".join(text_of(text)[:1000].split())
    if len(words) > _TITLE_CHARACTERS:
        words = words[: _TITLE_CHARACTERS - 1].rstrip() + "…"
    return words or None
