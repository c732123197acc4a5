"""How full an agent session's window is, read from where that agent tells it.

Only the newest report counts: an agent reports what its last request held, and that is what is in
the window. The state is the tracker's own file (`holdfast.journal.usage`), under its own lock.
"""

import os

from holdfast.hooks.fast import notes
from holdfast.hooks.fast.levels import learn, point_for
from holdfast.hooks.fast.payload import NotAnObjectError, as_json, mapping, members, number, text
from holdfast.project import formats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent
    from holdfast.hooks.fast.levels import HookSettings

_FIRST_LOOK = 1 << 16
_LARGEST_LOOK = 1 << 24
_MILLION = 1_000_000
_LONGEST_LAG = 0.25


class Usage:
    """One report: what the last model call had in the window."""

    __slots__ = ("cache_read", "cache_write", "input", "model", "output", "report_id", "window")

    def __init__(
        self, counts: tuple[int, int, int, int], model: str, report_id: str, window: int = 0
    ) -> None:
        self.input, self.output, self.cache_read, self.cache_write = counts
        self.model = model
        self.report_id = report_id
        self.window = window
        """Tokens, if the agent itself says so; else 0."""

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


class Gauge:
    """The newest usage against what fits before the agent compacts."""

    __slots__ = ("point", "share", "tokens", "window")

    def __init__(self, tokens: int, window: int, point: int = 0) -> None:
        self.tokens = tokens
        self.window = window
        self.point = point or window
        """Tokens at which the agent compacts by itself; the window where it never does."""
        self.share = tokens / self.point if self.point > 0 else 0.0
        """Of the compaction point: what the levels are about."""

    @property
    def of_window(self) -> float:
        return self.tokens / self.window if self.window > 0 else 0.0

    @property
    def distance(self) -> str:
        """The figure that people go by."""
        left = short_count(max(0, self.point - self.tokens))
        return f"{left} until compaction" if self.point < self.window else f"{left} left in the window"


def short_count(tokens: int) -> str:
    return f"{tokens / 1000:.0f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f}M"


def measured(event: "AgentEvent", settings: "HookSettings") -> Gauge | None:
    """Take in what is new and say how full the window is; None where nothing was ever reported."""
    offset, known, window = _remembered(event)
    if known is not None and settings.auto_pause / 2 <= known.share < settings.auto_pause:
        _wait_for_the_report(event)
    found, end = _report(event, offset)
    if found is None:
        return known
    window = settings.context_window or _window(event, found, window)
    gauge = Gauge(found.total, window, point_for(event, found.model or _model(event), window, found.total))
    _store(event, found, window)
    _remember(event, end, gauge)
    _tell_wrapper(event, gauge, settings)
    return gauge


def _wait_for_the_report(event: "AgentEvent") -> None:
    """Claude Code writes its transcript a tenth of a second late: a quick tool's hook is there before.

    The report stands in the same line as the call of the tool. `hook.sh` leaves it to us to wait,
    and lets tools pass while the window is not even half as full as matters.
    """
    if event.agent != "claude-code" or event.moment not in ("after_tool", "batch") or event.is_subagent:
        return
    call = _call_of(event)
    if call:
        notes.lasts(lambda: not _is_near_the_end(call, event.text("transcript_path")), _LONGEST_LAG)


def _call_of(event: "AgentEvent") -> bytes:
    """The id of the tool's call, or of the last one of several."""
    _, name, rest = event.data.rpartition(b'"tool_use_id":')
    return rest.split(b'"', 2)[1] if name and rest.count(b'"') > 1 else b""


def _is_near_the_end(call: bytes, path: str) -> bool:
    size = _size(path)
    if not size:
        return True  # there is none, so nothing will come
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return call in os.pread(descriptor, _FIRST_LOOK, max(0, size - _FIRST_LOOK))
    finally:
        os.close(descriptor)


