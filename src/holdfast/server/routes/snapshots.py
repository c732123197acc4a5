"""Snapshots: list, whole, deleted, compared, found by name."""

from __future__ import annotations

import contextlib
from typing import Annotated

from fastapi import APIRouter, Query

from holdfast.base.errors import NotFoundError
from holdfast.model.snapshot import SessionSnapshot, SnapshotDiff, diff
from holdfast.resume.compiler import DEFAULT_BUDGET
from holdfast.server.contexts import Budget, MaxChars, Model, characters, compiled_for, context_fields
from holdfast.server.desk import AtDesk
from holdfast.server.models import ActionResponse, ContextResponse, SnapshotListResponse, SnapshotMatches
from holdfast.server.problems import documented
from holdfast.sessions.transitions import Core
from holdfast.store.session_files import SessionFiles

router = APIRouter(tags=["snapshots"])
_OF_WORKFLOW = "/api/workflows/{workflow_id}/snapshots"


@router.get(_OF_WORKFLOW, responses=documented(404, 422))
def list_snapshots(workflow_id: str, desk: AtDesk) -> SnapshotListResponse:
    """All session snapshots of a workflow, in the order of its sessions."""
    desk.store.workflow(workflow_id)
    return SnapshotListResponse(workflow_id=workflow_id, snapshots=tuple(desk.store.snapshots(workflow_id)))


@router.get(_OF_WORKFLOW + "/{snapshot_id}", responses=documented(404, 422))
def get_snapshot(workflow_id: str, snapshot_id: str, desk: AtDesk) -> SessionSnapshot:
    """Everything the snapshot holds."""
    return desk.snapshot_of(workflow_id, snapshot_id)


@router.delete(_OF_WORKFLOW + "/{snapshot_id}", responses=documented(404, 409, 422))
def delete_snapshot(workflow_id: str, snapshot_id: str, desk: AtDesk) -> ActionResponse:
    """The snapshot and its files; not the one a running session started from."""
    snapshot = desk.snapshot_of(workflow_id, snapshot_id)
    Core(desk.store).delete_snapshot(snapshot_id)
    sessions = desk.layout_of(desk.store.workflow(workflow_id)).sessions
    if sessions.is_dir():
        with contextlib.suppress(NotFoundError):  # it never had files
            SessionFiles(sessions).delete(snapshot.session_id)
    return ActionResponse(status="deleted", workflow_id=workflow_id, snapshot_id=snapshot_id)


@router.get(_OF_WORKFLOW + "/{snapshot_id}/context", responses=documented(404, 422))
def get_context(
    workflow_id: str,
    snapshot_id: str,
    desk: AtDesk,
    max_chars: MaxChars = DEFAULT_BUDGET,
    budget: Budget = None,
    model: Model = None,
) -> ContextResponse:
    """What a session reads that goes on from here, what it leaves out, what it costs to read."""
    workflow = desk.store.workflow(workflow_id)
    snapshot = desk.snapshot_of(workflow_id, snapshot_id)
    compiled, drift = compiled_for(workflow, snapshot, characters(max_chars, budget))
    return ContextResponse(**context_fields(compiled, drift, model))


@router.get("/api/snapshots", responses=documented(422))
def find_snapshots(
    desk: AtDesk,
    name: Annotated[str, Query(min_length=1, max_length=200, description="Beginning of an id, or a session")],
) -> SnapshotMatches:
    """By the beginning of its id or the whole name of its session, newest first."""
    return SnapshotMatches(snapshots=tuple(desk.store.find_snapshots(name)[:100]))


@router.get("/api/snapshots/diff", responses=documented(404, 422))
def diff_snapshots(
    desk: AtDesk,
    before: Annotated[str, Query(max_length=200, description="Id of a snapshot")],
    after: Annotated[str, Query(max_length=200, description="Id of another")],
) -> SnapshotDiff:
    """What changed from one snapshot to another, of one workflow or of two."""
    return diff(desk.store.snapshot(before), desk.store.snapshot(after))


@router.get("/api/snapshots/{snapshot_id}", responses=documented(404, 422))
def get_any_snapshot(snapshot_id: str, desk: AtDesk) -> SessionSnapshot:
    """By its id alone."""
    return desk.store.snapshot(snapshot_id)
