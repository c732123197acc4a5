"""What executes a task. A driver is a file here and a line in `DRIVERS`.

Test runs within a task are noticed, whatever executes it, through the JUnit XML they leave behind. A task
names the file its tests write, or several with a pattern (`junit: build/*.xml`). Where it names none, pytest
is asked for one through its own variable, which reaches every pytest that the task or its agent starts. What
the newest run in a worktree said is kept in Holdfast's folder there, to compare the next one with.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path, PurePath

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.durable import open_file, replace_file
from holdfast.base.errors import HoldfastError, InvalidInputError
from holdfast.base.ids import file_name_for
from holdfast.capture.tests import TestResults, merged, read_junit, state_after
from holdfast.model.entry import TestsRun
from holdfast.model.task import Task
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Settings
from holdfast.workflows.drivers.protocol import Assignment, Driver, Report, TaskOutcome

DRIVERS = {
    "shell": "holdfast.workflows.drivers.shell:ShellDriver",
    "claude-code": "holdfast.workflows.drivers.claude_code:ClaudeCodeDriver",
    "codex": "holdfast.workflows.drivers.codex:CodexDriver",
    "gemini": "holdfast.workflows.drivers.gemini:GeminiDriver",
    "opencode": "holdfast.workflows.drivers.opencode:OpenCodeDriver",
    "model": "holdfast.workflows.drivers.model:ModelDriver",
}
"""The name in a plan, and the class behind it: called with the settings, loaded when a plan names it."""


def driver_named(name: str, settings: Settings) -> Driver:
    if name not in DRIVERS:
        raise InvalidInputError(f"no such driver: {name!r}", hint=f"available drivers: {', '.join(DRIVERS)}")
    module, _, kind = DRIVERS[name].partition(":")
    return SeesTests(getattr(import_module(module), kind)(settings))


# ── the tests that a task runs ────────────────────────────────────────────────────────────────────

_PYTEST_OPTIONS = "PYTEST_ADDOPTS"
_LARGEST_RECORD = 64 << 20

Stamp = tuple[int, int, int]


class SeesTests:
    """A driver, and what the tests said that ran meanwhile."""

    def __init__(self, driver: Driver, clock: Clock = system_clock) -> None:
        self._driver = driver
        self._clock = clock

    @property
    def name(self) -> str:
        return self._driver.name

    def check(self, task: Task) -> None:
        self._driver.check(task)
        junit = PurePath(task.junit or "")
        if junit.is_absolute() or ".." in junit.parts:
            raise InvalidInputError(
                f"task {task.id!r}: the test report {task.junit} is not in the worktree",
                hint="give a path relative to the worktree: junit: build/tests.xml",
            )

    def run(self, assignment: Assignment, report: Report) -> TaskOutcome:
        if not assignment.worktree.is_dir():
            return self._driver.run(assignment, report)
        seen = _TestReports(assignment)
        outcome = self._driver.run(replace(assignment, environ=seen.environ), report)
        try:
            if found := seen.finding(self._clock):
                report.found(found)
        except (HoldfastError, OSError, ValueError) as error:
            report.say(f"the test report could not be read: {error}")
        return outcome


class _TestReports:
    """The reports that one task may write."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._worktree = assignment.worktree
        self._folder = ProjectLayout(self._worktree).ensure_scratch("tests")
        self._own = (
            self._folder / f"{file_name_for(assignment.workflow_id)}-{file_name_for(assignment.task.id)}.xml"
        )
        self._before = self._stamps()

    @property
    def environ(self) -> Mapping[str, str]:
        given = self._assignment.environ
        if self._assignment.task.junit:
            return given
        options = given.get(_PYTEST_OPTIONS) or os.environ.get(_PYTEST_OPTIONS, "")
        # First, so that a report that the user asks for wins.
        return {**given, _PYTEST_OPTIONS: f"--junitxml={shlex.quote(str(self._own))} {options}".strip()}

    def finding(self, clock: Clock) -> TestsRun | None:
        """What the newest run said; none where none was."""
        fresh = [path for path, stamp in self._stamps().items() if self._before.get(path) != stamp]
        if not fresh:
            return None
        results = merged(read_junit(path, self._worktree) for path in fresh)
        task = self._assignment.task
        state = state_after(
            results,
            before=self._recorded(),
            known=self._assignment.tests,
            command=task.run if not task.prompt else None,
            at=to_datetime(clock()),
        )
        self._record(results)
        return TestsRun(state=state)

    def _stamps(self) -> dict[Path, Stamp]:
        pattern = self._assignment.task.junit
        paths = sorted(self._worktree.glob(pattern)) if pattern else [self._own]
        return {path: _stamp(path) for path in paths if path.is_file()}

    @property
    def _latest(self) -> Path:
        return self._folder / "latest.json"

    def _recorded(self) -> TestResults | None:
        try:
            with open_file(self._latest) as source:
                found = json.loads(source.read(_LARGEST_RECORD))
            return TestResults(frozenset(found["passed"]), dict(found["failed"]), int(found["skipped"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # none yet, or torn: the next run has one to compare with again

    def _record(self, results: TestResults) -> None:
        document = {"passed": sorted(results.passed), "failed": results.failed, "skipped": results.skipped}
        replace_file(self._latest, json.dumps(document).encode())
        self._own.unlink(missing_ok=True)


def _stamp(path: Path) -> Stamp:
    about = path.stat()
    return about.st_mtime_ns, about.st_size, about.st_ino
