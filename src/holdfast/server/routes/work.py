"""What is open on this machine, and what of it waits for a person: the dashboard's first page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, Field

from holdfast.base.text import clipped, counted, one_line
from holdfast.model.base import Value
from holdfast.model.statuses import OPEN, WorkflowStatus
from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.server.app_state import AppState, AtDesk
from holdfast.server.problems import documented
from holdfast.sessions.threads import Thread, folders_looked_at, threads_in

router = APIRouter(prefix="/api/work", tags=["sessions"])

WorkState = Literal["waiting", "failed", "running", "open"]
_ORDER: tuple[WorkState, ...] = ("waiting", "failed", "running", "open")

_MOST = 100
"""Told of each state; all are counted, and the list of workflows has them."""
_NAMED = 3
_WORDS = 160


class WorkItem(Value):
    """One piece of work that is not finished: a plan, or what an agent's sessions left."""

    id: str = Field(description="For `holdfast resume` and `holdfast status`")
    state: WorkState = Field(description="`waiting` and `failed` need a person")
    title: str
    because: str = Field(description="Why it is in this state, in a few words")
    left: tuple[str, ...] = Field(description="What is open in it")
    branch: str | None
    worktree: str
    issue: str | None = Field(description="Id of the issue, if it has a plan")
    workflow_id: str
    snapshot_id: str | None = Field(description="Null before the first pause")
    task_id: str | None = Field(description="The task that waits, failed or runs")
    tasks_done: int
    tasks_total: int
    sessions: int
    updated_at: AwareDatetime


class WorkList(Value):
    items: tuple[WorkItem, ...] = Field(
        description=f"What needs a person first, then the newest; at most {_MOST} of each state"
    )
    counts: dict[WorkState, int] = Field(description="Of all, also of those that are not among the items")
    is_cut: bool = Field(
        description="Work without a plan is counted only in the folders worked in last, and there are more"
    )
    seq: int


@router.get("", responses=documented(422))
def list_work(
    desk: AtDesk,
    limit: Annotated[int, Query(ge=1, le=_MOST, description="Maximum number of items of each state")] = _MOST,
) -> WorkList:
    """The unfinished work of all projects by what it needs: plans, and threads of agents' sessions."""
    _, newest = desk.store.event_range()
    flows = desk.store.workflows(statuses=_STATUSES, limit=_ALL)
    threads = [one for one in threads_in(desk.store) if one.is_open and one.issue is None]
    work: list[tuple[WorkState, Workflow | Thread]] = [
        *((state, flow) for flow in flows if (state := _state_of(desk, flow)) is not None),
        *((_NEEDS[thread.needs], thread) for thread in threads),
    ]
    work.sort(key=lambda one: one[1].updated_at, reverse=True)
    by_state: dict[WorkState, list[Workflow | Thread]] = {state: [] for state in _ORDER}
    for state, one in work:
        by_state[state].append(one)
    folders = folders_looked_at(desk.store)
    return WorkList(
        items=tuple(_item(desk, state, one) for state in _ORDER for one in by_state[state][:limit]),
        counts={state: len(found) for state, found in by_state.items()},
        is_cut=any(one.worktree not in folders and not desk.outline(one).has_tasks for one in flows),
        seq=newest,
    )


_STATUSES: tuple[WorkflowStatus, ...] = (*sorted(OPEN), "failed")
_ALL = 1_000_000


def _state_of(desk: AppState, workflow: Workflow) -> WorkState | None:
    """None for work without a plan: its thread tells of it."""
    outline = desk.outline(workflow)
    if not outline.has_tasks:
        return None
    if workflow.status == "blocked":
        return "waiting"
    if workflow.status == "in_progress":
        return "failed" if desk.service.is_abandoned(workflow) else "running"
    return "failed" if workflow.status == "failed" or outline.has_failed else "open"


def _item(desk: AppState, state: WorkState, work: Workflow | Thread) -> WorkItem:
    return _of_thread(work) if isinstance(work, Thread) else _of_plan(desk, state, work)


def _of_plan(desk: AppState, state: WorkState, workflow: Workflow) -> WorkItem:
    tasks = desk.standing(workflow).tasks
    task, because = _standing(desk, state, workflow)
    return WorkItem(
        id=workflow.id,
        state=state,
        title=one_line(workflow.issue.title or workflow.issue.id),
        because=clipped(one_line(because), _WORDS),
        left=tuple(_left(tasks.tasks)),
        branch=workflow.options.branch,
        worktree=workflow.worktree,
        issue=workflow.issue.id,
        workflow_id=workflow.id,
        snapshot_id=None,
        task_id=task.id if task else None,
        tasks_done=tasks.count("completed", "skipped"),
        tasks_total=len(tasks.tasks),
        sessions=workflow.session_count,
        updated_at=workflow.updated_at,
    )


def _standing(desk: AppState, state: WorkState, workflow: Workflow) -> tuple[Task | None, str]:
    """The task that it is about, and why it is in that state."""
    tasks = desk.standing(workflow).tasks

    def first(status: str) -> Task | None:
        return next((task for task in tasks.tasks if task.status == status), None)

    if state == "waiting":
        asked = desk.service.waiting_for_approval(workflow)
        return asked, f"{asked.id} waits for approval" if asked else "waits for approval"
    if state == "running":
        running = first("in_progress")
        return running, f"runs {running.id}" if running else "between two tasks"
    if workflow.status == "in_progress":
        return first("in_progress"), "its worker is gone"
    if state == "failed":
        failed = first("failed")
        return failed, (failed.result if failed else None) or workflow.pause_reason or "failed"
    waits = "waits for a worker" if workflow.status == "pending" else "paused"
    return first("pending"), workflow.pause_reason or waits


_TOLD = {"failed": "failed", "in_progress": "running", "pending": "to do"}


def _left(tasks: tuple[Task, ...]) -> Iterator[str]:
    for status, told in _TOLD.items():
        names = [task.id for task in tasks if task.status == status]
        if names and not (status == "in_progress" and len(names) == 1):  # that one is said to run
            more = f" and {counted(len(names) - _NAMED, 'other')}" if len(names) > _NAMED else ""
            yield clipped(f"{told}: {', '.join(names[:_NAMED])}{more}", _WORDS)


_NEEDS: dict[str | None, WorkState] = {"answer": "waiting", "repair": "failed", None: "open"}


def _of_thread(thread: Thread) -> WorkItem:
    return WorkItem(
        id=thread.id,
        state=_NEEDS[thread.needs],
        title=thread.title,
        because=thread.state,
        left=tuple(item for item in thread.left if item not in thread.state),
        branch=thread.branch,
        worktree=thread.worktree,
        issue=None,
        workflow_id=thread.workflow_id,
        snapshot_id=thread.snapshot_id,
        task_id=None,
        tasks_done=0,
        tasks_total=0,
        sessions=len(thread.sessions),
        updated_at=thread.updated_at,
    )
