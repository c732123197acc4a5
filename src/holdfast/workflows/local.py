"""Running a workflow in this very process: what `run`, `resume` and `approve` do without a worker."""

from __future__ import annotations

import contextlib
import threading
from typing import Self

from holdfast.base.clock import Clock, system_clock
from holdfast.base.errors import SessionAlreadyRunningError
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings
from holdfast.sessions.transitions import Core
from holdfast.store.sql import SqlStore
from holdfast.workflows.drivers import DriverShelf
from holdfast.workflows.lease import HeldLease
from holdfast.workflows.notices import Notices
from holdfast.workflows.recorder import RunOverError
from holdfast.workflows.runner import SessionRun
from holdfast.workflows.runner_context import Listener, RunnerContext
from holdfast.workflows.service import OrchestratorService


def _ignore(*_: object) -> None:
    pass


class Here:
    """`with Here(settings) as here:` claim a workflow with `here.claim`, then `here.run` it."""

    def __init__(self, settings: Settings, listener: Listener = _ignore, clock: Clock = system_clock) -> None:
        self._settings, self._clock = settings, clock
        self._notices = Notices(settings.notify, listener)
        self._stack = contextlib.ExitStack()
        self.resting = threading.Event()
        """Set while nothing runs and it only waits to go on."""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            store = SqlStore(self._settings.db)
            stack.callback(store.close)
            self.service = OrchestratorService(self._settings, store=store, clock=self._clock)
            presence = stack.enter_context(HeldLease(store.leases, "run"))
            self.claim = presence.claim()
            self._executor_id = presence.id
            self._around = RunnerContext(
                core=Core(store, self._clock),
                settings=self._settings,
                drivers=DriverShelf(self._settings),
                claim=lambda: self.claim,
                listener=self._notices,
                clock=self._clock,
            )
            stack.callback(self._around.watch.close)
            stack.callback(self._notices.close)
            self._stack = stack.pop_all()
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

        def open_run(workflow_id: str, run_id: str) -> SessionRun:
            return SessionRun(workflow_id, run_id, self._around)

        with Engine(self._settings.db, self._executor_id, open_run, concurrency=None) as engine:
            session = engine.run_here(workflow)
            while not session.done():
                try:
                    session.result(0.5)  # in pieces, so that signals get through
                except TimeoutError:
                    continue
                except RunOverError:
                    raise SessionAlreadyRunningError(
                        f"workflow {workflow.id} was taken over by somebody else"
                    ) from None
        return self.service.workflow(workflow.id)
