"""What the tasks of a session change in the files of its worktree, recorded so that it can be taken back.

A session is one transaction of the side-car, what a task changed is one change of it: whatever differs in the
tree when the task ends, by whomever's hand, a shell's included. The worktree is watched from the first task
to the session's end. Tasks side by side share the tree: a change then names all that ran.

Recording is never in a task's way: what cannot be recorded is a warning among the workflow's events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from holdfast.base.clock import Clock
from holdfast.base.errors import HoldfastError, IllegalTransitionError
from holdfast.model.entry import Warned
from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.project.layout import ProjectLayout
from holdfast.sessions.standing import may_be_undone
from holdfast.sessions.undone import session_of
from holdfast.undo.state import LedgerEntry, TasksEnded, task_name
from holdfast.undo.transactions import SideCar, UndoOutcome

log = logging.getLogger("holdfast.runner")

PATIENCE = 10.0
_INSTANT = 0.002
"""Seconds: shorter than starting any command takes."""


def transaction_name(workflow_id: str, session_number: int) -> str:
    return f"{workflow_id}-s{session_number}"


def restore_files(
    folder: Path, workflow_id: str, session_number: int, *, incomplete: bool = False, dry_run: bool = False
) -> list[UndoOutcome]:
    """Take back what the workflow's sessions after that one changed, an undo each; all of it or nothing,
    unless it may be `incomplete`."""
    with SideCar(folder) as sidecar:
        later = [
            (one.id, [entry.id for entry in one.changes])
            for one in sidecar.family(workflow_id)[::-1]
            if session_of(one.id, workflow_id) > session_number and one.changes
        ]
        return sidecar.rewind(later, partial=incomplete, complete=not incomplete, dry_run=dry_run)


def _named(task: Task) -> str:
    return task.id if task.description in ("", task.id) else f"{task.id}: {task.description}"


def is_of_task(entry: LedgerEntry, task: Task) -> bool:
    """Whether a recorded change is of this task, alone or with others."""
    return task_name(task.id) in entry.tasks


class FileRecorder:
    def __init__(self, folder: Path | None, workflow: Workflow, clock: Clock) -> None:
        """With no folder, nothing is recorded."""
        self._folder, self._clock = folder, clock
        self._workflow_id = workflow.id
        self._name = transaction_name(workflow.id, workflow.session_count)
        self._sidecar: SideCar | None = None
        self._transaction: str | None = None
        self._unlooked: list[Task] = []
        self._is_noted = self._notes_every_end = False
        self._unlooked_seconds = 0.0
        self._warnings: dict[str, bool] = {}
        """What could not be done, and whether it was told."""

    def begin(self) -> None:
        """Before a task starts: what was changed so far is somebody else's."""
        if self._folder is None or self._transaction is not None:
            return
        folder = self._folder

        def take_up() -> None:
            if self._sidecar is None:
                self._sidecar = SideCar(folder, clock=self._clock, patience=PATIENCE)
            self._transaction = self._sidecar.take_up(self._workflow_id, self._name)
            # Then a task may run again of which something was undone, in a copy or from an older snapshot.
            self._notes_every_end = may_be_undone(ProjectLayout(folder).sidecar, self._workflow_id)

        self._attempt("file changes made by tasks are not recorded", take_up)

    def record(
        self, ended: Iterable[Task], running: Collection[Task], seconds: float, *, is_noted: bool = False
    ) -> None:
        """What was changed since the last time, when these tasks have ended and those still run.

        `seconds` is how long they took: those of no time at all share one look at the tree. `is_noted`: that
        they ended is recorded even where they changed nothing.
        """
        self._unlooked += ended
        self._is_noted |= is_noted or self._notes_every_end
        self._unlooked_seconds += seconds
        if self._transaction is None or self._unlooked_seconds < _INSTANT or not self._unlooked:
            return
        names = tuple(task.id for task in running)
        description = f"{self._told()} (beside {', '.join(names)})" if names else self._told()
        first, told = self._unlooked[0].id, self._ended(running)
        self._unlooked, self._unlooked_seconds, self._is_noted = [], 0.0, False
        self._attempt(
            f"what task {first} changed in files is not recorded", lambda: self._record(description, told)
        )

    def _told(self) -> str:
        return "; ".join(_named(task) for task in self._unlooked)

    def _ended(self, beside: Collection[Task] = ()) -> TasksEnded:
        names = tuple(task_name(task.id) for task in self._unlooked)
        return TasksEnded(names, tuple(task_name(task.id) for task in beside), self._is_noted)

    def _record(self, description: str, ended: TasksEnded) -> None:
        if self._sidecar is None or self._transaction is None:
            return
        try:
            found = self._sidecar.record(self._transaction, description, keeps_watching=True, ended=ended)
        except IllegalTransitionError as error:
            self._go_on_in(self._sidecar.take_up(self._workflow_id, self._name), error.message)
            return
        if found is not None and found.transaction_id != self._transaction:
            self._go_on_in(found.transaction_id, f"transaction {self._transaction} was rolled back")

    def _go_on_in(self, transaction_id: str, why: str) -> None:
        self._transaction = transaction_id
        self._warn(f"{why} while it ran; what follows is recorded in {transaction_id}")

    def end(self) -> None:
        """The session is over: its changes are meant to stay."""
        sidecar, transaction = self._sidecar, self._transaction
        if sidecar is None or transaction is None:
            return
        self._transaction = None
        self._attempt(
            f"transaction {transaction} was not closed",
            lambda: sidecar.finish(transaction, self._told(), ended=self._ended()),
        )

    def close(self) -> None:
        """The runner leaves. A session that was not closed goes on elsewhere, or was killed there."""
        sidecar, transaction = self._sidecar, self._transaction
        self._sidecar = self._transaction = None
        if sidecar is None:
            return
        if transaction is not None:
            self._attempt(
                f"transaction {transaction} was not left",
                lambda: sidecar.let_go(transaction, self._told(), ended=self._ended()),
            )
        sidecar.close()

    def warnings(self) -> list[Warned]:
        """What was not told yet; each thing once in a session."""
        new = [text for text, told in self._warnings.items() if not told]
        self._warnings |= dict.fromkeys(new, True)
        return [Warned(text=text) for text in new]

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            log.warning("%s", text)
        self._warnings.setdefault(text, False)

    def _attempt(self, what: str, action: Callable[[], object]) -> None:
        if self._folder is None or not self._folder.is_dir():
            return  # taken away under us: it must not be made anew
        try:
            action()
        except HoldfastError as error:
            self._warn(f"{what}: {error.message}")
        except Exception as error:  # a task ends here, and must not fail for its record
            log.debug("the side-car failed", exc_info=True)
            self._warn(f"{what}: {type(error).__name__}: {error}")
