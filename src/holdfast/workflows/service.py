"""`OrchestratorService`: what people and programs do with workflows. CLI, server and MCP call this.

It changes the store and nothing else: running is done by whoever claims a workflow, in
this process or in a worker (`worker.py`).
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Generic, Self, TypeVar

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.errors import (
    CannotDoError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
    SessionAlreadyRunningError,
    require_installed,
)
from holdfast.base.process import machine
from holdfast.base.redact import redact
from holdfast.capture.drift import DriftState, FolderDrift, find_workflow_drift
from holdfast.capture.git import BEFORE_FIRST_COMMIT, capture_git_state
from holdfast.model.entry import Event, TaskSkipped, WorkflowCreated, WorkflowForked
from holdfast.model.fold import SessionFold
from holdfast.model.git import decode_path, encode_path
from holdfast.model.policy import Trigger
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import DONE, Task, TaskDAG
from holdfast.model.workflow import ACTIVE, OPEN, RESUMABLE, Workflow, WorkflowStatus
from holdfast.project.settings import Settings, project_settings
from holdfast.sessions.contexts import asides_since
from holdfast.sessions.pause import NewWork, RunningWork, keep_end, pause_new, pause_running, with_world
from holdfast.sessions.transitions import (
    RETRY_ALL,
    Core,
    Facts,
    FailedTasks,
    Settled,
    again_from,
    again_on_conflict,
    forking,
    opening_pause,
)
from holdfast.store.protocol import Change, SnapshotSummary, Store
from holdfast.store.sql import SqlStore
from holdfast.workflows.drivers import driver_named
from holdfast.workflows.drivers.guarded import GRACE_SECONDS, end_cut_off, wait_for_cut_off
from holdfast.workflows.lease import holder, is_dead, is_gone
from holdfast.workflows.originals import (
    AcceptedCommands,
    Originals,
    UnconfirmedCommandsError,
    digest_of,
    foreign_commands,
)
from holdfast.workflows.plan import Plan, driver_of
from holdfast.workflows.task_log import TaskLog, TaskOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sessions.undone import UndoneWork

_TO_TAKE_UP_SECONDS = 10.0
"""A worker that was started for a workflow needs some of them before it is there."""
_SLACK_SECONDS = 30.0
_TO_END_SECONDS = GRACE_SECONDS + 10.0
"""A runner that learns of a cancel ends its task's processes within these; then whoever waits does."""
_JUST_CANCELLED_SECONDS = 600.0

_S = TypeVar("_S", bound=Store)


@dataclass(frozen=True)
class Resumed:
    """A workflow in its next session, what it goes on from, and how the world differs from then."""

    workflow: Workflow
    snapshot: SessionSnapshot | None
    drift: tuple[str, ...]
    drift_state: DriftState
    is_handover: bool = False
    """There is no plan to run: its context is for whoever goes on, and the workflow stays paused."""
    taken_up_before: datetime | None = None


