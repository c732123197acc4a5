"""Values, lines and documents out of foreign JSON, where anything may be missing, torn or of any type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Generic, Literal, TypeVar, cast

import orjson

from holdfast.base.text import parsed_with_lone_surrogates
from holdfast.model.frame import without_own_words
from holdfast.model.message import Message, ReadReport, TodoItem

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MOST_TODOS = 1000
_MOST_UNKNOWN_TYPES = 50
TODO_STATUSES: dict[str, Literal["pending", "in_progress", "completed"]] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "blocked": "pending",
}


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def kind_of(value: object) -> str:
    """A type's name to compare and to count by; it may be of any JSON type itself."""
    return value if isinstance(value, str) else f"({type(value).__name__})"


def count_of(value: object) -> int:
    """A count of tokens or the like: never negative, never a boolean."""
    if type(value) is int and 0 <= value < 1e15:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return 0
    return int(value)


def mapping_of(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []


def mappings_of(value: object) -> list[dict[str, Any]]:
    """The objects in a list; whatever else stands there is passed over."""
    return [cast(dict[str, Any], item) for item in list_of(value) if isinstance(item, dict)]


def joined(texts: Iterable[str]) -> str:
    return "\n".join(text for text in texts if text)


def iso_of_milliseconds(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        moment = datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_of(data: str | bytes) -> object:
    """What it says; None where it is not valid JSON."""
    try:
        return orjson.loads(data)
    except (orjson.JSONDecodeError, RecursionError):
        return None


def arguments_of(raw: object) -> dict[str, Any]:
    """What a tool is called with: an object, or one written as JSON; anything else by a name of ours."""
    if not isinstance(raw, str):
        return mapping_of(raw)
    parsed = json_of(raw or "{}")
    return cast(dict[str, Any], parsed) if isinstance(parsed, dict) else {"arguments": parsed or raw}


def todos_of(entries: object, text_key: str) -> tuple[TodoItem, ...] | None:
    """A whole todo list; cancelled items are left out, since nobody is to do them."""
    if not isinstance(entries, list):
        return None
    left = [entry for entry in mappings_of(cast(object, entries)) if entry.get("status") != "cancelled"]
    return tuple(item for entry in left[:MOST_TODOS] if (item := todo_of(entry, text_key)))


def todo_of(entry: dict[str, Any], text_key: str) -> TodoItem | None:
    text = text_of(entry.get(text_key)).strip()
    status = TODO_STATUSES.get(text_of(entry.get("status")), "pending")
    return TodoItem(text, status) if text else None


def answers_told(questions: object, text: str) -> str:
    """What the user answered, with each question: agents keep the answers by the number or id of theirs."""
    answers = mapping_of(mapping_of(json_of(text)).get("answers"))
    told: list[str] = []
    for number, one in enumerate(mappings_of(questions) if answers else ()):
        given: object = answers.get(text_of(one.get("id"))) or answers.get(str(number))
        chosen = [given] if isinstance(given, str) else list_of(mapping_of(given).get("answers"))
        words = ", ".join(text_of(each).removeprefix("user_note: ") for each in chosen if each)
        if words:
            told.append("=".join(_in_quotes(each) for each in (text_of(one.get("question")), words)))
    return ", ".join(told) or text


def _in_quotes(text: str) -> str:
    return f'"{" ".join(text.replace(chr(34), chr(39)).split())}"'


def count_unknown(report: ReadReport, kind: str) -> None:
    report.unknown += 1
    name = kind[:60]
    if name in report.unknown_types or len(report.unknown_types) < _MOST_UNKNOWN_TYPES:
        report.unknown_types[name] = report.unknown_types.get(name, 0) + 1


class Recent(Generic[Key, Value]):
    """The latest entries of a mapping that would else grow with the file.

    Two generations in place of an order: when the young one is full it becomes the old one, and
    what was old is forgotten. At least the ``most`` latest entries are kept, at most twice as many,
    and a line of a file costs two lookups.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._young or key in self._old

    def known(self) -> list[Key]:
        return [*(key for key in self._old if key not in self._young), *self._young]

    def put(self, key: Key, value: Value) -> None:
        young = self._young
        young[key] = value
        if len(young) > self._most:
            self._old, self._young = young, {}

    def met(self: Recent[Key, bool], key: Key) -> bool:
        """Whether a key was met lately; it has been from now on."""
        if key in self._young or key in self._old:
            return True
        self.put(key, True)
        return False

    def get(self, key: Key) -> Value | None:
        value = self._young.get(key)
        return self._old.get(key) if value is None else value

    def pop(self, key: Key) -> Value | None:
        old = self._old.pop(key, None)
        young = self._young.pop(key, None)
        return old if young is None else young


class MessageMaker:
    """What readers share: numbers the messages and keeps those of the line at hand to be passed on."""

    def __init__(self, report: ReadReport) -> None:
        self._report = report
        self._index = 0
        self._ready: list[Message] = []
        self._subagent: str | None = None

    def _pass_on(self, message: Message) -> None:
        self._index += 1
        self._ready.append(message)

    def _made_of(self, lines: Iterable[Value], take: Callable[[Value], None]) -> Iterator[Message]:
        """The messages that `take` makes of each line, before it gets the next one."""
        ready = self._ready
        for line in lines:
            take(line)
            if ready:
                yield from ready
                ready.clear()


class PushedBack:
    """A source whose first bytes were looked at and are to be read again."""

    def __init__(self, head: bytes, source: BinaryIO) -> None:
        self._head = head
        self._source = source
        self.readline = self._first_line if head else source.readline

    def _first_line(self, limit: int = -1) -> bytes:
        self.readline = self._source.readline  # from now on there is nothing between
        head = self._head
        if head.endswith(b"\n"):
            return head
        return head + self._source.readline(max(0, limit - len(head)) if limit >= 0 else -1)


# ── JSON lines ────────────────────────────────────────────────────────────────────────────────────

# JSON lines out of a file that may be torn, huge or not JSON at all.

# A longer line is skipped and counted: parsing it could cost four bytes a character,
# and memory must not depend on what a tool once printed.
MAX_LINE_BYTES = 16 * 1024 * 1024
_SKIP_CHUNK = 1024 * 1024
_NOISE_WITHIN = 1500


def json_objects(
    source: BinaryIO,
    report: ReadReport,
    noise: bytes | None = None,
    is_noise: Callable[[bytes], bool] | None = None,
) -> Iterator[dict[str, Any]]:
    """Each line that holds a JSON object; every other line is counted in ``report``.

    ``noise`` near the start of a line marks one that says nothing: it is not even parsed.
    Where one mark does not tell, ``is_noise`` is asked about each whole line.
    """
    loads = orjson.loads
    while line := source.readline(MAX_LINE_BYTES + 1):
        report.lines += 1
        if len(line) > MAX_LINE_BYTES:
            _skip_rest_of_line(source, line)
            report.oversized += 1
            continue
        if noise is not None and line.find(noise, 0, _NOISE_WITHIN) >= 0:
            continue
        if is_noise is not None and line.endswith(b"}\n") and is_noise(line):
            continue
        try:
            value = loads(line)
        except (orjson.JSONDecodeError, RecursionError):
            value = _lenient(line)
            if value is None:
                report.torn += bool(line.strip())
                continue
        if isinstance(value, dict):
            yield cast(dict[str, Any], value)
        else:
            report.torn += 1


def _lenient(line: bytes) -> Any:
    """A line with half a character in it, which orjson refuses; None where it is damaged."""
    if b"\\ud" not in line.lower():
        return None
    try:
        return parsed_with_lone_surrogates(line)
    except (ValueError, RecursionError):
        return None


def _skip_rest_of_line(source: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = source.readline(_SKIP_CHUNK)


# ── one large JSON document ───────────────────────────────────────────────────────────────────────

# One JSON document with a long ``messages`` array, read a message at a time.
#
# Agents write such documents with ``JSON.stringify(value, null, 2)``. JSON strings hold no
# raw line breaks, so the indentation of a line tells its depth, and a message is what
# stands between two lines that hold nothing but a brace at the depth of the array. Any
# other layout is parsed whole, as long as it fits into the size of the longest line.

Piece = tuple[Literal["about", "message"], dict[str, Any]]

_ARRAY_OPENS = b'  "messages": ['
_ARRAY_CLOSES = (b"  ]", b"  ],")
_MESSAGE_OPENS = b"    {"
_MESSAGE_CLOSES = (b"    }", b"    },")


def document_pieces(source: BinaryIO, report: ReadReport) -> Iterator[Piece]:
    """``about``: the document's other fields (in up to two pieces); ``message``: each message."""
    collected = _Collected()
    while line := source.readline(MAX_LINE_BYTES + 1):
        collected.add(line)
        if line.rstrip() == _ARRAY_OPENS:
            collected.add(b"]}")
            yield from _about(collected, report)
            yield from _messages(source, report)
            return
    yield from _whole(collected, report)


class _Collected:
    """Lines of one piece, up to a size; what is larger is known to be so, and not kept."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> None:
        self._size += len(line)
        if self.too_large:
            self._lines.clear()
        else:
            self._lines.append(line)

    @property
    def too_large(self) -> bool:
        return self._size > MAX_LINE_BYTES

    def parsed(self, report: ReadReport) -> dict[str, Any] | None:
        report.lines += 1
        if self.too_large:
            report.oversized += 1
            return None
        value = json_of(b"".join(self._lines).rstrip().removesuffix(b","))
        if not isinstance(value, dict):
            report.torn += 1
            return None
        return cast(dict[str, Any], value)


def _about(collected: _Collected, report: ReadReport) -> Iterator[Piece]:
    if fields := collected.parsed(report):
        yield "about", {name: value for name, value in fields.items() if name != "messages"}


def _messages(source: BinaryIO, report: ReadReport) -> Iterator[Piece]:
    current: _Collected | None = None
    while line := source.readline(MAX_LINE_BYTES + 1):
        bare = line.rstrip()
        if current is None and bare in _ARRAY_CLOSES:
            yield from _rest(source, report)
            return
        if bare == _MESSAGE_OPENS:
            current = _Collected()
        if current is None:
            continue
        current.add(line)
        if bare in _MESSAGE_CLOSES:
            if message := current.parsed(report):
                yield "message", message
            current = None
    # The document ends inside its array: its writer was stopped.
    report.torn += 1


def _rest(source: BinaryIO, report: ReadReport) -> Iterator[Piece]:
    collected = _Collected()
    collected.add(b"{")
    lines = 0
    while line := source.readline(MAX_LINE_BYTES + 1):
        lines += 1
        collected.add(line)
    if lines > 1:
        yield from _about(collected, report)


def _whole(collected: _Collected, report: ReadReport) -> Iterator[Piece]:
    fields = collected.parsed(report)
    if fields is None:
        return
    yield "about", {name: value for name, value in fields.items() if name != "messages"}
    for message in mappings_of(fields.get("messages")):
        yield "message", mapping_of(message)


# ── what a person typed ───────────────────────────────────────────────────────────────────────────

# What of a user's message a person wrote, and what the agent's program put there.
#
# Programs hand the model much in the user's name: notices of background tasks, feedback of hooks,
# reminders, output of local commands, Holdfast's own briefings. None of it is a request.
# Where it cannot be told, the words count as the user's.

_REMINDER = "system-reminder"
_ELEMENT = re.compile(
    rf"<({_REMINDER}|task-notification|new-diagnostics|user-prompt-submit-hook|session-start-hook"
    r"|post-tool-use-hook|ide_opened_file|ide_selection|ide_diagnostics|local-command-stdout"
    r"|local-command-stderr|local-command-caveat|bash-stdout|bash-stderr|teammate-message"
    r"|cross-session-message|channel-message|mcp-resource-update|mcp-polling-update)(?:\s[^<>]{0,300})?>"
)
_HOOK_FEEDBACK = re.compile(
    r"(?:(?:Pre|Post|User|Session|Sub|Stop|Permission|Notif)\w{0,20}(?::[\w-]{1,60})? hook "
    r"(?:feedback|success|blocking error|additional context):"
    r"|Operation stopped by hook: |Caveat: The messages below |\[Request interrupted by user"
    r"|\[Image: (?:source|original) |Base directory for this skill: |Tool loaded\.\Z"
    r"|\[SYSTEM NOTIFICATION - NOT USER INPUT\]"
    r"|Continue from where you left off\.\Z)"
)
_TASK_NOTICE = re.compile(r'\[?\s*\{\s*"\w+"\s*:')
_TASK_KEYS = frozenset(("task_id", "taskId", "task_Id"))
_MACHINE_KEYS = frozenset(("output_file", "output_file_path", "outputFile", "tool_use_id", "task_type"))
"""Nobody types these."""
_PLAIN_NOTICE = _TASK_KEYS | {"exit_code", "output", "status", "summary", "type"}
_NOTIFICATION = (
    r"(?:\w{1,20}[-_. ])?(?:system|background|bg|task|bash|shell|command|process|sub-?agent)s?"
    r"[-_. ](?:notifications?|notices?)"
)
_NOTIFICATION_TYPE = re.compile(_NOTIFICATION, re.IGNORECASE)
_NOTICE_TYPE = re.compile(
    rf"{_NOTIFICATION}"
    r"|(?:background|bg)[-_. ](?:task|bash|shell|command|process|job|agent)s?(?:[-_. ]\w{1,20})?"
    r"|(?:task|bash|shell|command|process|sub-?agent)[-_. ](?:completed?|finished|failed|killed|stopped"
    r"|ended|exited|output|result|timed[-_. ]out)",
    re.IGNORECASE,
)
"""What kind of notice it calls itself; but for the first kind, events of the user's own program may, too."""
_FIELD = re.compile(r'"(\w{1,40})"\s*:(?:\s*"([^"]{1,60})")?')
_TORN_WITHIN = 300
_SHORTEST_TORN = 200
_STATUSES = ("running", "completed", "failed", "killed", "stopped", "cancelled", "timed_out")
_AFTER_A_NOTICE = re.compile(
    r"\A(?:(?:Read the output file to retrieve the result|Full transcript available at): [^\n]*\s*)+"
)
_LONGEST_NOTICE = 100_000
# Typed by the user, but to the program: nothing the next agent has to act on.
_PROGRAM_COMMANDS = frozenset(
    (
        *("/add-dir", "/agents", "/clear", "/compact", "/compress", "/config", "/effort", "/exit", "/export"),
        *("/hooks", "/login", "/logout", "/mcp", "/model", "/models", "/output-style", "/permissions"),
        *("/plugin", "/quit", "/rename", "/resume", "/statusline", "/theme", "/vim"),
    )
)
# The others take a name or two: a sentence behind them was meant for the agent.
_TAKE_A_TEXT = frozenset(("/clear", "/compact", "/compress", "/exit", "/quit", "/rename"))
_FEW_ARGUMENTS = 3
# With words behind them these may as well be commands of the user's own.
_BARE_PROGRAM_COMMANDS = frozenset(
    (
        *("/bashes", "/bug", "/context", "/copy", "/cost", "/diff", "/doctor", "/extensions", "/fast"),
        *("/feedback", "/help", "/ide", "/keybindings", "/memory", "/new", "/plugins", "/redo"),
        *("/release-notes", "/reload-plugins", "/rewind", "/sandbox", "/sessions", "/settings", "/skills"),
        *("/stats", "/status", "/tasks", "/terminal-setup", "/themes", "/todos", "/tools", "/undo"),
        *("/upgrade", "/usage"),
    )
)


def is_program_command(typed: str) -> bool:
    """Of a command and its arguments, as typed."""
    name, _, arguments = typed.partition(" ")
    if name in _PROGRAM_COMMANDS:
        return name in _TAKE_A_TEXT or len(arguments.split()) <= _FEW_ARGUMENTS
    return not arguments and name in _BARE_PROGRAM_COMMANDS


def told(text: str) -> tuple[str, bool]:
    """What a person wrote of a message, or else what the program did; and whether it was the program."""
    own = without_own_words(text)
    own = _without_task_notices((_without_elements(own) if "<" in own else own).strip())
    own = _AFTER_A_NOTICE.sub("", own)
    if own and not (_HOOK_FEEDBACK.match(own) or _is_command(own)):
        return own, False
    left = text.strip()
    return ("" if left.startswith(f"<{_REMINDER}>") else left), True


def _without_elements(text: str) -> str:
    kept: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while found := _ELEMENT.search(text, at):
        name = found[1]
        end = -1 if name in unclosed else text.find(f"</{name}>", found.end())
        if end >= 0:
            kept.append(text[at : found.start()])
            at = end + len(name) + len("</>")
        elif name == _REMINDER or not (unclosed or "".join((*kept, text[at : found.start()])).strip()):
            return "".join((*kept, text[at : found.start()]))  # cut short: it reaches to the end
        else:  # a person writes about it
            unclosed.add(name)
            kept.append(text[at : found.end()])
            at = found.end()
    return "".join((*kept, text[at:]))


def _is_command(text: str) -> bool:
    """As it stands in a queue: bare, while a command that was run is recorded in tags."""
    return text.startswith("/") and "\n" not in text and is_program_command(text)


def _without_task_notices(text: str) -> str:
    """What follows the JSON notices that a message begins with.

    Words on the line of a notice may be about it, and so may those below JSON that is not surely one.
    """
    left = text.removeprefix("```json").removeprefix("```").lstrip()
    if not _TASK_NOTICE.match(left) or len(text) > _LONGEST_NOTICE:
        return text
    are_sure = True
    while _TASK_NOTICE.match(left):
        end = _end_of_value(left)
        if end == 0:
            return "" if _is_torn_notice(left) else text
        found = json_of(left[:end])
        rest = left[end:].lstrip(" \t\r,")
        if not _is_notice(found) or not (rest == "" or rest.startswith(("\n", "{", "[", "<", "```"))):
            return text
        are_sure = are_sure and _is_notice(found, surely=True)
        left = _AFTER_A_NOTICE.sub("", rest.strip().removeprefix("```").lstrip())
    return left if are_sure or not left else text


def _is_torn_notice(text: str) -> bool:
    """Whether nothing but the JSON of a notice is there, which was cut: there are no words below it."""
    if len(text) < _SHORTEST_TORN:
        return False
    text = text.removesuffix("…")
    try:
        json.JSONDecoder().raw_decode(text)
    except json.JSONDecodeError as error:
        opens_text = error.msg.startswith("Unterminated string")
        if "}" in text[error.pos :] if opens_text else error.pos < len(text.rstrip()):
            return False
    except RecursionError:
        return False
    fields: dict[str, str] = dict(_FIELD.findall(text, 0, _TORN_WITHIN))
    types = [fields[key] for key in ("type", "subtype") if key in fields]
    named = not _TASK_KEYS.isdisjoint(fields), not _MACHINE_KEYS.isdisjoint(fields)
    is_typed = any(map(_NOTICE_TYPE.fullmatch, types))
    return any(map(_NOTIFICATION_TYPE.fullmatch, types)) or sum((*named, is_typed)) > 1


def _end_of_value(text: str) -> int:
    """Where the JSON value ends that a text begins with; 0 where it does not, or holds too much to tell."""
    try:
        return json.JSONDecoder().raw_decode(text)[1]
    except (ValueError, RecursionError):
        return 0


def _is_notice(found: object, *, surely: bool = False) -> bool:
    """A notice, a list of them, or an object that holds nothing else."""
    if isinstance(found, list):
        notices = cast("list[object]", found)
        return bool(notices) and all(mapping_of(one) and _is_notice(one, surely=surely) for one in notices)
    fields = mapping_of(found)
    types = [text_of(fields.get(key)) for key in ("type", "subtype", "kind", "event")]
    called = _NOTIFICATION_TYPE if surely else _NOTICE_TYPE
    if _names_a_task(fields, surely) or any(map(called.fullmatch, types)):
        return True
    held = [(key, cast("object", value)) for key, value in fields.items() if isinstance(value, (list, dict))]
    return bool(held) and all(
        called.fullmatch(key) or _is_notice(value, surely=surely) for key, value in held
    )


def _names_a_task(notice: object, surely: bool) -> bool:
    """A task of the user's may have an id and a status, too; a notice has no more, or what nobody types."""
    fields = mapping_of(notice)
    keys = fields.keys()
    is_plain = not surely and keys <= _PLAIN_NOTICE and fields.get("status") in _STATUSES
    return not _TASK_KEYS.isdisjoint(keys) and (is_plain or not _MACHINE_KEYS.isdisjoint(keys))
