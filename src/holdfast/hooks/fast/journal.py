"""Append to the wind-down journal from a hook: the same file, lock and line as `holdfast.journal.log`.

A session only ever writes to the wind-down it began itself, by the name it noted: another session in
the same folder may have one going.
"""

import os

from holdfast.base.clock import iso
from holdfast.base.secret_rules import may_hold_secret
from holdfast.hooks.fast import notes
from holdfast.hooks.fast.notes import winding_down
from holdfast.hooks.fast.payload import as_json
from holdfast.project import formats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent

_LONGEST_RAW = 8 * 1024
_CUT = 2000
_sync_data = getattr(os, "fdatasync", os.fsync)


def append(event: "AgentEvent", kind: str, data: str, share: float) -> bool:
    """Record one action durably; False where this session's wind-down is over."""
    name = winding_down(event)
    if not name:
        return False
    line = _line(event, kind, without_secrets(data), share, name)
    path = formats.journal_file(event.project)
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | notes.NO_FOLLOW)
        except FileNotFoundError:
            return _is_over(event)
        try:
            notes.lock(descriptor)
            ours = os.fstat(descriptor)
            if not _still_named(path, ours):
                continue  # finalised while we waited; perhaps another one has begun
            if formats.journal_session(os.pread(descriptor, formats.JOURNAL_HEAD, 0)) != name:
                return _is_over(event)
            if ours.st_size and os.pread(descriptor, 1, ours.st_size - 1) != b"\n":
                return _append_with_care(path, descriptor, line)
            _write_or_undo(descriptor, line, ours.st_size)
            notes.unlock(descriptor)  # others may write while we wait for the disk
            _sync_data(descriptor)
            return True
        finally:
            os.close(descriptor)


def _is_over(event: "AgentEvent") -> bool:
    notes.write(event.note(formats.WOUND_DOWN), winding_down(event).encode())
    notes.remove(event.note(formats.WINDING))
    return False


def _still_named(path: str, ours: os.stat_result) -> bool:
    try:
        now = os.stat(path)
    except FileNotFoundError:
        return False
    return now.st_ino == ours.st_ino and now.st_dev == ours.st_dev


def _write_or_undo(descriptor: int, line: bytes, size: int) -> None:
    """A full disk takes a part of a line: that is taken back."""
    try:
        if os.write(descriptor, line) != len(line):
            raise OSError(28, os.strerror(28))
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _append_with_care(path: str, descriptor: int, line: bytes) -> bool:
    """A crash left half a line: the journal's own room repairs it, for which it needs the lock."""
    notes.unlock(descriptor)
    from pathlib import Path

    from holdfast.journal import log

    log.append(Path(path), lambda _name: line)
    return True


def _line(event: "AgentEvent", kind: str, data: str, share: float, name: str) -> bytes:
    share = min(1.0, max(0.0, share))
    return formats.journal_line(kind, iso(event.now), name, data.encode("utf-8", "replace"), share)


def without_secrets(data: str) -> str:
    if not may_hold_secret(data):
        return data
    from holdfast.base.redact import redact

    return redact(data)[0]


def tool_data(event: "AgentEvent") -> str:
    """A tool call as the journal keeps it: what was asked, and what came of it, cut where long."""
    data = {"tool": event.tool, "input": _fitting(event.fields.get("tool_input"))}
    for name, value in (("response", "tool_response"), ("error", "error")):
        if value in event.fields:
            data[name] = _fitting(event.fields[value])
    if event.is_subagent:
        data["agent_id"] = event.text("agent_id")
    return as_json(data)


def text_data(name: str, value: str) -> str:
    return as_json({name: _cut(value)})


def event_data(name: str, detail: str) -> str:
    return as_json({"event": name, "detail": _cut(detail)})


def _fitting(value: object) -> object:
    """Of a long value the beginning and the end, as text."""
    value = _with_short_texts(value)  # first: to write 20 MB as JSON takes a second
    whole = as_json(value)
    return value if len(whole) <= _LONGEST_RAW else _cut(whole)


def _with_short_texts(value: object) -> object:
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, dict):
        return {name: _with_short_texts(one) for name, one in value.items()}  # pyright: ignore
    if isinstance(value, list):
        return [_with_short_texts(one) for one in value]  # pyright: ignore
    return value


def _cut(value: str) -> str:
    if len(value) <= _LONGEST_RAW:
        return value
    left_out = len(value) - 2 * _CUT
    return f"{value[:_CUT]} … {left_out} characters … {value[-_CUT:]}"
