"""DBOS, as we use it: one durable workflow a session, and a step from boundary to boundary.

Only a process that runs work opens an engine, under an executor id of its own. DBOS is
a singleton in its process, so there is one engine at a time.

What the session's function does depends on nothing but what its steps returned: DBOS
replays those in order after a crash, and the first one that was not recorded runs for real.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Self

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID, WorkflowHandle
from sqlalchemy import exc

from holdfast.base.errors import StorageError
from holdfast.model.workflow import Workflow
from holdfast.store.engine import engine_database, one_at_a_time, open_bare_engine, writing
from holdfast.workflows.runner import GO_ON, SessionRun, Verdict

QUEUE = "holdfast"
PROTOCOL = "1"
"""What DBOS calls the application's version: sessions are taken over only by the same one."""

_NEVER_AGAIN = ("SUCCESS", "ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
_LAUNCH_LOCK = 7_310_003
"""Two first launches at once would both make DBOS's tables."""
OpenRun = Callable[[str, str], SessionRun]

_open_run: OpenRun | None = None


@DBOS.workflow(name="holdfast.session", max_recovery_attempts=None)
def _session(workflow_id: str, run_id: str) -> str:
    if _open_run is None:
        raise RuntimeError("no engine is open in this process")
    verdict: Verdict = GO_ON
    with _open_run(workflow_id, run_id) as run:
        while verdict == GO_ON:
            verdict = DBOS.run_step({"name": "advance"}, run.advance)
    return verdict


class Engine:
    def __init__(self, database: str, executor_id: str, open_run: OpenRun, concurrency: int | None) -> None:
        """`concurrency`: sessions it takes from the queue at a time; None takes none."""
        self._database, self._executor_id = database, executor_id
        self._open_run, self._concurrency = open_run, concurrency

    def __enter__(self) -> Self:
        global _open_run  # noqa: PLW0603 - DBOS calls a function of the module, in this process alone
        _open_run = self._open_run
        url = engine_database(self._database)
        self._engine = open_bare_engine(url)
        config: DBOSConfig = {
            "name": "holdfast",
            "system_database_url": self._engine.url.render_as_string(hide_password=False),
            "system_database_engine": writing(self._engine),
            "executor_id": self._executor_id,
            "application_version": PROTOCOL,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "CRITICAL",
            "use_listen_notify": False,
            # No message is ever sent; but the thread that looks for them is waited for at the end.
            "notification_listener_polling_interval_sec": 0.05,
        }
        DBOS(config=config)
        DBOS.listen_queues([QUEUE] if self._concurrency else [])
        try:
            with one_at_a_time(self._engine, _LAUNCH_LOCK):  # both would make DBOS's tables
                DBOS.launch()
            if self._concurrency:
                DBOS.register_queue(
                    QUEUE,
                    worker_concurrency=self._concurrency,
                    polling_interval_sec=0.1,
                    on_conflict="always_update",
                )
        except exc.DBAPIError as error:
            self.__exit__()
            raise StorageError(f"cannot open the engine's tables: {error.orig}") from error
        return self

    def __exit__(self, *_: object) -> None:
        global _open_run  # noqa: PLW0603
        DBOS.destroy()
        _open_run = None
        self._engine.dispose()

    def run_here(self, workflow: Workflow) -> Future[str]:
        """Start the workflow's run in this process."""
        with SetWorkflowID(_run_id(workflow)):
            handle = DBOS.start_workflow(_session, workflow.id, _run_id(workflow))
        return _result_of(handle)

    def bring_to_queue(
        self, waiting: Sequence[Workflow], is_dead: Callable[[str], bool]
    ) -> Sequence[Workflow]:
        """See to it that each of these runs is in the queue or runs; returns those it cannot run any more.

        Whichever worker does it, and however often: a run has one name, and DBOS one row for it.
        """
        if not waiting:
            return ()  # to DBOS no names mean all of them
        known = {
            status.workflow_id: status
            for status in DBOS.list_workflows(
                workflow_ids=[_run_id(workflow) for workflow in waiting], load_input=False, load_output=False
            )
        }
        over: list[Workflow] = []
        for workflow in waiting:
            run_id = _run_id(workflow)
            status = known.get(run_id)
            if status is None:
                with SetWorkflowID(run_id):
                    DBOS.enqueue_workflow(QUEUE, _session, workflow.id, run_id)
            elif status.status == "PENDING" and is_dead(status.executor_id or ""):
                DBOS.cancel_workflow(run_id)
                DBOS.resume_workflow(run_id, queue_name=QUEUE)
            elif status.status == "CANCELLED":
                DBOS.resume_workflow(run_id, queue_name=QUEUE)
            elif status.status in _NEVER_AGAIN:
                over.append(workflow)
        return over

    def forget(self, run_id: str) -> None:
        """A run that is over for us is over for DBOS too."""
        DBOS.cancel_workflow(run_id)


def _run_id(workflow: Workflow) -> str:
    if workflow.run_id is None:
        raise ValueError(f"workflow {workflow.id} has no run")
    return workflow.run_id


def _result_of(handle: WorkflowHandle[str]) -> Future[str]:
    """The session's end, also where it does not come to a result: `get_result` would wait for ever."""
    future: Future[str] = Future()

    def wait() -> None:
        try:
            future.set_result(handle.get_result())
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(error)

    threading.Thread(target=wait, name="holdfast-session", daemon=True).start()
    return future
