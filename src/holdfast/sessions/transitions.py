"""The verbs: open, record, take, advance, request a pause, settle, enrich, claim. Everything calls these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from holdfast.base import ids
from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.errors import (
    ConflictError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
    SessionAlreadyRunningError,
)
from holdfast.model.entry import (
    Entry,
    Event,
    HandoverTakenUp,
    PauseRequested,
    SessionTaken,
    SnapshotDeleted,
    SnapshotEnriched,
    SnapshotImported,
    TaskApproved,
    TaskFinished,
    TaskSkipped,
    Warned,
    WorkflowCreated,
    WorkflowForked,
    WorkflowMoved,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStatusChanged,
)
from holdfast.model.findings import Decision, ErrorRecord
from holdfast.model.fold import SessionFold
from holdfast.model.git import GitState
from holdfast.model.policy import Trigger
from holdfast.model.snapshot import FileFingerprint, IncrementalPause, SessionSnapshot
from holdfast.model.task import DONE, ISSUE, MESSAGE, OPTIONS, TaskDAG, lacks_something, name_of, original
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import (
    ACTIVE,
    NEVER_RUN_AGAIN,
    OPEN,
    RESUMABLE,
    Issue,
    PauseRequest,
    Workflow,
    WorkflowOptions,
    WorkflowStatus,
)
from holdfast.store.protocol import Change, SnapshotSummary, Store

# ── changes as values ─────────────────────────────────────────────────────────────────────────────

# Changes of a workflow as values: what opening, going on and pausing would commit. Nothing here writes.


@dataclass(frozen=True)
class Facts:
    """The world at the moment of a pause, as the door captured it."""

    trigger: Trigger = "pause"
    reason: str | None = None
    session_id: str | None = None
    git_state: GitState | None = None
    files: tuple[FileFingerprint, ...] = ()
    folder_files: tuple[FileFingerprint, ...] | None = None
    """Every file, where there is no git."""
    usage: UsageMetrics | None = None
    incremental_pause: IncrementalPause | None = None
    worked: bool = True
    """Whether the session did anything that the next one could need."""
    at: datetime | None = None
    """When the session was last heard of, where that is not now: it was killed and is found later."""
    resume_at: datetime | None = None
    """When the workflow is to go on by itself."""
    handover: str | None = None
    """The agent's own words for the next session."""
    conversation: str | None = None
    """The agent's session that it is made of."""


@dataclass(frozen=True)
class Settled:
    """A pause about to be committed: what the workflow and its snapshot will be."""

    workflow: Workflow
    snapshot: SessionSnapshot
    change: Change


NOT_RUNNING: dict[str, object] = {"pause_request": None, "run_id": None, "claim": None, "resume_at": None}
"""What a workflow has lost that nobody works on."""


def with_run(change: Change, claim: str | None) -> Change:
    """The change, with a run of its own for the session it starts: no two of a workflow share a name."""
    workflow = change.workflow
    run_id = f"{workflow.id}/{workflow.session_count}.{workflow.revision}"
    return replace(change, workflow=workflow.changed(run_id=run_id, claim=claim))


def last_resume(events: Sequence[Event]) -> tuple[int, str] | None:
    """Where among these events the session was last resumed, and from which snapshot."""
    for index in range(len(events) - 1, -1, -1):
        entry = events[index].entry
        if isinstance(entry, WorkflowResumed) and entry.snapshot_id:
            return index, entry.snapshot_id
    return None


def opening(
    issue: Issue,
    worktree: str,
    task_dag: TaskDAG,
    constraints: tuple[str, ...],
    commit_at_start: str | None,
    now: datetime,
    options: WorkflowOptions | None = None,
) -> Change:
    """A new workflow that runs from its first moment."""
    workflow = Workflow(
        id=ids.new_id("wf", now.timestamp()),
        issue=issue,
        worktree=worktree,
        created_at=now,
        updated_at=now,
        commit_at_start=commit_at_start,
        options=options or WorkflowOptions(),
    )
    created = WorkflowCreated(
        issue=issue,
        worktree=worktree,
        task_dag=task_dag,
        constraints=constraints,
        runs=options is not None,
    )
    started = WorkflowStatusChanged(status="in_progress")
    change = Change(workflow.moved("in_progress", now), None, (created, started))
    try:
        copy = clean(change)
    except ValidationError as error:
        raise InvalidInputError(
            "task ids are no longer unique after removing what looks like secrets",
            hint="use other task ids: ids are shown everywhere",
        ) from error
    return replace(copy, originals=_originals(change, copy))


