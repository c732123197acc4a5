"""The verbs: open, record, request_pause, settle, enrich, claim. Every door calls these.

    trigger ─► request_pause ─► (boundary) ─► settle ─► enrich ─► claim
               recorded                       facts and   may       one runner
                                              snapshot,   fail      is let in
                                              one commit  freely

Each verb reads the workflow, makes its next state, and applies both with the entries
that tell what happened, secrets taken out. Somebody else's change in between makes it a `ConflictError`,
never a lost update.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from holdfast import ids
from holdfast.clock import Clock, system_clock, to_datetime
from holdfast.errors import (
    ConflictError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
    SessionAlreadyRunningError,
)
from holdfast.model.entry import (
    Entry,
    PauseRequested,
    SnapshotDeleted,
    SnapshotEnriched,
    SnapshotImported,
    WorkflowCreated,
    WorkflowMoved,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStatusChanged,
)
from holdfast.model.findings import Decision, ErrorRecord
from holdfast.model.fold import SessionFold
from holdfast.model.git import GitState
from holdfast.model.snapshot import FileFingerprint, IncrementalPause, SessionSnapshot
from holdfast.model.task import TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import ACTIVE, OPEN, Issue, PauseRequest, Workflow, WorkflowStatus
from holdfast.policy import Trigger
from holdfast.store.protocol import Change, Store


@dataclass(frozen=True)
class Facts:
    """The world at the moment of a pause, as the door captured it."""

    trigger: Trigger = "pause"
    reason: str | None = None
    session_id: str | None = None
    git_state: GitState | None = None
    files: tuple[FileFingerprint, ...] = ()
    usage: UsageMetrics | None = None
    incremental_pause: IncrementalPause | None = None


@dataclass(frozen=True)
class Settled:
    """A pause about to be committed: what the workflow and its snapshot will be."""

    workflow: Workflow
    snapshot: SessionSnapshot
    change: Change


class Core:
    def __init__(self, store: Store, clock: Clock = system_clock) -> None:
        self.store = store
        self._clock = clock

    def open(
        self,
        issue: Issue,
        worktree: str,
        *,
        task_dag: TaskDAG | None = None,
        constraints: Iterable[str] = (),
        commit_at_start: str | None = None,
    ) -> Workflow:
        """A new workflow, running. Refused while another one is active in that worktree."""
        change = opening(
            issue, worktree, task_dag or TaskDAG(), tuple(constraints), commit_at_start, self._now()
        )
        self.store.apply(change)
        return change.workflow

    def record(self, workflow_id: str, *entries: Entry) -> Workflow:
        """Note what happened in a running session."""
        workflow = self.store.workflow(workflow_id)
        if workflow.status not in ACTIVE:
            raise IllegalTransitionError(
                f"workflow {workflow_id} is {workflow.status}; only a running one takes entries"
            )
        return self._apply(workflow, workflow.touched(self._now()), *entries)

    def move(self, workflow_id: str, status: WorkflowStatus, reason: str | None = None) -> Workflow:
        """Complete, fail, block or cancel. A pause goes through `settle`, a resume through `claim`."""
        if status in ("paused", "pending"):
            raise InvalidInputError(f"a workflow is not moved to {status} by hand")
        workflow = self.store.workflow(workflow_id)
        if workflow.status == "paused" and status == "in_progress":
            raise InvalidInputError(f"workflow {workflow_id} is paused: it is resumed, not moved")
        moved = workflow.moved(status, self._now(), pause_request=None)
        return self._apply(workflow, moved, WorkflowStatusChanged(status=status, reason=reason))

    def request_pause(
        self, workflow_id: str, trigger: Trigger = "pause", reason: str | None = None
    ) -> Workflow:
        """Ask for a pause; it is honoured at the next boundary. Asking again changes nothing."""
        workflow = self.store.workflow(workflow_id)
        if workflow.status not in ACTIVE:
            raise IllegalTransitionError(
                f"workflow {workflow_id} is {workflow.status}; only a running one can be paused"
            )
        if workflow.pause_request is not None:
            return workflow
        now = self._now()
        request = PauseRequest(trigger=trigger, reason=reason, requested_at=now)
        return self._apply(
            workflow,
            workflow.touched(now, pause_request=request),
            PauseRequested(trigger=trigger, reason=reason),
        )

    def settle(self, workflow_id: str, facts: Facts) -> SessionSnapshot:
        """Pause: fold what happened, add the facts, and commit snapshot and state together."""
        settled = self.prepare_pause(self.store.workflow(workflow_id), facts)
        self.store.apply(settled.change)
        return settled.snapshot

    def prepare_pause(self, workflow: Workflow, facts: Facts) -> Settled:
        """What `settle` would commit; nothing is written yet."""
        return prepare_pause(workflow, self._fold(workflow), facts, self._now())

    def prepare_worktree_pause(
        self, worktree: str, issue: Issue, facts: Facts, *, commit_at_start: str | None = None
    ) -> Settled:
        """A pause of whatever is worked on in a folder, where no plan was ever given.

        The open workflow of that worktree goes on; a paused one evidently was gone on with,
        so it is resumed first; where there is none, one is opened.
        """
        now = self._now()
        found = self._newest(worktree, ACTIVE) or self._newest(worktree, OPEN)
        if found is None:
            new = opening(issue, worktree, TaskDAG(), (), commit_at_start, now)
            return opening_pause(new, SessionFold(), facts, now)
        fold = self._fold(found)
        if found.status in ACTIVE:
            return prepare_pause(found, fold, facts, now)
        return opening_pause(going_on(found, now), fold, facts, now)

    def _newest(self, worktree: str, statuses: frozenset[WorkflowStatus]) -> Workflow | None:
        return next(iter(self.store.workflows(worktree=worktree, statuses=statuses, limit=1)), None)

    def _fold(self, workflow: Workflow) -> SessionFold:
        base = self.store.latest_snapshot(workflow.id)
        since = base.folded_through if base else 0
        events = self.store.events(workflow_id=workflow.id, since=since)
        return SessionFold.starting_from(base).take(events)

    def enrich(
        self,
        snapshot_id: str,
        decisions: Iterable[Decision] = (),
        errors: Iterable[ErrorRecord] = (),
        **found: Any,
    ) -> SessionSnapshot:
        """Add findings to a snapshot that is already safe; those it has keep their place.

        `found` are further fields of the snapshot that only a look at the talk can fill.
        """
        snapshot = self.store.snapshot(snapshot_id)
        workflow = self.store.workflow(snapshot.workflow_id)
        merged_decisions = {item.id: item for item in (*snapshot.decisions, *decisions)}
        merged_errors = {item.id: item for item in (*snapshot.errors, *errors)}
        enriched = snapshot.changed(
            decisions=tuple(merged_decisions.values()),
            errors=tuple(merged_errors.values()),
            **{name: value for name, value in found.items() if value is not None},
        )
        entry = SnapshotEnriched(
            snapshot_id=snapshot_id,
            decisions=len(enriched.decisions) - len(snapshot.decisions),
            errors=len(enriched.errors) - len(snapshot.errors),
        )
        after = workflow.touched(self._now())
        change = clean(Change(after, workflow.revision, (entry,), save=enriched))
        self.store.apply(change)
        return change.save or enriched

    def claim(self, workflow_id: str, message: str | None = None) -> tuple[Workflow, SessionSnapshot | None]:
        """Resume: of all who try at once, one gets the workflow; the others an error."""
        workflow = self.store.workflow(workflow_id)
        if workflow.status in ACTIVE:
            raise SessionAlreadyRunningError(f"workflow {workflow_id} is already running")
        snapshot = self.store.latest_snapshot(workflow_id)
        change = going_on(workflow, self._now(), snapshot, message)
        try:
            self.store.apply(change)
        except ConflictError:
            raise SessionAlreadyRunningError(
                f"workflow {workflow_id} was claimed by somebody else first"
            ) from None
        return change.workflow, snapshot

    def take_in(self, snapshot: SessionSnapshot, workflow: Workflow) -> bool:
        """Add a session that was paused elsewhere: read from its files. Whether it was new here.

        A workflow we know is only moved forward, never back to what an older file says.
        """
        if any(line.id == snapshot.id for line in self.store.find_snapshots(snapshot.id)):
            return False
        entry = SnapshotImported(snapshot_id=snapshot.id, session_id=snapshot.session_id)
        try:
            known = self.store.workflow(workflow.id)
        except NotFoundError:
            created = WorkflowCreated(
                issue=workflow.issue,
                worktree=workflow.worktree,
                task_dag=snapshot.task_dag,
                constraints=snapshot.constraints,
            )
            snapshot = snapshot.changed(folded_through=0)  # another database's numbers mean nothing here
            self.store.apply(Change(workflow.changed(revision=1), None, (created, entry), save=snapshot))
            return True
        self.store.apply(self._adding(known, snapshot, workflow, entry))
        return True

    def _adding(
        self, known: Workflow, snapshot: SessionSnapshot, workflow: Workflow, entry: SnapshotImported
    ) -> Change:
        """A session more for a workflow we have; what it recorded here counts on top of it."""
        latest = self.store.latest_snapshot(known.id)
        is_running = known.status in ACTIVE
        taken = {line.session_number for line in self.store.snapshots(known.id)}
        taken |= {known.session_count} if is_running else set()
        number = snapshot.session_number if snapshot.session_number not in taken else max(taken) + 1
        snapshot = snapshot.changed(
            session_number=number, folded_through=latest.folded_through if latest else 0
        )
        state = workflow if workflow.updated_at > known.updated_at and not is_running else known
        # The running session needs a number above all others, a paused workflow the highest there is.
        highest = max({*taken, number})
        count = highest + (is_running and highest != known.session_count)
        after = state.changed(session_count=max(known.session_count, count), revision=known.revision + 1)
        return clean(Change(after, known.revision, (entry,), save=snapshot))

    def relocate(self, workflow_id: str, worktree: str) -> Workflow:
        """The folder of a workflow was moved or renamed."""
        workflow = self.store.workflow(workflow_id)
        after = workflow.touched(self._now(), worktree=worktree)
        return self._apply(workflow, after, WorkflowMoved(worktree=worktree))

    def delete_snapshot(self, snapshot_id: str) -> SessionSnapshot:
        snapshot = self.store.snapshot(snapshot_id)
        workflow = self.store.workflow(snapshot.workflow_id)
        after = workflow.touched(self._now())
        entry = SnapshotDeleted(snapshot_id=snapshot_id)
        self.store.apply(Change(after, workflow.revision, (entry,), delete=snapshot_id))
        return snapshot

    def _apply(self, before: Workflow, after: Workflow, *entries: Entry) -> Workflow:
        change = clean(Change(after, before.revision, entries))
        self.store.apply(change)
        return change.workflow

    def _now(self) -> datetime:
        return to_datetime(self._clock())


def opening(
    issue: Issue,
    worktree: str,
    task_dag: TaskDAG,
    constraints: tuple[str, ...],
    commit_at_start: str | None,
    now: datetime,
) -> Change:
    """A new workflow that runs from its first moment."""
    workflow = Workflow(
        id=ids.new_id("wf", now.timestamp()),
        issue=issue,
        worktree=worktree,
        created_at=now,
        updated_at=now,
        commit_at_start=commit_at_start,
    )
    created = WorkflowCreated(issue=issue, worktree=worktree, task_dag=task_dag, constraints=constraints)
    started = WorkflowStatusChanged(status="in_progress")
    return clean(Change(workflow.moved("in_progress", now), None, (created, started)))


def going_on(
    workflow: Workflow, now: datetime, snapshot: SessionSnapshot | None = None, message: str | None = None
) -> Change:
    """A paused (or not yet started) workflow in its next session."""
    number = workflow.session_count + (workflow.status == "paused")
    resumed = workflow.moved("in_progress", now, session_count=number, paused_at=None, pause_reason=None)
    entry = WorkflowResumed(
        snapshot_id=snapshot.id if snapshot else None, session_number=number, message=message
    )
    return clean(Change(resumed, workflow.revision, (entry,)))


def opening_pause(first: Change, fold: SessionFold, facts: Facts, now: datetime) -> Settled:
    """A change that starts work and the pause of that work, as one change."""
    settled = prepare_pause(first.workflow, fold, facts, now)
    both = replace(settled.change, seen=first.seen, entries=(*first.entries, *settled.change.entries))
    return replace(settled, change=both)


def prepare_pause(workflow: Workflow, fold: SessionFold, facts: Facts, now: datetime) -> Settled:
    """The pure heart of `settle`: state, snapshot and entry out of fold and facts."""
    if workflow.status == "blocked":  # waiting for approval is no reason not to pause
        workflow = workflow.changed(status="in_progress")
    tasks, interrupted = _without_running_tasks(fold.tasks())
    upcoming = next(tasks.ready(), None)
    session_id = facts.session_id or ids.session_id(now.timestamp())
    snapshot = SessionSnapshot(
        id=ids.new_id("snap", now.timestamp()),
        workflow_id=workflow.id,
        session_number=workflow.session_count,
        session_id=session_id,
        created_at=now,
        trigger=facts.trigger,
        pause_reason=facts.reason,
        task_dag=tasks,
        current_task_id=fold.current_task_id or interrupted,
        next_task_id=interrupted or (upcoming.id if upcoming else None),
        git_state=facts.git_state,
        files=facts.files,
        decisions=tuple(fold.decisions.values()),
        errors=tuple(fold.errors.values()),
        reviewer_feedback=tuple(fold.feedback.values()) or None,
        test_state=fold.test_state,
        constraints=tuple(fold.constraints),
        usage=facts.usage or fold.usage,
        incremental_pause=facts.incremental_pause,
        folded_through=fold.through,
    )
    paused = workflow.moved("paused", now, paused_at=now, pause_reason=facts.reason, pause_request=None)
    entry = WorkflowPaused(
        snapshot_id=snapshot.id,
        session_id=session_id,
        session_number=snapshot.session_number,
        trigger=facts.trigger,
        reason=facts.reason,
    )
    change = clean(Change(paused, workflow.revision, (entry,), save=snapshot))
    return Settled(change.workflow, change.save or snapshot, change)


def clean(change: Change) -> Change:
    """The change without secrets: nothing is written that did not come through here."""
    return replace(
        change,
        workflow=change.workflow.without_secrets(),
        entries=tuple(entry.without_secrets() for entry in change.entries),
        save=change.save.without_secrets() if change.save else None,
    )


def _without_running_tasks(tasks: TaskDAG) -> tuple[TaskDAG, str | None]:
    """A task that runs at the pause was cut off: it is pending again, and the first to do."""
    running = [task.id for task in tasks.tasks if task.status == "in_progress"]
    if not running:
        return tasks, None
    return tasks.updated({task_id: {"status": "pending"} for task_id in running}), running[0]
