"""Tool failures, paired with what later became of them."""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.base.text import clipped, head_and_tail, one_line, same_command
from holdfast.findings.rules.actions import Action
from holdfast.model.gathered import Failure, Resolution

_SCANNED = 8000
_MESSAGE_LENGTH = 240
_MOST_KEPT = 300
# A success settles only what failed lately: older failures stay as they are, and cost nothing.
_MOST_OPEN = 30
_COMMENTED_WITHIN = 6  # messages
_EDITS_KEPT = 50

_BOILERPLATE = re.compile(
    r"^(?:Exit code:? -?\d+|Command failed.*|Output:|Error:|stderr:|stdout:)$", re.IGNORECASE
)
_ECHOED_COMMAND = re.compile(r"^(?:\[[\w:.-]+\]\s*)?[$>+#]\s")
_TAG = re.compile(r"</?[a-z_]+>")
_VERDICT = re.compile(r"error|fail|fatal|panic|exception", re.IGNORECASE)
_NOT_THERE = re.compile(r"not exist|not found|no such|no files", re.IGNORECASE)
_WHERE_ONLY = re.compile(r"Error Trace:", re.IGNORECASE)
_TELLING = re.compile(
    r"not found|no such|cannot|can't|could not|couldn't|unable|undefined|denied|invalid|unexpected|expected"
    r"|missing|conflict|exceed|refused|timed? ?out|unknown|syntax|:\d+:\d+:",
    re.IGNORECASE,
)
_PUT_OFF = re.compile(
    r"pre-?existing|unrelated|not related|for later|follow[- ]?up|(?:skip|ignore) (?:it|this|that|these)"
    r"|not blocking|out of scope|leave (?:it|this|that) (?:as|for)",
    re.IGNORECASE,
)


# The agent called a tool in a way that is not there; it then calls another. Nothing of the work failed.
_NO_SUCH_CALL = re.compile(
    r"No such tool|unknown tool|InputValidationError|tool .{1,80} not found", re.IGNORECASE
)


def telling_lines(text: str) -> tuple[str, str]:
    """The line of the output that tells what went wrong; the verdict, if another line gives it."""
    first = telling = ""
    for line in _lines(text):
        first = first or line
        if _VERDICT.search(line) and not telling:
            if not _WHERE_ONLY.match(line):
                return line, ""
            telling = line
        elif _VERDICT.search(line):
            return telling, line
        elif not telling and _TELLING.search(line):
            telling = line
    return telling or first, ""


def _edit_lines(text: str) -> tuple[str, str]:
    """An editing tool says first what is wrong; then comes the code that it could not place."""
    lines = _lines(text)
    first, second = next(lines, ""), next(lines, "")
    return first, second if _VERDICT.search(second) else next(filter(_VERDICT.search, lines), second)


def _lines(text: str) -> Iterator[str]:
    for raw in head_and_tail(text, _SCANNED).split("\n"):
        line = one_line(_TAG.sub("", raw) if "<" in raw else raw)
        if line and not _BOILERPLATE.match(line) and not _ECHOED_COMMAND.match(line):
            yield line


def _program(action: Action) -> str:
    """The program and its first word: what a way around a failure has in common with it."""
    if action.kind != "shell":
        return ""
    return " ".join(same_command(action.command).split(" ")[:2])


@dataclass(slots=True)
class _Open:
    index: int
    key: str
    doing: str
    message: str
    verdict: str
    program: str
    lookup: bool
    times: int = 1
    resolution: Resolution = "unresolved"
    notes: str = ""


class Failures:
    """Each failure stays open until the same thing succeeds."""

    def __init__(self) -> None:
        self._all: OrderedDict[tuple[str, str], _Open] = OrderedDict()
        self._open: list[_Open] = []
        # What the open ones wait for: most successes settle nothing and are done with two lookups.
        self._awaited: set[str] = set()
        self._edits: deque[tuple[int, str]] = deque(maxlen=_EDITS_KEPT)

    def failed(self, index: int, action: Action, text: str) -> None:
        if _NO_SUCH_CALL.search(text, 0, 300) and action.kind != "shell":
            return
        lines = _edit_lines(text) if action.kind in ("edit", "write") else telling_lines(text)
        message, verdict = (clipped(line, _MESSAGE_LENGTH) for line in lines)
        if not message:
            return
        key, program = _key(action), _program(action)
        lookup = action.kind in ("read", "search") and bool(_NOT_THERE.search(message))
        failure = _Open(index, key, _doing(action), message, verdict, program, lookup)
        earlier = self._all.pop((key, message), None)
        if earlier is not None:
            failure.times = earlier.times + 1
        self._all[key, message] = failure
        if len(self._all) > _MOST_KEPT:
            self._all.popitem(last=False)
        still_open = [one for one in self._open if one is not earlier]
        self._set_open([*still_open[1 - _MOST_OPEN :], failure])

    def succeeded(self, index: int, action: Action) -> None:
        if action.kind in ("edit", "write"):
            self._edits.append((index, action.path))
        if not self._open:
            return
        key, program = _key(action), _program(action)
        if key not in self._awaited and program not in self._awaited:
            return
        continued = action.command.rstrip().endswith("--continue")
        for failure in self._open:
            if failure.key == key or (continued and failure.program == program):
                failure.resolution, failure.notes = "fixed", self._fix(failure)
            elif program and failure.program == program:
                failure.resolution = "workaround"
                failure.notes = f"worked instead: {clipped(one_line(action.command), 100)}"
        self._set_open([one for one in self._open if one.resolution == "unresolved"])

    def commented(self, index: int, text: str) -> None:
        """The agent may say that it leaves what just failed for another day."""
        if not self._open:
            return
        newest = self._open[-1]
        if index - newest.index <= _COMMENTED_WITHIN and _PUT_OFF.search(text, 0, 2000):
            newest.resolution = "deferred"
            self._set_open(self._open[:-1])

    def found(self) -> tuple[Failure, ...]:
        return tuple(
            Failure(
                index=one.index,
                doing=one.doing,
                message=one.message,
                resolution=one.resolution,
                notes=one.notes,
                times=one.times,
                verdict=one.verdict,
                lookup=one.lookup,
            )
            for one in self._all.values()
        )

    def _set_open(self, failures: list[_Open]) -> None:
        self._open = failures
        self._awaited = {one.key for one in failures} | {one.program for one in failures if one.program}

    def _fix(self, failure: _Open) -> str:
        edited = dict.fromkeys(path for index, path in self._edits if index > failure.index)
        names = [path.replace("\\", "/").rsplit("/", 1)[-1] for path in edited]
        return f"after edits to {', '.join(names[:4])}" if names else ""


def _target(action: Action) -> str:
    return action.path or clipped(action.about, 60)


def _doing(action: Action) -> str:
    if action.kind == "shell":
        return clipped(one_line(action.command), 120)
    return f"{action.tool} {_target(action)}".strip()


def _key(action: Action) -> str:
    """What has to succeed for a failure to be over."""
    if action.kind == "shell":
        return f"shell {same_command(action.command)}"
    return f"{'edit' if action.kind in ('edit', 'write') else action.kind} {_target(action)}"