class WorkflowService(ABC, Generic[_S]):
    """What any store answers, here or on a server; and waiting for a pause."""

    store: _S
    poll_seconds: ClassVar[float]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def recovered(self, workflow_id: str) -> Workflow:
        """The workflow; paused with trigger `crash` first, where its runner is gone."""

    def is_run_elsewhere(self, workflow: Workflow) -> bool:  # noqa: ARG002 - a server knows its own workers
        """Whether another machine runs it, so that the end of its processes cannot be seen from here."""
        return False

    def workflow(self, workflow_id: str) -> Workflow:
        return self.store.workflow(workflow_id)

    def workflows(
        self,
        *,
        worktree: str | None = None,
        statuses: Collection[WorkflowStatus] | None = None,
        limit: int = 100,
    ) -> Sequence[Workflow]:
        return self.store.workflows(worktree=worktree, statuses=statuses, limit=limit)

    def of_worktree(self, worktree: str, statuses: frozenset[WorkflowStatus] = OPEN) -> Workflow | None:
        """The one meant when a person in this folder names none: the active one, or the newest; of open ones
        the newest plan, which can be run, before work that can only be read."""
        found = self.store.workflows(worktree=worktree, statuses=statuses, limit=20)
        if len(found) > 1 and statuses <= OPEN:
            return min(found, key=lambda flow: (flow.status not in ACTIVE, not self._has_plan(flow)))
        return next((flow for flow in found if flow.status in ACTIVE), found[0] if found else None)

    def _has_plan(self, workflow: Workflow) -> bool:
        lines = self.store.snapshots(workflow.id)
        return any(line.tasks_completed + line.tasks_remaining for line in lines)

    def snapshots(self, workflow_id: str) -> Sequence[SnapshotSummary]:
        return self.store.snapshots(workflow_id)

    def snapshot(self, snapshot_id: str) -> SessionSnapshot:
        return self.store.snapshot(snapshot_id)

    def events(
        self, workflow_id: str | None = None, since: int = 0, limit: int | None = None
    ) -> Sequence[Event]:
        return self.store.events(workflow_id=workflow_id, since=since, limit=limit)

    def wait_while_running(self, workflow_id: str, seconds: float) -> Workflow:
        """Until the workflow does not run any more, or its runner died, or the time is over."""
        deadline = time.monotonic() + seconds
        while True:
            workflow = self.recovered(workflow_id)
            if workflow.status != "in_progress" or time.monotonic() > deadline:
                return workflow
            time.sleep(self.poll_seconds)

    def _snapshot_of_pause(self, workflow: Workflow, force_after: float | None) -> str | None:
        """Of a pause that was asked for, once it has come."""
        if workflow.status == "in_progress":
            limit = workflow.options.force_after if force_after is None else force_after
            workflow = self.wait_while_running(workflow.id, limit + _SLACK_SECONDS)
        if workflow.status == "in_progress":
            raise CannotDoError(
                f"workflow {workflow.id} has not paused yet; the request is still pending",
                hint="`holdfast status` shows its state",
            )
        if workflow.status != "paused":
            raise ended_before_pause(workflow)
        latest = self.store.latest_snapshot(workflow.id)
        return latest.id if latest else None


