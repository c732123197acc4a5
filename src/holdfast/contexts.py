"""Contexts out of transcripts: find the session's file, read it once, compile."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.base.errors import DamagedDataError, HoldfastError, InvalidInputError, NotFoundError
from holdfast.findings.gather import gather
from holdfast.model.gathered import Gathered
from holdfast.model.message import Message, ReadReport
from holdfast.transcripts import open_transcript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.transcripts.discover import FoundSession

_RECENT_MESSAGES = 50


@dataclass(frozen=True)
class ReadSession:
    """One pass over a transcript: what was found, what the reader met, the newest messages."""

    found: Gathered
    report: ReadReport
    recent: tuple[Message, ...]


def read_session(path: Path, agent: str | None = None, session_id: str | None = None) -> ReadSession:
    """`session_id` chooses among several in one file, as OpenCode keeps them."""
    report, messages = open_transcript(path, agent, session_id)
    recent: deque[Message] = deque(maxlen=_RECENT_MESSAGES)
    with _no_collection():
        found = gather(_remembered(messages, recent), report)
    if not found.messages:
        raise _nothing_read(path, report)
    return ReadSession(found, report, tuple(recent))


def _nothing_read(path: Path, report: ReadReport) -> HoldfastError:
    if report.torn or report.unknown or report.oversized:
        return DamagedDataError(
            f"{path} holds no session of {report.agent} that can be read", hint="name its agent with --agent"
        )
    return NotFoundError(f"{path} holds no messages yet")


def _remembered(messages: Iterable[Message], recent: deque[Message]) -> Iterator[Message]:
    for message in messages:
        recent.append(message)
        yield message


class _no_collection:  # noqa: N801 - reads as what it does
    """Parsed lines hold no cycles; looking for them would take a third of the time."""

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()


def find_transcript(session_id: str, project: Path, home: Path, environ: Mapping[str, str]) -> FoundSession:
    """The file of an agent's session of this project, by its id or the beginning of it."""
    from holdfast.transcripts.discover import find_sessions

    if not session_id:
        raise InvalidInputError("the session id is empty", hint="`holdfast sessions list` shows them")
    found = [one for one in find_sessions(project, home, environ) if one.session_id.startswith(session_id)]
    exact = [one for one in found if one.session_id == session_id] or found
    if not exact:
        raise NotFoundError(
            f"no agent keeps a session {session_id} of this project",
            hint="`holdfast sessions list` shows them",
        )
    if len({one.session_id for one in exact}) > 1:
        raise InvalidInputError(
            f"{session_id} could be any of {len(exact)} sessions", hint="give more of its id"
        )
    return exact[0]
