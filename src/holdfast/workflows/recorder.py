"""What a runner writes: fenced by its claim, and patient with a database that is away.

A commit is made from the state the runner last saw. If somebody changed the workflow
since, nothing is written and the runner decides again from what it finds: a pause was
asked for, the workflow was cancelled, or another runner has the claim and this one is
a zombie that must write nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from holdfast.base.errors import (
    ConflictError,
    HeldElsewhereError,
    SessionAlreadyRunningError,
    StorageError,
)
from holdfast.model.entry import Entry
from holdfast.model.workflow import Workflow, WorkflowStatus
from holdfast.sessions.transitions import Core
from holdfast.store.protocol import Change

log = logging.getLogger("holdfast.runner")

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0
_T = TypeVar("_T")


class RunOverError(BaseException):
    """This run may write no more: the claim is somebody else's, or the workflow has ended.

    No `Exception`, so that neither a driver nor the engine takes it for a task's failure.
    """

    def __init__(self, workflow: Workflow) -> None:
        super().__init__(f"workflow {workflow.id} is {workflow.status}, run by {workflow.claim}")
        self.workflow = workflow


class Recorder:
    def __init__(self, core: Core, workflow: Workflow, quit_event: threading.Event | None = None) -> None:
        self.core = core
        self.workflow = workflow
        self._claim, self._run_id = workflow.claim, workflow.run_id
        self._quit = quit_event or threading.Event()
        self._lock = threading.RLock()
        self._to_keep: dict[str, str] = {}

    @classmethod
    def take(
        cls,
        core: Core,
        workflow_id: str,
        run_id: str,
        claim: str,
        quit_event: threading.Event,
        *,
        takes_over: bool,
    ) -> Recorder:
        """Take the session up; `RunOverError` where this run is not wanted any more."""

        def taken() -> Workflow:
            while True:
                try:
                    return core.take(workflow_id, run_id, claim, takes_over=takes_over)
                except ConflictError:
                    continue  # somebody asked for a pause in this very moment
                except SessionAlreadyRunningError:
                    raise RunOverError(core.store.workflow(workflow_id)) from None

        return cls(core, patiently(taken, quit_event), quit_event)

    def commit(self, *entries: Entry, to: WorkflowStatus | None = None, **changes: object) -> bool:
        """Whether it was written; if not, `workflow` is what somebody else made of it meanwhile."""
        with self._lock:
            return self.apply(self.core.advancing(self.workflow, *entries, to=to, **changes))

    def apply(self, change: Change) -> bool:
        with self._lock:
            return patiently(lambda: self._try(change), self._quit)

    def keep(self, name: str, written: str) -> None:
        """As it was written, with the next commit: what is recorded of it lacks its secrets."""
        with self._lock:
            self._to_keep[name] = written

    def note(self, *entries: Entry) -> None:
        """What holds whatever else happened."""
        while not self.commit(*entries):
            pass

    def refresh(self) -> Workflow:
        """The workflow as it is now; `RunOverError` where it is not this run's any more."""
        with self._lock:
            self.workflow = patiently(lambda: self.core.store.workflow(self.workflow.id), self._quit)
            self._refuse_if_over(self.workflow)
            return self.workflow

    def is_over(self, workflow: Workflow) -> bool:
        return (
            workflow.claim != self._claim
            or workflow.run_id != self._run_id
            or workflow.status != "in_progress"
        )

    def _refuse_if_over(self, workflow: Workflow) -> None:
        if self.is_over(workflow):
            raise RunOverError(workflow)

    def _try(self, change: Change) -> bool:
        if self._to_keep:
            change = replace(change, originals={**change.originals, **self._to_keep})
        try:
            self.core.store.apply(change)
        except ConflictError:
            found = self.core.store.workflow(change.workflow.id)
            if found != change.workflow:  # else it was ours, whose acknowledgement was lost on the way
                self._refuse_if_over(found)
                self.workflow = found
                return False
        self.workflow = change.workflow
        self._to_keep.clear()
        return True


def patiently(action: Callable[[], _T], quit_event: threading.Event) -> _T:
    """Repeat what fails because the database is away or busy, until it is back or we are told to quit."""
    wait = _FIRST_WAIT
    while True:
        try:
            return action()
        except (StorageError, HeldElsewhereError) as error:
            if isinstance(error, ConflictError | SessionAlreadyRunningError):
                raise
            if wait == _FIRST_WAIT:
                log.warning("%s; retrying until it works", error.message)
            if quit_event.wait(wait):
                raise
            wait = min(wait * 2, _LONGEST_WAIT)
