"""Where the tests stand after a command: from the JUnit XML it wrote, else from what it printed.

pytest is asked for the XML through its environment; for any other runner the task names the
file (`junit:`). A command that succeeds although tests fail (`pytest || true`) expects them to:
that is the red phase of a test-first cycle.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.capture.junit import TestResults, read_junit
from holdfast.clock import system_clock, to_datetime
from holdfast.findings.testruns import is_test_command, test_run
from holdfast.model.entry import TestsRun
from holdfast.model.findings import TestState
from holdfast.orchestrator.drivers.protocol import Assignment


@dataclass(frozen=True)
class WatchedTests:
    command: str
    files: tuple[Path, ...] = ()
    began: float = 0.0
    environment: dict[str, str] = field(default_factory=dict[str, str])

    def found(self, *, succeeded: bool, output: str) -> Iterator[TestsRun]:
        """None where the command ran no tests."""
        results = next(filter(None, map(self._read, self.files)), None)
        if results is None and not is_test_command(self.command):
            return
        failing, summary = _told(results, self.command, succeeded=succeeded, output=output)
        passed = succeeded and not failing
        yield TestsRun(
            state=TestState(
                phase="green" if passed else "red",
                failing_tests=failing,
                expected_failures=failing if succeeded else (),
                last_test_run_at=to_datetime(system_clock()),
                last_test_command=self.command,
                last_test_output_summary=summary,
            )
        )

    def _read(self, path: Path) -> TestResults | None:
        """Not one that an earlier command left there."""
        try:
            if path.stat().st_mtime < self.began - 2:
                return None
        except OSError:
            return None
        return read_junit(path)


def _told(
    results: TestResults | None, command: str, *, succeeded: bool, output: str
) -> tuple[tuple[str, ...], str | None]:
    if results is not None:
        return results.failing, results.summary
    run = test_run(0, command, not succeeded, output)
    return run.failing, run.summary or None


@contextmanager
def watched_tests(assignment: Assignment) -> Generator[WatchedTests]:
    command = assignment.task.run or ""
    named = assignment.task.junit
    files = (assignment.worktree / named,) if named else ()
    if not ("pytest" in command and is_test_command(command)):
        yield WatchedTests(command, files, system_clock())
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-tests-") as folder:
        ours = Path(folder) / "junit.xml"
        options = f"{os.environ.get('PYTEST_ADDOPTS', '')} {shlex.quote(f'--junit-xml={ours}')}".strip()
        yield WatchedTests(command, (*files, ours), system_clock(), {"PYTEST_ADDOPTS": options})
