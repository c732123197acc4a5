"""Workflows: list, look at, create."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import ValidationError

from holdfast.base.errors import InvalidInputError
from holdfast.model.base import invalid
from holdfast.model.task import REMAINING, Task, TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Issue, Workflow, WorkflowOptions, WorkflowStatus
from holdfast.server.app_state import AppState, AtDesk
from holdfast.server.models import (
    CreateWorkflow,
    Cursor,
    Limit,
    PlanDocument,
    PlanTask,
    TaskCounts,
    WorkflowPage,
    WorkflowProgress,
    workflow_cursor,
    workflow_position,
)
from holdfast.server.problems import WITH_BODY, documented
from holdfast.workflows.plan import Plan, driver_of, has_nul, parse_plan

# ── plans as JSON ─────────────────────────────────────────────────────────────────────────────────

# A plan that came as JSON: the same rules as for one in a file.

_NOT_OPTIONS = {"issue", "tasks", "constraints"}


def plan_of(document: PlanDocument) -> Plan:
    given = document.model_dump(exclude=_NOT_OPTIONS, exclude_none=True)
    try:
        options = WorkflowOptions.model_validate(given)
        tasks = TaskDAG(tasks=tuple(map(_task, document.tasks)))
    except ValidationError as error:
        raise invalid("the plan cannot be run", error) from None
    for task in tasks.tasks:
        if has_nul(task):
            raise InvalidInputError(f"task {task.id!r} contains a NUL character")
        _refuse_without_work(task, options)
    issue = Issue(**document.issue.model_dump())
    return Plan(issue=issue, tasks=tasks, constraints=document.constraints, options=options)


def _task(given: PlanTask) -> Task:
    fields = given.model_dump(exclude_none=True)
    fields.setdefault("description", given.id)
    return Task.model_validate(fields)


def _refuse_without_work(task: Task, options: WorkflowOptions) -> None:
    driver = driver_of(task, options)
    work = task.run if driver == "shell" else task.prompt or task.run
    if not (work or "").strip():
        needed = "command (`run`)" if driver == "shell" else "prompt"
        raise InvalidInputError(
            f"task {task.id!r} has no {needed}",
            hint=f"the driver {driver} requires one; see docs/workflows.md",
        )


# ── workflows ─────────────────────────────────────────────────────────────────────────────────────

# Workflows: list, look at, create.

router = APIRouter(prefix="/api/workflows", tags=["workflows"])


_UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "`If-None-Match` names its `ETag`"}}


@router.get("", response_model=WorkflowPage, responses=documented(422) | _UNCHANGED)
async def list_workflows(
    request: Request,
    desk: AtDesk,
    status: Annotated[
        list[WorkflowStatus] | None, Query(description="Only workflows with one of these statuses")
    ] = None,
    search: Annotated[
        str | None, Query(max_length=200, description="Search in title, issue, id and folder")
    ] = None,
    worktree: Annotated[
        str | None, Query(max_length=4096, description="Only workflows of this folder")
    ] = None,
    tasks: Annotated[bool, Query(description="Count the tasks of each, too")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Most recently changed first."""
    before = workflow_position(cursor)

    def page() -> WorkflowPage:
        _, newest = desk.store.event_range()
        found, position = desk.store.workflow_page(
            worktree=worktree, statuses=status, search=search, before=before, limit=limit
        )
        return WorkflowPage(
            workflows=tuple(found),
            tasks={one.id: _counts(desk, one) for one in found} if tasks else None,
            next_cursor=workflow_cursor(position) if position is not None else None,
            seq=newest,
        )

    return await desk.copies.answer(request, page)


def _counts(desk: AppState, workflow: Workflow) -> TaskCounts:
    tasks = desk.standing(workflow).tasks
    return TaskCounts(
        total=len(tasks.tasks), completed=tasks.count("completed"), failed=tasks.count("failed")
    )


@router.post("", status_code=201, responses=documented(404, 409, *WITH_BODY))
def create_workflow(request: CreateWorkflow, desk: AtDesk) -> Workflow:
    """Start a plan; it is run by a worker."""
    workflow = desk.service.start(_plan(request), folder_named(request.worktree))
    desk.see_to_it()
    return workflow


def _plan(request: CreateWorkflow) -> Plan:
    return parse_plan(request.plan) if isinstance(request.plan, str) else plan_of(request.plan)


def folder_named(worktree: str | None) -> Path | None:
    if worktree is None:
        return None
    folder = Path(worktree)
    if "\0" in worktree or not folder.is_absolute():
        raise InvalidInputError("the worktree must be an absolute path", hint="start it at the root")
    try:
        os.fsencode(folder)
    except UnicodeEncodeError:
        raise InvalidInputError("the worktree is not a path on this machine") from None
    return folder


@router.get("/{workflow_id}", response_model=Workflow, responses=documented(404, 422) | _UNCHANGED)
async def get_workflow(request: Request, workflow_id: str, desk: AtDesk) -> Response:
    """The workflow as recorded; `progress` and `tasks` return its current state."""
    return await desk.copies.answer(request, lambda: desk.store.workflow(workflow_id))


@router.get("/{workflow_id}/progress", responses=documented(404, 422))
def get_progress(workflow_id: str, desk: AtDesk) -> WorkflowProgress:
    """Current tasks, usage and pending approvals."""
    _, newest = desk.store.event_range()
    workflow = desk.store.workflow(workflow_id)
    standing = desk.standing(workflow)
    snapshots = desk.store.snapshots(workflow_id)
    latest = max(snapshots, key=lambda line: (line.created_at, line.session_number), default=None)
    waiting = desk.service.waiting_for_approval(workflow)
    tasks = standing.tasks
    return WorkflowProgress(
        workflow=workflow,
        tasks_total=len(tasks.tasks),
        tasks_completed=tasks.count("completed"),
        tasks_remaining=tasks.count(*REMAINING),
        tasks_failed=tasks.count("failed"),
        failed_task_ids=tuple(task.id for task in tasks.tasks if task.status == "failed"),
        current_task_id=standing.current_task_id if workflow.status == "in_progress" else None,
        waiting_for_approval=waiting.id if waiting else None,
        abandoned=desk.service.is_abandoned(workflow),
        usage=_usage(desk, workflow, standing.usage),
        snapshots=len(snapshots),
        latest_snapshot_id=latest.id if latest else None,
        seq=newest,
    )


def _usage(desk: AppState, workflow: Workflow, since_pause: UsageMetrics) -> UsageMetrics:
    """Of the session that runs; of the last one where none does."""
    if workflow.status == "in_progress" or since_pause != UsageMetrics():
        return since_pause
    latest = desk.store.latest_snapshot(workflow.id)
    return latest.usage if latest else since_pause
