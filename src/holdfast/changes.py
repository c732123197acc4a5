"""Changes of a workflow as values: what opening, going on and pausing would commit. Nothing here writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import ValidationError

from holdfast.base import ids
from holdfast.base.errors import InvalidInputError
from holdfast.model.entry import (
    Entry,
    Event,
    WorkflowCreated,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStatusChanged,
)
from holdfast.model.fold import SessionFold
from holdfast.model.git import GitState
from holdfast.model.originals import ISSUE, MESSAGE, OPTIONS, lacks_something, name_of, original
from holdfast.model.policy import Trigger
from holdfast.model.snapshot import FileFingerprint, IncrementalPause, SessionSnapshot
from holdfast.model.task import TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import RESUMABLE, Issue, Workflow, WorkflowOptions, WorkflowStatus
from holdfast.store.protocol import Change


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
    worked: bool = True
    """Whether the session did anything that the next one could need."""
    at: datetime | None = None
    """When the session was last heard of, where that is not now: it was killed and is found later."""
    resume_at: datetime | None = None
    """When the workflow is to go on by itself."""


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
    created = WorkflowCreated(issue=issue, worktree=worktree, task_dag=task_dag, constraints=constraints)
    started = WorkflowStatusChanged(status="in_progress")
    change = Change(workflow.moved("in_progress", now), None, (created, started))
    try:
        copy = clean(change)
    except ValidationError as error:
        raise InvalidInputError(
            "without what looks like secrets in their ids, tasks have the same id",
            hint="name the tasks otherwise: ids are shown everywhere",
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


def going_on(
    workflow: Workflow, now: datetime, snapshot: SessionSnapshot | None = None, message: str | None = None
) -> Change:
    """A paused or failed (or not yet started) workflow in its next session."""
    number = workflow.session_count + (workflow.status in RESUMABLE)
    resumed = workflow.moved(
        "in_progress", now, session_count=number, paused_at=None, pause_reason=None, resume_at=None
    )
    entry = WorkflowResumed(
        snapshot_id=snapshot.id if snapshot else None, session_number=number, message=message
    )
    change = clean(Change(resumed, workflow.revision, (entry,)))
    lacks = message is not None and (entry != change.entries[0] or lacks_something(message))
    return replace(change, originals={MESSAGE: message} if lacks and message else {})


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
        decisions=tuple(fold.decisions.values()),
        errors=tuple(fold.errors.values()),
        reviewer_feedback=tuple(fold.feedback.values()) or None,
        test_state=fold.test_state,
        constraints=tuple(fold.constraints),
        worked=facts.worked,
        usage=facts.usage or fold.usage,
        incremental_pause=facts.incremental_pause,
        agent_session=fold.agent_session,
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
