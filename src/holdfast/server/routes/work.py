"""What is open on this machine, and what of it waits for a person: the dashboard's first page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from fastapi import APIRouter
from pydantic import AwareDatetime, Field

from holdfast.base.text import clipped, counted, one_line
from holdfast.model.base import Value
from holdfast.model.statuses import OPEN, WorkflowStatus
from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.server.app_state import AppState, AtDesk
from holdfast.server.problems import documented
from holdfast.sessions.threads import Thread, threads_in

router = APIRouter(prefix="/api/work", tags=["sessions"])

WorkState = Literal["waiting", "failed", "running", "open"]
_ORDER: tuple[WorkState, ...] = ("waiting", "failed", "running", "open")

_MOST = 100
"""Plans of each status that are looked at; the list of workflows has them all."""
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
    items: tuple[WorkItem, ...] = Field(description="What needs a person first, then the newest")
    counts: dict[WorkState, int]
    is_cut: bool = Field(description="There may be more than is counted here")
    seq: int


@router.get("", responses=documented(422))
def list_work(desk: AtDesk) -> WorkList:
    """The unfinished work of all projects by what it needs: plans, and threads of agents' sessions."""
    _, newest = desk.store.event_range()
    threads = [thread for thread in threads_in(desk.store) if thread.is_open]
    pages = [_plans(desk, status) for status in _STATUSES]
    items = [
        *(item for page in pages for flow in page if (item := _of_plan(desk, flow)) is not None),
        *(_of_thread(thread) for thread in threads if thread.issue is None),
    ]
    items.sort(key=lambda one: (_ORDER.index(one.state), -one.updated_at.timestamp()))
    return WorkList(
        items=tuple(items),
        counts={state: sum(one.state == state for one in items) for state in _ORDER},
        is_cut=any(len(page) == _MOST for page in pages),
        seq=newest,
    )


_STATUSES: tuple[WorkflowStatus, ...] = (*sorted(OPEN), "failed")


def _plans(desk: AppState, status: WorkflowStatus) -> list[Workflow]:
    return list(desk.store.workflows(statuses=[status], limit=_MOST))


def _of_plan(desk: AppState, workflow: Workflow) -> WorkItem | None:
    """None for work without a plan: its thread tells of it."""
    tasks = desk.standing(workflow).tasks
    if not tasks.tasks:
        return None
    state, task, because = _standing(desk, workflow)
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


def _standing(desk: AppState, workflow: Workflow) -> tuple[WorkState, Task | None, str]:
    tasks = desk.standing(workflow).tasks

    def first(status: str) -> Task | None:
        return next((task for task in tasks.tasks if task.status == status), None)

    if workflow.status == "blocked":
        asked = desk.service.waiting_for_approval(workflow)
        return "waiting", asked, f"{asked.id} waits for approval" if asked else "waits for approval"
    if workflow.status == "in_progress":
        if desk.service.is_abandoned(workflow):
            return "failed", first("in_progress"), "its worker is gone"
        running = first("in_progress")
        return "running", running, f"runs {running.id}" if running else "between two tasks"
    failed = first("failed")
    if failed is not None or workflow.status == "failed":
        because = failed.result if failed else None
        return "failed", failed, because or workflow.pause_reason or "failed"
    if workflow.status == "pending":
        return "open", first("pending"), "waits for a worker"
    return "open", first("pending"), workflow.pause_reason or "paused"


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
