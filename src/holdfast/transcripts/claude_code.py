"""Claude Code: one JSON object a line, one line a content block."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, cast

from holdfast.model.message import (
    Message,
    ReadReport,
    Role,
    TodoItem,
    TokenUsage,
    ToolCall,
    ToolOutcome,
    ToolResult,
    TurnState,
)
from holdfast.transcripts.fields import (
    MOST_TODOS,
    TODO_STATUSES,
    MessageMaker,
    Recent,
    count_of,
    count_unknown,
    is_program_command,
    json_objects,
    mapping_of,
    mappings_of,
    text_of,
    text_or_none,
    todo_of,
    todos_of,
    told,
)

# ── the todo list ─────────────────────────────────────────────────────────────────────────────────

# Claude Code's todo list, folded from the calls that change it.

_CREATED = re.compile(r"[Tt]ask #(\w+) created")


class TodoList:
    """Answers with the whole list after a change, and with ``None`` where nothing changed."""

    def __init__(self) -> None:
        self._items: dict[str, TodoItem] = {}
        self._awaiting_id: dict[str, TodoItem] = {}

    def after_calls(self, calls: Iterable[ToolCall]) -> tuple[TodoItem, ...] | None:
        changed = False
        for call in calls:
            if call.name == "TodoWrite":
                changed |= self._replace(call.arguments.get("todos"))
            elif call.name == "TaskCreate":
                self._await(call)
            elif call.name == "TaskUpdate":
                changed |= self._update(call.arguments)
        return self._whole() if changed else None

    def after_results(self, results: Iterable[ToolResult], structured: object) -> tuple[TodoItem, ...] | None:
        """TaskCreate learns its number only from its result; TaskList tells all of them."""
        changed = False
        for result in results:
            item = self._awaiting_id.pop(result.call_id, None)
            if item is not None and result.outcome == "ok":
                identifier = _created_id(structured, result.text) or f"?{len(self._items)}"
                self._items[identifier] = item
                changed = True
        changed |= self._relist(mapping_of(structured).get("tasks"))
        return self._whole() if changed else None

    def _replace(self, todos: object) -> bool:
        items = todos_of(todos, "content")
        if items is None:
            return False
        self._items = {str(number): item for number, item in enumerate(items, 1)}
        return True

    def _relist(self, tasks: object) -> bool:
        listed = {
            str(entry.get("id")): item
            for entry in mappings_of(tasks)[:MOST_TODOS]
            if (item := todo_of(entry, "subject"))
        }
        self._items = listed or self._items
        return bool(listed)

    def _await(self, call: ToolCall) -> None:
        item = todo_of(call.arguments, "subject")
        if item and len(self._items) + len(self._awaiting_id) < MOST_TODOS:
            self._awaiting_id[call.id] = item

    def _update(self, change: dict[str, Any]) -> bool:
        identifier = str(change.get("taskId"))
        item = self._items.get(identifier)
        if item is None:
            return False
        if change.get("status") == "deleted":
            del self._items[identifier]
            return True
        self._items[identifier] = TodoItem(
            text_of(change.get("subject")) or item.text,
            TODO_STATUSES.get(text_of(change.get("status")), item.status),
        )
        return True

    def _whole(self) -> tuple[TodoItem, ...]:
        return tuple(self._items.values())


def _created_id(structured: object, text: str) -> str | None:
    if identifier := mapping_of(mapping_of(structured).get("task")).get("id"):
        return str(identifier)
    found = _CREATED.search(text, 0, 500)
    return found[1] if found else None


# ── the conversation ──────────────────────────────────────────────────────────────────────────────

# Claude Code: one JSON object a line, one line a content block.
#
# What makes this file format its own:
#
# - ``usage`` is repeated on every line of a model's message; it counts once, by message id.
# - Lines of type ``user`` hold tool results, the program's own notes and what the user typed.
# - What the user types while the agent works is queued: ``enqueue``, then either ``remove``
# (handed to the running turn), ``dequeue`` (a user line follows) or ``popAll`` (taken back).
# - Todo lists come whole (TodoWrite) or one change at a time (TaskCreate, TaskUpdate).

_IGNORED = frozenset(
    (
        "progress",
        "file-history-snapshot",
        "mode",
        "permission-mode",
        "cost-state",
        "api-request-shape",
        "tools-used",
        "attachment",
        "last-prompt",
        "ai-title",
        "custom-title",
        "agent-name",
    )
)
# Tuples, not sets: a type read from a file may be anything, unhashable values included.
_TALK = ("assistant", "user")
_CALLS = ("tool_use", "server_tool_use")
# A third of the lines: a running tool's output again and again, which its result repeats.
_PROGRESS = b'"type":"progress","data":{'
# Far more than two writers can interleave, far less than a file can hold.
_REMEMBERED_IDS = 4096

_COMMAND_NAME = re.compile(r"<command-name>([^<]{0,200})</command-name>")
_BASH_INPUT = re.compile(r"<bash-input>(.*?)</bash-input>", re.DOTALL)
_REJECTED = "The user doesn't want to "
_NEVER_RAN = (
    _REJECTED,
    "[Request interrupted",
    "<tool_use_error>Sibling tool call errored",
    "Sibling tool call errored",
)
_INTERRUPTED = "[Request interrupted"
_SUMMED_UP = "This session is being continued from a previous conversation that ran out of context."
_TURNS: dict[object, TurnState] = {"end_turn": "ended", "stop_sequence": "ended", "tool_use": "open"}
_TURN_IS_OVER = ("stop_hook_summary", "turn_duration")
# What the program says in the model's place; anything but these is an error or a limit.
_SYNTHETIC = "<synthetic>"
_FILLERS = ("", "No response requested.", "(no content)")
_SUMMARY_MARKS = ("<summary>", "\nSummary:\n", "earlier portion of the conversation.")
_USER_SAID = re.compile(r"the user said:\s*")
_SAID_AFTER_REJECTION_LIMIT = 20_000


def read(source: BinaryIO, report: ReadReport) -> Iterator[Message]:
    """The messages of a Claude Code session file, in file order, in one pass."""
    report.agent = "claude-code"
    return _Reader(report).messages(source)


class _Reader(MessageMaker):
    def __init__(self, report: ReadReport) -> None:
        super().__init__(report)
        self._lines: Recent[str, bool] = Recent(_REMEMBERED_IDS)
        self._counted: Recent[str, bool] = Recent(_REMEMBERED_IDS)
        self._todos = TodoList()
        self._queued: deque[tuple[str, str | None]] = deque(maxlen=64)
        self._boundary: dict[str, Any] | None = None

    def messages(self, source: BinaryIO) -> Iterator[Message]:
        yield from self._made_of(json_objects(source, self._report, _PROGRESS), self._line)
        self._mark_boundary({})
        for text, at in self._queued:
            self._deliver(text, at)
        yield from self._ready

    def _line(self, line: dict[str, Any]) -> None:
        kind = line.get("type")
        if kind in _TALK:
            if self._boundary is not None:
                self._mark_boundary(line)
            self._talk(line, kind)
        elif kind == "queue-operation":
            self._queue(line)
        elif kind == "system":
            self._system(line)
        elif kind == "summary":
            self._report.title = text_of(line.get("summary")) or self._report.title
        elif kind == "pr-link":
            self._make(line, "system", text=f"Pull request {line.get('prUrl') or line.get('prNumber')}")
        elif text_of(kind) not in _IGNORED:
            count_unknown(self._report, str(kind))

    def _talk(self, line: dict[str, Any], kind: str) -> None:
        body: Any = line.get("message")
        uuid = line.get("uuid")
        if not isinstance(body, dict):
            count_unknown(self._report, f"{kind} without message")
        elif isinstance(uuid, str) and self._lines.met(uuid):
            self._report.duplicated += 1
        else:
            self._note_session(line)
            (self._assistant if kind == "assistant" else self._user)(line, cast(dict[str, Any], body))

    def _mark_boundary(self, line: dict[str, Any]) -> None:
        """A boundary that no summary follows still marks the compaction."""
        if self._boundary is not None and not line.get("isCompactSummary"):
            self._make(self._boundary, "system", compaction=True, injected=True)
        self._boundary = None

    def _assistant(self, line: dict[str, Any], body: dict[str, Any]) -> None:
        said: list[str] = []
        thought: list[str] = []
        calls: list[ToolCall] = []
        for block in _blocks(body.get("content")):
            kind = block.get("type")
            if kind == "text":
                said.append(text_of(block.get("text")))
            elif kind == "thinking":
                thought.append(text_of(block.get("thinking")))
            elif kind in _CALLS:
                calls.append(_call(block))
        if body.get("model") == _SYNTHETIC or line.get("isApiErrorMessage") is True:
            self._by_program(line, "\n".join(said))
            return
        reason = body.get("stop_reason")
        self._make(
            line,
            "assistant",
            text="\n".join(said),
            thinking="\n".join(thought),
            tool_calls=tuple(calls),
            usage=self._usage(body),
            todos=self._todos.after_calls(calls) if calls else None,
            turn=_TURNS.get(reason) if isinstance(reason, str) else None,
        )

    def _by_program(self, line: dict[str, Any], text: str) -> None:
        if text.strip() in _FILLERS:
            self._make(line, "assistant", text=text, injected=True)
        else:
            self._make(line, "system", text=text, injected=True, turn="failed")

    def _user(self, line: dict[str, Any], body: dict[str, Any]) -> None:
        said: list[str] = []
        results: list[ToolResult] = []
        for block in _blocks(body.get("content")):
            kind = block.get("type")
            if kind == "text":
                said.append(text_of(block.get("text")))
            elif kind == "tool_result":
                result = _result(block, line.get("toolUseResult"))
                results.append(result)
                if result.outcome == "interrupted":
                    said.append(_said_in_rejection(result.text))
        if line.get("isCompactSummary") or (said and said[0].startswith(_SUMMED_UP)):
            self._make(line, "user", text=_summary("\n".join(said)), compaction=True, injected=True)
            return
        text, by_program = _typed([part for part in said if part])
        todos = self._todos.after_results(results, line.get("toolUseResult")) if results else None
        self._make(
            line,
            "user",
            text=text,
            tool_results=tuple(results),
            todos=todos,
            injected=by_program or _is_notice(line),
            turn="stopped" if text.startswith(_INTERRUPTED) else None,
        )

    def _queue(self, line: dict[str, Any]) -> None:
        operation = line.get("operation")
        if operation == "enqueue":
            self._queued.append((text_of(line.get("content")), text_or_none(line.get("timestamp"))))
        elif operation == "popAll":
            self._queued.clear()
        elif self._queued:
            text, at = self._queued.popleft()
            if operation == "remove":
                self._deliver(text, at)

    def _deliver(self, queued: str, at: str | None) -> None:
        text, injected = _typed([queued])
        if text:
            self._make({"timestamp": at}, "user", text=text, injected=injected)

    def _system(self, line: dict[str, Any]) -> None:
        if line.get("subtype") == "compact_boundary":
            self._boundary = line
        elif line.get("subtype") in _TURN_IS_OVER:
            self._make(line, "system", injected=True, turn="ended")
        elif text := text_of(line.get("content")):
            self._make(line, "system", text=text, injected=True)

    def _usage(self, body: dict[str, Any]) -> TokenUsage | None:
        usage: Any = body.get("usage")
        identifier = body.get("id")
        if not isinstance(usage, dict) or (isinstance(identifier, str) and self._counted.met(identifier)):
            return None
        figures = cast(dict[str, Any], usage)
        model = text_or_none(body.get("model"))
        self._report.model = model or self._report.model
        return TokenUsage(
            input_tokens=count_of(figures.get("input_tokens")),
            output_tokens=count_of(figures.get("output_tokens")),
            cache_read=count_of(figures.get("cache_read_input_tokens")),
            cache_write=count_of(figures.get("cache_creation_input_tokens")),
            model=model,
        )

    def _make(self, line: dict[str, Any], role: Role, **fields: Any) -> None:
        at, identifier = text_or_none(line.get("timestamp")), text_or_none(line.get("uuid"))
        agent = text_or_none(line.get("agentId") or ("sidechain" if line.get("isSidechain") else None))
        self._pass_on(Message(self._index, role, at=at, id=identifier, subagent=agent, **fields))

    def _note_session(self, line: dict[str, Any]) -> None:
        report = self._report
        report.session_id = text_or_none(line.get("sessionId")) or report.session_id
        report.branch = text_or_none(line.get("gitBranch")) or report.branch
        if report.cwd is None:
            # Where the session began; later lines name wherever the shell happened to be.
            report.cwd = text_or_none(line.get("cwd"))


def _blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return mappings_of(content)


def _call(block: dict[str, Any]) -> ToolCall:
    return ToolCall(text_of(block.get("id")), text_of(block.get("name")), mapping_of(block.get("input")))


def _result(block: dict[str, Any], structured: object) -> ToolResult:
    content = block.get("content")
    if isinstance(content, str):
        text = content
    else:
        text = "\n".join(text_of(part.get("text")) for part in _blocks(content))
    return ToolResult(text_of(block.get("tool_use_id")), text, _outcome(block, text, structured))


def _outcome(block: dict[str, Any], text: str, structured: object) -> ToolOutcome:
    if mapping_of(structured).get("interrupted") is True:
        return "interrupted"
    if not block.get("is_error"):
        return "ok"
    return "interrupted" if text.startswith(_NEVER_RAN) else "error"


def _said_in_rejection(text: str) -> str:
    found = _USER_SAID.search(text, 0, 2000)
    return text[found.end() : found.end() + _SAID_AFTER_REJECTION_LIMIT] if found else ""


def _summary(text: str) -> str:
    """The summary itself, without the program's preamble and the model's notes for it."""
    for mark in _SUMMARY_MARKS:
        _, found, after = text.partition(mark)
        if found and after.strip():
            return after.replace("</summary>", "").strip()
    return text.strip()


def _is_notice(line: dict[str, Any]) -> bool:
    """Whether the program itself says that no person wrote the line."""
    kind = mapping_of(line.get("origin")).get("kind")
    marked = any(line.get(mark) for mark in ("isMeta", "isVisibleInTranscriptOnly"))
    return marked or line.get("promptSource") == "system" or (isinstance(kind, str) and kind != "human")


_AFTER_A_PLAN = re.compile(r"\n*If you need specific details from before exiting plan mode .*$", re.DOTALL)


def _typed(parts: list[str]) -> tuple[str, bool]:
    """What the user typed, or else what the program wrote, and whether it was the program."""
    found = [_told(part) for part in parts]
    own = [text for text, by_program in found if not by_program]
    return "\n".join(own or [text for text, _ in found]).strip(), bool(found) and not own


def _told(text: str) -> tuple[str, bool]:
    text = _AFTER_A_PLAN.sub("", text).strip() if "before exiting plan mode" in text else text.strip()
    if text.startswith("<command-") and (found := _COMMAND_NAME.search(text)):
        name = found[1].strip()
        arguments = text.partition("<command-args>")[2].partition("</command-args>")[0].strip()
        typed = f"{name} {arguments}".strip()
        return typed, is_program_command(typed)
    if text.startswith("<bash-input>") and (shell := _BASH_INPUT.match(text)):
        return f"! {shell[1].strip()}", True  # run by the program; nobody is asked to do anything
    return told(text)
