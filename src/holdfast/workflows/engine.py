"""DBOS, as we use it: one durable workflow a session, and a step from boundary to boundary.

Only a process that runs work opens an engine, under an executor id of its own. DBOS is
a singleton in its process, so there is one engine at a time.

What the session's function does depends on nothing but what its steps returned: DBOS
replays those in order after a crash, and the first one that was not recorded runs for real.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from math import ceil
from typing import Any, NamedTuple, Self, cast

from croniter import CroniterBadDateError, croniter  # type: ignore[import-untyped]  # DBOS brings it
from dbos import (
    DBOS,
    DBOSConfig,
    DBOSPortableJSONSerializer,
    SetEnqueueOptions,
    SetWorkflowID,
    WorkflowHandle,
)

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.errors import HoldfastError, InvalidInputError
from holdfast.base.faults import fault_point
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Limit
from holdfast.store.engine import database_errors, engine_database, one_at_a_time, open_bare_engine, writing
from holdfast.workflows.drivers.protocol import StopSignal
from holdfast.workflows.runner import GO_ON, SessionRun, Verdict

QUEUE = "holdfast"
SCHEDULES_EVERY = 5.0
"""Seconds between two looks at which schedules there are."""
PROTOCOL = "1"
"""What DBOS calls the application's version: sessions are taken over only by the same one."""

_NEVER_AGAIN = ("SUCCESS", "ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED")
_LAUNCH_LOCK = 7_310_003
"""Two first launches at once would both make DBOS's tables."""
OpenRun = Callable[[str, str], SessionRun]


class Schedule(NamedTuple):
    name: str
    cron: str
    zone: str
    given: dict[str, Any]
    """The plan's file, the worktree and the options."""


_open_run: OpenRun | None = None
StartPlan = Callable[[dict[str, Any]], str]
_start_plan: StartPlan | None = None


@DBOS.workflow(name="holdfast.session", max_recovery_attempts=None)
def _session(workflow_id: str, run_id: str) -> str:
    if _open_run is None:
        raise RuntimeError("no engine is open in this process")
    verdict: Verdict = GO_ON
    with _open_run(workflow_id, run_id) as run:
        while verdict == GO_ON:
            verdict = DBOS.run_step({"name": "advance"}, run.advance)
            fault_point("engine.advanced")
    return verdict


@DBOS.workflow(name="holdfast.scheduled")
def _scheduled(_at: datetime, given: Any) -> str:
    """Its time has come: the plan is read and queued. A worker does it, and one of them."""
    if _start_plan is None:
        raise RuntimeError("no worker's engine is open in this process")
    return DBOS.run_step({"name": "start"}, _start_plan, given)