class OrchestratorService(WorkflowService[SqlStore]):
    """`with OrchestratorService() as service:`; or give it a store of yours and close that yourself."""

    poll_seconds = 0.05

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        store: SqlStore | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.settings = project_settings(None, settings)
        self._own_store = store is None
        self.store = store or SqlStore(self.settings.db)
        self.core = Core(self.store, clock)
        self._clock = clock

    def close(self) -> None:
        if self._own_store:
            self.store.close()

    # ── verbs ───────────────────────────────────────────────────────────────────────────────

    def start(self, plan: Plan, worktree: Path | None = None, *, claim: str | None = None) -> Workflow:
        """A new workflow. Whoever holds `claim` runs it; with none it waits for a worker."""
        require_installed("running a workflow", "dbos")
        for task in plan.tasks.tasks:
            driver_named(driver_of(task, plan.options), self.settings).check(task)
        name, commit = self._where(plan, worktree)
        self._settle_if_abandoned(name)
        self._end_what_was_cancelled(name)
        return self.core.open(
            plan.issue,
            name,
            task_dag=plan.tasks,
            constraints=plan.constraints,
            commit_at_start=commit,
            options=plan.options.pausing_at(self.settings.exhaustion_at),
            claim=claim,
        )

    def pause_workflow(
        self,
        workflow_id: str,
        reason: str | None = None,
        trigger: Trigger = "pause",
        *,
        force_after: float | None = None,
        wait: bool = True,
    ) -> str | None:
        """Pause at the next task boundary; the snapshot's id, or None where nobody waited for it.

        Where nobody runs the workflow there is nothing to wait for: it is paused here and now.
        """
        workflow = again_on_conflict(lambda: self._ask_for_pause(workflow_id, reason, trigger, force_after))
        if workflow.status == "in_progress" and not wait:
            return None
        return self._snapshot_of_pause(workflow, force_after)

    def _ask_for_pause(
        self, workflow_id: str, reason: str | None, trigger: Trigger, force_after: float | None
    ) -> Workflow:
        workflow = self.store.workflow(workflow_id)
        if workflow.status in ACTIVE and not self._has_runner(workflow):
            died = workflow.claim is not None
            return self._settle(workflow, "crash" if died else trigger, reason or (_DIED if died else None))
        return self.core.request_pause(workflow_id, trigger, reason, force_after)

    def resume_workflow(  # noqa: PLR0913 - as many as the command has
        self,
        workflow_id: str,
        *,
        snapshot_id: str | None = None,
        message: str | None = None,
        strict: bool = False,
        claim: str | None = None,
        failed: FailedTasks = RETRY_ALL,
        accept_commands: bool | str = False,
        accept_undone: bool = False,
        restore: Callable[[SessionSnapshot], None] | None = None,
    ) -> Resumed:
        """Go on in a new session, from the last snapshot or from an older one; a failed task is tried again.

        Of several who try at once one succeeds. What crashed is paused first, with what it had recorded.
        Commands that came from elsewhere need the user's consent once: to all, or to those of a digest.
        So does a completed task whose change in files was undone since: its files are no place to go on from.
        Work without a plan has nothing to run: it is handed over, noted as taken up, and stays paused.
        `restore` puts the files back first, once nothing stands against going on from that snapshot.
        """
        workflow = self.resumable(workflow_id)
        snapshot = self._snapshot_to_resume(workflow, snapshot_id)
        drift = self._drift(workflow, snapshot)
        undone = self.undone(workflow, snapshot)
        if undone.is_certain and not accept_undone:
            otherwise = f"`holdfast resume {workflow.id} --accept-undone` continues without it"
            raise UndoneWorkError.of(
                "resume", workflow, undone, f"{otherwise}; --from SNAPSHOT goes back to an earlier point"
            )
        if strict and undone:
            raise CannotDoError("; ".join(undone.facts), hint="resume without --strict")
        if strict:
            _refuse_drift(drift)
        if snapshot is None and workflow.status == "paused" and not self.core.fold(workflow).tasks().tasks:
            raise NotFoundError(
                f"nothing to resume: the snapshots of workflow {workflow_id} were deleted",
                hint=f"`holdfast cancel {workflow_id}` ends it",
            )
        if snapshot is not None and is_handover(snapshot):
            before = self.core.taken_up(snapshot)
            taken = self.core.take_up(workflow_id, snapshot, message)
            told = (*asides_since(self.store, snapshot), *drift.sentences)
            return Resumed(taken, snapshot, told, drift.state, is_handover=True, taken_up_before=before)
        require_installed("running a workflow", "dbos")
        fold = self.core.fold(workflow)
        tasks = (*fold.tasks().tasks, *(snapshot.task_dag.tasks if snapshot else ()))
        rules = (*fold.constraints, *(snapshot.constraints if snapshot else ()))
        self._refuse_unconfirmed(workflow, tasks, rules, accept_commands)
        if restore is not None and snapshot is not None:
            restore(snapshot)
            drift = self._drift(workflow, snapshot)
        self._end_what_was_cancelled(workflow.worktree)
        if undone.is_certain:
            from holdfast.sessions.undone import accept

            accept(workflow, undone)
            message = "\n".join([*([message] if message else []), *undone.facts])
        resumed, _ = self.core.claim(
            workflow_id, message, snapshot=snapshot, runs=True, claim=claim, failed=failed
        )
        return Resumed(resumed, snapshot, (*undone.sentences, *drift.sentences), drift.state)

    def _refuse_unconfirmed(
        self,
        workflow: Workflow,
        tasks: Iterable[Task],
        rules: Iterable[str],
        accept_commands: bool | str,
    ) -> None:
        accepted = AcceptedCommands(self.settings.home)
        missing = accepted.missing(workflow.id, foreign_commands(self.store, workflow, tasks, rules))
        if not missing:
            return
        digest = digest_of(workflow.id, missing)
        if accept_commands not in (True, digest):
            raise UnconfirmedCommandsError.of(workflow.id, missing, digest)
        accepted.accept(workflow.id, missing)

    def retry(
        self,
        workflow_id: str,
        task_id: str | None = None,
        *,
        message: str | None = None,
        claim: str | None = None,
        accept_undone: bool = False,
    ) -> Resumed:
        """Go on with the failed task of this name, or with all that failed; others stay as they are."""
        workflow = self.resumable(workflow_id)
        tasks = self.core.fold(workflow).tasks()
        if task_id is not None and (task := _task_named(workflow, tasks, task_id)).status != "failed":
            raise IllegalTransitionError(
                f"task {task_id} is {task.status}; only a failed task can be retried",
                hint=f"`holdfast resume {workflow_id}` continues with what is not completed; "
                "--from SNAPSHOT goes back to an earlier point",
            )
        if workflow.status != "failed" and not tasks.count("failed"):
            raise IllegalTransitionError(
                f"no task of workflow {workflow_id} has failed",
                hint=f"`holdfast resume {workflow_id}` continues it",
            )
        failed = RETRY_ALL if task_id is None else FailedTasks(retry=(task_id,))
        return self.resume_workflow(
            workflow_id, message=message, claim=claim, failed=failed, accept_undone=accept_undone
        )

    def skip(
        self,
        workflow_id: str,
        task_id: str,
        reason: str | None = None,
        *,
        claim: str | None = None,
        accept_undone: bool = False,
    ) -> Workflow:
        """Go on without a task; what depends on it can start. Other failed tasks stay failed."""
        workflow = self.recovered(workflow_id)
        task = _task_named(workflow, self.core.fold(workflow).tasks(), task_id)
        if task.status in DONE:
            raise IllegalTransitionError(f"task {task_id} is {task.status} and cannot be skipped")
        skipped = TaskSkipped(task_id=task_id, reason=reason)
        if workflow.status == "blocked":
            self._settle_undone("skip", workflow, accept_undone)
            return self.core.skip_waiting(workflow, skipped, claim)
        failed = FailedTasks(retry=(), skipped=(skipped,))
        resumed = self.resume_workflow(workflow_id, claim=claim, failed=failed, accept_undone=accept_undone)
        return resumed.workflow

    def fork(
        self,
        workflow_id: str,
        task_id: str | None = None,
        *,
        snapshot_id: str | None = None,
        worktree: Path | None = None,
        accept_commands: bool | str = False,
    ) -> Workflow:
        """A copy of a workflow, paused; the original stays as it is, whatever its status.

        With a task, that one and all that depend on it are to run again in the copy. The state is the current
        one, or that of an older snapshot. Commands that came from elsewhere are confirmed once for both.
        """
        origin = self.store.workflow(workflow_id)
        snapshot = self._snapshot_to_resume(origin, snapshot_id) if snapshot_id else None
        fold = SessionFold.starting_from(snapshot) if snapshot else self.core.fold(origin)
        self._choose_tasks(origin, fold, task_id)
        every = [task.changed(status="pending") for task in fold.tasks().tasks]  # any may run in copies of it
        self._refuse_unconfirmed(origin, every, tuple(fold.constraints), accept_commands)
        name, folder = self._fork_folder(origin, worktree)
        facts = self._facts_of_fork(origin, snapshot, task_id, name, folder)
        forked = WorkflowForked(origin_id=origin.id, snapshot_id=snapshot_id, task_id=task_id)
        now, originals = self._clock(), self.store.originals(origin.id)
        _refuse_lost(Originals(originals, origin, fold), origin, fold.tasks())
        begun = to_datetime(now)
        first = forking(origin, fold, name, originals, begun, forked)
        facts = self._with_undone(facts, origin, fold, snapshot, first.workflow)

        def prepared(facts: Facts) -> Settled:
            return opening_pause(first, fold, facts, begun)

        return pause_new(NewWork(self.core, prepared), self.core, folder, facts, now)

    def _choose_tasks(self, origin: Workflow, fold: SessionFold, task_id: str | None) -> None:
        """Have the fold hold what is to be done in the copy."""
        tasks = fold.tasks()
        if not tasks.tasks:
            raise IllegalTransitionError(f"workflow {origin.id} has no plan to fork")
        if task_id is not None:
            _task_named(origin, tasks, task_id)
            tasks = again_from(tasks, task_id, self._plan_of(origin) or tasks)
        elif all(task.status in DONE for task in tasks.tasks):
            raise IllegalTransitionError(
                f"all tasks of workflow {origin.id} are completed", hint="name the task to fork it from"
            )
        fold.task_dag, fold.task_changes = tasks, {}

    def _plan_of(self, workflow: Workflow) -> TaskDAG | None:
        first = next(iter(self.store.events(workflow_id=workflow.id, limit=1)), None)
        return first.entry.task_dag if first and isinstance(first.entry, WorkflowCreated) else None

    def _fork_folder(self, origin: Workflow, worktree: Path | None) -> tuple[str, Path]:
        """What the copy is alone in while it runs, and the folder."""
        if worktree is None:
            return origin.worktree, Path(os.fsdecode(decode_path(origin.worktree)))
        if origin.options.repository is not None:
            raise InvalidInputError(
                f"workflow {origin.id} runs in a clone of its repository, not in a folder", hint="omit --cwd"
            )
        folder = worktree.resolve()
        if not folder.is_dir():
            raise NotFoundError(f"no such folder: {folder}", hint="see --cwd")
        return encode_path(os.fsencode(folder)), folder

    def _facts_of_fork(
        self, origin: Workflow, snapshot: SessionSnapshot | None, task_id: str | None, name: str, folder: Path
    ) -> Facts:
        """Git and the files as at the snapshot, if there is one of that very folder; else as they are."""
        at = f", task {task_id}" if task_id else ""
        facts = Facts(reason=f"forked from {snapshot.session_id if snapshot else origin.id}{at}")
        if snapshot is None and origin.status in RESUMABLE:
            snapshot = self.store.latest_snapshot(origin.id)
        if snapshot is not None and name == origin.worktree:
            return replace(facts, git_state=snapshot.git_state, files=snapshot.files)
        return with_world(facts, folder, origin.commit_at_start) if folder.is_dir() else facts

    def _with_undone(
        self,
        facts: Facts,
        origin: Workflow,
        fold: SessionFold,
        snapshot: SessionSnapshot | None,
        fork: Workflow,
    ) -> Facts:
        """What was undone of completed tasks is known of the copy before there is one, or said of it."""
        from holdfast.sessions.undone import fork_undone

        number = snapshot.session_number if snapshot else origin.session_count
        said = fork_undone(origin, fold.tasks().tasks, number, fork)
        return replace(facts, reason=f"{facts.reason}; {said}") if said else facts

    def resumable(self, workflow_id: str) -> Workflow:
        """The workflow, if it can be resumed; what crashed is paused for that."""
        workflow = self.recovered(workflow_id)
        check_resumable(workflow)
        return workflow

    def cancel(self, workflow_id: str, reason: str | None = None) -> Workflow:
        """End it for good; a task in flight is stopped, and none of its processes on this machine is left."""
        has_runner = self._has_runner(self.store.workflow(workflow_id))
        cancelled = again_on_conflict(lambda: self.core.move(workflow_id, "cancelled", reason))
        self._end_processes(cancelled, _TO_END_SECONDS if has_runner else 0.0)
        keep_end(self.store, cancelled, Path(os.fsdecode(decode_path(cancelled.worktree))))
        return cancelled

    def approve(
        self,
        workflow_id: str,
        task_id: str | None = None,
        *,
        claim: str | None = None,
        accept_undone: bool = False,
    ) -> Workflow:
        """Let the task start that is waiting for approval; of another one than `task_id` nothing was seen."""
        workflow = self.store.workflow(workflow_id)
        waiting = self.waiting_for_approval(workflow)
        _check_waits(task_id, waiting)
        if waiting is not None:
            self._settle_undone("approve", workflow, accept_undone)
        waiting_id = waiting.id if waiting else ""
        return again_on_conflict(lambda: self.core.approve(workflow_id, waiting_id, claim))

    def _settle_undone(self, verb: str, workflow: Workflow, is_accepted: bool) -> None:
        """What waits for approval would go on at once: over a hole only if the user lets it."""
        undone = self.undone(workflow, None)
        if not undone.is_certain:
            return
        if not is_accepted:
            otherwise = f"or `holdfast reject {workflow.id}`, and resume it later"
            raise UndoneWorkError.of(verb, workflow, undone, otherwise)
        from holdfast.sessions.undone import accept

        accept(workflow, undone)

    def reject(self, workflow_id: str, reason: str | None = None, *, task_id: str | None = None) -> Workflow:
        """Reject the task that is waiting for approval; the workflow fails. A resume asks again."""
        return again_on_conflict(lambda: self._rejected(workflow_id, reason, task_id))

    def _rejected(self, workflow_id: str, reason: str | None, task_id: str | None) -> Workflow:
        workflow = self.store.workflow(workflow_id)
        if workflow.status != "blocked":
            raise IllegalTransitionError(
                f"workflow {workflow_id} is {workflow.status}; it is not waiting for approval"
            )
        waiting = self.waiting_for_approval(workflow)
        _check_waits(task_id, waiting)
        rejected = f"task {waiting.id} was rejected" if waiting else "the approval was refused"
        return self._settle(workflow, "failure", f"{rejected}: {reason}" if reason else rejected)

    def recovered(self, workflow_id: str) -> Workflow:
        """The workflow; paused with trigger `crash` first, where its runner is gone."""
        return again_on_conflict(lambda: self._recovered(self.store.workflow(workflow_id)))

    # ── questions ───────────────────────────────────────────────────────────────────────────

    def tasks(self, workflow_id: str) -> TaskDAG:
        """As they stand now."""
        return self.core.fold(self.store.workflow(workflow_id)).tasks()

    def task_output(
        self, workflow_id: str, task_id: str, *, attempt: int | None = None, since: int = 0
    ) -> TaskOutput:
        """What an attempt at a task printed so far; without a number, the last one."""
        workflow = self.store.workflow(workflow_id)
        task = _task_named(workflow, self.core.fold(workflow).tasks(), task_id)
        number = attempt or task.attempts
        is_due = task.status == "in_progress" and task.attempts == number
        is_running = workflow.status == "in_progress" and (is_due or not number)
        found = TaskLog(self.settings.home, workflow_id, task_id, number).read(since)
        if found is None and number:
            raise NotFoundError(
                f"no output of task {task_id}, attempt {number}, is kept on this machine",
                hint="it is kept where the task ran; `holdfast status` shows the last lines of a failure",
            )
        return TaskOutput(number, *(found or ("", 0)), is_running)

    def waiting_for_approval(self, workflow: Workflow) -> Task | None:
        if workflow.status != "blocked":
            return None
        return next((task for task in self.core.fold(workflow).tasks().ready() if task.approval), None)

    def originals(self, workflow: Workflow) -> Originals:
        """What it executes, to be judged; shown are the copies without secrets."""
        return Originals(self.store.originals(workflow.id), workflow, self.core.fold(workflow))

    def is_abandoned(self, workflow: Workflow) -> bool:
        """Whether it is recorded as running by somebody who is not there any more."""
        return (
            workflow.status == "in_progress"
            and workflow.claim is not None
            and is_gone(workflow.claim, self.store.leases.all())
        )

    def has_workers(self) -> bool:
        """Or a server, which starts one."""
        return any(
            lease.kind in ("worker", "server") and not is_dead(lease) for lease in self.store.leases.all()
        )

    def is_run_elsewhere(self, workflow: Workflow) -> bool:
        leases = self.store.leases.all() if workflow.status in ACTIVE and workflow.claim else ()
        return any(one.id == holder(workflow.claim or "") and one.host != machine() for one in leases)

    # ── inside ──────────────────────────────────────────────────────────────────────────────

    def _end_processes(self, workflow: Workflow, wait: float = _TO_END_SECONDS) -> None:
        """Of what was cancelled: its runner ends them; where that does not happen, they are ended here."""
        tasks = self.core.fold(workflow).tasks().tasks
        wait_for_cut_off(workflow, tasks, wait, self.settings.home)
        end_cut_off(workflow, tasks, self.settings.home)

    def _end_what_was_cancelled(self, worktree: str) -> None:
        """Or a new session in the folder would run beside the rest of it."""
        for workflow in self.store.workflows(worktree=worktree, statuses={"cancelled"}, limit=3):
            if self._clock() - workflow.updated_at.timestamp() < _JUST_CANCELLED_SECONDS:
                self._end_processes(workflow)

    def _where(self, plan: Plan, worktree: Path | None) -> tuple[str, str | None]:
        """What the workflow is alone in, a folder or a branch, and the commit it starts from."""
        options = plan.options
        if options.repository is not None:
            return redact(f"{options.repository}#{options.branch or 'HEAD'}")[0], None
        folder = (worktree or self.settings.project).resolve()
        if not folder.is_dir():
            raise NotFoundError(f"no such folder: {folder}", hint="see --cwd")
        git = capture_git_state(folder)
        commit = (git.commit_at_snapshot or BEFORE_FIRST_COMMIT) if git else None
        return encode_path(os.fsencode(folder)), commit

    def _has_runner(self, workflow: Workflow) -> bool:
        if workflow.status != "in_progress" or workflow.claim is None:
            return False
        return not is_gone(workflow.claim, self.store.leases.all())

    def _recovered(self, workflow: Workflow) -> Workflow:
        if self.is_abandoned(workflow):
            return self._settle(workflow, "crash", _DIED)
        if self._is_forgotten(workflow):
            return self._settle(workflow, "pause", "no worker was available to run it")
        return workflow

    def _is_forgotten(self, workflow: Workflow) -> bool:
        """Whether it waits in the queue, and nobody has come, or is there, to take it up."""
        is_queued = workflow.status == "in_progress" and workflow.run_id and not workflow.claim
        waited = self._clock() - workflow.updated_at.timestamp()
        return bool(is_queued) and waited > _TO_TAKE_UP_SECONDS and not self.has_workers()

    def _settle_if_abandoned(self, worktree: str) -> None:
        for workflow in self.store.workflows(worktree=worktree, statuses=ACTIVE, limit=5):
            if self.is_abandoned(workflow):
                self.recovered(workflow.id)

    def _settle(self, workflow: Workflow, trigger: Trigger, reason: str | None) -> Workflow:
        """Pause what nobody runs, with nothing left of it; `ConflictError` where somebody turns out to."""
        tasks = self.core.fold(workflow).tasks().tasks

        def apply(change: Change) -> bool:
            self.store.apply(change)
            return True

        work = RunningWork(self.core, lambda: workflow, apply)
        folder = Path(os.fsdecode(decode_path(workflow.worktree)))
        pause_running(work, folder, Facts(trigger=trigger, reason=reason), self._clock())
        # Now that the database has confirmed that nobody runs it.
        end_cut_off(workflow, tasks, self.settings.home)
        return self.store.workflow(workflow.id)

    def _snapshot_to_resume(self, workflow: Workflow, snapshot_id: str | None) -> SessionSnapshot | None:
        if snapshot_id is None:
            return snapshot_to_resume(self.store, workflow.id)
        snapshot = self.store.snapshot(snapshot_id)
        if snapshot.workflow_id != workflow.id:
            raise NotFoundError(
                f"snapshot {snapshot_id} does not belong to workflow {workflow.id}",
                hint="`holdfast snapshot list` shows its snapshots",
            )
        return snapshot

    def _drift(self, workflow: Workflow, snapshot: SessionSnapshot | None) -> FolderDrift:
        folder = Path(os.fsdecode(decode_path(workflow.worktree)))
        if workflow.options.repository is None and not folder.is_dir():
            raise CannotDoError(
                f"the worktree {workflow.worktree} is gone",
                hint="restore the folder, then resume; nothing that was recorded is lost",
            )
        return find_workflow_drift(workflow, snapshot)

    def undone(self, workflow: Workflow, snapshot: SessionSnapshot | None) -> UndoneWork:
        """Of what counts as completed where it goes on."""
        from holdfast.sessions.undone import undone_work

        if snapshot is None:
            return undone_work(workflow, self.core.fold(workflow).tasks().tasks)
        return undone_work(workflow, snapshot.task_dag.tasks, snapshot.session_number)


