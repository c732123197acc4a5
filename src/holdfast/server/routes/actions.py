"""What can be done with a workflow: pause, resume, retry, skip, fork, cancel, approve, reject."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Final, TypedDict

from fastapi import APIRouter, Body, Query, Response
from starlette.concurrency import run_in_threadpool

from holdfast.base.errors import CannotDoError, NotFoundError
from holdfast.base.redact import redact
from holdfast.capture.git import capture_git_state
from holdfast.hooks.command_place import CommandPlace
from holdfast.hooks.guards import danger, has_tracked_changes
from holdfast.model.task import Task, lacks_something
from holdfast.model.workflow import Workflow
from holdfast.resume.compiler import DEFAULT_BUDGET
from holdfast.server.app_state import AppState, AtDesk
from holdfast.server.feed import FellBehindError
from holdfast.server.models import (
    ActionResponse,
    Approval,
    ApproveTask,
    CancelResponse,
    ExecutedText,
    ForkWorkflow,
    GiveReason,
    PauseWorkflow,
    Precedent,
    RejectTask,
    ResumePreview,
    ResumeResponse,
    ResumeWorkflow,
    RetryTask,
    SkipTask,
    UndoneReport,
)
from holdfast.server.problems import WITH_BODY, documented
from holdfast.server.routes.events import cost_so_far
from holdfast.server.routes.sessions import (
    Budget,
    MaxChars,
    Model,
    characters,
    compiled_for,
    context_fields,
)
from holdfast.server.routes.tasks import changes_of
from holdfast.server.routes.workflows import folder_named
from holdfast.store.protocol import SnapshotSummary
from holdfast.workflows.plan import driver_of
from holdfast.workflows.service import Resumed, ended_before_pause, snapshot_to_resume
from holdfast.workflows.task_log import TaskLog

router = APIRouter(prefix="/api/workflows/{workflow_id}", tags=["actions"])

_LOOK_AGAIN_SECONDS = 1.0
_PRECEDENTS = 50
_PRINTED = 2_000
_CHANGES = 20
_PAUSING = {"model": ActionResponse, "description": "Requested; it pauses when the running task ends"}


@router.post("/pause", responses={**documented(404, 409, *WITH_BODY), 202: _PAUSING})
async def pause_workflow(
    workflow_id: str,
    desk: AtDesk,
    response: Response,
    request: Annotated[PauseWorkflow | None, Body()] = None,
) -> ActionResponse:
    """Pause a running workflow at the next task boundary."""
    wanted = request or PauseWorkflow()
    async with _watched(desk, wanted.wait_seconds > 0):
        position = desk.feed.newest
        snapshot_id = await run_in_threadpool(
            desk.service.pause_workflow,
            workflow_id,
            wanted.reason,
            force_after=wanted.force_after,
            wait=False,
        )
        desk.feed.nudge()
        if snapshot_id is None and wanted.wait_seconds:
            snapshot_id = await _paused(desk, workflow_id, position, wanted.wait_seconds)
    if snapshot_id is None:
        response.status_code = 202
        return ActionResponse(status="pausing", workflow_id=workflow_id)
    return ActionResponse(status="paused", workflow_id=workflow_id, snapshot_id=snapshot_id)


def _watched(desk: AppState, watch: bool) -> contextlib.AbstractAsyncContextManager[None]:
    return desk.feed.listening() if watch else contextlib.nullcontext()


async def _paused(desk: AppState, workflow_id: str, position: int, seconds: float) -> str | None:
    """The snapshot, when it is there in time. No thread waits for it: events tell when to look."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                workflow = await run_in_threadpool(desk.service.recovered, workflow_id)
                if workflow.status == "paused":
                    latest = await run_in_threadpool(desk.store.latest_snapshot, workflow_id)
                    return latest.id if latest else None
                if workflow.status != "in_progress":
                    raise ended_before_pause(workflow)
                position = await _next_change(desk, workflow_id, position)
    return None


