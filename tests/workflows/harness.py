"""What the tests of workflows share: a project, sessions in this process, programs beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from cli.harness import Place, start_program
from holdfast.model.entry import Entry
from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings
from holdfast.workflows.drivers.protocol import Assignment, Report, TaskOutcome
from holdfast.workflows.plan import Plan, parse_plan
from holdfast.workflows.service import OrchestratorService
from holdfast.workflows.worker import Here

PATIENCE = 60.0
T = TypeVar("T")


def wait_for(condition: Callable[[], T], seconds: float = PATIENCE) -> T:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
    return found


def plan_of(*commands: str, chained: bool = True, **options: Any) -> Plan:
    """A task a command, t1, t2, …, each after the one before."""
    tasks = "".join(
        f"  - id: t{number}\n    run: {command!r}\n"
        + (f"    depends_on: [t{number - 1}]\n" if chained and number > 1 else "")
        for number, command in enumerate(commands, start=1)
    )
    return parse_plan(f"issue: {{id: W, title: Work}}\ntasks:\n{tasks}", **options)


class Workshop:
    """A project and its database; sessions run in this process."""

    def __init__(self, place: Place, database: str) -> None:
        self.place = place
        self.project = place.project
        self.database = database
        place.environment["HOLDFAST_DB"] = database
        self.settings: Settings = replace(place.settings(), db=database)

    def run(self, plan: Plan) -> Workflow:
        with Here(self.settings) as here:
            return here.run(here.service.start(plan, claim=here.claim))

    def resume(self, workflow: Workflow, **how: Any) -> Workflow:
        with Here(self.settings) as here:
            return here.run(here.service.resume_workflow(workflow.id, claim=here.claim, **how).workflow)

    @contextmanager
    def service(self) -> Generator[OrchestratorService]:
        with OrchestratorService(self.settings) as service:
            yield service

    def entries(self, workflow: Workflow, *kinds: type) -> list[Entry]:
        with self.service() as service:
            found = [event.entry for event in service.events(workflow.id)]
        return [entry for entry in found if not kinds or isinstance(entry, kinds)]

    def tasks(self, workflow: Workflow) -> dict[str, Task]:
        with self.service() as service:
            return service.tasks(workflow.id).by_id

    def log(self, name: str = "log") -> list[str]:
        path = self.project / name
        return path.read_text().split() if path.exists() else []

    @contextmanager
    def program(self, *arguments: str) -> Generator[subprocess.Popen[str]]:
        """The program beside us; killed at the end, should it still be there."""
        with start_program(arguments, cwd=self.project, env=self.place.environment, text=True) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGCONT)
                    process.kill()


class ScriptedDriver:
    """Does what its script says, a call a task; remembers what it was asked."""

    name = "scripted"

    def __init__(self, script: Sequence[Callable[[Assignment, Report], TaskOutcome]]) -> None:
        self._script = list(script)
        self.asked: list[Assignment] = []

    def check(self, task: Task) -> None:
        pass

    def run(self, assignment: Assignment, report: Report) -> TaskOutcome:
        self.asked.append(assignment)
        return self._script.pop(0)(assignment, report)


def python_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
