"""A story, written as each of the four agents would have written its session file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from handoff.formats import claude, codex, gemini, opencode
from handoff.formats.numbering import Numbering
from handoff.story import Case

_LINES: dict[str, Callable[[Case, Numbering], Iterator[bytes]]] = {
    "claude-code": claude.lines,
    "codex": codex.lines,
    "gemini": gemini.lines,
}
SUFFIX = {"claude-code": ".jsonl", "codex": ".jsonl", "gemini": ".jsonl", "opencode": ".db"}


def write_one(agent: str, case: Case, path: Path) -> None:
    """The session file of one case."""
    if agent == "opencode":
        opencode.write(path, [case])
    else:
        path.write_bytes(b"".join(_LINES[agent](case, Numbering())))


def write_long(agent: str, cases: Sequence[Case], path: Path, size: int) -> None:
    """One session file of about ``size`` bytes: the stories again and again, each time under new ids."""
    if agent == "opencode":
        opencode.write(path, cases, size)
        return
    numbering = Numbering()
    with path.open("wb", buffering=1 << 20) as target:
        while target.tell() < size:
            target.writelines(chain.from_iterable(_LINES[agent](case, numbering) for case in cases))