def _tell_wrapper(event: "AgentEvent", gauge: Gauge, settings: "HookSettings") -> None:
    """Notes for `hook.sh`: from how many tokens on it must wake Python, and whether that is now."""
    level = level_of(gauge, settings)
    due = [bound for bound in settings.bounds if bound > gauge.share]
    next_level = min([*due[:1], settings.auto_pause])
    limit = b"%d %d\n" % (int(next_level * gauge.point), int(settings.auto_pause * gauge.point / 2))
    if notes.read(event.note(formats.GAUGE), 32) != limit:
        notes.write(event.note(formats.GAUGE), limit)
    if level > noticed(event):
        notes.create(event.note(formats.NOTICE_DUE))
    if gauge.share >= settings.auto_pause:
        notes.create(event.note(formats.FULL))
    else:
        notes.remove(event.note(formats.FULL))


def level_of(gauge: Gauge, settings: "HookSettings") -> int:
    """0: below them all."""
    return sum(gauge.share >= bound for bound in settings.bounds)


def noticed(event: "AgentEvent") -> int:
    return int(notes.read(event.note(formats.NOTICED), 8) or 0)


def note_compaction(event: "AgentEvent") -> None:
    """Before an agent compacts by itself: where it does so is remembered for the next time."""
    gauge = measured(event, event.settings) or last_known(event)
    if gauge is not None and event.text("trigger") == "auto":
        learn(event, _model(event), gauge.window, gauge.tokens)


def _model(event: "AgentEvent") -> str:
    return (notes.read(event.note(formats.MODEL), 200) or b"").decode("utf-8", "replace")


def last_known(event: "AgentEvent") -> Gauge | None:
    return _remembered(event)[1]


def forget(event: "AgentEvent") -> None:
    """After a compaction: the window is nearly empty, and how nearly will be told by the next call."""
    offset, known, window = _remembered(event)
    if known is None:
        return
    _store(event, Usage((0, 0, 0, 0), "", "compacted", window), window)
    end = _size(event.text("transcript_path")) if event.agent == "claude-code" else offset
    _remember(event, end, Gauge(0, window, known.point))
    for name in (formats.FULL, formats.NOTICED, formats.NOTICE_DUE, formats.GAUGE):
        notes.remove(event.note(name))


def _remembered(event: "AgentEvent") -> tuple[int, Gauge | None, int]:
    """How far the transcript was read, what was known then, and the window."""
    known = formats.parse_usage_note(notes.read(event.note(formats.USAGE), 256))
    if known is None:
        return 0, None, 0
    offset, tokens, window, point = known
    return offset, Gauge(tokens, window, point), window


def _remember(event: "AgentEvent", offset: int, gauge: Gauge) -> None:
    known = formats.render_usage_note(offset, gauge.tokens, gauge.window, gauge.point)
    notes.write(event.note(formats.USAGE), known)


def _window(event: "AgentEvent", found: Usage, known: int) -> int:
    """As the agent says it, now or earlier for this model; else by the model's name."""
    told_for = notes.read(event.note(formats.MODEL), 200)
    if found.window:
        window = found.window
    elif known and found.model in ("", (told_for or b"").decode("utf-8", "replace")):
        window = known
    else:
        from holdfast.journal.windows import context_window

        window = context_window(_fuller_name(event, found.model))
    if found.model and told_for != found.model.encode():
        notes.write(event.note(formats.MODEL), found.model.encode())
    # What is in a window fits into it: a larger variant of the model is in use than its name tells.
    return window if found.total <= window else max(_MILLION, found.total)


def _fuller_name(event: "AgentEvent", model: str) -> str:
    """The name at the session's start, where it bears the size of the window."""
    at_start = (notes.read(event.note(formats.STARTED_WITH), 200) or b"").decode("utf-8", "replace")
    return at_start if at_start.startswith(model) else model