async def _next_change(desk: AppState, workflow_id: str, position: int) -> int:
    """Until something happens in the workflow, or so long that its runner may have died."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_LOOK_AGAIN_SECONDS):
            while True:
                try:
                    batch = await desk.feed.next(position)
                except FellBehindError:
                    return desk.feed.newest
                position = batch.last
                if any(owner == workflow_id for _, owner, _ in batch.parts):
                    return position
    return position


@router.post("/resume", responses=documented(404, 409, *WITH_BODY))
def resume_workflow(
    workflow_id: str, desk: AtDesk, request: Annotated[ResumeWorkflow | None, Body()] = None
) -> ResumeResponse:
    """Resume a paused or failed workflow from its last snapshot, or from an older one; a failed task is
    retried. If several clients try, only one succeeds.

    Commands that an imported session brought are listed in a refusal, and run once they are confirmed.

    Work without a plan is not run: it is marked as resumed, and `resume/preview` returns its context.
    """
    wanted = request or ResumeWorkflow()
    resumed = desk.service.resume_workflow(
        workflow_id,
        snapshot_id=wanted.snapshot_id,
        message=wanted.message,
        strict=wanted.strict,
        accept_commands=wanted.accept_commands or False,
        accept_undone=bool(wanted.accept_undone),
    )
    return _resumed(desk, resumed)


def _resumed(desk: AppState, resumed: Resumed) -> ResumeResponse:
    if not resumed.is_handover:
        desk.see_to_it()
    return ResumeResponse(
        status="taken_up" if resumed.is_handover else "resumed",
        workflow_id=resumed.workflow.id,
        snapshot_id=resumed.snapshot.id if resumed.snapshot else None,
        session_number=resumed.workflow.session_count,
        drift=resumed.drift,
        drift_state=resumed.drift_state,
        taken_up_before=resumed.taken_up_before,
    )


@router.post("/retry", responses=documented(404, 409, *WITH_BODY))
def retry_task(
    workflow_id: str, desk: AtDesk, request: Annotated[RetryTask | None, Body()] = None
) -> ResumeResponse:
    """Resume a workflow with the failed task of this name, or with all that failed."""
    wanted = request or RetryTask()
    resumed = desk.service.retry(
        workflow_id, wanted.task_id, message=wanted.message, accept_undone=wanted.accept_undone
    )
    return _resumed(desk, resumed)


@router.post("/skip", responses=documented(404, 409, *WITH_BODY))
def skip_task(workflow_id: str, desk: AtDesk, request: SkipTask) -> ActionResponse:
    """Skip a task that is not completed and continue with those that depend on it."""
    desk.service.skip(workflow_id, request.task_id, request.reason, accept_undone=request.accept_undone)
    desk.see_to_it()
    return ActionResponse(status="skipped", workflow_id=workflow_id)


@router.post("/fork", status_code=201, responses=documented(404, 409, *WITH_BODY))
def fork_workflow(
    workflow_id: str, desk: AtDesk, request: Annotated[ForkWorkflow | None, Body()] = None
) -> Workflow:
    """Copy a workflow, whatever its status; the copy is paused and the original stays as it is.

    With a task, that one and all that depend on it are to run again in the copy.
    """
    wanted = request or ForkWorkflow()
    return desk.service.fork(
        workflow_id,
        wanted.task_id,
        snapshot_id=wanted.snapshot_id,
        worktree=folder_named(wanted.worktree),
        accept_commands=wanted.accept_commands or False,
    )


@router.get("/resume/preview", responses=documented(404, 409, 422))
def preview_resume(
    workflow_id: str,
    desk: AtDesk,
    snapshot_id: Annotated[str | None, Query(description="An older snapshot")] = None,
    max_chars: MaxChars = DEFAULT_BUDGET,
    budget: Budget = None,
    model: Model = None,
) -> ResumePreview:
    """What a resume would continue from, before any cost is incurred: context, report, cost, drift."""
    workflow = desk.store.workflow(workflow_id)
    snapshot = (
        snapshot_to_resume(desk.store, workflow_id)
        if snapshot_id is None
        else desk.snapshot_of(workflow_id, snapshot_id)
    )
    compiled, drift = compiled_for(workflow, snapshot, characters(max_chars, budget))
    undone = desk.service.undone(workflow, snapshot).document
    return ResumePreview(
        **context_fields(compiled, drift, model, desk.settings.prices),
        workflow_id=workflow_id,
        snapshot=SnapshotSummary.of(snapshot) if snapshot else None,
        next_task_id=snapshot.next_task_id if snapshot else None,
        undone=UndoneReport.model_validate(undone) if undone else None,
    )


@router.post("/cancel", responses=documented(404, 409, *WITH_BODY))
def cancel_workflow(
    workflow_id: str, desk: AtDesk, request: Annotated[GiveReason | None, Body()] = None
) -> CancelResponse:
    """Cancel a workflow permanently; a running task is stopped."""
    is_elsewhere = desk.service.is_run_elsewhere(desk.service.workflow(workflow_id))
    desk.service.cancel(workflow_id, request.reason if request else None)
    return CancelResponse(status="cancelled", workflow_id=workflow_id, stopping_elsewhere=is_elsewhere)


@router.get("/approval", responses=documented(404, 422))
def get_approval(workflow_id: str, desk: AtDesk) -> Approval:
    """The task that is waiting for approval: what will run, where, and what the tasks before it printed."""
    workflow = desk.store.workflow(workflow_id)
    task = desk.service.waiting_for_approval(workflow)
    if task is None:
        raise NotFoundError(f"no task of workflow {workflow_id} is waiting for approval")
    known = desk.standing(workflow).tasks.by_id
    driver = driver_of(task, workflow.options)
    changes, unknown = changes_of(desk, workflow, lambda entry: bool(entry.changes))
    return Approval(
        task=task,
        driver=driver,
        **_risks(desk, workflow, task, driver),
        hidden_in=tuple(name for name in _EXECUTED if lacks_something(getattr(task, name))),
        cost_usd=cost_so_far(desk.store, workflow_id),
        changes=changes[:_CHANGES],
        changes_left_out=max(0, len(changes) - _CHANGES),
        changes_unknown=unknown,
        worktree=workflow.worktree,
        after=tuple(_precedent(desk, workflow_id, known[name]) for name in task.depends_on[:_PRECEDENTS]),
        after_left_out=max(0, len(task.depends_on) - _PRECEDENTS),
    )


_EXECUTED: Final[tuple[ExecutedText, ...]] = ("run", "prompt", "until")


class _Risks(TypedDict):
    risk: str | None
    until_risk: str | None


def _risks(desk: AppState, workflow: Workflow, task: Task, driver: str) -> _Risks:
    """By the rules that guard agents' commands, on what will run: a copy without secrets may hide it."""
    originals = desk.service.originals(workflow)
    with contextlib.suppress(CannotDoError):  # without its original it cannot run; the copy is all there is
        task = originals.task(task, is_told=driver != "shell")
    folder = desk.layout_of(workflow).root

    def branch() -> str:
        state = capture_git_state(folder)
        return (state.branch if state else None) or ""

    def risk(command: str | None) -> str | None:
        refusal = danger(command or "", CommandPlace(str(folder), branch, has_tracked_changes))
        return redact(originals.hidden(refusal[0]))[0] if refusal else None

    return {"risk": risk(task.run) if driver == "shell" else None, "until_risk": risk(task.until)}