def _originals(change: Change, copy: Change) -> dict[str, str]:
    """What the copy of a new workflow lacks."""
    found = original(ISSUE, change.workflow.issue, copy.workflow.issue)
    found |= original(OPTIONS, change.workflow.options, copy.workflow.options)
    created, shown = change.entries[0], copy.entries[0]
    if isinstance(created, WorkflowCreated) and isinstance(shown, WorkflowCreated):
        for task, other in zip(created.task_dag.tasks, shown.task_dag.tasks, strict=True):
            found |= original(name_of(other.id), task, other)
    return found


@dataclass(frozen=True)
class FailedTasks:
    """What becomes of failed tasks when their workflow goes on."""

    retry: tuple[str, ...] | None = None
    """Those that are tried again; None for all."""
    skipped: tuple[TaskSkipped, ...] = ()


RETRY_ALL = FailedTasks()


def going_on(
    workflow: Workflow,
    now: datetime,
    snapshot: SessionSnapshot | None = None,
    message: str | None = None,
    failed: FailedTasks = RETRY_ALL,
) -> Change:
    """A paused or failed (or not yet started) workflow in its next session."""
    number = workflow.session_count + (workflow.status in RESUMABLE)
    resumed = workflow.moved(
        "in_progress", now, session_count=number, paused_at=None, pause_reason=None, resume_at=None
    )
    entry = WorkflowResumed(
        snapshot_id=snapshot.id if snapshot else None,
        session_number=number,
        message=message,
        retry=failed.retry,
    )
    change = clean(Change(resumed, workflow.revision, (entry, *failed.skipped)))
    lacks = message is not None and (entry != change.entries[0] or lacks_something(message))
    return replace(change, originals={MESSAGE: message} if lacks and message else {})


def forking(
    origin: Workflow,
    fold: SessionFold,
    worktree: str,
    originals: Mapping[str, str],
    now: datetime,
    forked: WorkflowForked,
) -> Change:
    """A new workflow, to be paused where the work of another one stands; `fold` is that work."""
    fold.agent_session = None  # two cannot go on with one conversation
    fold.usage, fold.retries, fold.through = UsageMetrics(), {}, 0
    first = opening(
        origin.issue,
        worktree,
        fold.tasks(),
        tuple(fold.constraints),
        origin.commit_at_start,
        now,
        origin.options,
    )
    kept = {name: text for name, text in originals.items() if name != MESSAGE}
    return replace(first, entries=(*first.entries, forked), originals=kept)


def again_from(tasks: TaskDAG, task_id: str, plan: TaskDAG) -> TaskDAG:
    """The tasks as if this one, and all that depend on it, had never run. `plan` says which need approval."""
    again = {task_id}
    while more := {task.id for task in tasks.tasks if again & {*task.depends_on}} - again:
        again |= more
    fresh = {"status": "pending", "attempts": 0, "result": None, "outputs": None}
    asks = {task.id: task.approval for task in plan.tasks}
    return tasks.updated({name: {**fresh, "approval": asks.get(name, False)} for name in again})


def opening_pause(first: Change, fold: SessionFold, facts: Facts, now: datetime) -> Settled:
    """A change that starts work and the pause of that work, as one change."""
    settled = prepare_pause(first.workflow, fold, facts, now)
    both = replace(
        settled.change,
        seen=first.seen,
        entries=(*first.entries, *settled.change.entries),
        originals=first.originals,
    )
    return replace(settled, change=both)


def paused_since(before: Workflow, settled: Settled) -> Settled:
    """A session that was over before the last pause changes nothing about that one."""
    if before.paused_at is None or settled.snapshot.created_at >= before.paused_at:
        return settled
    workflow = settled.workflow.changed(paused_at=before.paused_at, pause_reason=before.pause_reason)
    return replace(settled, workflow=workflow, change=replace(settled.change, workflow=workflow))


