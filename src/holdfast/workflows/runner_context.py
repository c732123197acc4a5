"""What all sessions run by one process share, and the thread that looks after their tasks in flight."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from holdfast.base.clock import Clock, system_clock
from holdfast.base.errors import HoldfastError
from holdfast.model.entry import Entry
from holdfast.model.usage import UsageMetrics
from holdfast.project.settings import Settings
from holdfast.sessions.transitions import Core
from holdfast.workflows.drivers.protocol import Driver

# ── tasks in flight ───────────────────────────────────────────────────────────────────────────────

# Looks after tasks in flight: one thread a process, however many tasks it runs.
#
# A task that is short is never looked at. For a longer one the workflow is read a few times
# a second, and the task is told to stop when nobody wants it any more, or when a pause has
# waited long enough for its end.

_INTERVAL = 0.2


class TaskWatch:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looks: dict[int, tuple[float, Callable[[], None]]] = {}
        self._numbers = itertools.count()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, look: Callable[[], None]) -> Generator[None]:
        """Call `look` every now and then, from the other thread, while the block runs."""
        number = next(self._numbers)
        with self._lock:
            self._looks[number] = (time.monotonic() + _INTERVAL, look)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="holdfast-watch", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._looks.pop(number, None)

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(_INTERVAL):
            now = time.monotonic()
            with self._lock:
                due = [look for since, look in self._looks.values() if since <= now]
            for look in due:
                try:
                    look()
                except HoldfastError:  # the database is away: the next look will tell
                    continue


# ── the context ───────────────────────────────────────────────────────────────────────────────────

# What all sessions run by one process share.

Listener = Callable[[str, Entry | UsageMetrics | str], None]
"""Called with the workflow's id and what just happened: for whoever watches, after it is recorded."""


def _nobody(_workflow_id: str, _what: Entry | UsageMetrics | str) -> None:
    pass


@dataclass
class RunnerContext:
    """What all sessions run by one process share."""

    core: Core
    settings: Settings
    drivers: Callable[[str], Driver]
    claim: Callable[[], str]
    takes_over: bool = False
    """Whether it goes on with sessions that others left behind."""
    listener: Listener = _nobody
    clock: Clock = system_clock
    watch: TaskWatch = field(default_factory=TaskWatch)
    quit: threading.Event = field(default_factory=threading.Event)
    """Set where the process itself must end: nothing is waited for any more."""
    leaving: threading.Event = field(default_factory=threading.Event)
    """Set where the process is to end at the next boundary and leave its sessions to others."""
    active: set[str] = field(default_factory=set[str])
    """Runs this process works on now."""
