"""A task that is a shell command, run in the worktree. Exit code 0 is done, any other failed.

The command runs in a process group of its own under a guard that holds the other end of
a pipe: when Holdfast is killed outright, the pipe closes and the guard ends the group, so
that no command goes on alone beside its second attempt.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from typing import IO

from holdfast.config import Settings
from holdfast.errors import CannotDoError, InvalidInputError
from holdfast.model.task import Task
from holdfast.orchestrator.drivers.protocol import Assignment, Done, Failed, Interrupted, Outcome, Report
from holdfast.orchestrator.drivers.tdd import watched_tests

_TAIL_BYTES = 4_000
_GRACE_SECONDS = 5.0

# $$ is the leader of the group, which outlasts a TERM to the group so as to tell how the command ended.
# Descriptor 3 is the pipe to Holdfast; the command gets neither it nor our stdin.
_GUARD = """
exec 3<&0 </dev/null
trap : TERM
( read -r _ <&3; kill -KILL -$$ ) &
guard=$!
/bin/sh -c "$1" 3<&-
code=$?
kill -KILL $guard 2>/dev/null
exit $code
"""


class ShellDriver:
    name = "shell"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def check(self, task: Task) -> None:
        if not task.run:
            raise InvalidInputError(f"task {task.id!r} has no command", hint='give it one: run: "make test"')
        if shutil.which("/bin/sh") is None:
            raise CannotDoError("there is no /bin/sh to run commands with")

    def run(self, assignment: Assignment, report: Report) -> Outcome:
        with tempfile.TemporaryFile() as output, watched_tests(assignment) as tests:
            try:
                process = self._start(assignment, output, tests.environment)
            except OSError as error:
                return Failed(f"the command could not be started: {error.strerror} ({assignment.worktree})")
            with process:
                assignment.stop.on_request(lambda: _end(process))
                code = _wait(process, assignment)
            told = _tail(output)
            if assignment.stop.requested:
                return Interrupted(assignment.stop.reason or "stopped")
            report.found(*tests.found(succeeded=code == 0, output=told))
        if code == 0:
            return Done(told or None)
        return Failed(f"{_meaning(code)}{': ' if told else ''}{told}")

    def _start(
        self, assignment: Assignment, output: IO[bytes], more: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "holdfast", assignment.task.run or "false"],
            cwd=assignment.worktree,
            env={**_environment(assignment), **more},
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


def _environment(assignment: Assignment) -> dict[str, str]:
    return {
        **os.environ,
        "HOLDFAST_WORKFLOW": assignment.workflow_id,
        "HOLDFAST_TASK": assignment.task.id,
        "HOLDFAST_ATTEMPT": str(assignment.attempt),
    }


def _wait(process: subprocess.Popen[bytes], assignment: Assignment) -> int:
    """To its end; from the moment it is asked to stop, no longer than the grace it gets."""
    while not assignment.stop.requested:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(1.0)
    try:
        return process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        _signal(process, signal.SIGKILL)
        return process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal(process, signal.SIGTERM)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _tail(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _TAIL_BYTES))
    text = output.read().decode(errors="replace").replace("\0", "").strip()
    return f"…{text}" if size > _TAIL_BYTES else text


def _meaning(code: int) -> str:
    if code == 127:
        return "command not found (exit code 127)"
    if code == 126:
        return "the command may not be run (exit code 126)"
    if code < 0 or code > 128:
        return f"ended by signal {code - 128 if code > 0 else -code}"
    return f"exit code {code}"