def _report(event: "AgentEvent", offset: int) -> tuple[Usage | None, int]:
    if event.agent == "claude-code":
        if event.moment == "status":
            return _from_status_line(event), offset
        return newest_in_transcript(event.text("transcript_path"), offset, claude_usage)
    if event.agent == "codex":
        if "token_usage" in event.fields:
            return _from_codex(event), offset
        return newest_in_transcript(event.text("transcript_path"), offset, codex_usage)
    if event.agent == "gemini":
        return _from_gemini(event), offset
    return _from_plugin(event), offset


def newest_in_transcript(path: str, offset: int, reader: "Reader") -> tuple[Usage | None, int]:
    """The newest report after the offset, and the offset after the last whole line.

    Looks backwards from the end in growing steps: the newest is near it, however long the file is.
    """
    size = _size(path)
    if size <= offset:  # nothing new; a file that shrank was replaced and is read afresh
        if size == offset:
            return None, offset
        offset = 0
    descriptor = os.open(path, os.O_RDONLY)
    try:
        step = _FIRST_LOOK
        whole = -1
        while True:
            start = max(offset, size - step)
            data = os.pread(descriptor, size - start, start)
            lines = data.split(b"\n")
            if whole < 0:
                whole = start + len(data) - len(lines[-1])
            lines.pop()  # empty, or a line that is being written
            if start > offset:
                lines = lines[1:]  # begins in the middle
            for line in reversed(lines):
                found = reader(line)
                if found is not None:
                    return found, whole
            if start == offset or step > _LARGEST_LOOK:
                return None, max(whole, offset)
            step *= 8
    finally:
        os.close(descriptor)


def claude_usage(line: bytes) -> Usage | None:
    """What an assistant's line of the main conversation reports; it is repeated on each line of a message."""
    if b'"usage"' not in line or b'"assistant"' not in line:
        return None
    fields = _object(line)
    message = mapping(fields.get("message"))
    counts, model = mapping(message.get("usage")), text(message.get("model"))
    if fields.get("type") != "assistant" or fields.get("isSidechain") is True or not counts:
        return None
    if model == "<synthetic>":  # an error that the agent words itself
        return None
    return Usage(_claude_counts(counts), model, text(message.get("id")))


def _object(line: bytes) -> "dict[str, Any]":
    """Empty where the line is none."""
    try:
        return members(line)
    except NotAnObjectError:
        return {}


def _claude_counts(counts: "dict[str, Any]") -> tuple[int, int, int, int]:
    return (
        number(counts.get("input_tokens")),
        number(counts.get("output_tokens")),
        number(counts.get("cache_read_input_tokens")),
        number(counts.get("cache_creation_input_tokens")),
    )


def codex_usage(line: bytes) -> Usage | None:
    if b'"token_count"' not in line:
        return None
    payload = mapping(_object(line).get("payload"))
    info = mapping(payload.get("info"))
    counts = mapping(info.get("last_token_usage"))
    if payload.get("type") != "token_count" or not counts:
        return None
    return Usage(_codex_counts(counts), "", "", number(info.get("model_context_window")))


def _codex_counts(counts: "dict[str, Any]") -> tuple[int, int, int, int]:
    """Codex counts the cached tokens among the input; here each token counts once."""
    cached = number(counts.get("cached_input_tokens"))
    written = number(counts.get("cache_write_input_tokens"))
    fresh = max(0, number(counts.get("input_tokens")) - cached - written)
    return fresh, number(counts.get("output_tokens")), cached, written


def _from_codex(event: "AgentEvent") -> Usage | None:
    counts = event.mapping("token_usage")
    if not counts:
        return None
    return Usage(_codex_counts(counts), event.text("model"), "", _codex_window(event))


def _codex_window(event: "AgentEvent") -> int:
    """The payload does not tell the window. The rollout does, but it may be written a moment later."""
    known = notes.read(event.note("window"), 32)
    if known is not None:
        return int(known)
    told = newest_in_transcript(event.text("transcript_path"), 0, codex_usage)[0]
    if told is None or not told.window:
        return 0
    notes.write(event.note("window"), b"%d" % told.window)
    return told.window


