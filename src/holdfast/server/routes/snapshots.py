"""Snapshots: list, whole, deleted, compared, found by name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Annotated

from fastapi import APIRouter, Body, Query

from holdfast.base.errors import InvalidInputError, NotFoundError
from holdfast.base.neutral import neutral
from holdfast.base.redact import redact
from holdfast.model.findings import Decision, ErrorRecord, ReviewerFeedback, TestState
from holdfast.model.snapshot import ContextEdits, SessionSnapshot, SnapshotDiff, diff
from holdfast.model.task import Task
from holdfast.resume.briefing import FIXED, TITLES
from holdfast.resume.compiler import DEFAULT_BUDGET, Compiled
from holdfast.server.app_state import AppState, AtDesk
from holdfast.server.models import (
    ActionResponse,
    ContextResponse,
    ContextStatement,
    EditContext,
    EditedContext,
    GitChanges,
    Journal,
    SnapshotListResponse,
    SnapshotMatches,
)
from holdfast.server.problems import WITH_BODY, documented
from holdfast.server.routes.sessions import (
    Budget,
    MaxChars,
    Model,
    characters,
    compiled_for,
    context_fields,
)
from holdfast.sessions.contexts import newest_actions
from holdfast.sessions.enrich import add_to_snapshot
from holdfast.sessions.pause import keep_end
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
    """The complete snapshot."""
    return desk.snapshot_of(workflow_id, snapshot_id)


@router.delete(_OF_WORKFLOW + "/{snapshot_id}", responses=documented(404, 409, 422))
def delete_snapshot(workflow_id: str, snapshot_id: str, desk: AtDesk) -> ActionResponse:
    """Delete the snapshot and its files, unless a running session started from it."""
    snapshot = desk.snapshot_of(workflow_id, snapshot_id)
    Core(desk.store).delete_snapshot(snapshot_id)
    workflow = desk.store.workflow(workflow_id)
    layout = desk.layout_of(workflow)
    sessions = layout.sessions
    if sessions.is_dir():
        with contextlib.suppress(NotFoundError):  # it never had files
            SessionFiles(sessions).delete(snapshot.session_id)
        keep_end(desk.store, workflow, layout.root)
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
    """The context for a session that continues from here, what it omits, and what it costs to read."""
    workflow = desk.store.workflow(workflow_id)
    snapshot = desk.snapshot_of(workflow_id, snapshot_id)
    compiled, drift = compiled_for(workflow, snapshot, characters(max_chars, budget))
    return ContextResponse(**context_fields(compiled, drift, model, desk.settings.prices))


@router.post(_OF_WORKFLOW + "/{snapshot_id}/context", responses=documented(404, *WITH_BODY))
def preview_edited_context(
    workflow_id: str, snapshot_id: str, desk: AtDesk, request: Annotated[EditContext | None, Body()] = None
) -> EditedContext:
    """The context with changes of yours, statement by statement; nothing is saved."""
    snapshot = desk.snapshot_of(workflow_id, snapshot_id)
    return _edited(desk, snapshot, request or EditContext())


@router.put(_OF_WORKFLOW + "/{snapshot_id}/context", responses=documented(404, 409, *WITH_BODY))
def save_edited_context(
    workflow_id: str, snapshot_id: str, desk: AtDesk, request: EditContext
) -> EditedContext:
    """Save your changes: the next session reads the context so, and pins stay for those after it."""
    snapshot = desk.snapshot_of(workflow_id, snapshot_id)
    wanted = _wanted(request) or ContextEdits()
    layout = desk.layout_of(desk.store.workflow(workflow_id))
    if layout.sessions.is_dir():
        settings = replace(desk.settings, project=layout.root, db=desk.store.database)
        saved = add_to_snapshot(settings, snapshot.id, {"context_edits": wanted})
    else:  # its folder is elsewhere, or keeps no session files
        saved = Core(desk.store).enrich(snapshot.id, context_edits=wanted)
    return _edited(desk, saved, request)


def _edited(desk: AppState, snapshot: SessionSnapshot, request: EditContext) -> EditedContext:
    edits = _wanted(request) or snapshot.context_edits or ContextEdits()
    workflow = desk.store.workflow(snapshot.workflow_id)
    shown = snapshot.changed(context_edits=edits)
    compiled, drift = compiled_for(workflow, shown, request.max_chars)
    return EditedContext(
        **context_fields(compiled, drift, request.model, desk.settings.prices),
        statements=tuple(_statements(compiled, edits)),
        edits=edits,
    )


def _wanted(request: EditContext) -> ContextEdits | None:
    if request.edits is None:
        return None
    unknown = [pin.part for pin in request.edits.pins if pin.part not in TITLES]
    if unknown:
        raise InvalidInputError(
            f"no such part of a context: {unknown[0]}", hint=f"one of: {', '.join(TITLES)}"
        )
    return ContextEdits(pins=request.edits.pins, dropped=request.edits.dropped, order=request.edits.order)


def _statements(compiled: Compiled, edits: ContextEdits) -> Iterator[ContextStatement]:
    """Those written in their order; behind each part's those that were dropped."""
    written, offered = compiled.written, compiled.offered
    if written is None or offered is None:
        return
    pins = {(pin.part, pin.text) for pin in edits.pins}
    kept = {one.key for one in written.briefing.statements}
    dropped = [one for one in offered.statements if one.key in edits.dropped and one.key not in kept]
    for part, title in TITLES.items():
        of_part = [(one, place) for place, one in enumerate(written.briefing.statements) if one.part == part]
        for one, place in of_part:
            yield ContextStatement(
                key=one.key,
                part=part,
                title=title,
                text=_shown(one.text),
                is_fixed=part in FIXED,
                is_pinned=(part, one.text) in pins,
                is_dropped=False,
                is_carried=place in written.forms,
                is_shortened=place in written.forms and written.shortened(place),
            )
        for one in dropped:
            if one.part == part:
                yield ContextStatement(
                    key=one.key,
                    part=part,
                    title=title,
                    text=_shown(one.text),
                    is_fixed=False,
                    is_pinned=False,
                    is_dropped=True,
                    is_carried=False,
                    is_shortened=False,
                )


