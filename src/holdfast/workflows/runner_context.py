"""What all sessions run by one process share, the thread that looks after their tasks in flight, and how a
runner writes."""

from __future__ import annotations

import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar, cast

from holdfast.base.clock import Clock, system_clock
from holdfast.base.errors import (
    ConflictError,
    HeldElsewhereError,
    HoldfastError,
    SessionAlreadyRunningError,
    StorageError,
    require_installed,
)
from holdfast.base.redact import redact
from holdfast.model.entry import Entry, WorkflowPaused, WorkflowStatusChanged
from holdfast.model.usage import ModelCall, UsageMetrics
from holdfast.model.workflow import Workflow, WorkflowStatus
from holdfast.project.settings import Settings
from holdfast.sessions.transitions import Core
from holdfast.store.protocol import Change
from holdfast.workflows.drivers.protocol import Driver, StopSignal

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


Happening = Entry | UsageMetrics | ModelCall | str

Listener = Callable[[str, Happening], None]
"""Called with the workflow's id and what just happened: for whoever watches, after it is recorded."""


def _nobody(_workflow_id: str, _what: Happening) -> None:
    pass


class Limits(Protocol):
    """How much of a driver or a model all runners of this database may use, together."""

    def wait(self, names: Sequence[str], stop: StopSignal, told: Callable[[str], None]) -> None:
        """Until each of these names may be used once more, or the stop is requested."""
        ...

    def charge(self, names: Sequence[str], tokens: int) -> None:
        """Who asks next waits until these tokens fit."""
        ...


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
    limits: Limits | None = None
    active: set[str] = field(default_factory=set[str])
    """Runs this process works on now."""


# ── what a runner writes ──────────────────────────────────────────────────────────────────────────

# Fenced by its claim, and patient with a database that is away.
#
# A commit is made from the state the runner last saw. If somebody changed the workflow
# since, nothing is written and the runner decides again from what it finds: a pause was
# asked for, the workflow was cancelled, or another runner has the claim and this one is
# a zombie that must write nothing.

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_T = TypeVar("_T")
_runner_log = logging.getLogger("holdfast.runner")


class RunOverError(BaseException):
    """This run may write no more: the claim is somebody else's, or the workflow has ended.

    No `Exception`, so that neither a driver nor the engine takes it for a task's failure.
    """

    def __init__(self, workflow: Workflow) -> None:
        super().__init__(f"workflow {workflow.id} is {workflow.status}, run by {workflow.claim}")
        self.workflow = workflow


class Recorder:
    def __init__(self, core: Core, workflow: Workflow, quit_event: threading.Event | None = None) -> None:
        self.core = core
        self.workflow = workflow
        self._claim, self._run_id = workflow.claim, workflow.run_id
        self._quit = quit_event or threading.Event()
        self._lock = threading.RLock()
        self._to_keep: dict[str, str] = {}

    @classmethod
    def take(
        cls,
        core: Core,
        workflow_id: str,
        run_id: str,
        claim: str,
        quit_event: threading.Event,
        *,
        takes_over: bool,
    ) -> Recorder:
        """Take the session up; `RunOverError` where this run is not wanted any more."""

        def taken() -> Workflow:
            while True:
                try:
                    return core.take(workflow_id, run_id, claim, takes_over=takes_over)
                except ConflictError:
                    continue  # somebody asked for a pause in this very moment
                except SessionAlreadyRunningError:
                    raise RunOverError(core.store.workflow(workflow_id)) from None

        return cls(core, patiently(taken, quit_event), quit_event)

    def commit(self, *entries: Entry, to: WorkflowStatus | None = None, **changes: object) -> bool:
        """Whether it was written; if not, `workflow` is what somebody else made of it meanwhile."""
        with self._lock:
            return self.apply(self.core.advancing(self.workflow, *entries, to=to, **changes))

    def apply(self, change: Change) -> bool:
        with self._lock:
            return patiently(lambda: self._try(change), self._quit)

    def keep(self, name: str, written: str) -> None:
        """As it was written, with the next commit: what is recorded of it lacks its secrets."""
        with self._lock:
            self._to_keep[name] = written

    def note(self, *entries: Entry) -> None:
        """What holds whatever else happened."""
        while not self.commit(*entries):
            pass

    def refresh(self) -> Workflow:
        """The workflow as it is now; `RunOverError` where it is not this run's any more."""
        with self._lock:
            self.workflow = patiently(lambda: self.core.store.workflow(self.workflow.id), self._quit)
            self._refuse_if_over(self.workflow)
            return self.workflow

    def is_over(self, workflow: Workflow) -> bool:
        return (
            workflow.claim != self._claim
            or workflow.run_id != self._run_id
            or workflow.status != "in_progress"
        )

    def _refuse_if_over(self, workflow: Workflow) -> None:
        if self.is_over(workflow):
            raise RunOverError(workflow)

    def _try(self, change: Change) -> bool:
        if self._to_keep:
            change = replace(change, originals={**change.originals, **self._to_keep})
        try:
            self.core.store.apply(change)
        except ConflictError:
            found = self.core.store.workflow(change.workflow.id)
            if found != change.workflow:  # else it was ours, whose acknowledgement was lost on the way
                self._refuse_if_over(found)
                self.workflow = found
                return False
        self.workflow = change.workflow
        self._to_keep.clear()
        return True