def _from_gemini(event: "AgentEvent") -> Usage | None:
    counts = mapping(event.mapping("llm_response").get("usageMetadata"))
    cached = number(counts.get("cachedContentTokenCount"))
    prompt = number(counts.get("promptTokenCount"))
    total = number(counts.get("totalTokenCount")) or prompt + number(counts.get("candidatesTokenCount"))
    if not total:
        return None  # a part of a stream that says nothing yet
    model = text(event.mapping("llm_request").get("model"))
    return Usage((max(0, prompt - cached), total - prompt, cached, 0), model, "")


def _from_plugin(event: "AgentEvent") -> Usage | None:
    counts = event.mapping("usage")
    told = (
        number(counts.get("input")),
        number(counts.get("output")) + number(counts.get("reasoning")),
        number(counts.get("cache_read")),
        number(counts.get("cache_write")),
    )
    return (
        Usage(told, event.text("model"), "", number(event.fields.get("context_window")))
        if any(told)
        else None
    )


def _from_status_line(event: "AgentEvent") -> Usage | None:
    window = event.mapping("context_window")
    counts = mapping(window.get("current_usage"))
    if not counts:
        return None
    model = text(event.mapping("model").get("id"))
    return Usage(_claude_counts(counts), model, "", number(window.get("context_window_size")))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


def _store(event: "AgentEvent", found: Usage, window: int) -> None:
    """Write the tracker's file, as the tracker would on a cumulative report."""
    path = os.path.join(event.state, formats.usage_file(event.key))
    with notes.Locked(os.path.join(event.state, formats.usage_lock(event.key))):
        before = _stored(notes.read(path))
        if before is None:
            _store_with_care(event, found, window)
            return
        reports, share, model, counts, known_window = before
        told = (found.input, found.output, found.cache_read, found.cache_write)
        same = counts == told and known_window == window
        if same and found.model in ("", model):
            return
        notes.write(path, _state(event, found, window, reports, share, found.model or model))


def _stored(data: bytes | None) -> "Stored | None":
    """Reports so far, share, model, counts and window; None where the file is damaged."""
    if data is None:
        return 0, 0.0, "", (-1, 0, 0, 0), 0
    try:
        fields = members(data)
        names = (*formats.USAGE_COUNTS, "reports", "context_window", "schema_version")
        input_, output, read, written, reports, window, version = (fields[name] for name in names)
        counts = (input_, output, read, written)
        if version != formats.USAGE_VERSION or any(type(fields[name]) is not int for name in names):
            return None
        return reports, sum(counts) / window, text(fields["model"]), counts, window
    except (NotAnObjectError, KeyError, ZeroDivisionError):
        return None


def _state(event: "AgentEvent", found: Usage, window: int, reports: int, share: float, model: str) -> bytes:
    from holdfast.base.clock import iso

    values: dict[str, object] = {
        "session_id": event.session,
        "input_tokens": found.input,
        "output_tokens": found.output,
        "cache_read": found.cache_read,
        "cache_write": found.cache_write,
        "reports": reports + 1,
        "model": model or None,
        "context_window": window,
        "last_updated": iso(event.now),
        "set_aside": None,
        "recent_reports": [],
        "previous_share": share,
        "schema_version": formats.USAGE_VERSION,
    }
    return as_json({key: values[key] for key in formats.USAGE_KEYS}).encode()


def _store_with_care(event: "AgentEvent", found: Usage, window: int) -> None:
    """The state is damaged or of a newer program: it is set aside. The caller holds the lock."""
    from pathlib import Path

    from holdfast.base.durable import set_aside

    path = Path(event.state, formats.usage_file(event.key))
    kept = set_aside(path, event.now)
    from holdfast.hooks.fast import error_log

    error_log.note(event.state, f"usage of session {event.session} was damaged; renamed to {kept.name}")
    notes.write(str(path), _state(event, found, window, 0, 0.0, found.model))


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Reader = Callable[[bytes], Usage | None]
    Stored = tuple[int, float, str, tuple[int, int, int, int], int]
