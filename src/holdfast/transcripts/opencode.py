"""OpenCode: an SQLite database of sessions, messages and parts, or one exported as JSON."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote

import orjson

from holdfast.base.errors import DamagedDataError, InvalidInputError, NotFoundError
from holdfast.model.message import (
    Message,
    ReadReport,
    Role,
    TokenUsage,
    ToolCall,
    ToolOutcome,
    ToolResult,
    TurnState,
)
from holdfast.transcripts.fields import (
    MAX_LINE_BYTES,
    MessageMaker,
    PushedBack,
    count_of,
    count_unknown,
    document_pieces,
    iso_of_milliseconds,
    joined,
    json_of,
    kind_of,
    mapping_of,
    mappings_of,
    text_of,
    text_or_none,
    todos_of,
    told,
)

# ── the database ──────────────────────────────────────────────────────────────────────────────────

# OpenCode's database, read row by row, beside the program that may be writing it.

SQLITE_MAGIC = b"SQLite format 3\x00"
_WAIT_SECONDS = 5.0
_NEWEST = 4_000
"""Parts of messages that a turn mostly has not."""

_FAMILY = """
WITH RECURSIVE family(id) AS (
    SELECT id FROM session WHERE id = :session
    UNION
    SELECT child.id FROM session AS child JOIN family ON child.parent_id = family.id
)
"""
_MESSAGES = (
    _FAMILY
    + """
SELECT message.id, message.session_id FROM message JOIN family ON message.session_id = family.id
ORDER BY message.time_created, message.id
"""
)
_LAST_OF_EACH = (
    _FAMILY
    + """
SELECT message.id, max(message.time_created) FROM message JOIN family ON message.session_id = family.id
GROUP BY message.session_id
"""
)
_NUMBERED = "CREATE TEMP TABLE numbered (number INTEGER PRIMARY KEY, id, owner)"
# As a blob its length is known; the characters of a text would be counted.
_DATA = f"CASE WHEN length(CAST(data AS BLOB)) <= {MAX_LINE_BYTES} THEN data ELSE 0 END"
# Rows in the order of the numbers: nothing is sorted, so that no data waits in memory.
_MESSAGE_ROWS = f"""
SELECT number, numbered.id, owner, {_DATA} FROM numbered CROSS JOIN message ON message.id = numbered.id
ORDER BY number
"""  # noqa: S608 - the number is ours
_PART_ROWS = f"""
SELECT number, part.id, {_DATA} FROM numbered CROSS JOIN part ON part.message_id = numbered.id
ORDER BY number, part.id
"""  # noqa: S608 - the number is ours


@dataclass(frozen=True, slots=True)
class MessageRow:
    info: dict[str, Any]
    parts: Iterator[dict[str, Any]]  # to be consumed before the next row is asked for
    subagent: str | None
    is_last: bool


def connect(path: Path) -> sqlite3.Connection:
    """A connection that never writes, neither into the database nor beside it.

    Even a read-only connection to a database in WAL mode leaves a log and its index behind.
    Where no log lies there, nobody is writing, and the file can be read as it is.
    """
    log = path.with_name(path.name + "-wal")
    mode = "mode=ro" if log.exists() else "mode=ro&immutable=1"
    connection = sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?{mode}", uri=True, timeout=_WAIT_SECONDS, isolation_level=None
    )
    # Any bytes may stand in a damaged text column: decoding is ours.
    connection.text_factory = bytes
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


@contextmanager
def damage_named(path: Path) -> Generator[None]:
    """Goes around reading rows *and* their parts: SQLite notices damage only where it steps."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # The latter where not even the names of columns are text any more.
        raise DamagedDataError(
            f"{path} cannot be read as an OpenCode database: {error}",
            hint="`opencode export` writes a session as JSON, which can also be read",
        ) from error


