"""What a journal amounts to: its digest, its counts without parsing it, and archived journals."""

from __future__ import annotations

import gzip
import os
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from holdfast.base.clock import seconds_between
from holdfast.base.durable import NO_FOLLOW, PRIVATE_FILE, open_file, opened, refuse_hole, sync_folder
from holdfast.base.text import clipped, one_line
from holdfast.journal.log import PauseAction, last_line, read_head
from holdfast.project.formats import ARCHIVE_SUFFIX

# ── digest ────────────────────────────────────────────────────────────────────────────────────────

# What a journal amounts to, in one streaming pass: for the snapshot's section and for `stats`.

SUMMARY_LENGTH = 10


@dataclass
class Digest:
    action_count: int = 0
    by_type: Counter[str] = field(default_factory=Counter[str])
    by_tool: Counter[str] = field(default_factory=Counter[str])
    first: PauseAction | None = None
    last: PauseAction | None = None
    latest: deque[PauseAction] = field(default_factory=lambda: deque[PauseAction](maxlen=SUMMARY_LENGTH))
    context_high: float = 0.0

    def take(self, actions: Iterable[PauseAction]) -> Digest:
        for action in actions:
            self.add(action)
        return self

    def add(self, action: PauseAction) -> None:
        self.first = self.first or action
        self.last = action
        self.latest.append(action)
        self.action_count += 1
        self.by_type[action.type] += 1
        self.context_high = max(self.context_high, action.context_percentage)
        if action.type == "tool_call":
            self.by_tool[str(action.data.get("tool", "unknown"))] += 1

    @property
    def context_range(self) -> tuple[float, float]:
        if self.first is None or self.last is None:
            return (0.0, 0.0)
        return (self.first.context_percentage, self.last.context_percentage)

    @property
    def context_per_action(self) -> float | None:
        """How much of the window an action took, on average."""
        if self.action_count < 2:
            return None
        start, end = self.context_range
        return (end - start) / (self.action_count - 1)

    @property
    def duration_seconds(self) -> float:
        return span_seconds(self.first, self.last)


def span_seconds(first: PauseAction | None, last: PauseAction | None) -> float:
    """Time between two actions; 0 where a timestamp of another program cannot be read."""
    if first is None or last is None:
        return 0.0
    try:
        return max(0.0, seconds_between(first.timestamp, last.timestamp))
    except ValueError:
        return 0.0


# ── tally ─────────────────────────────────────────────────────────────────────────────────────────

# The summary of a journal without parsing it: count lines, parse the first and the last.
#
# A tally remembers how far it has read, so asking again costs what was added since.
# It trusts what `log.append` guarantees: a line that ends in a newline is whole.

_BLOCK = 1 << 18


@dataclass
class Tally:
    path: Path
    identity: tuple[int, int, bytes] | None = None
    end: int = 0
    lines: int = 0
    first: PauseAction | None = None
    last: PauseAction | None = None

    def advance(self) -> Tally:
        """Take in what was added; start afresh if the journal is another one, or has shrunk."""
        with opened(self.path, os.O_RDONLY | NO_FOLLOW) as descriptor:
            status = os.fstat(descriptor)
            refuse_hole(descriptor, self.path)
            # The head, too: the number of a file that is gone is soon given to the next one.
            identity = (status.st_dev, status.st_ino, read_head(descriptor))
            if identity != self.identity or status.st_size < self.end:
                self.__init__(self.path, identity)
            if status.st_size > self.end:
                self._count_new_lines(descriptor)
                self._look_at_ends(descriptor)
        return self

    def _count_new_lines(self, descriptor: int) -> None:
        position = self.end
        while block := os.pread(descriptor, _BLOCK, position):
            found = block.count(b"\n")
            if found:
                self.lines += found
                self.end = position + block.rfind(b"\n") + 1
            position += len(block)

    def _look_at_ends(self, descriptor: int) -> None:
        if self.first is None:
            with os.fdopen(os.dup(descriptor), "rb") as file:
                file.seek(0)
                self.first = PauseAction.try_parse(file.readline())
        if self.end:
            self.last = PauseAction.try_parse(last_line(descriptor, self.end - 1)[1]) or self.last


# ── archives ──────────────────────────────────────────────────────────────────────────────────────

# Archived journals: their names, and compression of the old ones.


def archive_name(session_id: str) -> str:
    return f"{session_id}{ARCHIVE_SUFFIX}"


def find_archive(folder: Path, session_id: str) -> Path | None:
    """The archived journal of a session, compressed or not."""
    plain = folder / archive_name(session_id)
    packed = plain.with_name(f"{plain.name}.gz")
    return next((path for path in (plain, packed) if path.exists()), None)


def archives(folder: Path) -> Iterator[Path]:
    """Each once: a crash while compressing may leave both kinds of one."""
    plain = sorted(folder.glob(f"session-*{ARCHIVE_SUFFIX}"))
    packed = (
        path for path in folder.glob(f"session-*{ARCHIVE_SUFFIX}.gz") if path.with_suffix("") not in plain
    )
    yield from sorted((*plain, *packed))