class UndoneWorkError(IllegalTransitionError):
    """What completed tasks had changed does not stand; carries the facts, for whoever can ask."""

    undone: Mapping[str, object] | None = None
    """As `status` prints it."""

    @classmethod
    def of(cls, verb: str, workflow: Workflow, undone: UndoneWork, otherwise: str) -> Self:
        restoring = ", then ".join(f"`{one}`" for one in undone.commands)
        error = cls(
            f"cannot {verb} workflow {workflow.id}: {'; '.join(undone.facts)}",
            hint=f"{restoring} restores it; {otherwise}" if restoring else otherwise,
        )
        error.undone = undone.document
        return error


def _refuse_lost(originals: Originals, origin: Workflow, tasks: TaskDAG) -> None:
    """A copy that could not run: of a workflow that has ended, what its secrets were is not kept."""
    left = [task for task in tasks.tasks if task.status not in DONE]
    needed = {name for task in left for name in task.depends_on}
    while more := {name for task in tasks.tasks if task.id in needed for name in task.depends_on} - needed:
        needed |= more
    try:
        originals.options()
        for task in left:
            originals.task(task, is_told=driver_of(task, origin.options) != "shell")
    except CannotDoError as error:
        raise CannotDoError(f"the copy could not run: {error.message}") from error
    for task in tasks.tasks:
        if task.id in needed:
            originals.outputs(task)
    if lost := next(iter(originals.lost_values.values()), ""):
        raise CannotDoError(
            f"the copy could not run: only a redacted copy of {lost} is available",
            hint="fork from the task that leaves the value",
        )


