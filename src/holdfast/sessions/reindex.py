"""The database is an index: what it missed or lost is read back from the session files."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from holdfast.base.clock import Clock, system_clock
from holdfast.base.durable import set_aside, storage_errors
from holdfast.base.errors import (
    DamagedDataError,
    HeldElsewhereError,
    HoldfastError,
    NewerSchemaError,
)
from holdfast.base.text import Progress, counted, each, untold
from holdfast.model.git import decode_path, encode_path
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import Workflow
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Settings
from holdfast.sessions.pause import is_stored, keep_end, known_projects, open_store, remember_project
from holdfast.sessions.transitions import Core, again_on_conflict
from holdfast.store.documents import read_session_document
from holdfast.store.engine import engine_database, verify_engine_tables
from holdfast.store.protocol import Store
from holdfast.store.session_files import LOCK_WAIT, SessionFiles
from holdfast.store.sql import SqlStore

log = logging.getLogger("holdfast.reindex")


@dataclass
class ReindexReport:
    projects: int = 0
    added: list[str] = field(default_factory=list[str])
    already_there: int = 0
    damaged: list[str] = field(default_factory=list[str])
    held: list[str] = field(default_factory=list[str])
    strange: list[str] = field(default_factory=list[str])
    """Sessions that Holdfast did not write there, as a patch can bring them."""
    database_set_aside: str | None = None
    engine_set_aside: str | None = None

    def kept(self) -> list[str]:
        """Where damaged databases are now, and what that means."""
        told: list[str] = []
        if self.database_set_aside:
            told.append(f"The damaged database was renamed to {self.database_set_aside}")
        if self.engine_set_aside:
            told.append(
                f"The engine's damaged database was renamed to {self.engine_set_aside}; schedules have to be "
                "set up again (`holdfast run --every`)"
            )
        return told


def take_in_waiting(store: Store, settings: Settings, progress: Progress = untold) -> None:
    """Sessions that were finalised while the database was away, and pauses that a crash interrupted."""
    if not settings.layout.has_waiting:
        return
    files = SessionFiles(settings.layout.sessions)
    is_waiting = bool(files.unindexed())
    try:
        # Who finalises one right now adds it in a moment. A pause that is only staged may take longer.
        with files.locked(partial(is_stored, store), wait=LOCK_WAIT if is_waiting else 0):
            for session_id in each(files.unindexed(), "Adding sessions", progress):
                _take_in(store, files, session_id, settings.project)
    except HoldfastError as error:
        told = log.warning if is_waiting else log.debug
        told("sessions missing from the database were not added yet: %s", error.message)


def _take_in(store: Store, files: SessionFiles, session_id: str, project: Path) -> None:
    if not files.is_ours(session_id):
        log.warning(
            "%s was not created by Holdfast and is ignored (`holdfast trust` shows and accepts it)",
            session_id,
        )
        return
    try:
        snapshot, workflow = _read(files, session_id, project)
        again_on_conflict(lambda: Core(store).take_in(snapshot, workflow))
    except HoldfastError as error:
        log.warning("%s is not in the database yet: %s", session_id, error.message)
    else:
        files.mark_indexed(session_id)


def reindex(
    settings: Settings,
    extra: Iterable[Path] = (),
    clock: Clock = system_clock,
    progress: Progress = untold,
) -> ReindexReport:
    """Add every session on the disk to the database; one that cannot be read is set aside first."""
    report = ReindexReport()
    report.database_set_aside = _database_if_damaged(settings, clock)
    report.engine_set_aside = _engine_if_damaged(settings, clock)
    projects = dict.fromkeys(
        (settings.project, *(path.absolute() for path in extra), *known_projects(settings))
    )
    with open_store(settings) as store:
        found = [one for project in projects for one in _sessions(store, project, settings, report)]
        for files, session_id, project in each(found, "Reading sessions", progress):
            _take_in_found(store, files, session_id, project, report, clock)
    if settings.layout.sessions.is_dir():
        remember_project(settings)
    return report


def _database_if_damaged(settings: Settings, clock: Clock) -> str | None:
    try:
        store = SqlStore(settings.db)
        try:
            store.verify()
        finally:
            store.close()
    except NewerSchemaError:
        raise
    except DamagedDataError:
        return _set_aside(settings.db, clock)
    return None


def _engine_if_damaged(settings: Settings, clock: Clock) -> str | None:
    try:
        verify_engine_tables(settings.db)
    except DamagedDataError:
        return _set_aside(engine_database(settings.db), clock)
    return None


def _set_aside(database: str, clock: Clock) -> str:
    path = Path(database.removeprefix("sqlite:///"))
    with storage_errors("set the damaged database aside"):
        kept = set_aside(path, clock())
        for companion in ("-wal", "-shm"):
            beside = path.with_name(path.name + companion)
            if beside.exists():
                beside.rename(kept.with_name(kept.name + companion))
    return str(kept)


def _sessions(
    store: Store, project: Path, settings: Settings, report: ReindexReport
) -> list[tuple[SessionFiles, str, Path]]:
    """Of a project, oldest first, so that numbers and states come in their order."""
    layout = ProjectLayout(project, settings.home)
    if not layout.sessions.is_dir():
        return []
    report.projects += 1
    files = SessionFiles(layout.sessions)
    with files.locked(partial(is_stored, store)):
        for prepared in layout.sessions.glob("session-*.context-*.md"):
            prepared.unlink(
                missing_ok=True
            )  # it names the folder as it was then; it is made again when needed
        return [(files, session_id, layout.root) for session_id in reversed(files.session_ids())]


def _take_in_found(
    store: Store, files: SessionFiles, session_id: str, project: Path, report: ReindexReport, clock: Clock
) -> None:
    try:
        snapshot, workflow = _read(files, session_id, project)
        if not files.may_stand_in(session_id) and not is_stored(store, snapshot.id):
            report.strange.append(f"{session_id} in {project}")
            return
        added = Core(store).take_in(snapshot, workflow)
        if not added:
            _note_move(store, snapshot.workflow_id, project, clock)
            Core(store, clock).take_in_end(snapshot.id, snapshot.workflow_id, workflow.status)
            keep_end(store, store.workflow(snapshot.workflow_id), project)
    except DamagedDataError as error:
        report.damaged.append(error.message)
    except HeldElsewhereError as error:
        report.held.append(error.message)  # a running workflow; the next time will do
    else:
        files.mark_indexed(session_id)
        report.added += [session_id] if added else []
        report.already_there += not added


@dataclass(frozen=True)
class LeftOut:
    """Sessions of a folder that are not used in it, as after it was moved, copied or restored."""

    sessions: tuple[str, ...]
    """The newest first."""
    recorded_in: str | None
    """The folder that the database has the newest in; None where it has it nowhere."""
    command: str

    @property
    def told(self) -> str:
        are = "is" if len(self.sessions) == 1 else "are"
        why = f"recorded in {self.recorded_in}" if self.recorded_in else "missing from the database"
        return f"{counted(len(self.sessions), 'session')} of this folder {are} ignored, {why}"


_LOOKED_AT = 20


def left_out(store: Store, settings: Settings) -> LeftOut | None:
    """Of a copy beside its original only where nothing else was done in it: that cannot be put right."""
    files = SessionFiles(settings.layout.sessions)
    places: dict[str, str | None] = {}
    for session_id in files.session_ids()[:_LOOKED_AT]:
        if not _is_known(store, session_id, settings.worktree) and files.may_stand_in(session_id):
            with suppress(HoldfastError):  # a damaged one is named by `doctor`
                places[session_id] = _place(store, files, session_id, settings)
    here = {name: place for name, place in places.items() if place is None or not _is_there(place)}
    if here:
        return LeftOut(tuple(here), next(iter(here.values())), "holdfast reindex")
    if not places or store.workflows(worktree=settings.worktree, limit=1):
        return None
    newest, place = next(iter(places.items()))
    return LeftOut(tuple(places), place, f"holdfast context {newest}")


def _is_known(store: Store, session_id: str, worktree: str) -> bool:
    named = [line for line in store.find_snapshots(session_id) if line.session_id == session_id]
    return any(store.workflow(line.workflow_id).worktree == worktree for line in named)


def _place(store: Store, files: SessionFiles, session_id: str, settings: Settings) -> str | None:
    snapshot, _ = _read(files, session_id, settings.project)
    return store.workflow(snapshot.workflow_id).worktree if is_stored(store, snapshot.id) else None


def _is_there(worktree: str) -> bool:
    return Path(os.fsdecode(decode_path(worktree))).exists()


def _note_move(store: Store, workflow_id: str, project: Path, clock: Clock) -> None:
    """The project's folder was moved or renamed: its workflow goes with it. A copy changes nothing."""
    known = store.workflow(workflow_id)
    here = encode_path(os.fsencode(project))
    if known.worktree != here and not _is_there(known.worktree):
        Core(store, clock).relocate(workflow_id, here)


def _read(files: SessionFiles, session_id: str, project: Path) -> tuple[SessionSnapshot, Workflow]:
    """A session from its file; its worktree is where the file was found, should the project have moved."""
    where = str(files.folder / f"{session_id}.json")
    snapshot, workflow = read_session_document(files.read(session_id), where=where)
    return snapshot, workflow.changed(worktree=encode_path(os.fsencode(project)))