class Engine:
    def __init__(
        self,
        database: str,
        executor_id: str,
        open_run: OpenRun,
        concurrency: int | None,
        start_plan: StartPlan | None = None,
        limits: Mapping[str, Limit] | None = None,
    ) -> None:
        """`concurrency`: sessions it takes from each queue at a time; None takes none."""
        self._limits = limits or {}
        self.permits = Permits(self._limits) if self._limits else None
        self._database, self._executor_id = database, executor_id
        self._open_run, self._concurrency = open_run, concurrency
        self._start_plan = start_plan

    def __enter__(self) -> Self:
        # DBOS calls functions of the module, in this process alone.
        global _open_run, _start_plan
        _open_run, _start_plan = self._open_run, self._start_plan
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
            "scheduler_polling_interval_sec": SCHEDULES_EVERY,
        }
        DBOS(config=config)
        queues = [QUEUE, *self._limited_queues()] if self._concurrency else []
        DBOS.listen_queues([*queues, *(self.permits.queues if self.permits else ())])
        try:
            with database_errors(url):
                self._launch()
        except HoldfastError:
            self.__exit__()
            raise
        return self

    def _launch(self) -> None:
        with one_at_a_time(self._engine, _LAUNCH_LOCK):  # both would make DBOS's tables
            DBOS.launch()
        if self._concurrency:
            self._register_queues(self._concurrency)
        if self.permits:
            self.permits.register()

    def _register_queues(self, concurrency: int) -> None:
        for name, most in {QUEUE: None, **self._limited_queues()}.items():
            DBOS.register_queue(
                name,
                worker_concurrency=min(concurrency, most or concurrency),
                global_concurrency=most,
                polling_interval_sec=0.1,
                on_conflict="always_update",
            )

    def _limited_queues(self) -> dict[str, int]:
        """With how many sessions of each may run at a time, on all workers."""
        return {f"{QUEUE}.{name}": one.sessions for name, one in self._limits.items() if one.sessions}

    def _queue_of(self, workflow: Workflow) -> str:
        name = f"{QUEUE}.{workflow.options.driver}"
        return name if name in self._limited_queues() else QUEUE

    def __exit__(self, *_: object) -> None:
        global _open_run, _start_plan  # noqa: PLW0603
        if self.permits:
            self.permits.close()
        DBOS.destroy()
        _open_run = _start_plan = None
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
        for workflow in sorted(waiting, key=lambda flow: flow.options.priority):
            run_id, queue = _run_id(workflow), self._queue_of(workflow)
            status = known.get(run_id)
            if status is None:
                with SetWorkflowID(run_id), SetEnqueueOptions(priority=workflow.options.priority):
                    DBOS.enqueue_workflow(queue, _session, workflow.id, run_id)
                fault_point("engine.enqueued")
            elif status.status == "PENDING" and is_dead(status.executor_id or ""):
                DBOS.cancel_workflow(run_id)
                fault_point("engine.taken")
                DBOS.resume_workflow(run_id, queue_name=queue)
            elif status.status == "CANCELLED":
                DBOS.resume_workflow(run_id, queue_name=queue)
            elif status.status in _NEVER_AGAIN:
                over.append(workflow)
        return over

    def schedule(
        self, name: str, cron: str, zone: str | None, given: dict[str, Any], *, now: datetime
    ) -> None:
        """Have a worker's `start_plan` called with this whenever it is time; in place of one of that name."""
        _refuse_what_never_comes(cron, now)
        DBOS.delete_schedule(name)
        DBOS.register_queue(QUEUE, polling_interval_sec=0.1, on_conflict="never_update")
        DBOS.create_schedule(
            schedule_name=name,
            workflow_fn=cast("Any", _scheduled),  # DBOS expects no result, and keeps it
            schedule=cron,
            context=given,
            cron_timezone=zone,
            queue_name=QUEUE,
        )

    def schedules(self) -> list[Schedule]:
        return [
            Schedule(one["schedule_name"], one["schedule"], one["cron_timezone"] or "UTC", one["context"])
            for one in DBOS.list_schedules()
        ]

    def last_start(self, name: str) -> tuple[datetime, str] | None:
        """When it was last due, and what came of it."""
        found = DBOS.list_workflows(workflow_id_prefix=f"sched-{name}-", sort_desc=True, limit=1)
        if not found or found[0].created_at is None:
            return None
        return to_datetime(found[0].created_at / 1000), str(found[0].output or found[0].status.lower())

    def unschedule(self, name: str) -> None:
        DBOS.delete_schedule(name)

    def forget(self, run_id: str) -> None:
        """A run that is over for us is over for DBOS too."""
        DBOS.cancel_workflow(run_id)


def _refuse_what_never_comes(cron: str, now: datetime) -> None:
    hint = 'minute, hour, day, month and weekday: "0 3 * * *"'
    if not croniter.is_valid(cron, second_at_beginning=True):
        raise InvalidInputError(f"not a schedule: {cron!r}", hint=hint)
    try:
        croniter(cron, now, second_at_beginning=True).get_next()
    except CroniterBadDateError:
        raise InvalidInputError(f"the schedule {cron!r} never comes", hint=hint) from None


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


# ── limits ─────────────────────────────────────────────────────────────────────────────────────────