def decoded(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")


class _Rows:
    def __init__(self, connection: sqlite3.Connection, report: ReadReport, path: Path) -> None:
        self._connection = connection
        self._report = report
        self._path = path

    def messages_of(self, session: dict[str, Any]) -> Iterator[MessageRow]:
        root = text_of(session.get("id"))
        reverted = _parsed(session.get("revert"))
        last = {row[0] for row in self._connection.execute(_LAST_OF_EACH, {"session": root})}
        if not last:
            self._note_newer_format(root)
        run = self._connection.execute
        run(_NUMBERED)
        run(f"INSERT INTO numbered (id, owner) {_MESSAGES}", {"session": root})
        parts = _PartsInOrder(self, run(_PART_ROWS))
        for number, name, owner, data in run(_MESSAGE_ROWS):
            identifier, own = decoded(name), decoded(owner) == root
            if own and is_reverted(identifier, reverted):
                self._report.taken_back += 1
            elif info := self.fields(data):
                info["id"] = identifier
                subagent = None if own else text_of(info.get("agent")) or decoded(owner)
                yield MessageRow(info, parts.of(number), subagent, is_last=name in last)

    def session(self, session_id: str | None) -> dict[str, Any]:
        where = "id = ?" if session_id is not None else "parent_id IS NULL"
        rows = self._connection.execute(
            f"SELECT * FROM session WHERE {where} ORDER BY time_updated DESC LIMIT 1",  # noqa: S608
            (session_id,) if session_id is not None else (),
        )
        row = rows.fetchone()
        if row is None:
            wanted = f"session {session_id}" if session_id is not None else "session"
            hint = "`holdfast sessions list` shows the sessions"
            raise NotFoundError(f"no {wanted} in {self._path}", hint=hint)
        names = [column[0] for column in rows.description]
        return {
            name: decoded(value) if isinstance(value, bytes) else value
            for name, value in zip(names, row, strict=True)
        }

    def fields(self, data: Any) -> dict[str, Any] | None:
        self._report.lines += 1
        try:
            fields: Any = orjson.loads(data)
        except (orjson.JSONDecodeError, RecursionError):
            fields = None
        if fields and isinstance(fields, dict):
            return cast(dict[str, Any], fields)
        if isinstance(data, int):  # stands for what is too large
            self._report.oversized += 1
        else:
            self._report.torn += 1
        return None

    def _note_newer_format(self, root: str) -> None:
        """OpenCode prepares a table of another layout; say so instead of finding nothing."""
        tables = self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'session_message'")
        if tables.fetchone() is None:
            return
        rows = self._connection.execute("SELECT count(*) FROM session_message WHERE session_id = ?", (root,))
        for _ in range(min(int(rows.fetchone()[0]), 1)):
            count_unknown(self._report, "session_message")


class _PartsInOrder:
    """The parts of all messages in one stream, handed out a message at a time."""

    def __init__(self, rows: _Rows, stream: Iterator[tuple[int, bytes, object]]) -> None:
        self._rows = rows
        self._stream = stream
        self._next = next(stream, None)

    def of(self, number: int) -> Iterator[dict[str, Any]]:
        stream, fields = self._stream, self._rows.fields
        row = self._next
        while row is not None and row[0] <= number:
            self._next = next(stream, None)
            part = fields(row[2]) if row[0] == number else None
            if part is not None:
                if "callID" not in part:
                    part["id"] = decoded(row[1])
                yield part
            row = self._next


def _parsed(data: object) -> dict[str, Any]:
    return mapping_of(json_of(data)) if isinstance(data, str | bytes) else {}


def is_reverted(identifier: str, revert: dict[str, Any]) -> bool:
    """Ids grow with time: the message named in ``revert`` and all after it are void."""
    first = text_of(revert.get("messageID"))
    return bool(first) and identifier >= first


def newest_outcomes(path: Path, session_id: str) -> dict[str, ToolOutcome]:
    """Of the newest tool calls of a session, by their ids, how they ended."""
    rows = f"""
        SELECT {_DATA.replace("data", "part.data")}
        FROM message CROSS JOIN part ON part.message_id = message.id
        WHERE message.session_id = ? ORDER BY message.time_created DESC LIMIT {_NEWEST}
    """  # noqa: S608 - the numbers are ours
    with damage_named(path), closing(connect(path)) as connection:
        parts = [_parsed(data) for (data,) in connection.execute(rows, (session_id,))]
    results = (_tool(part, "unknown")[1] for part in parts if part.get("type") == "tool")
    return {one.call_id: one.outcome for one in results}


# ── the messages ──────────────────────────────────────────────────────────────────────────────────

# OpenCode: an SQLite database of sessions, messages and parts, or one exported as JSON.
#
# What makes this format its own:
#
# - A message is a row, its parts (text, reasoning, tool, step marks) are rows of their own.
# - Sub-agents are sessions whose parent is the session that started them.
# - A failed or an aborted shell command is ``completed``; only the exit code in its metadata,
# which is null for an aborted one, tells the difference.
# - What the user reverted stays in the tables; the session's row says from where on it is void.

# A tuple: a type read from a file may be anything.
_IGNORED_PARTS = ("step-finish", "step-start", "patch", "snapshot", "agent", "compaction")
_STATUSES: dict[str, ToolOutcome] = {"completed": "ok", "error": "error"}
_ABORTED = "MessageAbortedError"
_TURNS: dict[str, TurnState] = {"stop": "ended", "tool-calls": "open"}
_SUBAGENT, _REPORT_OPENS = "task", ("<task id=", "task_id: ")
_RUNS_ON = re.compile(r'<task id="[^"]*" state="running">')
_NOT_DONE = ("Tool execution aborted", "The user rejected permission")


def read(source: BinaryIO, report: ReadReport, session_id: str | None = None) -> Iterator[Message]:
    """The messages of one session, those of its sub-agents among them, in the order of time.

    Without ``session_id`` a database gives the session that was last at work.
    """
    report.agent = "opencode"
    head = source.readline(len(SQLITE_MAGIC))
    if head != SQLITE_MAGIC:
        return _Reader(report).export(cast(BinaryIO, PushedBack(head, source)))
    name: object = getattr(source, "name", None)
    if not isinstance(name, str | Path):
        raise InvalidInputError("an OpenCode database cannot be read from a stream", hint="give its path")
    return _Reader(report).database(Path(name), session_id)


@dataclass(slots=True)
class _Step:
    """What one call of the model brought: collected from the parts between two step marks."""

    said: list[str] = field(default_factory=list[str])
    noted: list[str] = field(default_factory=list[str])
    thought: list[str] = field(default_factory=list[str])
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    results: list[ToolResult] = field(default_factory=list[ToolResult])

    def __bool__(self) -> bool:
        return bool(self.said or self.noted or self.thought or self.calls)


class _Reader(MessageMaker):
    def __init__(self, report: ReadReport) -> None:
        super().__init__(report)
        # Of the row at hand:
        self._at: str | None = None
        self._id: str | None = None

    def database(self, path: Path, session_id: str | None) -> Iterator[Message]:
        with damage_named(path), closing(connect(path)) as connection:
            # One transaction: a session that goes on meanwhile is seen as of now.
            connection.execute("BEGIN")
            rows = _Rows(connection, self._report, path)
            session = rows.session(session_id)
            self._note_session(session)
            yield from self._made_of(rows.messages_of(session), self._message)

    def export(self, source: BinaryIO) -> Iterator[Message]:
        return self._made_of(self._exported(source), self._message)

    def _exported(self, source: BinaryIO) -> Iterator[MessageRow]:
        waiting: MessageRow | None = None
        reverted: dict[str, Any] = {}
        for part, fields in document_pieces(source, self._report):
            info = mapping_of(fields.get("info"))
            if part == "about":
                self._note_session(info)
                reverted = mapping_of(info.get("revert")) or reverted
            elif not info:
                count_unknown(self._report, "message without info")
            elif is_reverted(text_of(info.get("id")), reverted):
                self._report.taken_back += 1
            else:
                if waiting is not None:
                    yield waiting
                waiting = MessageRow(info, iter(mappings_of(fields.get("parts"))), None, is_last=False)
        if waiting is not None:
            yield replace(waiting, is_last=True)

    # --- messages

    def _message(self, row: MessageRow) -> None:
        self._at = iso_of_milliseconds(mapping_of(row.info.get("time")).get("created"))
        self._id, self._subagent = text_or_none(row.info.get("id")), row.subagent
        role = kind_of(row.info.get("role"))
        if role == "user":
            self._user(row.parts)
        elif role == "assistant":
            self._assistant(row.info, row.parts, is_last=row.is_last)
        else:
            count_unknown(self._report, f"message/{role}")

    def _make(self, role: Role, **fields: Any) -> None:
        self._pass_on(Message(self._index, role, at=self._at, id=self._id, subagent=self._subagent, **fields))

    def _user(self, parts: Iterable[dict[str, Any]]) -> None:
        step = _Step()
        for part in parts:
            self._collect(step, part, "unknown")
        # Beside what was typed, OpenCode puts the contents of the files that were named there.
        if step.said or step.noted:
            text, by_program = told(joined(step.said or step.noted))
            self._make("user", text=text, injected=by_program or not step.said)

    def _assistant(self, info: dict[str, Any], parts: Iterable[dict[str, Any]], *, is_last: bool) -> None:
        error = mapping_of(info.get("error"))
        usage = self._usage(info)
        open_calls: ToolOutcome = "unknown" if is_last and not error else "interrupted"
        step = _Step()
        for part in parts:
            if part.get("type") in _IGNORED_PARTS:
                if step and part["type"] == "step-start":
                    self._finish(step, None)
                    step = _Step()
            else:
                self._collect(step, part, open_calls)
        if info.get("summary") is True and not error:
            self._make("system", text=joined(step.said), compaction=True, injected=True, usage=usage)
        elif step or usage:
            self._finish(step, usage, _TURNS.get(text_of(info.get("finish"))))
        if error and error.get("name") == _ABORTED:
            self._make("system", injected=True, turn="stopped")
        elif error:
            self._make("system", text=_error_text(error), injected=True, turn="failed")

    def _finish(self, step: _Step, usage: TokenUsage | None, turn: TurnState | None = None) -> None:
        self._make(
            "assistant",
            text=joined([*step.said, *step.noted]),
            thinking=joined(step.thought),
            tool_calls=tuple(step.calls),
            usage=usage,
            turn=turn,
        )
        lists = {call.id: call.arguments for call in step.calls if call.name == "todowrite"}
        for result in step.results:
            written = lists.get(result.call_id) if result.outcome == "ok" else None
            todos = todos_of(written.get("todos"), "content") if written is not None else None
            self._make("user", tool_results=(result,), todos=todos)

    def _collect(self, step: _Step, part: dict[str, Any], open_calls: ToolOutcome) -> None:
        kind = part.get("type")
        if kind == "text":
            (step.noted if part.get("synthetic") else step.said).append(text_of(part.get("text")))
        elif kind == "reasoning":
            step.thought.append(text_of(part.get("text")))
        elif kind == "tool":
            call, result = _tool(part, open_calls)
            step.calls.append(call)
            step.results.append(result)
        elif kind == "file":
            step.noted.append(f"[file {text_of(part.get('filename')) or text_of(part.get('mime'))}]")
        elif kind == "subtask":
            step.said.append(text_of(part.get("prompt")))
        elif kind == "retry":
            step.noted.append(_error_text(mapping_of(part.get("error"))))
        elif kind not in _IGNORED_PARTS:
            count_unknown(self._report, f"part/{kind_of(kind)}")

    def _usage(self, info: dict[str, Any]) -> TokenUsage | None:
        model = text_or_none(info.get("modelID"))
        self._report.model = model or self._report.model
        tokens = mapping_of(info.get("tokens"))
        cache = mapping_of(tokens.get("cache"))
        usage = TokenUsage(
            input_tokens=count_of(tokens.get("input")),
            output_tokens=count_of(tokens.get("output")) + count_of(tokens.get("reasoning")),
            cache_read=count_of(cache.get("read")),
            cache_write=count_of(cache.get("write")),
            model=model,
        )
        return usage if usage.context else None

    def _note_session(self, fields: dict[str, Any]) -> None:
        report = self._report
        report.session_id = text_or_none(fields.get("id")) or report.session_id
        report.cwd = text_or_none(fields.get("directory")) or report.cwd
        report.title = text_or_none(fields.get("title")) or report.title


def _tool(part: dict[str, Any], open_calls: ToolOutcome) -> tuple[ToolCall, ToolResult]:
    state = mapping_of(part.get("state"))
    call_id = text_of(part.get("callID")) or text_of(part.get("id"))
    call = ToolCall(call_id, text_of(part.get("tool")), mapping_of(state.get("input")))
    return call, ToolResult(call_id, _tool_text(call.name, state), _outcome(call.name, state, open_calls))


def _tool_text(tool: str, state: dict[str, Any]) -> str:
    told = text_of(state.get("output")) or text_of(state.get("error"))
    if tool == _SUBAGENT and told.startswith(_REPORT_OPENS):
        _, _, told = told.partition("<task_result>")
        return told.rpartition("</task_result>")[0].strip()
    return told or text_of(mapping_of(state.get("metadata")).get("output"))


def _outcome(tool: str, state: dict[str, Any], open_calls: ToolOutcome) -> ToolOutcome:
    outcome = _STATUSES.get(text_of(state.get("status")), open_calls)
    metadata = mapping_of(state.get("metadata"))
    if outcome == "error":
        aborted = metadata.get("interrupted") is True or text_of(state.get("error")).startswith(_NOT_DONE)
        return "interrupted" if aborted else "error"
    if outcome != "ok":
        return outcome
    if tool == _SUBAGENT and _RUNS_ON.match(text_of(state.get("output"))):
        return "unknown"
    if tool == "invalid":
        # The model called a tool that is not there; OpenCode answers in that tool's place.
        return "error"
    if "exit" not in metadata:
        return "ok"
    return "interrupted" if metadata["exit"] is None else "ok" if metadata["exit"] == 0 else "error"


def _error_text(error: dict[str, Any]) -> str:
    told = text_of(mapping_of(error.get("data")).get("message")) or text_of(error.get("message"))
    return ": ".join(filter(None, (text_of(error.get("name")), told)))
