"""What the drivers of coding agents share: a program gets a prompt and tells what it does, line by line."""

from __future__ import annotations

import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Any, BinaryIO, ClassVar, cast

import orjson

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.errors import CannotDoError, InvalidInputError
from holdfast.base.redact import redact
from holdfast.base.text import clipped
from holdfast.model.task import Task
from holdfast.model.usage import UsageMetadata
from holdfast.project.settings import Settings
from holdfast.workflows.drivers.guarded import Guarded
from holdfast.workflows.drivers.prompts import feedback, is_review, prompt_for
from holdfast.workflows.drivers.protocol import (
    Assignment,
    Done,
    DriverSession,
    Exhausted,
    Failed,
    RateLimited,
    Report,
    TaskInterrupted,
    TaskOutcome,
)

ROOM_TO_GO_ON = 0.5
"""An old conversation is taken up again only while it fills less than this share of its window."""

_RESULT_CHARACTERS = 4_000

_FULL = re.compile(
    r"context_length_exceeded|context_window_exceeded|ran out of room in the model|exceeds the context window"
    r"|maximum context length|exceeds the maximum number of tokens|prompt is too long",
    re.IGNORECASE,
)
_LIMITED = re.compile(
    r"usage limit|rate.?limit|\b(?:429|503|529)\b|quota|too many requests|overloaded|at capacity"
    r"|insufficient_quota|RESOURCE_EXHAUSTED",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"error sending request|connection (?:refused|reset|closed)|timed? ?out|fetch failed|unable to connect"
    r"|ECONNREFUSED|ENOTFOUND|ETIMEDOUT",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class AgentConversation:
    """Which of the agent's own sessions a task runs in; none: a new one."""

    session: DriverSession | None = None
    is_begun: bool = False
    """It holds the earlier tasks of this session."""
    goes_on: bool = False
    """It is that of the session before."""


NEW_CONVERSATION = AgentConversation()


def conversation_for(assignment: Assignment, agent: str) -> AgentConversation:
    """This session's own; else the one before, where its window has room; else a new one."""
    own = assignment.agent_session
    if own is not None and own.agent == agent and _is_at_hand(own):
        return AgentConversation(own, is_begun=True)
    earlier = assignment.earlier
    old = earlier.agent_session if earlier else None
    if earlier is None or old is None or old.agent != agent or not _is_at_hand(old):
        return NEW_CONVERSATION
    share = earlier.context_utilization
    has_room = earlier.trigger != "exhaustion" and share is not None and share < ROOM_TO_GO_ON
    return AgentConversation(old, goes_on=True) if has_room else NEW_CONVERSATION


def _is_at_hand(session: DriverSession) -> bool:
    """It may have been kept on another machine."""
    return session.transcript is None or session.transcript.exists()


class StreamReader(ABC):
    """Makes sense of what one run of an agent prints."""

    @abstractmethod
    def take(self, event: dict[str, Any]) -> None: ...

    def look_around(self) -> None:  # noqa: B027 - most need not
        """Called now and then, also while nothing is printed."""

    @abstractmethod
    def finish(self) -> None:
        """The run is over; nothing more comes."""

    @abstractmethod
    def outcome(self, code: int, told: str) -> TaskOutcome | None:
        """How it went, from the exit code and the end of stderr too; None: it knows no such conversation."""

    @property
    def structured(self) -> object:
        """The last answer as data, where it was asked for in a schema."""
        return None


class CliAgent(ABC):
    name: ClassVar[str]
    agent: ClassVar[str]
    """As `transcripts` names it."""
    program: ClassVar[str]
    installing: ClassVar[str]
    asks_to_end: ClassVar[Signals] = SIGTERM
    review_form: ClassVar[str | None] = None
    """How to write a review, where it cannot be held to a schema."""

    def __init__(self, settings: Settings, clock: Clock = system_clock) -> None:
        self._settings = settings
        self._clock = clock

    def check(self, task: Task) -> None:
        if not (task.prompt or task.run or "").strip():
            raise InvalidInputError(
                f"task {task.id!r} has no prompt", hint='tell the agent what to do: prompt: "Review it"'
            )
        if shutil.which(self.program) is None:
            raise CannotDoError(f"{self.program} is not installed", hint=f"install it: {self.installing}")

    def run(self, assignment: Assignment, report: Report) -> TaskOutcome:
        if assignment.stop.requested:
            return TaskInterrupted(assignment.stop.reason or "stopped")
        conversation = conversation_for(assignment, self.agent)
        if assignment.wraps_up and not conversation.is_begun:
            return Failed("its conversation is not at hand")
        outcome = self._attempt(assignment, report, conversation)
        if outcome is None and not assignment.wraps_up:
            report.say(f"{self.program} no longer has its earlier session; starting a new one")
            outcome = self._attempt(assignment, report, NEW_CONVERSATION)
        return outcome or Failed(f"{self.program} has no such session")

    def _attempt(
        self, assignment: Assignment, report: Report, conversation: AgentConversation
    ) -> TaskOutcome | None:
        with tempfile.TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True) as scratch:
            words = self.words(assignment, conversation, Path(scratch))
            return self._run(words, assignment, report, conversation)

    def _run(
        self, words: Sequence[str], assignment: Assignment, report: Report, conversation: AgentConversation
    ) -> TaskOutcome | None:
        try:
            process = Guarded(
                [self.program, *words],
                assignment,
                environ=self.environ(),
                text=prompt_for(
                    assignment,
                    is_begun=conversation.is_begun,
                    goes_on=conversation.goes_on,
                    form=self.review_form,
                ),
                lines=True,
                kind="agent",
                ask_to_end=self.asks_to_end,
            )
        except OSError as error:
            return Failed(f"{self.program} could not be started: {error.strerror} ({assignment.worktree})")
        reader = self.reader(assignment, report, conversation)
        with process:
            for line in process.lines():
                if line is not None and (event := json_object(line)):
                    reader.take(event)
                reader.look_around()
            code = process.wait()
            told = process.tail
            was_stopped = assignment.stop.requested
        reader.finish()
        if was_stopped:
            return TaskInterrupted(assignment.stop.reason or "stopped")
        outcome = reader.outcome(code or 0, told)
        if isinstance(outcome, Done) and is_review(assignment.task) and not assignment.wraps_up:
            answer = outcome.result or ""
            at = to_datetime(self._clock())
            report.found(feedback(assignment.task, answer, self.name, at, reader.structured))
        return _clipped(outcome)

    @abstractmethod
    def words(self, assignment: Assignment, conversation: AgentConversation, scratch: Path) -> Sequence[str]:
        """The words after the program's name; the prompt comes on stdin. `scratch` is a folder for files."""

    def environ(self) -> dict[str, str]:
        return {}

    @abstractmethod
    def reader(
        self, assignment: Assignment, report: Report, conversation: AgentConversation
    ) -> StreamReader: ...