def _check_waits(task_id: str | None, waiting: Task | None) -> None:
    if task_id is not None and (waiting is None or task_id != waiting.id):
        raise IllegalTransitionError(
            f"task {task_id} is not waiting for approval", hint="`holdfast status` shows what is"
        )


def _task_named(workflow: Workflow, tasks: TaskDAG, task_id: str) -> Task:
    found = tasks.by_id.get(task_id)
    if found is None:
        raise NotFoundError(
            f"workflow {workflow.id} has no task {task_id!r}",
            hint=f"its tasks: {', '.join(list(tasks.by_id)[:20]) or 'none'}",
        )
    return found


def snapshot_to_resume(store: Store, workflow_id: str) -> SessionSnapshot | None:
    """A plan goes on from its last snapshot; what is handed over is the last session that did something."""
    latest = store.latest_snapshot(workflow_id)
    if latest is None or not is_handover(latest):
        return latest
    from holdfast.sessions.contexts import newest_with_work

    return newest_with_work(store, [workflow_id])


def is_handover(snapshot: SessionSnapshot) -> bool:
    """Of a session that nobody gave a plan: a wind-down, an agent's session, a pause by hand."""
    return not snapshot.task_dag.tasks


_DIED = "its process ended without a pause"


def ended_before_pause(workflow: Workflow) -> IllegalTransitionError:
    hint = f"`holdfast retry --workflow {workflow.id}` retries the failed task"
    return IllegalTransitionError(
        f"workflow {workflow.id} is {workflow.status}: it ended before the pause",
        hint=hint if workflow.status == "failed" else None,
    )


def _refuse_drift(drift: FolderDrift) -> None:
    """What nobody can tell is refused, too: unchanged is what was compared and found to be so."""
    if drift.state == "changed":
        raise CannotDoError(
            f"the worktree has changed since the pause: {' '.join(drift.sentences)}",
            hint="restore it, or resume without --strict: the next session is told about the changes",
        )
    if drift.state == "cannot_tell":
        raise CannotDoError(
            f"the worktree may have changed since the pause. {' '.join(drift.sentences)}",
            hint="check it yourself, then resume without --strict: the next session is told about it",
        )


def check_resumable(workflow: Workflow) -> None:
    """Refuse in words what cannot be resumed as it stands."""
    if workflow.status == "blocked":
        raise IllegalTransitionError(
            f"workflow {workflow.id} is waiting for approval",
            hint=f"`holdfast approve {workflow.id}` or `holdfast reject {workflow.id}`",
        )
    if workflow.status in ACTIVE:
        raise SessionAlreadyRunningError(f"workflow {workflow.id} is already running")
    workflow.moved("in_progress", workflow.updated_at)
