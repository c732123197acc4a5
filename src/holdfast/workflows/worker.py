"""A worker: takes sessions from the queue, and sees to those whose worker is gone.

Any number of them share a database. Each looks around a few times a second: a workflow
that waits is brought to the queue; a session whose worker died, was cut off or stopped is
brought there again; one whose time has come (quota is back) is resumed. All of that is
safe to do twice, so nobody has to be in charge.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.errors import HeldElsewhereError, HoldfastError, StorageError
from holdfast.model.claims import Lease
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings
from holdfast.sessions.transitions import Core
from holdfast.store.sql import SqlStore
from holdfast.workflows.drivers import DriverShelf
from holdfast.workflows.engine import Engine
from holdfast.workflows.lease import LEASE_SECONDS, HeldLease, holder, is_dead, is_gone
from holdfast.workflows.notices import Notices
from holdfast.workflows.runner import SessionRun
from holdfast.workflows.runner_context import Listener, RunnerContext
from holdfast.workflows.service import OrchestratorService

log = logging.getLogger("holdfast.worker")

SWEEP_SECONDS = 0.5


def _ignore(*_: object) -> None:
    pass


class Worker:
    def __init__(
        self,
        settings: Settings,
        *,
        concurrency: int = 4,
        lease_seconds: float = LEASE_SECONDS,
        listener: Listener = _ignore,
        clock: Clock = system_clock,
    ) -> None:
        self._settings, self._clock = settings, clock
        self._concurrency, self._lease_seconds = concurrency, lease_seconds
        self._listener = listener
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
        with contextlib.ExitStack() as stack:
            store = SqlStore(self._settings.db)
            stack.callback(store.close)
            service = OrchestratorService(self._settings, store=store, clock=self._clock)
            presence = stack.enter_context(HeldLease(store.leases, "worker", self._lease_seconds))
            notices = Notices(self._settings.notify, self._listener)
            around = self._around = RunnerContext(
                core=Core(store, self._clock),
                settings=self._settings,
                drivers=DriverShelf(self._settings),
                claim=presence.claim,
                takes_over=True,
                listener=notices,
                clock=self._clock,
            )
            stack.callback(around.watch.close)
            stack.callback(notices.close)

            def open_run(workflow_id: str, run_id: str) -> SessionRun:
                return SessionRun(workflow_id, run_id, around)

            engine = stack.enter_context(
                Engine(self._settings.db, presence.id, open_run, concurrency=self._concurrency)
            )
            log.debug("worker %s is there", presence.id)
            _Round(service, store, engine, presence, around, self._stop).go(until_idle=until_idle)


class _Round:
    """What a worker does beside working."""

    def __init__(
        self,
        service: OrchestratorService,
        store: SqlStore,
        engine: Engine,
        presence: HeldLease,
        around: RunnerContext,
        stop: threading.Event,
    ) -> None:
        self._service, self._store, self._engine = service, store, engine
        self._presence, self._around, self._stop = presence, around, stop

    def go(self, *, until_idle: bool) -> None:
        while not self._stop.wait(SWEEP_SECONDS):
            if self._presence.lost.is_set():
                self._around.leaving.set()
                self._around.quit.set()
                raise HeldElsewhereError(
                    "this worker was taken for dead: it was stopped or cut off for longer than its lease",
                    hint="start it again; its sessions went on elsewhere",
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
        claimed = [flow for flow in self._store.claimed() if (flow.claim or "").startswith("worker-")]
        left_behind = [flow for flow in claimed if self._is_left_behind(flow, leases)]
        queued = self._store.queued()
        for workflow in self._engine.bring_to_queue(
            [*queued, *left_behind], lambda executor: is_gone(f"{executor}#", leases)
        ):
            with contextlib.suppress(HeldElsewhereError):  # another worker was faster
                self._around.core.run_anew(workflow)
        return len(queued) + len(claimed)

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
                    log.warning("worker %s has not been heard of for %.0f s", lease.id, lease.age)
                    continue
            living.append(lease)
        return living

    def _is_left_behind(self, workflow: Workflow, leases: Sequence[Lease]) -> bool:
        return all(lease.id != holder(workflow.claim or "") for lease in leases)

    def _resume_what_is_due(self) -> None:
        for workflow in self._store.due(to_datetime(self._around.clock())):
            try:
                self._service.resume_workflow(workflow.id)
            except HoldfastError as error:
                log.warning("workflow %s was to go on by itself: %s", workflow.id, error.message)

    def _leave(self) -> None:
        self._around.leaving.set()
        while self._around.active and not self._around.quit.is_set():
            time.sleep(0.05)