def prepare_pause(workflow: Workflow, fold: SessionFold, facts: Facts, now: datetime) -> Settled:
    """The pure heart of `settle`: state, snapshot and entries out of fold and facts.

    A workflow that failed is paused, too: it waits where it stopped, under a name that says why.
    """
    if workflow.status == "blocked":  # waiting for approval is no reason not to pause
        workflow = workflow.changed(status="in_progress")
    now = max(
        now, workflow.updated_at
    )  # or a clock that was set back would make an older snapshot the latest
    tasks, interrupted = _without_running_tasks(fold.tasks())
    failed = next((task.id for task in tasks.tasks if task.status == "failed"), None)
    upcoming = next(tasks.ready(), None)
    session_id = facts.session_id or ids.session_id(now.timestamp())
    snapshot = SessionSnapshot(
        id=ids.new_id("snap", now.timestamp()),
        workflow_id=workflow.id,
        session_number=workflow.session_count,
        session_id=session_id,
        created_at=facts.at or now,
        trigger=facts.trigger,
        pause_reason=facts.reason,
        task_dag=tasks,
        current_task_id=fold.current_task_id or interrupted,
        next_task_id=interrupted or failed or (upcoming.id if upcoming else None),
        git_state=facts.git_state,
        files=facts.files,
        folder_files=facts.folder_files,
        decisions=tuple(fold.decisions.values()),
        errors=tuple(fold.errors.values()),
        reviewer_feedback=tuple(fold.feedback.values()) or None,
        test_state=fold.test_state,
        context_edits=fold.base.context_edits.lasting if fold.base and fold.base.context_edits else None,
        constraints=tuple(fold.constraints),
        todos=fold.todos,
        worked=facts.worked,
        usage=facts.usage or fold.usage,
        incremental_pause=facts.incremental_pause,
        agent_session=fold.agent_session,
        handover=facts.handover,
        conversation=facts.conversation,
        work=fold.work,
        folded_through=fold.through,
    )
    status: WorkflowStatus = "failed" if facts.trigger == "failure" else "paused"
    settled = workflow.moved(
        status,
        now,
        **{**NOT_RUNNING, "paused_at": now, "pause_reason": facts.reason, "resume_at": facts.resume_at},
    )
    change = clean(Change(settled, workflow.revision, settled_entries(snapshot), save=snapshot))
    return Settled(change.workflow, change.save or snapshot, change)


def settled_entries(snapshot: SessionSnapshot) -> tuple[Entry, ...]:
    """What tells that a session ended with this snapshot."""
    paused = WorkflowPaused(
        snapshot_id=snapshot.id,
        session_id=snapshot.session_id,
        session_number=snapshot.session_number,
        trigger=snapshot.trigger,
        reason=snapshot.pause_reason,
    )
    if snapshot.trigger != "failure":
        return (paused,)
    return paused, WorkflowStatusChanged(status="failed", reason=snapshot.pause_reason)


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


# ── the verbs ─────────────────────────────────────────────────────────────────────────────────────

# The verbs: open, record, take, advancing, request_pause, settle, enrich, claim. Every door calls these.
#
# trigger ─► request_pause ─► (boundary) ─► settle ─► enrich ─► claim
# recorded                       facts and   may       one runner
# snapshot,   fail      is let in
# one commit  freely
#
# Each verb reads the workflow, makes its next state, and applies both with the entries
# that tell what happened, secrets taken out. Somebody else's change in between makes it a `ConflictError`,
# never a lost update.

_T = TypeVar("_T")
_ATTEMPTS = 100
"""Each failed one is a success of somebody else's: this many at once are not expected."""


def again_on_conflict(action: Callable[[], _T]) -> _T:
    """Somebody else changed the workflow in the same moment: look again and decide anew."""
    for _ in range(_ATTEMPTS):
        try:
            return action()
        except ConflictError:
            continue
    return action()


