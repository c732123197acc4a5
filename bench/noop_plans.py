"""Workflows whose tasks do nothing, and what runs them: for the benchmark `workflows`."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from dbos import DBOS, SetWorkflowID

import holdfast.workflows.drivers as shelf
from holdfast.model.entry import Entry, TaskFinished, Warned
from holdfast.model.task import Task
from holdfast.model.usage import ModelCall, UsageMetrics
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings, load_settings
from holdfast.sessions.transitions import Core, Facts
from holdfast.store.sql import SqlStore
from holdfast.workflows.drivers.protocol import Assignment, Done, Report, TaskOutcome
from holdfast.workflows.engine import Engine
from holdfast.workflows.plan import Plan, parse_plan
from holdfast.workflows.runner import SessionRun
from holdfast.workflows.runner_context import RunnerContext
from holdfast.workflows.service import OrchestratorService
from holdfast.workflows.worker import Worker

NAP = 0.2
"""Seconds of a task that sleeps."""
AT_A_TIME = 4
"""Workflows of a worker."""
_CLAIM = "run-bench-1-0#1"
_FACTS = Facts(reason="bench")


class NoopDriver:
    name = "noop"

    def __init__(self, _settings: Settings) -> None:
        self.changes = False
        self._number = 0

    def check(self, task: Task) -> None:
        pass

    def run(self, assignment: Assignment, report: Report) -> TaskOutcome:  # noqa: ARG002
        if assignment.task.prompt == "sleep":
            time.sleep(NAP)
        if self.changes:
            self._number += 1
            (assignment.worktree / "file0").write_text(f"{self._number}\n")
        return Done()


shelf.DRIVERS["noop"] = f"{__name__}:NoopDriver"


def plan(tasks: int, prompt: str = "nothing") -> Plan:
    lines = "".join(f"  - {{id: t{number}, prompt: {prompt}}}\n" for number in range(tasks))
    return parse_plan(f"issue: {{id: bench, title: Nothing at all}}\ndriver: noop\ntasks:\n{lines}")


def _settings(database: str, folder: Path) -> Settings:
    """The worktree is a folder of its own: what peers write beside it is not the workflow's."""
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    return load_settings({"HOLDFAST_HOME": str(folder / "home"), "HOLDFAST_DB": database}, project)


def _nothing() -> str:
    return "go_on"


@DBOS.workflow(name="bench.bare")
def _bare(steps: int) -> str:
    for _ in range(steps):
        DBOS.run_step({"name": "advance"}, _nothing)
    return "done"


class Shop:
    """An engine, a store, and the workflow that is next."""

    def __init__(self, database: str, folder: Path) -> None:
        self._settings = _settings(database, folder)
        self._folder = self._settings.project
        self._store = SqlStore(database)
        self._service = OrchestratorService(self._settings, store=self._store)
        self._driver = driver = NoopDriver(self._settings)
        self._around = RunnerContext(
            Core(self._store), self._settings, drivers=lambda _name: driver, claim=lambda: _CLAIM
        )
        self._engine = Engine(database, "run-bench-1-0", self._open, concurrency=None)
        self._next: Workflow | None = None
        self._number = 0

    def _open(self, workflow_id: str, run_id: str) -> SessionRun:
        return SessionRun(workflow_id, run_id, self._around)

    def __enter__(self) -> Self:
        self._engine.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.__exit__(kind, error, trace)
        self._around.watch.close()
        self._store.close()

    def start(
        self, tasks: int, folder: Path | None = None, *, recorded: bool = True, changes: bool = False
    ) -> None:
        self._around.settings = replace(self._settings, record_files=recorded)
        self._driver.changes = changes
        self._next = self._service.start(plan(tasks), folder or self._folder, claim=_CLAIM)

    def run(self) -> None:
        assert self._next is not None
        assert self._engine.run_here(self._next).result() == "completed"

    def bare(self, steps: int) -> None:
        self._number += 1
        with SetWorkflowID(f"bare-{self._number}"):
            DBOS.start_workflow(_bare, steps).get_result()

    def queue(self, tasks: int, name: str, prompt: str) -> None:
        (self._folder / name).mkdir()
        self._opened(tasks, name, None, prompt)

    def store_paused(self, number: int) -> None:
        """As many paused workflows, each with its events and its snapshot."""
        for _ in range(number):
            self._number += 1
            workflow = self._opened(2, f"paused-{self._number}", _CLAIM)
            self._service.core.settle(workflow.id, _FACTS)

    def _opened(self, tasks: int, name: str, claim: str | None, prompt: str = "nothing") -> Workflow:
        """A new workflow without a look at git, which would cost more than all the rest."""
        wanted = plan(tasks, prompt)
        return self._service.core.open(
            wanted.issue,
            str(self._folder / name),
            task_dag=wanted.tasks,
            options=wanted.options,
            claim=claim,
        )


def work_off(database: str, folder: Path) -> tuple[float, float]:
    """Work until the queue is empty; when the first and the last task ended."""
    ends: list[float] = []

    def note(_workflow_id: str, what: Entry | UsageMetrics | ModelCall | str) -> None:
        if isinstance(what, TaskFinished):
            ends.append(time.time())

    Worker(_settings(database, folder), concurrency=AT_A_TIME, listener=note).run(until_idle=True)
    return (min(ends), max(ends)) if ends else (time.time(), 0.0)


def changed_by_many(database: str, writers: int, changes: int) -> float:
    """Changes a second, by so many threads, each of a workflow of its own."""
    store = SqlStore(database)
    core, wanted = Core(store), plan(1)
    flows = [
        core.open(wanted.issue, f"/w{number}", task_dag=wanted.tasks, options=wanted.options, claim=_CLAIM)
        for number in range(writers)
    ]

    def change(workflow: Workflow) -> None:
        for _ in range(changes):
            core.record(workflow.id, Warned(text="bench"))

    began = time.perf_counter()
    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(change, flows))
    seconds = time.perf_counter() - began
    store.close()
    return writers * changes / seconds
