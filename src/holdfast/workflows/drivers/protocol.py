"""What a driver is: something that executes one task in a worktree and says how that went.

    runner ── Assignment ──► driver.run ──► Outcome
                 ▲  │
         stop ───┘  └──► Report: usage after every model call, findings, the agent's own session

A driver runs in a thread of its own and may block. It never writes to the store: what it
finds goes through the `Report`, and the runner records it with the end of the task, in
one commit. It decides nothing about pauses: it reports how full the window is, and
`policy.py` draws the conclusion. When its `stop` is requested it winds the task up at
once (ends its processes, its requests) and returns `Interrupted`.

Adding one: a class with `name`, `check` and `run` in a file of this folder, built from
the settings, and its line in `DRIVERS` of the package.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from holdfast.model.entry import DecisionRecorded, ErrorRecorded, FeedbackRecorded, TestsRun
from holdfast.model.findings import TestState
from holdfast.model.policy import Trigger
from holdfast.model.task import Task
from holdfast.model.usage import UsageMetadata
from holdfast.model.workflow import Issue

DriverFinding = DecisionRecorded | ErrorRecorded | FeedbackRecorded | TestsRun


class StopSignal:
    """Asks a driver to end its task now. Set once, from another thread; never taken back."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        self.reason: str | None = None

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def request(self, reason: str) -> None:
        with self._lock:
            if self._event.is_set():
                return
            self.reason = reason
            self._event.set()
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()

    def wait(self, seconds: float | None = None) -> bool:
        """Until it is requested, at most so long; whether it was."""
        return self._event.wait(seconds)

    def on_request(self, callback: Callable[[], None]) -> None:
        """Call this when it is requested; at once if it was already. It must not block."""
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(callback)
                return
        callback()


@dataclass(frozen=True)
class DriverSession:
    """An agent's own session behind a task: what the agent calls it, and where it writes it down."""

    id: str
    agent: str
    """As `transcripts` names it: claude, codex, gemini, opencode; or the driver's own name."""
    transcript: Path | None = None


@dataclass(frozen=True)
class EarlierSession:
    """How the workflow's session before this one ended, and the agent's session it left behind."""

    trigger: Trigger
    agent_session: DriverSession | None = None
    context_utilization: float | None = None


@dataclass(frozen=True)
class Assignment:
    """One task to execute."""

    workflow_id: str
    session_number: int
    issue: Issue
    task: Task
    worktree: Path
    attempt: int = 1
    """Above 1 where an earlier attempt failed or was cut off: what it did may be there already."""
    context: str | None = None
    """What the next session must know, compiled from the snapshot; None in a workflow's first session."""
    message: str | None = None
    """What the user said when resuming."""
    agent_session: DriverSession | None = None
    """Of this session's tasks so far, as last reported: a driver that talks on in it fills one window."""
    earlier: EarlierSession | None = None
    """For a driver that would rather take up the agent's old session, where its window has room."""
    tests: TestState | None = None
    """Where the tests stood before this task, as last recorded."""
    inputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """What the tasks that it depends on left for it, by task and name."""
    wraps_up: bool = False
    """Instead of the task the agent is asked for its handover, in the conversation of `agent_session`."""
    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables for the programs it starts, beside our own."""
    stop: StopSignal = field(default_factory=StopSignal)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Stands in the environment of every process that this attempt starts, and of no other."""
    records: Path | None = None
    """Where its processes are written down, for whoever has to end them should we be killed."""
    has_programs: threading.Event = field(default_factory=threading.Event, compare=False)
    """Set once a program was given that environment."""


class Report(Protocol):
    """What a driver tells while it works. Safe to call from any of its threads."""

    def turn(self, model: str) -> None:
        """Before every model call that the driver makes itself: waits while a limit is reached."""
        ...

    def usage(self, usage: UsageMetadata, *, tool_calls: int = 0, cost_usd: float | None = None) -> None:
        """After every model call: this call's tokens, and how full the window is now.

        `tool_calls` and `cost_usd` are those since the last report.
        """
        ...

    def agent_session(self, session: DriverSession) -> None:
        """As soon as it is known: recorded before the task ends, so that a crash does not lose it."""
        ...

    def found(self, *findings: DriverFinding) -> None:
        """Decisions, errors, review feedback, test runs; recorded with the end of the task."""
        ...

    def say(self, line: str) -> None:
        """A line for whoever watches, kept in the task's log."""
        ...

    def output(self, text: str) -> None:
        """What its program printed since the last call, in whole lines where it can be; kept there, too."""
        ...


@dataclass(frozen=True)
class Done:
    result: str | None = None
    """How it ended, in a line or a few."""


@dataclass(frozen=True)
class Failed:
    """The task itself did not succeed: the workflow fails there, and a resume tries the task again."""

    reason: str


@dataclass(frozen=True)
class Exhausted:
    """The window is full, however the provider says so: a pause, no failure. The task is pending again."""

    reason: str
    has_room: bool = False
    """For a last answer: the agent was stopped at a level below the limit."""


@dataclass(frozen=True)
class RateLimited:
    """The provider takes no more for now, after the driver's own retries. The task is pending again."""

    reason: str
    resets_at: datetime | None = None
    """When there is quota again, where the provider said so."""


@dataclass(frozen=True)
class TaskInterrupted:
    """`stop` was requested and obeyed. The task is pending again."""

    reason: str
    output: str = ""
    """The end of what it printed until then."""


TaskOutcome = Done | Failed | Exhausted | RateLimited | TaskInterrupted


class Driver(Protocol):
    @property
    def name(self) -> str: ...

    def check(self, task: Task) -> None:
        """Whether it could run this task at all, before anything starts: `InvalidInputError` for a task
        without what it needs, `CannotDoError` (with how to install it) for a program that is missing."""
        ...

    def run(self, assignment: Assignment, report: Report) -> TaskOutcome:
        """Work the task off. An exception out of here counts as `Failed`."""
        ...