def _done_since(snapshot: SessionSnapshot, workflow: Workflow) -> list[TaskFinished]:
    """The tasks that a workflow from files must have done after its last pause: it was completed."""
    left = snapshot.task_dag.tasks if workflow.status == "completed" else ()
    told = "completed or skipped after the last pause"
    return [
        TaskFinished(task_id=task.id, outcome="completed", result=told, attempt=max(1, task.attempts))
        for task in left
        if task.status not in DONE
    ]


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
        options: WorkflowOptions | None = None,
        claim: str | None = None,
    ) -> Workflow:
        """A new workflow, running. Refused while another one is active in that worktree.

        With `options` it gets a run: of whoever is named by `claim`, else of the first worker to take it.
        """
        tasks, now = task_dag or TaskDAG(), self._now()
        change = opening(issue, worktree, tasks, tuple(constraints), commit_at_start, now, options)
        if options is not None:
            change = with_run(change, claim)
        self.store.apply(change)
        return change.workflow

    def record(self, workflow_id: str, *entries: Entry) -> Workflow:
        """Note what happened in a running session."""
        workflow = self.store.workflow(workflow_id)
        if workflow.status not in ACTIVE:
            raise IllegalTransitionError(
                f"workflow {workflow_id} is {workflow.status}; entries can only be added to a running "
                "workflow"
            )
        return self._apply(workflow, workflow.touched(self._now()), *entries)

    def note(self, worktree: str, *entries: Entry, workflow_id: str | None = None) -> Workflow | None:
        """Note it in a folder's open work, running or paused, or in the workflow that is named: the next
        pause takes it in."""

        def noted() -> Workflow | None:
            found = (
                self.store.workflow(workflow_id)
                if workflow_id is not None
                else self._newest(worktree, ACTIVE) or self._newest(worktree, OPEN)
            )
            return self._apply(found, found.touched(self._now()), *entries) if found else None

        return again_on_conflict(noted)

    def advancing(
        self, workflow: Workflow, *entries: Entry, to: WorkflowStatus | None = None, **changes: object
    ) -> Change:
        """What a runner records: made from the state it last saw, so that whatever anybody else
        changed since (a pause asked for, a takeover) is a `ConflictError` and not written over."""
        now = self._now()
        after = (
            workflow.touched(now, **changes)
            if to is None
            else workflow.moved(to, now, **{**NOT_RUNNING, **changes})
        )
        return clean(Change(after, workflow.revision, entries))

    def take(self, workflow_id: str, run_id: str, claim: str, *, takes_over: bool = True) -> Workflow:
        """A runner takes a session up; whoever had it before can write no more."""
        workflow = self.store.workflow(workflow_id)
        if workflow.run_id != run_id or workflow.status != "in_progress":
            raise SessionAlreadyRunningError(f"run {run_id} of workflow {workflow_id} has ended")
        if workflow.claim == claim:
            return workflow
        if workflow.claim is not None and not takes_over:
            raise SessionAlreadyRunningError(f"workflow {workflow_id} is run by {workflow.claim}")
        taken = SessionTaken(run_id=run_id, claim=claim, took_over_from=workflow.claim)
        return self._apply(workflow, workflow.touched(self._now(), claim=claim), taken)

    def run_anew(self, workflow: Workflow) -> Workflow:
        """Another run of a session whose run is over for the engine and not for us."""
        warned = Warned(text=f"run {workflow.run_id} ended without a result; another run continues")
        change = with_run(clean(Change(workflow.touched(self._now()), workflow.revision, (warned,))), None)
        self.store.apply(change)
        return change.workflow

    def approve(self, workflow_id: str, task_id: str, claim: str | None = None) -> Workflow:
        """Let a workflow that waits for approval go on with that task."""
        workflow = self.store.workflow(workflow_id)
        if workflow.status != "blocked":
            raise IllegalTransitionError(
                f"workflow {workflow_id} is {workflow.status}; it is not waiting for approval"
            )
        return self._unblocked(workflow, TaskApproved(task_id=task_id), f"task {task_id} was approved", claim)

    def skip_waiting(self, workflow: Workflow, skipped: TaskSkipped, claim: str | None = None) -> Workflow:
        """Let a workflow that waits for approval go on without a task."""
        return self._unblocked(workflow, skipped, f"task {skipped.task_id} was skipped", claim)

    def _unblocked(self, workflow: Workflow, entry: Entry, reason: str, claim: str | None) -> Workflow:
        moved = workflow.moved("in_progress", self._now())
        going = WorkflowStatusChanged(status="in_progress", reason=reason)
        change = with_run(clean(Change(moved, workflow.revision, (entry, going))), claim)
        self.store.apply(change)
        return change.workflow

    def move(self, workflow_id: str, status: WorkflowStatus, reason: str | None = None) -> Workflow:
        """Complete, fail, block or cancel. A pause goes through `settle`, a resume through `claim`;
        a failure that leaves a snapshot through `settle`, too."""
        if status in ("paused", "pending"):
            raise InvalidInputError(f"a workflow cannot be set to {status} directly")
        workflow = self.store.workflow(workflow_id)
        if workflow.status in RESUMABLE and status == "in_progress":
            raise InvalidInputError(f"workflow {workflow_id} is {workflow.status}: resume it instead")
        moved = workflow.moved(status, self._now(), **NOT_RUNNING)
        return self._apply(workflow, moved, WorkflowStatusChanged(status=status, reason=reason))

    def request_pause(
        self,
        workflow_id: str,
        trigger: Trigger = "pause",
        reason: str | None = None,
        force_after: float | None = None,
    ) -> Workflow:
        """Ask for a pause; it is honoured at the next boundary. Asking again changes nothing but
        how long it waits for that boundary."""
        workflow = self.store.workflow(workflow_id)
        if workflow.status not in ACTIVE:
            raise IllegalTransitionError(
                f"workflow {workflow_id} is {workflow.status}; only a running one can be paused"
            )
        now = self._now()
        request = workflow.pause_request
        if request is None:
            request = PauseRequest(trigger=trigger, reason=reason, requested_at=now, force_after=force_after)
        elif force_after is None or force_after == request.force_after:
            return workflow
        else:
            request = request.changed(force_after=force_after)
        return self._apply(
            workflow,
            workflow.touched(now, pause_request=request),
            PauseRequested(trigger=request.trigger, reason=request.reason),
        )

    def settle(self, workflow_id: str, facts: Facts) -> SessionSnapshot:
        """Pause, or fail: fold what happened, add the facts, and commit snapshot and state together."""
        settled = self.prepare_pause(self.store.workflow(workflow_id), facts)
        self.store.apply(settled.change)
        return settled.snapshot

    def prepare_pause(self, workflow: Workflow, facts: Facts) -> Settled:
        """What `settle` would commit; nothing is written yet."""
        return prepare_pause(workflow, self.fold(workflow), facts, self._now())

    def prepare_worktree_pause(
        self, worktree: str, issue: Issue, facts: Facts, *, commit_at_start: str | None = None
    ) -> Settled:
        """A pause of whatever is worked on in a folder, where no plan was ever given.

        The open workflow of that worktree goes on; a paused one evidently was gone on with,
        so it is resumed first; where there is none, one is opened. A plan that somebody runs is
        another piece of work: who works beside it neither stops it nor takes it up.
        """
        now = self._now()
        found = self._newest(worktree, ACTIVE) or self._newest(worktree, OPEN)
        if found is None:
            new = opening(issue, worktree, TaskDAG(), (), commit_at_start, now)
            return opening_pause(new, SessionFold(), facts, now)
        fold = self.fold(found)
        if found.status in ACTIVE:
            return prepare_pause(found, fold, facts, now)
        settled = opening_pause(going_on(found, now), fold, facts, now)
        return settled if facts.at is None else paused_since(found, settled)

    def _newest(self, worktree: str, statuses: frozenset[WorkflowStatus]) -> Workflow | None:
        found = self.store.workflows(worktree=worktree, statuses=statuses)
        return next((flow for flow in found if not self._is_of_a_runner(flow)), None)

    def _is_of_a_runner(self, workflow: Workflow) -> bool:
        """Whether it is a plan that was run, or came from elsewhere and can be."""
        if workflow.run_id is not None:
            return True
        found = self.store.events(
            workflow_id=workflow.id, types=("workflow_created", "session_taken", "snapshot_imported")
        )
        entries = [event.entry for event in found]
        if any(
            isinstance(one, SessionTaken) or (isinstance(one, WorkflowCreated) and one.runs)
            for one in entries
        ):
            return True
        latest = self.store.latest_snapshot(workflow.id) if len(entries) > 1 else None
        return latest is not None and bool(latest.task_dag.tasks)

    def fold(self, workflow: Workflow) -> SessionFold:
        """Where the work stands: the last snapshot (or the older one resumed from) and what followed."""
        base = self.store.latest_snapshot(workflow.id)
        since = base.folded_through if base else 0
        events = self.store.events(workflow_id=workflow.id, since=since)
        resumed = last_resume(events)
        if resumed is not None and base is not None and resumed[1] != base.id:
            base, events = self.store.snapshot(resumed[1]), events[resumed[0] :]
        return SessionFold.starting_from(base).take(events)

    def enrich(
        self,
        snapshot_id: str,
        decisions: Iterable[Decision] = (),
        errors: Iterable[ErrorRecord] = (),
        **found: Any,
    ) -> SessionSnapshot:
        """Add findings to a snapshot that is already safe; those it has keep their place.

        `found` are further fields of the snapshot that only a look at the talk can fill. What is added
        does not depend on what others do to the workflow meanwhile, so a conflict is tried again.
        """
        decisions, errors = tuple(decisions), tuple(errors)
        return again_on_conflict(lambda: self._enriched(snapshot_id, decisions, errors, found))

    def _enriched(
        self,
        snapshot_id: str,
        decisions: tuple[Decision, ...],
        errors: tuple[ErrorRecord, ...],
        found: dict[str, Any],
    ) -> SessionSnapshot:
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

    def claim(
        self,
        workflow_id: str,
        message: str | None = None,
        *,
        snapshot: SessionSnapshot | None = None,
        runs: bool = False,
        claim: str | None = None,
        failed: FailedTasks = RETRY_ALL,
    ) -> tuple[Workflow, SessionSnapshot | None]:
        """Resume: of all who try at once, one gets the workflow; the others an error.

        From the last snapshot, or from an older one. With `runs` it gets a run, as in `open`.
        """
        workflow = self.store.workflow(workflow_id)
        if workflow.status in ACTIVE:
            raise SessionAlreadyRunningError(f"workflow {workflow_id} is already running")
        snapshot = snapshot or self.store.latest_snapshot(workflow_id)
        change = going_on(workflow, self._now(), snapshot, message, failed)
        if runs:
            change = with_run(change, claim)
        try:
            self.store.apply(change)
        except ConflictError:
            raise SessionAlreadyRunningError(
                f"workflow {workflow_id} was claimed by another process first"
            ) from None
        return change.workflow, snapshot

    def take_up(self, workflow_id: str, snapshot: SessionSnapshot, message: str | None = None) -> Workflow:
        """Note that somebody goes on from this handover. It stays paused: there is nothing of it to run."""
        taken = HandoverTakenUp(snapshot_id=snapshot.id, message=message)

        def note() -> Workflow:
            workflow = self.store.workflow(workflow_id)
            return self._apply(workflow, workflow.touched(self._now()), taken)

        return again_on_conflict(note)

    def taken_up(self, snapshot: SessionSnapshot | SnapshotSummary) -> datetime | None:
        """When somebody last took this handover up."""
        events = self.store.events(workflow_id=snapshot.workflow_id, types=["handover_taken_up"])
        return next(
            (
                event.at
                for event in reversed(events)
                if isinstance(event.entry, HandoverTakenUp) and event.entry.snapshot_id == snapshot.id
            ),
            None,
        )

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
            entries = (created, entry, *_done_since(snapshot, workflow))
            self.store.apply(Change(workflow.changed(revision=1), None, entries, save=snapshot))
            return True
        self.store.apply(self._adding(known, snapshot, workflow, entry))
        return True

    def take_in_end(self, snapshot_id: str, workflow_id: str, status: WorkflowStatus) -> bool:
        """A session's file tells how its workflow ended. That counts where nobody has gone on since."""

        def ended() -> bool:
            known, latest = self.store.workflow(workflow_id), self.store.latest_snapshot(workflow_id)
            if status not in NEVER_RUN_AGAIN or known.status not in RESUMABLE:
                return False
            if latest is None or latest.id != snapshot_id:
                return False
            moved = known.touched(self._now(), status=status, **NOT_RUNNING)  # it ran in between, elsewhere
            changed = WorkflowStatusChanged(status=status, reason="as its session file says")
            self._apply(known, moved, *_done_since(latest, moved), changed)
            return True

        return again_on_conflict(ended)

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
        done = _done_since(snapshot, workflow) if state is workflow else []
        return clean(Change(after, known.revision, (entry, *done), save=snapshot))

    def relocate(self, workflow_id: str, worktree: str) -> Workflow:
        """The folder of a workflow was moved or renamed."""
        workflow = self.store.workflow(workflow_id)
        after = workflow.touched(self._now(), worktree=worktree)
        return self._apply(workflow, after, WorkflowMoved(worktree=worktree))

    def delete_snapshot(self, snapshot_id: str) -> SessionSnapshot:
        snapshot = self.store.snapshot(snapshot_id)
        workflow = self.store.workflow(snapshot.workflow_id)
        if workflow.status in ACTIVE and self._started_from(workflow) == snapshot_id:
            raise IllegalTransitionError(f"the running session started from snapshot {snapshot_id}")
        after = workflow.touched(self._now())
        entry = SnapshotDeleted(snapshot_id=snapshot_id)
        self.store.apply(Change(after, workflow.revision, (entry,), delete=snapshot_id))
        return snapshot

    def _started_from(self, workflow: Workflow) -> str | None:
        base = self.store.latest_snapshot(workflow.id)
        if base is None:
            return None
        resumed = last_resume(self.store.events(workflow_id=workflow.id, since=base.folded_through))
        return resumed[1] if resumed else None

    def _apply(self, before: Workflow, after: Workflow, *entries: Entry) -> Workflow:
        change = clean(Change(after, before.revision, entries))
        self.store.apply(change)
        return change.workflow

    def _now(self) -> datetime:
        return to_datetime(self._clock())
