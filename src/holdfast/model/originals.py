"""What is executed, where every copy of it lacks its secrets.

A command, a prompt, a message or a repository's URL may hold a secret. Whatever is shown, exported or
recorded of it has `[redacted:…]` in its place. The original is kept under a name beside the record,
for whoever runs the task and for nobody else.
"""

from __future__ import annotations

import re
from typing import TypeVar

from holdfast.model.base import Value
from holdfast.model.task import Task

ISSUE, OPTIONS, MESSAGE = "issue", "options", "message"

_MARK = "[redacted:"
_TAKEN_OUT = re.compile(r"\[redacted:[a-z-]+\]")
_T = TypeVar("_T", bound=Value | Task)


def name_of(task_id: str) -> str:
    """By its id as the copies have it."""
    return f"task {task_id}"


def outputs_of(task: Task) -> str:
    """Of the values that this attempt left for later tasks."""
    return f"outputs {task.id} {task.attempts}"


def lacks_something(text: str | None) -> bool:
    return _MARK in (text or "")


def marks_in(text: str) -> list[str]:
    """What stands in it instead of secrets, or looks like that."""
    return _TAKEN_OUT.findall(text)


def original(name: str, written: _T, copy: _T) -> dict[str, str]:
    """What has to be kept beside the copy: nothing, where it says it all.

    Text that looks like a copy though it was written so is kept, too: it shall be executed as it is.
    """
    text = written.model_dump_json()
    return {name: text} if written != copy or lacks_something(text) else {}


def taken_out(copy: str | None, written: str | None) -> dict[str, str] | None:
    """What the copy lacks, with what stands there instead; None where it is a copy of something else."""
    if copy is None or written is None:
        return {} if copy == written else None
    marks, (first, *parts) = marks_in(copy), _TAKEN_OUT.split(copy)
    if not parts:
        return {} if copy == written else None
    last, start, end = parts.pop(), len(first), len(written)
    end -= len(last)
    if start > end or not (written.startswith(first) and written.endswith(last)):
        return None
    found: dict[str, str] = {}
    for mark, part in zip(marks, parts, strict=False):
        at = written.find(part, start, end)
        if at < 0:
            return None
        found[written[start:at]] = mark
        start = at + len(part)
    return {**found, written[start:end]: marks[-1]}
