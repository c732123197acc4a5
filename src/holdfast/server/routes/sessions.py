"""The sessions that coding agents keep on this machine, and a context out of each."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query

from holdfast.base.errors import InvalidInputError
from holdfast.base.redact import redact
from holdfast.capture.drift import FolderDrift, cannot_tell, find_workflow_drift
from holdfast.journal.cost import characters_for, reading_cost
from holdfast.model.gathered import Gathered
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import Workflow
from holdfast.resume.compiler import DEFAULT_BUDGET, SMALLEST_BUDGET, Compiled, compile_context
from holdfast.resume.snapshots import ResumeContextCompiler
from holdfast.server.app_state import AppState, AtDesk
from holdfast.server.models import (
    AgentSession,
    AgentSessionPage,
    ContextResponse,
    Cost,
    Cursor,
    Limit,
    ThreadList,
    offset_cursor,
    offset_of,
)
from holdfast.server.problems import documented
from holdfast.sessions.contexts import find_transcript, read_session
from holdfast.sessions.threads import threads_in
from holdfast.transcripts.discover import FoundSession, SearchReport, find_sessions

# ── contexts ──────────────────────────────────────────────────────────────────────────────────────

# The context of a snapshot as the next session reads it, with its report and its price.

MOST_CHARACTERS = 1_000_000

MaxChars = Annotated[int, Query(ge=SMALLEST_BUDGET, le=MOST_CHARACTERS, description="Maximum length")]
Budget = Annotated[int | None, Query(ge=100, le=1_000_000, description="Maximum length in tokens")]
Model = Annotated[
    str | None, Query(max_length=200, description="The model that will read it, for the cost estimate")
]


def characters(max_chars: int, budget: int | None) -> int:
    if budget is None:
        return max_chars
    return min(MOST_CHARACTERS, max(SMALLEST_BUDGET, characters_for(budget)))


def compiled_for(
    workflow: Workflow, snapshot: SessionSnapshot | None, max_chars: int
) -> tuple[Compiled, FolderDrift]:
    """As a session of that workflow would read it now, drift included."""
    drift = find_workflow_drift(workflow, snapshot)
    if snapshot is None:
        issue = f"{workflow.issue.id}: {workflow.issue.title}"
        return compile_context(Gathered(issue=issue), max_chars), drift
    compiler = ResumeContextCompiler(max_chars)
    return compiler.compile_with_report(snapshot, workflow.issue, drift=drift.sentences), drift


def context_fields(compiled: Compiled, drift: FolderDrift, model: str | None) -> dict[str, Any]:
    cost = reading_cost(len(compiled.text), model)
    return {
        "context": compiled.text,
        "fidelity": compiled.fidelity,
        "cost": Cost(**asdict(cost)),
        "drift": drift.sentences,
        "drift_state": drift.state,
    }


# ── threads ───────────────────────────────────────────────────────────────────────────────────────

threads_router = APIRouter(prefix="/api/threads", tags=["sessions"])

Worktree = Annotated[
    str | None, Query(max_length=4096, description="Folder of the work. Default: the ten worked in last")
]


@threads_router.get("", responses=documented(422))
def list_threads(
    desk: AtDesk,
    worktree: Worktree = None,
    finished: Annotated[bool, Query(description="Include finished work")] = False,
) -> ThreadList:
    """The pieces of work in a folder, open ones first, then the newest."""
    found = threads_in(desk.store, worktree)
    return ThreadList(threads=tuple(one for one in found if finished or one.is_open))


# ── sessions ──────────────────────────────────────────────────────────────────────────────────────

# The sessions that coding agents keep on this machine, and a context out of each.

router = APIRouter(prefix="/api/sessions", tags=["sessions"])

Project = Annotated[str | None, Query(max_length=4096, description="Project folder. Default: the server's")]


@router.get("", responses=documented(422))
def list_sessions(
    desk: AtDesk, project: Project = None, limit: Limit = 50, cursor: Cursor = None
) -> AgentSessionPage:
    """Sessions of Claude Code, Codex, Gemini CLI and OpenCode, newest first."""
    report = SearchReport()
    folder = _folder(desk, project)
    found = list(find_sessions(folder, desk.home, desk.environ, report))
    start = offset_of(cursor)
    page = found[start : start + limit]
    return AgentSessionPage(
        project=_shown(folder),
        sessions=tuple(map(_described, page)),
        next_cursor=offset_cursor(start + limit) if len(found) > start + limit else None,
        skipped=report.skipped,
    )


@router.get("/{session_id}/context", responses=documented(404, 422))
def get_session_context(
    session_id: str,
    desk: AtDesk,
    project: Project = None,
    max_chars: MaxChars = DEFAULT_BUDGET,
    budget: Budget = None,
    model: Model = None,
) -> ContextResponse:
    """The context for a session that continues this one's work, in any agent."""
    found = find_transcript(session_id, _folder(desk, project), desk.home, desk.environ)
    session = read_session(found.path, found.agent, found.session_id)
    source = f"--session {found.session_id}"
    drift = cannot_tell("the agent recorded nothing to compare with")
    compiled = compile_context(session.found, characters(max_chars, budget), source)
    return ContextResponse(**context_fields(compiled, drift, model))


def _folder(desk: AppState, project: str | None) -> Path:
    if project is None:
        return desk.settings.project
    if "\0" in project or not Path(project).is_absolute():
        raise InvalidInputError(
            "the project must be an absolute path", hint="`/api/projects` lists the known projects"
        )
    return Path(project)


def _described(session: FoundSession) -> AgentSession:
    return AgentSession(
        agent=session.agent,
        session_id=session.session_id,
        path=_shown(session.path),
        started=session.started,
        updated=session.updated,
        size=session.size,
        title=redact(session.title)[0] if session.title else None,
    )


def _shown(path: Path) -> str:
    return os.fsencode(path).decode(errors="replace")