# A limit is a queue of DBOS that starts so many runs a minute, whichever process takes them. Whoever wants to
# make a call puts a run that does nothing in there and waits for its end. Tokens are known after a call only:
# then as many runs go in first as it was worth, and the next call waits behind them.

PERIOD = 60.0
_PORTIONS = 60
"""Into how many runs the tokens of a minute are divided."""
_LOOK_SECONDS = 0.1
_TOLD_AFTER = 1.0
_PAID, _ASKED = 1, 2
"""What was used goes before what is asked for."""
_KEPT_SECONDS = 300.0


@DBOS.workflow(name="holdfast.permit")
def _permit() -> None:
    pass


class Permits:
    def __init__(self, limits: Mapping[str, Limit], clock: Clock = system_clock) -> None:
        self._clock = clock
        self._requests = {
            name: (f"{QUEUE}.requests.{name}", one.requests_per_minute)
            for name, one in limits.items()
            if one.requests_per_minute
        }
        self._tokens = {
            name: (f"{QUEUE}.tokens.{name}", one.tokens_per_minute)
            for name, one in limits.items()
            if one.tokens_per_minute
        }
        # Threads of its own: in a thread that executes a step, DBOS takes every call for a part of it.
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="permits")

    @property
    def queues(self) -> list[str]:
        return [queue for queue, _ in (*self._requests.values(), *self._tokens.values())]

    def register(self) -> None:
        wanted = [*self._requests.values(), *((queue, _PORTIONS) for queue, _ in self._tokens.values())]
        for queue, most in wanted:
            DBOS.register_queue(
                queue,
                limiter={"limit": most, "period": PERIOD},
                polling_interval_sec=_LOOK_SECONDS,
                on_conflict="always_update",
            )
        self._tidy()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def wait(self, names: Sequence[str], stop: StopSignal, told: Callable[[str], None]) -> None:
        queues = [
            found[0] for kind in (self._requests, self._tokens) for name in names if (found := kind.get(name))
        ]
        if queues:
            ids = self._pool.submit(self._enter, queues, _ASKED).result()
            self._wait_for(ids, stop, lambda: told(f"waiting: a limit of {' or '.join(names)} is reached"))

    def _wait_for(self, ids: Sequence[str], stop: StopSignal, told: Callable[[], None]) -> None:
        began, is_told = time.monotonic(), False
        while self._pool.submit(_unfinished, ids).result():
            if stop.wait(_LOOK_SECONDS):
                self._pool.submit(DBOS.cancel_workflows, list(ids)).result()
                return
            if not is_told and time.monotonic() - began > _TOLD_AFTER:
                is_told = True
                told()

    def charge(self, names: Sequence[str], tokens: int) -> None:
        for name in names:
            if found := self._tokens.get(name):
                queue, most = found
                portions = ceil(tokens * _PORTIONS / most) - 1  # one was taken when it was asked for
                self._pool.submit(self._enter, [queue] * portions, _PAID).result()

    def _enter(self, queues: Sequence[str], priority: int) -> list[str]:
        ids = [f"permit-{uuid.uuid4()}" for _ in queues]
        for name, queue in zip(ids, queues, strict=True):
            with SetWorkflowID(name), SetEnqueueOptions(priority=priority):
                DBOS.enqueue_workflow(queue, _permit)
        return ids

    def _tidy(self) -> None:
        """What counts for no limit any more."""
        old = DBOS.list_workflows(
            name="holdfast.permit",
            status=["SUCCESS", "CANCELLED", "ERROR"],
            end_time=to_datetime(self._clock() - _KEPT_SECONDS).isoformat(),
            limit=10_000,
            load_input=False,
            load_output=False,
        )
        if old:
            DBOS.delete_workflows([one.workflow_id for one in old])


def _unfinished(ids: Sequence[str]) -> bool:
    found = DBOS.list_workflows(workflow_ids=list(ids), load_input=False, load_output=False)
    return any(one.status in ("ENQUEUED", "PENDING", "DELAYED") for one in found)
