"""Gemini CLI: an append-only log whose lines add to, complete or replace the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, cast

import orjson

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
    MessageMaker,
    Piece,
    PushedBack,
    Recent,
    answers_told,
    count_of,
    count_unknown,
    document_pieces,
    joined,
    json_objects,
    kind_of,
    list_of,
    mapping_of,
    mappings_of,
    text_of,
    text_or_none,
    todos_of,
    told,
)

# ── one message ───────────────────────────────────────────────────────────────────────────────────

# One message of a Gemini CLI session: its parts, its tools and how those ended.

SUMMARY_TAG = "<state_snapshot>"
CONTEXT_TAG = "<session_context>"
_HOOK_TAG = "<hook_context>"
_PROGRAM_WORDS = (
    CONTEXT_TAG,
    _HOOK_TAG,
    SUMMARY_TAG,
    "System: Please continue.",
    "System: Potential loop detected",
    "I ran the following shell command:\n",
)
_HOOK_CONTEXT = re.compile(r"<hook_context>.*?(?:</hook_context>|\Z)\s*", re.DOTALL)
_UNTRUSTED_OPENS, _UNTRUSTED_CLOSES = "<untrusted_context>\n", "\n</untrusted_context>"
_ENDING_CHARACTERS = 500
_EXIT_CODE = re.compile(r"^Exit Code: (-?\d{1,9})$", re.MULTILINE)
_SIGNAL = re.compile(r"^Signal: (?!\(none\))\S+$", re.MULTILINE)
_SHELL = "run_shell_command"
_SHELL_ECHO, _SHELL_OPENS = "Command: ", "Output: "
_SHELL_CLOSES = re.compile(
    r"Error: \(none\)|Exit Code: (?:-?\d{1,9}|\(none\))|Signal: \S+"
    r"|(?:Background PIDs|Process Group PGID): .*"
)
_MOST_CLOSING_LINES = 5
_SHELL_STARTED = "Command moved to background"
_SHELL_TIMED_OUT = "Command was automatically cancelled because"
_SUBAGENT_OPENS = re.compile(r"Subagent '[^'\n]{1,100}' finished\.\nTermination Reason: GOAL\nResult:\n")
_ASKS_USER = "ask_user"
_API_FAILED = re.compile(r"API Error|quota|rate limit|usage limit", re.IGNORECASE)
_STATUSES: dict[str, ToolOutcome] = {"success": "ok", "error": "error", "cancelled": "interrupted"}


@dataclass(slots=True)  # not frozen: one is made of every line, and freezing doubles the price
class GeminiRecord:
    """A message as the file has it, before it is decided what of it is new."""

    id: str
    kind: str
    text: str
    thinking: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]  # as the calls' own records tell them
    responses: tuple[dict[str, Any], ...]  # as they went to the model: most repeat a result
    content: int  # a hash of what it says, tool output aside
    raw: dict[str, Any]

    @property
    def opens_history(self) -> bool:
        return self.text.startswith(CONTEXT_TAG)


def record_of(entry: dict[str, Any]) -> GeminiRecord:
    """In one walk over the parts: there is one of these for every line of the file."""
    content: Any = entry.get("content")
    said: list[str] = []
    thoughts = _thoughts(entry) if entry.get("thoughts") else []
    calls, results = _recorded_tools(entry) if entry.get("toolCalls") else ([], [])
    responses: list[dict[str, Any]] = []
    called: list[ToolCall] = []
    if isinstance(content, str):
        said.append(content)
    else:
        for part in _parts(content):
            if "functionResponse" in part:
                responses.append(mapping_of(part["functionResponse"]))
            if "functionCall" in part:
                called.append(_call(mapping_of(part["functionCall"])))
            (thoughts if part.get("thought") else said).append(text_of(part.get("text")))
    calls = calls or called
    kind, text = kind_of(entry.get("type")), joined(said)
    return GeminiRecord(
        id=text_of(entry.get("id")),
        kind=kind,
        text=text,
        thinking=joined(thoughts) if thoughts else "",
        calls=tuple(calls),
        results=tuple(results),
        responses=tuple(responses),
        content=_content_hash(kind, text, calls, answers=bool(responses)),
        raw=entry,
    )


def result_of(response: dict[str, Any]) -> ToolResult:
    failed = bool(mapping_of(response.get("response")).get("error"))
    name, outcome = text_of(response.get("name")), "error" if failed else "ok"
    return _result(text_of(response.get("id")), name, _response_text(response), outcome)


def notice_of_end(record: GeminiRecord) -> TurnState | None:
    """How a turn ended, where a notice to the user says so; most are about something else."""
    if record.kind == "error" and _API_FAILED.search(record.text[:_ENDING_CHARACTERS]):
        return "failed"
    return "stopped" if record.kind == "info" and record.text.startswith("Request cancelled") else None


def typed(record: GeminiRecord) -> tuple[str, bool]:
    """What the user typed, and whether the program wrote the text instead."""
    shown = joined(text_of(part.get("text")) for part in _parts(record.raw.get("displayContent")))
    text = shown or record.text
    if _HOOK_TAG in text:
        text = _HOOK_CONTEXT.sub("", text).strip() or text
    text = text.strip()
    return (text, True) if text.startswith(_PROGRAM_WORDS) else told(text)


def _content_hash(kind: str, text: str, calls: list[ToolCall], *, answers: bool) -> int:
    called = tuple((call.name, orjson.dumps(call.arguments, option=orjson.OPT_SORT_KEYS)) for call in calls)
    return hash((kind, text.strip(), called, answers and not calls))


ONLY_RESULTS = _content_hash("user", "", [], answers=True)


def _parts(content: object) -> list[dict[str, Any]]:
    parts = list_of(content) or [content]
    return [{"text": part} if isinstance(part, str) else mapping_of(part) for part in parts]


def _thoughts(entry: dict[str, Any]) -> list[str]:
    return [
        ": ".join(filter(None, (text_of(thought.get("subject")), text_of(thought.get("description")))))
        for thought in mappings_of(entry.get("thoughts"))
    ]


def _recorded_tools(entry: dict[str, Any]) -> tuple[list[ToolCall], list[ToolResult]]:
    calls: list[ToolCall] = []
    results: list[ToolResult] = []
    for tool in mappings_of(entry.get("toolCalls")):
        call = _call(tool)
        calls.append(call)
        responses = [mapping_of(part.get("functionResponse")) for part in _parts(tool.get("result"))]
        text = joined(_response_text(response) for response in responses) or text_of(tool.get("result"))
        outcome = _STATUSES.get(text_of(tool.get("status")))
        if outcome is not None:
            text = text or text_of(tool.get("resultDisplay"))
            if call.name == _ASKS_USER:
                text = answers_told(call.arguments.get("questions"), text)
            results.append(_result(call.id, call.name, text, outcome))
    return calls, results


def _call(call: dict[str, Any]) -> ToolCall:
    return ToolCall(text_of(call.get("id")), text_of(call.get("name")), mapping_of(call.get("args")))


def _response_text(response: dict[str, Any]) -> str:
    fields = mapping_of(response.get("response"))
    text = text_of(fields.get("output")) or text_of(fields.get("error"))
    if text.startswith(_UNTRUSTED_OPENS):
        return text.removeprefix(_UNTRUSTED_OPENS).rstrip().removesuffix(_UNTRUSTED_CLOSES)
    return text


def _result(call_id: str, tool: str, text: str, outcome: ToolOutcome) -> ToolResult:
    if tool == _SHELL and outcome == "ok":
        text, outcome = _shell_result(text)
    elif found := _SUBAGENT_OPENS.match(text):
        text = text[found.end() :]
    return ToolResult(call_id, text, outcome)


def _shell_result(text: str) -> tuple[str, ToolOutcome]:
    """What the command printed, out of the lines that Gemini CLI puts around it, and how it ended."""
    if text.startswith((_SHELL_STARTED, _SHELL_TIMED_OUT)):
        return text, "unknown" if text.startswith(_SHELL_STARTED) else "error"
    ending = text[-_ENDING_CHARACTERS:]
    code = _EXIT_CODE.search(ending)
    printed = _printed(text)
    if _SIGNAL.search(ending):
        return printed, "interrupted"
    return (f"Exit code {code[1]}\n{printed}", "error") if code and int(code[1]) else (printed, "ok")


def _printed(text: str) -> str:
    if text.startswith(_SHELL_ECHO):  # up to 2025 the command stood above its output
        _, opens, below = text.partition(f"\n{_SHELL_OPENS}")
        text = below if opens else text
    text = text.removeprefix(_SHELL_OPENS)
    for _ in range(_MOST_CLOSING_LINES):
        above, _, last = text.rpartition("\n")
        if not _SHELL_CLOSES.fullmatch(last):
            break
        text = above
    return "" if text == "(empty)" else text


# ── a restated history ────────────────────────────────────────────────────────────────────────────

# The conversation as Gemini CLI holds it: what a restated history adds, and what it drops.
#
# Gemini CLI often writes its whole history again: on resume with the same ids; with new ones
# after it compressed the talk, and before every call of the model once it masks bulky tool
# output. A message is therefore known by its id *or* by what it says; tool output is left out
# of that comparison, since masking replaces it.

_MOST_REMEMBERED = 50_000


class KnownMessage(NamedTuple):
    id: str
    content: int  # a hash of what the message says
    place: int  # where the message stands in the stream


class History:
    """The live conversation, and a bounded memory of every message that was ever in it."""

    def __init__(self) -> None:
        self._live: list[KnownMessage] = []
        self._positions: dict[str, int] = {}
        self._ids: Recent[str, int] = Recent(_MOST_REMEMBERED)
        self._contents: Recent[int, int] = Recent(_MOST_REMEMBERED)

    def __len__(self) -> int:
        return len(self._live)

    def index_of(self, identifier: str, content: int | None = None) -> int | None:
        """Where a message stands in the stream, if it was ever passed on."""
        index = self._ids.get(identifier)
        return self._contents.get(content) if index is None and content is not None else index

    def put(self, identifier: str, content: int, index: int) -> None:
        """A message was added, or the one of this id was completed."""
        first = self.index_of(identifier)
        known = KnownMessage(identifier, content, index if first is None else first)
        self._ids.put(identifier, known.place)
        self._contents.put(content, known.place)
        position = self._positions.get(identifier)
        if position is not None:
            self._live[position] = known
            return
        self._positions[identifier] = len(self._live)
        self._live.append(known)
        if len(self._live) > _MOST_REMEMBERED:
            self._hold(self._live[_MOST_REMEMBERED // 2 :])

    def remember(self, identifier: str, index: int) -> None:
        """A message that was passed on but is no part of the conversation."""
        self._ids.put(identifier, index)

    def replace(self, restated: Iterable[KnownMessage]) -> None:
        self._hold(list(restated)[-_MOST_REMEMBERED:])
        for known in self._live:
            self._ids.put(known.id, known.place)
            self._contents.put(known.content, known.place)

    def cut_at(self, identifier: str) -> tuple[int | None, int]:
        """Drop the message of this id and all after it: the first index dropped, and how many."""
        position = self._positions.get(identifier, 0)
        dropped = self._live[position:]
        self._hold(self._live[:position])
        return (dropped[0].place if dropped else None), len(dropped)

    def _hold(self, live: list[KnownMessage]) -> None:
        self._live = live
        self._positions = {known.id: position for position, known in enumerate(live)}


# ── the log ───────────────────────────────────────────────────────────────────────────────────────

# Gemini CLI: an append-only log whose lines add to, complete or replace the conversation.
#
# What makes this file format its own:
#
# - A message is written again under its id when its tools have ended: the last word counts.
# A tool that was killed midway leaves no trace at all.
# - ``{"$set": {"messages": [...]}}`` replaces the conversation: at start, on resume, and when it
# was compressed. ``{"$rewindTo": id}`` takes messages back.
# - A tool's result stands in the call's record and once more in a message of type ``user``.
# - A shell command that failed has status ``success``; its exit code is a line of the output.

# Every other line says no more than that the file was written to.
_LONGEST_TOUCH = 100
_TOUCH = re.compile(rb'\{"\$set":\{"lastUpdated":"[^"\\]*"\}\}\n')
_TOUCHED = {"lastUpdated"}
# The result of one tool as it goes to the model, when the call's own record has told it already.
# Quotes are escaped within strings: what looks like a field here is one.
_RESULT_AGAIN = re.compile(
    rb'\{"id":"([^"\\]{1,80})","timestamp":"[^"\\]{0,40}","type":"user",'
    rb'"content":\[\{"functionResponse":\{"id":"([^"\\]{1,200})",'
)
_FUNCTION, _ONE_PART_ENDS = b'"function', b'"}}}]}\n'
_NOTICES = frozenset(("info", "error", "warning"))
_REMEMBERED_CALLS = 4096
_WORKSPACE = re.compile(r"Workspace Directories:\*\*\n\s*- (\S[^\n]*)")


def read(source: BinaryIO, report: ReadReport) -> Iterator[Message]:
    """The messages of a Gemini CLI session, each once, in the order in which they came about."""
    report.agent = "gemini"
    head = source.readline(3)
    rest = cast(BinaryIO, PushedBack(head, source))
    reader = _Reader(report)
    # Up to 2025 a session was one indented document, not a log.
    return reader.document(rest) if head.strip() == b"{" else reader.log(rest)


class _Reader(MessageMaker):
    def __init__(self, report: ReadReport) -> None:
        super().__init__(report)
        self._history = History()
        self._held: dict[str, Any] | None = None
        self._is_replaying = False
        self._calls: Recent[str, ToolCall] = Recent(_REMEMBERED_CALLS)
        self._answered: Recent[str, bool] = Recent(_REMEMBERED_CALLS)
        self._counted: Recent[str, bool] = Recent(_REMEMBERED_CALLS)

    def log(self, source: BinaryIO) -> Iterator[Message]:
        yield from self._made_of(json_objects(source, self._report, is_noise=self._is_noise), self._log_line)
        self._release()
        yield from self._ready

    def _is_noise(self, line: bytes) -> bool:
        """Two of three lines say nothing new: they are not even parsed."""
        if len(line) < _LONGEST_TOUCH:
            return _TOUCH.fullmatch(line) is not None
        found = _RESULT_AGAIN.match(line)
        if found is None or not line.endswith(_ONE_PART_ENDS) or line.count(_FUNCTION) > 1:
            return False
        self._release()
        identifier, call_id = found[1].decode(errors="replace"), found[2].decode(errors="replace")
        if (
            self._is_replaying
            or call_id not in self._answered
            or self._history.index_of(identifier) is not None
        ):
            return False
        self._history.put(identifier, ONLY_RESULTS, self._index)
        return True

    def _log_line(self, line: dict[str, Any]) -> None:
        if isinstance(line.get("$rewindTo"), str):
            self._rewind(line["$rewindTo"])
        elif isinstance(line.get("id"), str):
            self._line(line)
        elif isinstance(line.get("$set"), dict):
            if line["$set"].keys() != _TOUCHED:
                self._patch(mapping_of(line["$set"]))
        elif isinstance(line.get("sessionId"), str):
            self._note_session(line)
            for entry in mappings_of(line.get("messages")):
                if isinstance(entry.get("id"), str):
                    self._line(entry)
        else:
            count_unknown(self._report, next(iter(line), "empty"))

    def document(self, source: BinaryIO) -> Iterator[Message]:
        yield from self._made_of(document_pieces(source, self._report), self._piece)
        self._release()
        yield from self._ready

    def _piece(self, piece: Piece) -> None:
        part, fields = piece
        if part == "about":
            self._note_session(fields)
        elif isinstance(fields.get("id"), str):
            self._line(fields)
        else:
            count_unknown(self._report, "message without id")

    # --- the log

    def _line(self, line: dict[str, Any]) -> None:
        if self._held is not None and self._held["id"] == line["id"]:
            self._held = line
            return
        self._release()
        if line.get("tokens"):
            # Only an answer that was just given has a price.
            self._is_replaying = False
        known = self._history.index_of(line["id"]) is not None
        if line.get("type") == "gemini" and not known and not self._is_replaying:
            # Its tools have not run yet; the same message comes again with their results.
            self._held = line
        elif known:
            self._complete(record_of(line))
        else:
            self._see_first(record_of(line))

    def _see_first(self, record: GeminiRecord) -> None:
        if self._restarts_history(record):
            # From here to the patch that follows, the history is written again under new ids.
            self._is_replaying = True
            self._report.duplicated += 1
        elif self._is_replaying and self._history.index_of(record.id, record.content) is not None:
            self._report.duplicated += 1
        else:
            self._add(record)

    def _restarts_history(self, record: GeminiRecord) -> bool:
        return record.opens_history and len(self._history) > 1

    def _release(self) -> None:
        line, self._held = self._held, None
        if line is not None:
            self._add(record_of(line))

    def _complete(self, record: GeminiRecord) -> None:
        """A message that was passed on already is written again: only what is new in it counts."""
        calls = tuple(call for call in record.calls if call.id not in self._calls)
        results = self._unanswered(record)
        if not calls and not results:
            self._report.duplicated += 1
        if calls:
            self._make(record, "assistant", tool_calls=calls)
        self._make_results(record, results)
        self._history.put(record.id, record.content, self._index)

    def _add(self, record: GeminiRecord, *, injected: bool = False) -> None:
        if record.kind in _NOTICES:
            # Shown to the user, never part of the conversation.
            self._history.remember(record.id, self._index)
            self._make(record, "system", text=record.text, injected=True, turn=notice_of_end(record))
            return
        self._history.put(record.id, record.content, self._index)
        if record.kind == "user":
            self._add_user(record)
        elif record.kind == "gemini":
            self._add_gemini(record, injected=injected)
        else:
            count_unknown(self._report, f"message/{record.kind}")

    def _add_user(self, record: GeminiRecord) -> None:
        self._make_results(record, self._unanswered(record))
        if record.text or not record.responses:
            text, injected = typed(record)
            self._make(record, "user", text=text, injected=injected, compaction=text.startswith(SUMMARY_TAG))

    def _add_gemini(self, record: GeminiRecord, *, injected: bool = False) -> None:
        for call in record.calls:
            self._calls.put(call.id, call)
            self._answered.pop(call.id)
        usage = self._usage(record)
        if record.text or record.thinking or record.calls or usage:
            self._make(
                record,
                "assistant",
                text=record.text,
                thinking=record.thinking,
                tool_calls=record.calls,
                usage=usage,
                injected=injected,
            )
        self._make_results(record, record.results)

    def _make_results(self, record: GeminiRecord, results: Sequence[ToolResult]) -> None:
        for result in results:
            self._answered.put(result.call_id, True)
            call = self._calls.get(result.call_id)
            wrote_list = call is not None and call.name == "write_todos" and result.outcome == "ok"
            todos = todos_of(call.arguments.get("todos"), "description") if call and wrote_list else None
            self._make(record, "user", tool_results=(result,), todos=todos)

    def _unanswered(self, record: GeminiRecord) -> list[ToolResult]:
        results = [result for result in record.results if result.call_id not in self._answered]
        for response in record.responses:
            if text_of(response.get("id")) not in self._answered:
                results.append(result_of(response))
        return results

    # --- patches

    def _patch(self, changes: dict[str, Any]) -> None:
        if isinstance(changes.get("messages"), list):
            self._is_replaying = False
            self._release()
            self._replace([record_of(entry) for entry in mappings_of(changes["messages"])])
        self._note_session(changes)

    def _replace(self, records: list[GeminiRecord]) -> None:
        """The conversation as of now: pass on what is new, and say so if the rest was summed up."""
        fresh = [record for record in records if self._is_fresh(record)]
        summed_up = 1 < len(self._history) > len(records) or any(
            record.text.startswith(SUMMARY_TAG) for record in fresh
        )
        self._report.duplicated += len(records) - len(fresh)
        restated: list[KnownMessage] = []
        for position, record in enumerate(records):
            index = self._history.index_of(record.id, record.content)
            restated.append(KnownMessage(record.id, record.content, self._index if index is None else index))
            if fresh and record is fresh[0]:
                del fresh[0]
                self._restate(record, opens=position <= 1, summed_up=summed_up)
        self._history.replace(restated)

    def _is_fresh(self, record: GeminiRecord) -> bool:
        if record.text.startswith(SUMMARY_TAG):
            return self._history.index_of(record.id) is None
        if self._history.index_of(record.id, record.content) is not None or self._restarts_history(record):
            return False
        return bool(record.text or record.calls or self._unanswered(record))

    def _restate(self, record: GeminiRecord, *, opens: bool, summed_up: bool) -> None:
        if summed_up and opens and record.kind == "user" and record.text:
            self._make(record, "system", text=record.text, compaction=True, injected=True)
        else:
            self._add(record, injected=summed_up)

    def _rewind(self, identifier: str) -> None:
        self._release()
        first, dropped = self._history.cut_at(identifier)
        if first is not None:
            told = f"The user reverted {dropped} messages"
            agent = self._subagent
            self._pass_on(
                Message(self._index, "system", told, injected=True, undone_from=first, subagent=agent)
            )

    # --- the session

    def _note_session(self, fields: dict[str, Any]) -> None:
        report = self._report
        report.session_id = text_or_none(fields.get("sessionId")) or report.session_id
        report.title = text_or_none(fields.get("summary")) or report.title
        if report.cwd is None and (directories := list_of(fields.get("directories"))):
            report.cwd = text_or_none(directories[0])
        if fields.get("kind") == "subagent":
            self._subagent = report.session_id or "subagent"

    def _usage(self, record: GeminiRecord) -> TokenUsage | None:
        tokens = mapping_of(record.raw.get("tokens"))
        model = text_or_none(record.raw.get("model"))
        self._report.model = model or self._report.model
        if not tokens or self._counted.met(record.id):
            return None
        cached = count_of(tokens.get("cached"))
        usage = TokenUsage(
            input_tokens=max(0, count_of(tokens.get("input")) - cached) + count_of(tokens.get("tool")),
            output_tokens=count_of(tokens.get("output")) + count_of(tokens.get("thoughts")),
            cache_read=cached,
            model=model,
        )
        return usage if usage.context else None

    def _make(self, record: GeminiRecord, role: Role, **fields: Any) -> None:
        at = text_or_none(record.raw.get("timestamp"))
        message = Message(self._index, role, at=at, id=record.id, subagent=self._subagent, **fields)
        self._pass_on(message)
        if self._report.cwd is None and message.text.startswith(CONTEXT_TAG):
            self._note_workspace(message)

    def _note_workspace(self, message: Message) -> None:
        """The file names its project only as a hash; the first message tells the folder."""
        found = _WORKSPACE.search(message.text, 0, 20_000)
        self._report.cwd = found[1] if found else None