def patiently(action: Callable[[], _T], quit_event: threading.Event) -> _T:
    """Repeat what fails because the database is away or busy, until it is back or we are told to quit."""
    wait = _FIRST_WAIT
    while True:
        try:
            return action()
        except (StorageError, HeldElsewhereError) as error:
            if isinstance(error, ConflictError | SessionAlreadyRunningError):
                raise
            if wait == _FIRST_WAIT:
                _runner_log.warning("%s; retrying until it works", error.message)
            if quit_event.wait(wait):
                raise
            wait = min(wait * 2, _LONGEST_WAIT)


# ── notices ────────────────────────────────────────────────────────────────────────────────────────

# Notices to wherever the user wants them, through apprise. Off unless `notify` is set.
#
# Sent after the commit they tell of, from a thread of their own: a service that is slow or away
# holds nothing up and costs only its notice.

log = logging.getLogger("holdfast.notices")

_LAST_WORDS_SECONDS = 5.0


class Notices:
    """A listener that tells of pauses and ends, and passes everything on."""

    def __init__(self, urls: Sequence[str], then: Listener) -> None:
        self._urls, self.then = tuple(urls), then
        self._waiting: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send_all, name="holdfast-notices", daemon=True)
        if self._urls:
            _apprise()  # a missing package is said at once, not when the first notice is due
            self._thread.start()

    def __call__(self, workflow_id: str, what: Happening) -> None:
        told = _told(workflow_id, what)
        if told is not None and self._urls:
            self._waiting.put(told)
        self.then(workflow_id, what)

    def close(self) -> None:
        """Give what is under way a moment."""
        if self._urls:
            self._waiting.put(None)
            self._thread.join(_LAST_WORDS_SECONDS)

    def _send_all(self) -> None:
        sender = _apprise()
        for number, url in enumerate(self._urls, start=1):
            if not sender.add(url):
                log.warning("address %d of `notify` is not a valid apprise URL", number)
        while (notice := self._waiting.get()) is not None:
            title, body = notice
            try:
                if not sender.notify(title=title, body=body):
                    log.warning("a notification was not delivered: %s", title)
            except Exception as error:  # noqa: BLE001 - a hundred services, each with its own ways to fail
                log.warning("a notification was not delivered: %s", type(error).__name__)


def send_test(urls: Sequence[str]) -> list[bool]:
    """Whether a test message was taken by each of the addresses."""
    taken: list[bool] = []
    for url in urls:
        sender = _apprise()
        try:
            taken.append(
                sender.add(url) and bool(sender.notify(title="Holdfast", body="This is a test message."))
            )
        except Exception:  # noqa: BLE001 - as above
            taken.append(False)
    return taken


class _Sender(Protocol):
    """The part of apprise we use."""

    def add(self, services: str) -> bool: ...

    def notify(self, body: str, title: str = "") -> object: ...


def _apprise() -> _Sender:
    require_installed("the setting `notify`", "apprise")
    import apprise

    return cast("_Sender", apprise.Apprise())


def _told(workflow_id: str, what: Happening) -> tuple[str, str] | None:
    if isinstance(what, WorkflowPaused) and what.trigger != "failure":
        body = f"{what.reason or what.trigger}\nResume with: holdfast resume {workflow_id}"
        return f"Workflow {workflow_id} paused", redact(body)[0]
    if isinstance(what, WorkflowStatusChanged) and what.status == "failed":
        body = f"{what.reason or what.status}\nTry again with: holdfast retry --workflow {workflow_id}"
        return f"Workflow {workflow_id} failed", redact(body)[0]
    if isinstance(what, WorkflowStatusChanged) and what.status in ("completed", "blocked"):
        return f"Workflow {workflow_id} {what.status}", redact(what.reason or what.status)[0]
    return None