def _shown(text: str) -> str:
    return neutral(redact(text)[0])


@router.get("/api/snapshots", responses=documented(422))
def find_snapshots(
    desk: AtDesk,
    name: Annotated[
        str, Query(min_length=1, max_length=200, description="Beginning of an id, or a session name")
    ],
) -> SnapshotMatches:
    """Find by the beginning of the id or the full session name, newest first."""
    return SnapshotMatches(snapshots=tuple(desk.store.find_snapshots(name)[:100]))


@router.get("/api/snapshots/diff", responses=documented(404, 422))
def diff_snapshots(
    desk: AtDesk,
    before: Annotated[str, Query(max_length=200, description="Id of a snapshot")],
    after: Annotated[str, Query(max_length=200, description="Id of another")],
) -> SnapshotDiff:
    """What changed between two snapshots, of the same workflow or of two."""
    return diff(desk.store.snapshot(before), desk.store.snapshot(after))


@router.get("/api/snapshots/{snapshot_id}", responses=documented(404, 422))
def get_any_snapshot(snapshot_id: str, desk: AtDesk) -> SessionSnapshot:
    """Get a snapshot by its id alone."""
    return desk.store.snapshot(snapshot_id)


# ── all of one kind ───────────────────────────────────────────────────────────────────────────────

# All of one kind that a snapshot holds: what its context had no room for.

retrieval_router = APIRouter(
    prefix="/api/workflows/{workflow_id}/snapshots/{snapshot_id}",
    tags=["retrieval"],
    responses=documented(404, 422),
)


@retrieval_router.get("/decisions")
def get_decisions(workflow_id: str, snapshot_id: str, desk: AtDesk) -> tuple[Decision, ...]:
    """All decisions, with their reasons and supporting messages."""
    return desk.snapshot_of(workflow_id, snapshot_id).decisions


@retrieval_router.get("/errors")
def get_errors(workflow_id: str, snapshot_id: str, desk: AtDesk) -> tuple[ErrorRecord, ...]:
    """All errors and how they ended."""
    return desk.snapshot_of(workflow_id, snapshot_id).errors


@retrieval_router.get("/reviewer-feedback")
def get_reviewer_feedback(workflow_id: str, snapshot_id: str, desk: AtDesk) -> tuple[ReviewerFeedback, ...]:
    return desk.snapshot_of(workflow_id, snapshot_id).reviewer_feedback or ()


@retrieval_router.get("/git-changes")
def get_git_changes(workflow_id: str, snapshot_id: str, desk: AtDesk) -> GitChanges:
    snapshot = desk.snapshot_of(workflow_id, snapshot_id)
    found = snapshot.gathered
    return GitChanges(
        git_state=snapshot.git_state, files=snapshot.files, git=asdict(found.git) if found else None
    )


@retrieval_router.get("/tasks")
def get_tasks_then(workflow_id: str, snapshot_id: str, desk: AtDesk) -> tuple[Task, ...]:
    """The tasks as they were at the pause."""
    return desk.snapshot_of(workflow_id, snapshot_id).task_dag.tasks


@retrieval_router.get("/tests")
def get_tests(workflow_id: str, snapshot_id: str, desk: AtDesk) -> TestState | None:
    return desk.snapshot_of(workflow_id, snapshot_id).test_state


@retrieval_router.get("/journal")
def get_journal(
    workflow_id: str,
    snapshot_id: str,
    desk: AtDesk,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Maximum number of newest actions")] = 1_000,
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
