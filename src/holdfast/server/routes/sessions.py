"""The sessions of coding agents on this machine: a context out of each, and what they changed in files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypedDict

from fastapi import APIRouter, Query

from holdfast.base.errors import InvalidInputError, NotFoundError
from holdfast.base.redact import redact
from holdfast.capture.drift import FolderDrift, cannot_tell, find_workflow_drift
from holdfast.hooks.turns import named_files
from holdfast.journal.prices import reading_cost
from holdfast.journal.usage import RecordedUsage, characters_for
from holdfast.model.gathered import Gathered
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import Workflow
from holdfast.project.settings import Price
from holdfast.resume.compiler import DEFAULT_BUDGET, SMALLEST_BUDGET, Compiled, compile_context
from holdfast.resume.snapshots import ResumeContextCompiler
from holdfast.server.app_state import AppState, AtDesk
from holdfast.server.models import (
    AgentSession,
    AgentSessionPage,
    AgentSessionUsage,
    ChangedFile,
    ContextResponse,
    Cost,
    Cursor,
    DiffHunk,
    Limit,
    RedoRequest,
    ThreadList,
    TransactionDetail,
    TransactionDiff,
    TransactionEntry,
    TransactionList,
    TransactionSummary,
    UndoRequest,
    UndoResponse,
    offset_cursor,
    offset_of,
)
from holdfast.server.problems import WITH_BODY, documented
from holdfast.sessions.contexts import find_transcript, read_session
from holdfast.sessions.threads import threads_in
from holdfast.sessions.undone import undone_before
from holdfast.transcripts.discover import FoundSession, SearchReport, find_sessions
from holdfast.undo.ledger import Transaction
from holdfast.undo.state import LedgerEntry, PathChange, told
from holdfast.undo.transactions import SideCar, UndoOutcome

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
    told = (*undone_before(workflow, snapshot), *drift.sentences)
    compiler = ResumeContextCompiler(max_chars)
    return compiler.compile_with_report(
        snapshot, workflow.issue, drift=told, worktree=workflow.users_folder
    ), drift


def context_fields(
    compiled: Compiled, drift: FolderDrift, model: str | None, prices: Mapping[str, Price]
) -> dict[str, Any]:
    cost = reading_cost(len(compiled.text), model, prices)
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
    desk: AtDesk,
    project: Project = None,
    everywhere: Annotated[bool, Query(description="Of all projects; `project` is not used then")] = False,
    usage: Annotated[bool, Query(description="Include fullness and cost: each record is read whole")] = False,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> AgentSessionPage:
    """Sessions of Claude Code, Codex, Gemini CLI and OpenCode, newest first."""
    report = SearchReport()
    folder = None if everywhere else _folder(desk, project)
    start = offset_of(cursor)
    # Of those of all projects only what is shown is looked at, and one to tell whether there are more.
    found = list(islice(find_sessions(folder, desk.home, desk.environ, report), start + limit + 1))
    page = found[start : start + limit]
    return AgentSessionPage(
        project=_shown(folder) if folder else None,
        sessions=tuple(_described(one, desk.usage_of(one) if usage else None) for one in page),
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
    return ContextResponse(**context_fields(compiled, drift, model, desk.settings.prices))


# ── transactions ──────────────────────────────────────────────────────────────────────────────────

# What sessions changed in files, and taking it back: `holdfast tx`.

transactions_router = APIRouter(prefix="/api/transactions", tags=["transactions"])

Known = Annotated[str | None, Query(max_length=4096, description="A known project. Default: the server's")]
ChangeId = Annotated[
    str | None, Query(max_length=200, description="One change of it. Default: all that stand")
]


@transactions_router.get("", responses=documented(404, 422))
def list_transactions(desk: AtDesk, project: Known = None) -> TransactionList:
    """What sessions changed in files, the most recently changed first."""
    with _sidecar(desk, project) as sidecar:
        found = sidecar.transactions()
        summaries = tuple(TransactionSummary(**one.summary) for one in found)
        return TransactionList(project=_shown(sidecar.project), transactions=summaries)


@transactions_router.get("/{transaction_id}", responses=documented(404, 409, 422))
def get_transaction(transaction_id: str, desk: AtDesk, project: Known = None) -> TransactionDetail:
    """The changes of a transaction, oldest first."""
    with _sidecar(desk, project) as sidecar:
        found = _transaction(sidecar, transaction_id)
    return TransactionDetail(**found.summary, entries=tuple(entry_of(one, found) for one in found.entries))


@transactions_router.get("/{transaction_id}/diff", responses=documented(404, 409, 422))
def get_transaction_diff(
    transaction_id: str, desk: AtDesk, project: Known = None, change: ChangeId = None
) -> TransactionDiff:
    """What it changed, hunk by hunk; the numbers are those of `holdfast tx diff`."""
    with _sidecar(desk, project) as sidecar:
        hunks = sidecar.hunks(_changes(_transaction(sidecar, transaction_id), change))
    return TransactionDiff(
        hunks=tuple(
            DiffHunk(
                number=one.number,
                path=one.change.path,
                kind=one.change.kind,
                lines=tuple(redact("\n".join(one.lines))[0].split("\n")) if one.lines else (),
            )
            for one in hunks
        )
    )


@transactions_router.post("/{transaction_id}/undo", responses=documented(404, 409, *WITH_BODY))
def undo_transaction(
    transaction_id: str, desk: AtDesk, project: Known = None, request: UndoRequest | None = None
) -> UndoResponse:
    """Undo one change, some hunks of it, or everything. 409 if that is not possible without losing later
    edits; then nothing is changed."""
    wanted = request or UndoRequest()
    with _sidecar(desk, project) as sidecar:
        found = _transaction(sidecar, transaction_id)
        flags: _Flags = {"partial": wanted.partial, "doubtful": wanted.doubtful, "dry_run": wanted.dry_run}
        files = _asked_files(wanted.files, found)
        if wanted.hunks:
            hunks = sidecar.hunks(_changes(found, wanted.change))
            outcome = sidecar.undo_hunks(found.id, hunks, wanted.hunks, **flags)
        elif wanted.everything:
            outcome = sidecar.rollback(found.id, files=files, **flags)
        else:
            outcome = sidecar.undo(_change_id(found, wanted), files=files, **flags)
        return _outcome(sidecar, outcome, wanted.dry_run)


@transactions_router.post("/{transaction_id}/redo", responses=documented(404, 409, *WITH_BODY))
def redo_transaction(
    transaction_id: str, desk: AtDesk, project: Known = None, request: RedoRequest | None = None
) -> UndoResponse:
    """Redo what the last undo or rollback undid."""
    wanted = request or RedoRequest()
    with _sidecar(desk, project) as sidecar:
        found = _transaction(sidecar, transaction_id)
        if found.last_undo is None:
            raise NotFoundError(f"transaction {found.id} has no undo to redo")
        outcome = sidecar.undo(
            found.last_undo.id,
            files=_asked_files(wanted.files, found),
            partial=wanted.partial,
            doubtful=True,
            dry_run=wanted.dry_run,
        )
        return _outcome(sidecar, outcome, wanted.dry_run)


class _Flags(TypedDict):
    partial: bool
    doubtful: bool
    dry_run: bool


def _sidecar(desk: AppState, project: str | None) -> SideCar:
    """Of a known project, or one in which a workflow works; asking makes nothing in any other folder."""
    folder = _folder(desk, project)
    if folder not in desk.projects() and not desk.store.workflows(worktree=project, limit=1):
        raise NotFoundError("no such project", hint="`/api/projects` lists the known projects")
    return SideCar(folder, named_files=lambda: named_files(folder))


def _transaction(sidecar: SideCar, name: str) -> Transaction:
    found = next((one for one in sidecar.transactions() if one.id == name), None)
    if found is None:
        raise NotFoundError("no such transaction", hint="`/api/transactions` lists them")
    return found


def _entries(found: Transaction, change: str) -> LedgerEntry:
    entry = next((one for one in found.entries if one.id == change), None)
    if entry is None:
        raise NotFoundError(f"no such change in transaction {found.id}")
    return entry


def _changes(found: Transaction, change: str | None) -> list[PathChange]:
    changes = found.net_changes if change is None else _entries(found, change).changes
    names = told(one.path for one in changes)
    return [one for one in changes if one.path in names]


def _change_id(found: Transaction, wanted: UndoRequest) -> str:
    if wanted.change is not None:
        return _entries(found, wanted.change).id
    newest = found.newest(doubtful=wanted.doubtful)
    if newest is None:
        raise NotFoundError(f"transaction {found.id} has no change left to undo")
    return newest.id


def _asked_files(files: Sequence[str], found: Transaction) -> frozenset[str] | None:
    if not files:
        return None
    known = {change.path for entry in found.entries for change in entry.changes}
    if not known.issuperset(files):
        raise NotFoundError(f"a file was asked for that transaction {found.id} did not change")
    return frozenset(files)


def entry_of(one: LedgerEntry, found: Transaction) -> TransactionEntry:
    names = told(change.path for change in one.changes)
    shown = (change for change in one.changes if change.path in names)
    return TransactionEntry(
        id=one.id,
        kind=one.kind,
        at=one.at,
        description=one.description,
        stands=one.id in found.standing,
        doubt=one.doubt,
        files=tuple(ChangedFile(path=change.path, kind=change.kind) for change in shown),
        left=one.left,
        undoes=one.undoes,
    )


def _outcome(sidecar: SideCar, outcome: UndoOutcome, dry_run: bool) -> UndoResponse:
    aside = {} if dry_run else sidecar.set_aside(outcome.entry)
    return UndoResponse(
        dry_run=dry_run,
        entry=None if dry_run else outcome.entry.id,
        restored=tuple(told(outcome.restored)),
        left=dict(outcome.left),
        in_doubt=tuple(sorted(outcome.in_doubt)),
        set_aside={path: _shown(place) for path, place in aside.items()},
    )


# ── inside ────────────────────────────────────────────────────────────────────────────────────────


def _folder(desk: AppState, project: str | None) -> Path:
    if project is None:
        return desk.settings.project
    if "\0" in project or not Path(project).is_absolute():
        raise InvalidInputError(
            "the project must be an absolute path", hint="`/api/projects` lists the known projects"
        )
    return Path(project)


def _described(session: FoundSession, used: RecordedUsage | None) -> AgentSession:
    return AgentSession(
        agent=session.agent,
        session_id=session.session_id,
        path=_shown(session.path),
        project=_shown(Path(session.project)) if session.project else None,
        started=session.started,
        updated=session.updated,
        size=session.size,
        title=redact(session.title)[0] if session.title else None,
        usage=AgentSessionUsage(**asdict(used), context_share=used.share) if used else None,
    )


def _shown(path: Path) -> str:
    return os.fsencode(path).decode(errors="replace")