def _precedent(desk: AppState, workflow_id: str, task: Task) -> Precedent:
    printed = TaskLog(desk.service.settings.home, workflow_id, task.id, task.attempts).read()
    return Precedent(
        task_id=task.id,
        status=task.status,
        result=task.result,
        printed=printed[0].rstrip()[-_PRINTED:] if printed else None,
    )


@router.post("/approve", responses=documented(404, 409, *WITH_BODY))
def approve_workflow(
    workflow_id: str, desk: AtDesk, request: Annotated[ApproveTask | None, Body()] = None
) -> ActionResponse:
    """Approve the waiting task and continue."""
    wanted = request or ApproveTask()
    desk.service.approve(workflow_id, wanted.task_id, accept_undone=wanted.accept_undone)
    desk.see_to_it()
    return ActionResponse(status="approved", workflow_id=workflow_id)


@router.post("/reject", responses=documented(404, 409, *WITH_BODY))
def reject_workflow(
    workflow_id: str, desk: AtDesk, request: Annotated[RejectTask | None, Body()] = None
) -> ActionResponse:
    """Reject the task that is waiting for approval; the workflow fails. A resume asks again."""
    wanted = request or RejectTask()
    desk.service.reject(workflow_id, wanted.reason, task_id=wanted.task_id)
    return ActionResponse(status="rejected", workflow_id=workflow_id)
