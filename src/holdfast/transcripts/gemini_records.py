"""One message of a Gemini CLI session: its parts, its tools and how those ended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.model.message import Outcome, ToolCall, ToolResult, TurnState
from holdfast.transcripts.fields import joined, kind_of, list_of, mapping_of, mappings_of, text_of
from holdfast.transcripts.typed import told

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
_SIGNAL = re.compile(r"^Signal: \S+$", re.MULTILINE)
_API_FAILED = re.compile(r"API Error|quota|rate limit|usage limit", re.IGNORECASE)
_STATUSES: dict[str, Outcome] = {"success": "ok", "error": "error", "cancelled": "interrupted"}


@dataclass(slots=True)  # not frozen: one is made of every line, and freezing doubles the price
class Record:
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


def record_of(entry: dict[str, Any]) -> Record:
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
    return Record(
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
    text = _response_text(response)
    outcome = _shell_outcome(text_of(response.get("name")), text, "error" if failed else "ok")
    return ToolResult(text_of(response.get("id")), text, outcome)


def notice_of_end(record: Record) -> TurnState | None:
    """How a turn ended, where a notice to the user says so; most are about something else."""
    if record.kind == "error" and _API_FAILED.search(record.text[:_ENDING_CHARACTERS]):
        return "failed"
    return "stopped" if record.kind == "info" and record.text.startswith("Request cancelled") else None


def typed(record: Record) -> tuple[str, bool]:
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
            results.append(ToolResult(call.id, text, _shell_outcome(call.name, text, outcome)))
    return calls, results


def _call(call: dict[str, Any]) -> ToolCall:
    return ToolCall(text_of(call.get("id")), text_of(call.get("name")), mapping_of(call.get("args")))


def _response_text(response: dict[str, Any]) -> str:
    fields = mapping_of(response.get("response"))
    text = text_of(fields.get("output")) or text_of(fields.get("error"))
    if text.startswith(_UNTRUSTED_OPENS):
        return text.removeprefix(_UNTRUSTED_OPENS).rstrip().removesuffix(_UNTRUSTED_CLOSES)
    return text


def _shell_outcome(tool: str, text: str, outcome: Outcome) -> Outcome:
    if outcome != "ok" or tool != "run_shell_command":
        return outcome
    ending = text[-_ENDING_CHARACTERS:]
    if _SIGNAL.search(ending):
        return "interrupted"
    code = _EXIT_CODE.search(ending)
    return "error" if code and int(code[1]) else "ok"
