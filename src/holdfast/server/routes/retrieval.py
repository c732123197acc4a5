"""All of one kind that a snapshot holds: what its context had no room for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query

from holdfast.model.findings import Decision, ErrorRecord, ReviewerFeedback, TestState
from holdfast.model.task import Task
from holdfast.server.desk import AtDesk
from holdfast.server.models import GitChanges, Journal
from holdfast.server.problems import documented
from holdfast.sessions.contexts import newest_actions

router = APIRouter(
    prefix="/api/workflows/{workflow_id}/snapshots/{snapshot_id}",
    tags=["retrieval"],
    responses=documented(404, 422),
)


@router.get("/decisions")
def get_decisions(workflow_id: str, snapshot_id: str, desk: AtDesk) -> tuple[Decision, ...]:
    """All decisions, with their reasons and the messages they rest on."""
    return desk.snapshot_of(workflow_id, snapshot_id).decisions


@router.get("/errors")
def get_errors(workflow_id: str, snapshot_id: str, desk: AtDesk) -> tuple[ErrorRecord, ...]:
    """All errors and how they ended."""
    return desk.snapshot_of(workflow_id, snapshot_id).errors


@router.get("/reviewer-feedback")
def get_reviewer_feedback(workflow_id: str, snapshot_id: str, desk: AtDesk) -> tuple[ReviewerFeedback, ...]:
    return desk.snapshot_of(workflow_id, snapshot_id).reviewer_feedback or ()


@router.get("/git-changes")
def get_git_changes(workflow_id: str, snapshot_id: str, desk: AtDesk) -> GitChanges:
    snapshot = desk.snapshot_of(workflow_id, snapshot_id)
    found = snapshot.gathered
    return GitChanges(
        git_state=snapshot.git_state, files=snapshot.files, git=asdict(found.git) if found else None
    )


@router.get("/tasks")
def get_tasks_then(workflow_id: str, snapshot_id: str, desk: AtDesk) -> tuple[Task, ...]:
    """As they stood at the pause."""
    return desk.snapshot_of(workflow_id, snapshot_id).task_dag.tasks


@router.get("/tests")
def get_tests(workflow_id: str, snapshot_id: str, desk: AtDesk) -> TestState | None:
    return desk.snapshot_of(workflow_id, snapshot_id).test_state


@router.get("/journal")
def get_journal(
    workflow_id: str,
    snapshot_id: str,
    desk: AtDesk,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Newest actions at most")] = 1_000,
) -> Journal:
    """What the wind-down recorded, and what was said and run before it."""
    snapshot = desk.snapshot_of(workflow_id, snapshot_id)
    layout = desk.layout_of(desk.store.workflow(workflow_id))
    actions, truncated = newest_actions(layout, snapshot.session_id, limit)
    found = snapshot.gathered
    return Journal(
        actions=tuple(actions),
        turns=tuple(map(asdict, found.turns)) if found else (),
        commands=tuple(map(asdict, found.commands)) if found else (),
        truncated=truncated,
    )
