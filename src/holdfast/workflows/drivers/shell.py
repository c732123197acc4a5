"""A task that is a shell command, run in the worktree. Exit code 0 is done, any other failed."""

from __future__ import annotations

import shutil

from holdfast.base.errors import CannotDoError, InvalidInputError
from holdfast.model.task import Task
from holdfast.project.settings import Settings
from holdfast.workflows.drivers.guarded import Guarded, meaning
from holdfast.workflows.drivers.protocol import (
    Assignment,
    Done,
    Failed,
    Report,
    TaskInterrupted,
    TaskOutcome,
)

_LOOK_SECONDS = 0.2


class ShellDriver:
    name = "shell"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def check(self, task: Task) -> None:
        if not task.run:
            raise InvalidInputError(f"task {task.id!r} has no command", hint='give it one: run: "make test"')
        if shutil.which("/bin/sh") is None:
            raise CannotDoError("/bin/sh not found")

    def run(self, assignment: Assignment, report: Report) -> TaskOutcome:
        if assignment.stop.requested:
            return TaskInterrupted(assignment.stop.reason or "stopped")
        try:
            process = Guarded(["/bin/sh", "-c", assignment.task.run or "false"], assignment)
        except OSError as error:
            return Failed(f"the command could not be started: {error.strerror} ({assignment.worktree})")
        with process:
            while (code := process.wait(_LOOK_SECONDS)) is None:
                report.output(process.news())
            if code != 0:
                process.end()  # what it left running would run beside the next attempt
            report.output(process.news(is_last=True))
            told = process.tail
            was_stopped = assignment.stop.requested
        if was_stopped:
            return TaskInterrupted(assignment.stop.reason or "stopped", _without_the_shells_words(told))
        if code == 0:
            return Done(told or None)
        return Failed(f"{meaning(code or 0)}{': ' if told else ''}{told}")


def _without_the_shells_words(printed: str) -> str:
    """The shell around a command says how it ended, where that was by a signal."""
    while printed.rpartition("\n")[2] in ("Terminated", "Killed"):
        printed = printed.rpartition("\n")[0]
    return printed