def compress_older(folder: Path, before: float) -> list[Path]:
    """Compress the archives last written before that moment; the plain file goes once its copy is safe."""
    return [
        _compress(path)
        for path in sorted(folder.glob(f"session-*{ARCHIVE_SUFFIX}"))
        if path.stat().st_mtime < before
    ]


def _compress(path: Path) -> Path:
    target = path.with_name(f"{path.name}.gz")
    temporary = path.with_name(f".{target.name}.{os.getpid()}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | NO_FOLLOW, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as raw:
            with (
                open_file(path) as source,
                gzip.GzipFile(path.name, "wb", 6, raw, path.stat().st_mtime) as packed,
            ):
                shutil.copyfileobj(source, packed, 1 << 20)
            raw.flush()
            os.fsync(raw.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    path.unlink()
    return target


# ── actions as text ───────────────────────────────────────────────────────────────────────────────

# What the actions of a wind-down say, in words: the user's own verbatim, the others in a line each.

MOST_SAID = 200
MOST_NOTES = 100
MOST_TOOL_CALLS = 50
_LONGEST_SAID = 4_000
_LONGEST_OTHER = 600
_DEEPEST = 4
_WORDS = ("text", "message", "prompt", "content", "note", "summary", "detail")
"""Fields that are what somebody said; their name adds nothing."""
_TECHNICAL = (
    *("agent", "agent_session", "conversation", "model"),
    *("tokens_used", "tokens_total", "context_window"),
)
"""Of the state at the start: told elsewhere in the snapshot."""


@dataclass(frozen=True, slots=True)
class ActionText:
    type: str
    timestamp: str
    text: str
    rule: bool = False
    from_hook: bool = False


@dataclass
class ActionTexts:
    """Takes actions in as they are read, and keeps what fits into a snapshot: the newest, and every rule."""

    is_rule: Callable[[str], bool]
    by_user: Callable[[str], str]
    """What a person wrote of a prompt: hooks are given the notices of programs as prompts, too."""
    said: int = 0
    others: int = 0
    _rules: deque[ActionText] = field(default_factory=lambda: deque[ActionText](maxlen=MOST_SAID))
    _said: deque[ActionText] = field(default_factory=lambda: deque[ActionText](maxlen=MOST_SAID))
    _notes: deque[ActionText] = field(default_factory=lambda: deque[ActionText](maxlen=MOST_NOTES))
    _calls: deque[ActionText] = field(default_factory=lambda: deque[ActionText](maxlen=MOST_TOOL_CALLS))

    def add(self, action: PauseAction) -> None:
        by_user = action.type == "user_message"
        words = self.by_user(words_of(action)) if by_user else words_of(action)
        text = clipped(words, _LONGEST_SAID if by_user else _LONGEST_OTHER)
        if not text:
            return
        self.said += by_user
        self.others += not by_user
        rule = by_user and self.is_rule(text)
        kept = self._rules if rule else self._said if by_user else self._notes
        kept = self._calls if action.type == "tool_call" else kept
        kept.append(ActionText(action.type, action.timestamp, text, rule, _is_from_hook(action)))

    @property
    def said_dropped(self) -> int:
        return self.said - len(self._rules) - len(self._said)

    @property
    def others_dropped(self) -> int:
        return self.others - len(self._notes) - len(self._calls)

    def kept(self) -> tuple[ActionText, ...]:
        """Rules first, then what else the user said, notes, tool calls; each in its order."""
        return (*self._rules, *self._said, *self._notes, *self._calls)


def _is_from_hook(action: PauseAction) -> bool:
    """Whether it has the form in which hooks record what stands in the agent's transcript, too."""
    keys = action.data.keys()
    return (action.type == "tool_call" and {"tool", "input"} <= keys) or (
        action.type == "system_event" and keys == {"event", "detail"}
    )


def words_of(action: PauseAction) -> str:
    data = action.data
    if action.type == "pause_finalized":
        return ""
    if action.type == "pause_started":
        state = data.get("initial_state")
        data = cast("dict[str, Any]", state) if isinstance(state, dict) else {}
        data = {key: value for key, value in data.items() if key not in _TECHNICAL}
    if action.type == "user_message":
        return _plain(data, 0).strip()
    return one_line(_call(data) if action.type == "tool_call" else _plain(data, 0))


def _call(data: dict[str, Any]) -> str:
    """`Bash (command: make test): stdout: 3 failed`."""
    known = ("tool", "input", "response", "error")
    tool, given, *came = (_plain(data.get(key), 1) for key in known)
    given = "; ".join(filter(None, (given, _plain({k: v for k, v in data.items() if k not in known}, 0))))
    return ": ".join(filter(None, (f"{tool or 'a tool'} ({given})" if given else tool, *came)))


def _plain(value: object, depth: int) -> str:
    """A JSON value as a person would note it down."""
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, dict):
        return "; ".join(_pairs(cast("dict[str, object]", value), depth))
    if isinstance(value, list):
        return ", ".join(filter(None, (_plain(one, depth + 1) for one in cast("list[object]", value))))
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(fields: dict[str, object], depth: int) -> Iterable[str]:
    for key in sorted(fields, key=lambda name: name not in _WORDS):
        text = _plain(fields[key], depth + 1)
        if text:
            yield text if key in _WORDS else f"{key}: {text}"
