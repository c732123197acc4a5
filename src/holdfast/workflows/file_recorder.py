"""What the tasks of a session change in the files of its worktree, recorded so that it can be taken back.

A session is one transaction of the side-car, what a task changed is one change of it: whatever differs in the
tree when the task ends, by whomever's hand, a shell's included. The worktree is watched from the first task
to the session's end. Tasks side by side share the tree: a change then names all that ran.

Recording is never in a task's way: what cannot be recorded is a warning among the workflow's events.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from holdfast.base.clock import Clock
from holdfast.base.errors import HoldfastError, IllegalTransitionError
from holdfast.base.redact import redact
from holdfast.model.entry import Warned
from holdfast.model.git import decode_path
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.project.layout import ProjectLayout
from holdfast.sessions.standing import may_be_rolled_back
from holdfast.undo.ledger import Transaction
from holdfast.undo.transactions import SideCar, UndoOutcome

log = logging.getLogger("holdfast.runner")

PATIENCE = 10.0
_INSTANT = 0.002
"""Seconds: shorter than starting any command takes."""


def transaction_name(workflow_id: str, session_number: int) -> str:
    return f"{workflow_id}-s{session_number}"


def rolled_back_since(
    folder: Path, workflow_id: str, session_number: int, tasks: Iterable[Task]
) -> Transaction | None:
    """Of the workflow's sessions up to that one, what was changed last, if that was taken back.

    What only tasks changed that are not completed is passed over: they run again.
    """
    open_tasks = {redact(_named(task))[0] for task in tasks if task.status != "completed"}
    with SideCar(folder) as sidecar:
        found = [
            one for one in sidecar.family(workflow_id) if _session_of(one.id, workflow_id) <= session_number
        ]
    lasting = (
        one for one in reversed(found) if one.status != "rolled-back" or _is_of_others(one, open_tasks)
    )
    last = next(lasting, None)
    return last if last and last.status == "rolled-back" else None


def rolled_back_work(workflow: Workflow, session_number: int, tasks: Iterable[Task]) -> Transaction | None:
    """The same of a workflow's own folder; a clone of a worker's records nothing that could be taken back."""
    folder = ProjectLayout(Path(os.fsdecode(decode_path(workflow.worktree)))).sidecar
    if workflow.options.repository is not None or not folder.is_dir():
        return None
    return rolled_back_since(folder.parents[1], workflow.id, session_number, tasks)


def rolled_back_told(workflow: Workflow, snapshot: SessionSnapshot) -> tuple[str, ...]:
    """For the next session, which would take its completed tasks for done."""
    tasks = snapshot.task_dag.tasks
    sidecar = ProjectLayout(Path(os.fsdecode(decode_path(workflow.worktree)))).sidecar
    if not tasks or not may_be_rolled_back(sidecar, workflow.id):
        return ()
    found = rolled_back_work(workflow, snapshot.session_number, tasks)
    if found is None:
        return ()
    return (
        f"What its tasks had changed was rolled back ({found.id}): what completed ones had made may be gone "
        f"from the folder. `holdfast tx undo {found.entries[-1].id}` restores it; else run the plan again",
    )


def restore_files(folder: Path, workflow_id: str, session_number: int) -> list[UndoOutcome]:
    """Take back what the workflow's sessions after that one changed, an undo each; all of it or nothing."""
    with SideCar(folder) as sidecar:
        later = [
            (one.id, [entry.id for entry in one.changes])
            for one in sidecar.family(workflow_id)[::-1]
            if _session_of(one.id, workflow_id) > session_number and one.changes
        ]
        return sidecar.rewind(later)


def _is_of_others(transaction: Transaction, tasks: Collection[str]) -> bool:
    """Whether something in it was not changed by one of these tasks alone."""
    return any(entry.kind == "change" and entry.description not in tasks for entry in transaction.entries)


def _session_of(transaction_id: str, workflow_id: str) -> int:
    number = transaction_id.removeprefix(f"{workflow_id}-s").partition("-")[0]
    return int(number) if number.isdigit() else 0


def _named(task: Task) -> str:
    return task.id if task.description in ("", task.id) else f"{task.id}: {task.description}"


def is_of_task(description: str, task: Task) -> bool:
    """Whether a change that was recorded so is of this task, alone or with others."""
    name = redact(_named(task))[0]
    told = _BESIDE.sub("", description)
    return f"; {name}; " in f"; {told}; "


_BESIDE = re.compile(r" \(beside [^()]*\)\Z")


class FileRecorder:
    def __init__(self, folder: Path | None, workflow: Workflow, clock: Clock) -> None:
        """With no folder, nothing is recorded."""
        self._folder, self._clock = folder, clock
        self._workflow_id = workflow.id
        self._name = transaction_name(workflow.id, workflow.session_count)
        self._sidecar: SideCar | None = None
        self._transaction: str | None = None
        self._unlooked: list[Task] = []
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

        self._attempt("file changes made by tasks are not recorded", take_up)

    def record(self, ended: Iterable[Task], running: Iterable[Task], seconds: float) -> None:
        """What was changed since the last time, when these tasks have ended and those still run.

        `seconds` is how long they took: those of no time at all share one look at the tree.
        """
        self._unlooked += ended
        self._unlooked_seconds += seconds
        if self._transaction is None or self._unlooked_seconds < _INSTANT or not self._unlooked:
            return
        beside = ", ".join(task.id for task in running)
        description = f"{self._told()} (beside {beside})" if beside else self._told()
        first = self._unlooked[0].id
        self._unlooked, self._unlooked_seconds = [], 0.0
        self._attempt(
            f"what task {first} changed in files is not recorded", lambda: self._record(description)
        )

    def _told(self) -> str:
        return "; ".join(_named(task) for task in self._unlooked)

    def _record(self, description: str) -> None:
        if self._sidecar is None or self._transaction is None:
            return
        try:
            found = self._sidecar.record(self._transaction, description, keeps_watching=True)
        except IllegalTransitionError as error:
            self._go_on_in(self._sidecar.take_up(self._workflow_id, self._name), error.message)
            return
        if found is not None and found.transaction_id != self._transaction:
            self._go_on_in(found.transaction_id, f"transaction {self._transaction} is rolled-back")

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
            f"transaction {transaction} was not closed", lambda: sidecar.finish(transaction, self._told())
        )

    def close(self) -> None:
        """The runner leaves. A session that was not closed goes on elsewhere, or was killed there."""
        sidecar, transaction = self._sidecar, self._transaction
        self._sidecar = self._transaction = None
        if sidecar is None:
            return
        if transaction is not None:
            self._attempt(
                f"transaction {transaction} was not left", lambda: sidecar.let_go(transaction, self._told())
            )
        sidecar.close()

    def warnings(self) -> list[Warned]:
        """What was not told yet; each thing once in a session."""
        new = [text for text, told in self._warnings.items() if not told]
        self._warnings |= dict.fromkeys(new, True)
        return [Warned(text=text) for text in new]

    def _warn(self, text: str) -> None:
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