class FollowedFile:
    """The record that an agent keeps of a conversation, read as it grows."""

    def __init__(self, path: Path, position: int) -> None:
        self.path = path
        self._source: BinaryIO = path.open("rb")
        self._source.seek(position)
        self._rest = b""

    def new_lines(self) -> list[bytes]:
        *whole, self._rest = (self._rest + self._source.read()).split(b"\n")
        return whole

    def close(self) -> None:
        self._source.close()


def failure_of_api(
    agent: str, error: str, words: str, resets_at: datetime | None = None
) -> TaskOutcome | None:
    """What a provider's error means, where it is no failure of the task; `words` are told of it."""
    if _FULL.search(error):
        return Exhausted(f"{agent}: the context window is full ({words})")
    if _LIMITED.search(error):
        return RateLimited(f"{agent}: {words}", resets_at)
    if _UNREACHABLE.search(error):
        return RateLimited(f"{agent}: the API cannot be reached ({words})")
    return None


def _clipped(outcome: TaskOutcome | None) -> TaskOutcome | None:
    if isinstance(outcome, Done) and outcome.result:
        return Done(clipped(outcome.result.strip(), _RESULT_CHARACTERS) or None)
    return outcome


def json_object(line: bytes) -> dict[str, Any] | None:
    """What an agent prints beside its events (warnings, colours) is none."""
    try:
        value: object = orjson.loads(line)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def window_usage(prompt: int, completion: int, window: int, *, in_window: int | None = None) -> UsageMetadata:
    """One call's tokens; `in_window`, where that is not what this call has put there (a helper's call)."""
    held = prompt + completion if in_window is None else in_window
    return UsageMetadata(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        context_window_size=window,
        tokens_remaining=max(0, window - held),
        utilization_percent=min(1.0, held / window),
    )


def safe_words(text: str) -> str:
    """An agent's own words on a failure, fit to be stored: short, on one line, no secrets."""
    return clipped(" ".join(redact(text)[0].split()), 500)


def moment_of(seconds: object) -> datetime | None:
    """A time as agents tell it: seconds since the epoch, or milliseconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, tz=UTC)
    except (OverflowError, OSError, ValueError):
        return None


def agent_home(environ_name: str, default: str, environ: dict[str, str]) -> Path:
    told = environ.get(environ_name)
    return Path(told) if told else Path.home() / default
