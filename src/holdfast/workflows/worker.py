"""Processes that run workflows: this very one, and workers, which take sessions from the queue.

Any number of workers share a database. Each looks around a few times a second: a workflow
that waits is brought to the queue; a session whose worker died, was cut off or stopped is
brought there again; one whose time has come (quota is back) is resumed. All of that is
safe to do twice, so nobody has to be in charge.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.errors import (
    HeldElsewhereError,
    HoldfastError,
    SessionAlreadyRunningError,
    StorageError,
    require_installed,
)
from holdfast.model.statuses import Lease
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings
from holdfast.sessions.transitions import Core
from holdfast.store.sql import SqlStore
from holdfast.workflows.drivers import driver_named
from holdfast.workflows.drivers.guarded import GRACE_SECONDS, prune_records
from holdfast.workflows.lease import LEASE_SECONDS, HeldLease, LeaseKind, is_dead, is_gone
from holdfast.workflows.plan import read_plan
from holdfast.workflows.runner import SessionRun
from holdfast.workflows.runner_context import Listener, Notices, RunnerContext, RunOverError
from holdfast.workflows.service import OrchestratorService
from holdfast.workflows.tracing import Spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.workflows.engine import Engine

log = logging.getLogger("holdfast.worker")

SWEEP_SECONDS = 0.5


def _ignore(*_: object) -> None:
    pass


@contextlib.contextmanager
def _surroundings(
    settings: Settings,
    kind: LeaseKind,
    notices: Notices,
    clock: Clock,
    lease_seconds: float = LEASE_SECONDS,
) -> Generator[tuple[OrchestratorService, HeldLease, RunnerContext]]:
    """What a process runs sessions with: the store, a lease that says it is there, and the rest."""
    with contextlib.ExitStack() as stack:
        store = SqlStore(settings.db)
        stack.callback(store.close)
        listener = notices
        if settings.spans_to is not None:
            listener = spans = Spans(settings.spans_to, notices)
            stack.callback(spans.close)
        presence = stack.enter_context(HeldLease(store.leases, kind, lease_seconds))
        prune_records(settings.home, clock())
        around = RunnerContext(
            core=Core(store, clock),
            settings=settings,
            drivers=cache(partial(driver_named, settings=settings)),
            claim=presence.claim,
            takes_over=kind == "worker",
            listener=listener,
            clock=clock,
        )
        stack.callback(around.watch.close)
        stack.callback(notices.close)
        yield OrchestratorService(settings, store=store, clock=clock), presence, around


def _start_plan(service: OrchestratorService, given: dict[str, Any]) -> str:
    """The workflow that was queued, or why there is none."""
    try:
        plan = read_plan(Path(given["plan"]), **given["options"])
        return service.start(plan, Path(given["worktree"])).id
    except HoldfastError as error:
        log.warning("the scheduled plan %s was not started: %s", given["plan"], error.message)
        return f"not started: {error.message}"


def _opener(around: RunnerContext) -> Callable[[str, str], SessionRun]:
    return lambda workflow_id, run_id: SessionRun(workflow_id, run_id, around)


# ── in this very process ──────────────────────────────────────────────────────────────────────────


class Here:
    """What `run`, `resume` and `approve` do without a worker.

    `with Here(settings) as here:` claim a workflow with `here.claim`, then `here.run` it.
    """

    def __init__(self, settings: Settings, listener: Listener = _ignore, clock: Clock = system_clock) -> None:
        self._settings, self._clock = settings, clock
        self._notices = Notices(settings.notify, listener)
        self._stack = contextlib.ExitStack()
        self.resting = threading.Event()
        """Set while nothing runs and it only waits to go on."""

    def __enter__(self) -> Self:
        self.service, presence, self._around = self._stack.enter_context(
            _surroundings(self._settings, "run", self._notices, self._clock)
        )
        self.claim = presence.claim()
        self._executor_id = presence.id
        self._around.claim = lambda: self.claim
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def listen(self, listener: Listener) -> None:
        """Have this called with what happens, from whatever thread it happens in."""
        self._notices.then = listener

    @property
    def quit(self) -> threading.Event:
        """Set it to cut off what runs."""
        return self._around.quit

    def run(self, workflow: Workflow) -> Workflow:
        """To the end of the session: paused, blocked, completed, failed or cancelled."""
        from holdfast.workflows.engine import Engine

        limits = self._settings.limits
        opener = _opener(self._around)
        with Engine(self._settings.db, self._executor_id, opener, concurrency=None, limits=limits) as engine:
            self._around.limits = engine.permits
            session = engine.run_here(workflow)
            while not session.done():
                try:
                    session.result(0.5)  # in pieces, so that signals get through
                except TimeoutError:
                    continue
                except RunOverError:
                    raise SessionAlreadyRunningError(
                        f"workflow {workflow.id} was taken over by another worker"
                    ) from None
        return self.service.workflow(workflow.id)


# ── a worker ──────────────────────────────────────────────────────────────────────────────────────


class Worker:
    def __init__(
        self,
        settings: Settings,
        *,
        concurrency: int = 4,
        lease_seconds: float = LEASE_SECONDS,
        listener: Listener = _ignore,
        clock: Clock = system_clock,
        give_up: Callable[[str], None] | None = None,
    ) -> None:
        """`give_up` ends the process, once the database has been away for long: with `until_idle` nobody
        waits for this worker, and the engine tries again for ever."""
        require_installed("running workflows", "dbos")
        self._settings, self._clock = settings, clock
        self._concurrency, self._lease_seconds = concurrency, lease_seconds
        self._listener, self._give_up = listener, give_up
        self._stop = threading.Event()
        self._around: RunnerContext | None = None

    def stop(self) -> None:
        """End at the next boundary of each session; asked again, now."""
        if self._stop.is_set() and self._around is not None:
            self._around.quit.set()
        self._stop.set()

    def run(self, *, until_idle: bool = False) -> None:
        """Until it is stopped; or, with `until_idle`, until there is nothing left to do.

        While it ends, its lease still says that a worker is there, and whoever queues something then
        starts no other. So it looks once more when the lease is gone.
        """
        self._work(until_idle=until_idle)
        while until_idle and not self._stop.is_set() and self._something_was_queued():
            self._work(until_idle=True)

    def _something_was_queued(self) -> bool:
        store = SqlStore(self._settings.db)
        try:
            return bool(store.queued(limit=1))
        finally:
            store.close()

    def _work(self, *, until_idle: bool) -> None:
        from holdfast.workflows.engine import Engine

        notices = Notices(self._settings.notify, self._listener)
        with _surroundings(self._settings, "worker", notices, self._clock, self._lease_seconds) as (
            service,
            presence,
            around,
        ):
            self._around = around
            if until_idle and self._give_up is not None:
                watch = partial(_give_up_when_cut_off, presence, around, service.store.shown, self._give_up)
                threading.Thread(target=watch, name="holdfast-cut-off", daemon=True).start()
            starting, limits = partial(_start_plan, service), self._settings.limits
            with Engine(
                self._settings.db, presence.id, _opener(around), self._concurrency, starting, limits
            ) as engine:
                around.limits = engine.permits
                log.debug("worker %s started", presence.id)
                _Round(service, engine, presence, around, self._stop).go(until_idle=until_idle)


_SILENT_LEASES, _SILENT_LEASES_AT_WORK = 12, 60
"""After so many the database counts as gone; a task that runs is given longer."""


def _give_up_when_cut_off(
    presence: HeldLease, around: RunnerContext, database: str, give_up: Callable[[str], None]
) -> None:
    while not presence.closed.wait(presence.lease.lease_seconds / 4):
        if presence.silent_leases > (_SILENT_LEASES_AT_WORK if around.active else _SILENT_LEASES):
            around.leaving.set()
            around.quit.set()
            deadline = time.monotonic() + GRACE_SECONDS
            while around.active and time.monotonic() < deadline:
                time.sleep(0.05)
            seconds = presence.silent_leases * presence.lease.lease_seconds
            give_up(f"the database {database} cannot be reached since {seconds:.0f} s: this worker ends")
            return


class _Round:
    """What a worker does beside working."""

    def __init__(
        self,
        service: OrchestratorService,
        engine: Engine,
        presence: HeldLease,
        around: RunnerContext,
        stop: threading.Event,
    ) -> None:
        self._service, self._store, self._engine = service, service.store, engine
        self._presence, self._around, self._stop = presence, around, stop

    def go(self, *, until_idle: bool) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            if self._presence.lost.is_set():
                self._around.leaving.set()
                self._around.quit.set()
                raise HeldElsewhereError(
                    "this worker was considered dead: it was stopped or disconnected for longer than its "
                    "lease",
                    hint="start it again; other workers continued its sessions",
                )
            if self._store.is_deleted:
                self._around.quit.set()
                raise StorageError(
                    f"the database {self._store.shown} was deleted",
                    hint="restore it, or start a worker on another one",
                )
            try:
                waiting = self.sweep()
            except StorageError as error:
                log.warning("%s", error.message)
                continue
            if until_idle and not waiting and not self._around.active:
                return
        self._leave()

    def sweep(self) -> int:
        """Look around once; how many workflows waited or ran.

        What somebody runs in a terminal is not ours to judge: it waits for that person.
        """
        leases = self._bury_the_dead(self._store.leases.all())
        self._resume_what_is_due()
        left_behind = self._store.left_behind()
        queued = self._store.queued()
        for workflow in self._engine.bring_to_queue(
            [*queued, *left_behind], lambda executor: is_gone(f"{executor}#", leases)
        ):
            with contextlib.suppress(HeldElsewhereError):  # another worker was faster
                self._around.core.run_anew(workflow)
        return len(queued) + self._store.claimed_by_workers()

    def _bury_the_dead(self, leases: Sequence[Lease]) -> list[Lease]:
        """Take the leases of dead workers away: from then on they count as gone, and know it themselves.

        Who was cut off from the database itself lets the others renew theirs first.
        """
        living: list[Lease] = []
        for lease in leases:
            if lease.kind == "worker" and lease.id != self._presence.id and is_dead(lease):
                gone_for_sure = not lease.expired  # its process is not there any more
                if gone_for_sure:
                    self._store.leases.remove(lease.id)
                    continue
                if self._presence.is_steady and self._store.leases.remove_expired(lease.id):
                    log.warning("worker %s has been silent for %.0f s", lease.id, lease.age)
                    continue
            living.append(lease)
        return living

    def _resume_what_is_due(self) -> None:
        for workflow in self._store.due(to_datetime(self._around.clock())):
            try:
                self._service.resume_workflow(workflow.id)
            except HoldfastError as error:
                log.warning("workflow %s could not be resumed automatically: %s", workflow.id, error.message)

    def _leave(self) -> None:
        self._around.leaving.set()
        while self._around.active and not self._around.quit.is_set():
            time.sleep(0.05)
