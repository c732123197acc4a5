"""Where the work of a session happens: a folder of this machine, or a clone of our own.

A workflow that names a repository can go on on any machine. A runner clones it, starts from
the commit that was last recorded, commits at each boundary and pushes to a ref that is its
own (`refs/holdfast/WORKFLOW/RUNNER`); the commit is recorded together with the task's end.
So what a runner that lost its claim still pushes is on a ref that nobody reads. The branch
itself is moved forward when the session ends.
"""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from pathlib import Path
from typing import Protocol

from holdfast.base.durable import private_folder
from holdfast.base.errors import GitError
from holdfast.capture.git import change_repository, reach_remote
from holdfast.model.entry import WorkCommitted
from holdfast.model.git import decode_path
from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Settings

log = logging.getLogger("holdfast.runner")

_AUTHOR = ("-c", "user.name=Holdfast", "-c", "user.email=holdfast@localhost")


class Checkout(Protocol):
    @property
    def folder(self) -> Path: ...

    def keep(self, task: Task) -> WorkCommitted | None:
        """Make what a task changed safe, before its end is recorded; None where nothing is to be recorded."""
        ...

    def leave(self) -> str | None:
        """The session ends; a warning where something could not be brought home."""
        ...


class OwnFolder:
    """The user's own worktree: nothing is committed there but by the tasks themselves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, task: Task) -> WorkCommitted | None:  # noqa: ARG002
        return None

    def leave(self) -> str | None:
        return None


class Clone:
    def __init__(self, workflow: Workflow, last: WorkCommitted | None, settings: Settings) -> None:
        claim = hashlib.sha256((workflow.claim or "").encode()).hexdigest()[:12]
        self._repository = workflow.options.repository or ""
        self._branch = workflow.options.branch
        self._ref = f"refs/holdfast/{workflow.id}/{claim}"
        self.folder = settings.home / "worktrees" / workflow.id / claim
        self._commit: str | None = None
        self._lock = threading.Lock()
        if not (self.folder / ".git").exists():
            self._prepare(last)

    def _prepare(self, last: WorkCommitted | None) -> None:
        private_folder(self.folder.parent)
        self._exchange(self.folder.parent, "clone", "--quiet", "--", self._repository, str(self.folder))
        if last is not None:
            self._exchange(self.folder, "fetch", "--quiet", "origin", last.ref)
            start = last.commit
        else:
            start = self._start_of_branch()
        if self._branch is None:
            self._branch = self._git("rev-parse", "--abbrev-ref", "HEAD").strip()
        self._git("checkout", "--quiet", "-B", self._branch, *([start] if start else []))
        self._commit = start

    def _start_of_branch(self) -> str | None:
        for name in (f"origin/{self._branch}", "HEAD") if self._branch else ("HEAD",):
            try:
                return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
            except GitError:
                continue
        return None  # a repository without a commit

    def keep(self, task: Task) -> WorkCommitted | None:
        with self._lock:  # tasks side by side share one index
            return self._kept(task)

    def _kept(self, task: Task) -> WorkCommitted | None:
        self._git("add", "--all")
        if self._git("status", "--porcelain"):
            message = f"{task.description}\n\nHoldfast task {task.id}"
            self._git(*_AUTHOR, "commit", "--quiet", "--no-verify", "-m", message)
        head = self._git("rev-parse", "HEAD").strip()
        if head == self._commit:
            return None
        self._exchange(self.folder, "push", "--quiet", "origin", f"+HEAD:{self._ref}")
        self._commit = head
        return WorkCommitted(task_id=task.id, commit=head, ref=self._ref)

    def leave(self) -> str | None:
        if self._commit is None:
            return None
        try:
            self._exchange(self.folder, "push", "--quiet", "origin", f"HEAD:refs/heads/{self._branch}")
        except GitError as error:
            return f"branch {self._branch} was not updated ({error.message}); the work is at {self._ref}"
        return None

    def _git(self, *arguments: str) -> str:
        return change_repository(self.folder, *arguments)

    def _exchange(self, folder: Path, command: str, *arguments: str) -> None:
        reach_remote(folder, self._repository, command, *arguments)


def checkout_for(workflow: Workflow, last: WorkCommitted | None, settings: Settings) -> Checkout:
    if workflow.options.repository is not None:
        return Clone(workflow, last, settings)
    return OwnFolder(Path(os.fsdecode(decode_path(workflow.worktree))))
