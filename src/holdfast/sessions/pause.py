"""The end of a session: what there is to know becomes a snapshot, and its files.

Every pause goes through `pause_session`, whoever asks for it: a wind-down, an agent's hooks, a runner at a
task's end, a command that finds a runner dead.

**The database decides.** The files are written first, as a whole and under another name; then the database
takes the pause in one transaction, or says that the workflow has changed, and the pause is made anew from
what it is now; then the files get their names. A crash in between leaves the files where they were written:
whoever opens the folder next asks the database, finishes what it took, and takes back what it did not.

**A database that is away stops no pause.** Where nobody holds a claim on the work, as in a wind-down, the
files stand in for it: a marker beside them says that the database has not taken them yet, and it does as
soon as somebody opens it. A runner holds a claim that only the database can confirm, so it waits.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Collection, Generator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.durable import keep_if_damaged, lock_file, private_folder, replace_file, storage_errors
from holdfast.base.errors import ConflictError, HoldfastError, InvalidInputError
from holdfast.capture.files import fingerprint_folder, with_folders
from holdfast.capture.git import BEFORE_FIRST_COMMIT, capture_git_state, commit_files, untracked_in
from holdfast.model.fold import SessionFold
from holdfast.model.git import decode_path, encode_path
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import TaskDAG
from holdfast.model.workflow import NEVER_RUN_AGAIN, OPEN, RESUMABLE, Issue, Workflow
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Settings, project_settings
from holdfast.sessions.transitions import Core, Facts, Settled, going_on, opening, opening_pause
from holdfast.store.documents import read_session_document, render_files
from holdfast.store.protocol import Change, Store
from holdfast.store.session_files import Answer, Closing, FileSet, SessionFiles

if TYPE_CHECKING:
    from holdfast.store.sql import SqlStore

log = logging.getLogger("holdfast.pauses")

_ATTEMPTS = 20


class Paused(Protocol):
    """The work that a pause is made of."""

    @property
    def stands_in(self) -> bool:
        """Whether its files count by themselves while the database is away."""
        ...

    def prepared(self, facts: Facts) -> Settled:
        """The pause, from the state there is now."""
        ...

    def commit(self, settled: Settled) -> Answer:
        """Give it to the database."""
        ...


def pause_session(files: SessionFiles, work: Paused, facts: Facts, closing: Closing | None = None) -> Settled:
    """Make the pause. Call with the folder locked, and with a name for the session among the facts."""
    while True:
        settled = work.prepared(facts)
        snapshot = settled.snapshot
        seen = {
            "git_state": snapshot.git_state,
            "files": snapshot.files,
            "folder_files": snapshot.folder_files,
        }
        facts = replace(facts, **seen)  # captured once
        session = FileSet(
            session_id=snapshot.session_id,
            files=render_files(snapshot, settled.workflow),
            closing=closing,
            becomes_latest=not _gives_way(files, facts),
            to_be_indexed=True,
            snapshot_id=snapshot.id,
            stands_in=work.stands_in,
        )
        if files.place(session, partial(work.commit, settled)) != "changed":
            return settled


def _gives_way(files: SessionFiles, facts: Facts) -> bool:
    """To the latest session, which did something: this one did not, or was over before that."""
    latest = files.latest()
    if latest is None or not files.latest_worked():
        return False
    return not facts.worked or (facts.at is not None and facts.at < _created_at(files, latest))


def _created_at(files: SessionFiles, session_id: str) -> datetime:
    """As far as can be told: where its file is damaged, long ago."""
    try:
        return datetime.fromisoformat(str(files.read(session_id)["created_at"]))
    except (HoldfastError, KeyError, ValueError):
        return datetime.min.replace(tzinfo=UTC)


def is_stored(store: Store, snapshot_id: str) -> bool | None:
    """Whether the database has that snapshot; None where it does not answer."""
    try:
        return any(line.id == snapshot_id for line in store.find_snapshots(snapshot_id))
    except HoldfastError as error:
        log.debug("the database cannot be read: %s", error.message)
        return None


# ── a session that somebody runs ──────────────────────────────────────────────────────────────────


class RunningWork:
    """A workflow in the hands of whoever has its claim."""

    stands_in = False

    def __init__(self, core: Core, current: Callable[[], Workflow], apply: Callable[[Change], bool]) -> None:
        """`current` gives the workflow; `apply` says whether the change went through."""
        self.core = core
        self.current = current
        self._apply = apply

    def prepared(self, facts: Facts) -> Settled:
        return self.core.prepare_pause(self.current(), facts)

    def commit(self, settled: Settled) -> Answer:
        return "taken" if self._apply(settled.change) else "changed"

    def commit_alone(self, facts: Facts) -> SessionSnapshot:
        """Without files."""
        while True:
            settled = self.prepared(facts)
            if self.commit(settled) == "taken":
                return settled.snapshot


class NewWork:
    """Work that begins with its pause: nobody else can have changed it meanwhile."""

    stands_in = False

    def __init__(self, core: Core, prepare: Callable[[Facts], Settled]) -> None:
        self._core, self._prepare = core, prepare
        self.taken: Settled | None = None

    def prepared(self, facts: Facts) -> Settled:
        return self._prepare(facts)

    def commit(self, settled: Settled) -> Answer:
        self._core.store.apply(settled.change)
        self.taken = settled
        return "taken"


def pause_new(work: NewWork, core: Core, worktree: Path, facts: Facts, seconds: float) -> Workflow:
    """Begin a workflow as paused. A folder that takes no files costs those alone."""
    try:
        files = SessionFiles(ProjectLayout(worktree).ensure().sessions)
        with files.locked(partial(is_stored, core.store)):
            pause_session(files, work, replace(facts, session_id=files.free_session_id(seconds)))
    except HoldfastError as error:
        log.warning("the session's files were not written: %s", error.message)
        if work.taken is None:
            work.commit(work.prepared(facts))
    if work.taken is None:
        raise AssertionError("a pause was made and not kept")
    return work.taken.workflow


def pause_running(work: RunningWork, worktree: Path, facts: Facts, seconds: float) -> SessionSnapshot:
    """Pause a workflow, or let it fail, where it runs. A folder that takes no files costs those alone."""
    if not worktree.is_dir():
        return work.commit_alone(facts)
    facts = with_world(facts, worktree, work.current().commit_at_start)
    try:
        files = SessionFiles(ProjectLayout(worktree).ensure().sessions)
        with files.locked(partial(is_stored, work.core.store)):
            facts = replace(facts, session_id=files.free_session_id(seconds))
            return pause_session(files, work, facts).snapshot
    except ConflictError:
        raise
    except HoldfastError as error:
        log.warning("the session's files were not written: %s", error.message)
        found = work.current()
        latest = work.core.store.latest_snapshot(found.id) if found.status in RESUMABLE else None
        return latest or work.commit_alone(facts)


# ── the end of a workflow ─────────────────────────────────────────────────────────────────────────


def write_again(store: Store, files: SessionFiles, snapshot_id: str) -> None:
    """The session's files, from what the database has now. Call with the folder locked."""
    snapshot = store.snapshot(snapshot_id)
    if snapshot.session_id in files.session_ids():
        rendered = render_files(snapshot, store.workflow(snapshot.workflow_id))
        files.place(FileSet(snapshot.session_id, rendered, becomes_latest=False))


def keep_end(store: Store, workflow: Workflow, folder: Path, names: Collection[str] = ()) -> None:
    """Let the files of the last session tell that its workflow was completed or cancelled: without the
    database they are all that is known of it. A folder that takes no files costs that alone.

    `names`: of these sessions, too, since they are to go elsewhere without it.
    """
    sessions = ProjectLayout(folder).sessions
    if workflow.status not in NEVER_RUN_AGAIN or not sessions.is_dir():
        return
    try:
        latest = store.latest_snapshot(workflow.id)
        lines = [one for one in store.snapshots(workflow.id) if one.session_id in names]
        ends = {one.id: one.session_id for one in (*lines, *((latest,) if latest else ()))}
        files = SessionFiles(sessions)
        here = files.session_ids() if ends else []
        if not any(name in here for name in ends.values()):
            return
        with files.locked(partial(is_stored, store)):
            for snapshot_id, name in ends.items():
                _tell_end(store, workflow, files, snapshot_id, name)
    except HoldfastError as error:
        log.warning("the session's files do not tell that the workflow ended: %s", error.message)


def _tell_end(
    store: Store, workflow: Workflow, files: SessionFiles, snapshot_id: str, session_id: str
) -> None:
    if session_id in files.session_ids():
        found, told = read_session_document(files.read(session_id), where=session_id)
        if found.id == snapshot_id and told.status != workflow.status:
            write_again(store, files, snapshot_id)


# ── whatever is worked on in a folder ─────────────────────────────────────────────────────────────


@contextlib.contextmanager
def open_store(settings: Settings) -> Generator[SqlStore]:
    """The configured database; SQLAlchemy is loaded here and not before."""
    from holdfast.store.sql import SqlStore

    store = SqlStore(settings.db)
    try:
        yield store
    finally:
        store.close()


class FolderWork:
    """The open work of a folder that no runner has, or a new one: a pause breaks nobody's claim."""

    stands_in = True

    def __init__(self, settings: Settings, files: SessionFiles, clock: Clock) -> None:
        self._settings, self._files, self._clock = settings, files, clock
        self._attempts = 0
        self.is_taken = False
        """Whether the database has the pause."""

    def prepared(self, facts: Facts) -> Settled:
        worktree = self._settings.worktree
        name = encode_path(os.fsencode(self._settings.project.name))
        issue = Issue.for_folder(name)
        try:
            with open_store(self._settings) as store:
                core = Core(store, self._clock)
                started = next(
                    (flow.commit_at_start for flow in store.workflows(worktree=worktree, limit=1)), None
                )
                facts = with_world(facts, self._settings.project, started)
                return core.prepare_worktree_pause(worktree, issue, facts, commit_at_start=_commit(facts))
        except HoldfastError as error:
            log.warning("the database cannot be read: %s", error.message)
            return self._prepared_from_files(issue, facts)

    def _prepared_from_files(self, issue: Issue, facts: Facts) -> Settled:
        """Go on from the last session's files, as if they were the database."""
        now = to_datetime(self._clock())
        latest = self._files.latest()
        found = read_session_document(self._files.read(latest), where=f"{latest}.json") if latest else None
        if found is None or found[1].status not in OPEN:
            facts = with_world(facts, self._settings.project, None)
            first = opening(issue, self._settings.worktree, TaskDAG(), (), _commit(facts), now)
            return opening_pause(first, SessionFold(), facts, now)
        snapshot, workflow = found
        facts = with_world(facts, self._settings.project, workflow.commit_at_start)
        return opening_pause(
            going_on(workflow, now, snapshot), SessionFold.starting_from(snapshot), facts, now
        )

    def commit(self, settled: Settled) -> Answer:
        self._attempts += 1
        try:
            with open_store(self._settings) as store:
                store.apply(settled.change)
        except HoldfastError as error:
            if isinstance(error, ConflictError) and self._attempts < _ATTEMPTS:
                return "changed"
            log.warning(
                "%s is safe in %s but not in the database yet: %s (`holdfast reindex` adds it)",
                settled.snapshot.session_id,
                self._files.folder,
                error.message,
            )
            return "away"
        self.is_taken = True
        return "taken"

    def is_stored(self, snapshot_id: str) -> bool | None:
        try:
            with open_store(self._settings) as store:
                return is_stored(store, snapshot_id)
        except HoldfastError:
            return None


class SessionPauseManager:
    def __init__(
        self,
        project_path: Path | str | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.settings = project_settings(project_path, settings)
        self.layout: ProjectLayout = self.settings.layout
        self.files = SessionFiles(self.layout.sessions)
        self._clock = clock

    def create_pause_session(self, message: str | None = None, *, commit: bool = False) -> str:
        """Pause here and now, without a wind-down; returns the session's id."""
        session_id = self.pause_now(Facts(reason=message))
        if commit:
            self.commit(session_id)
        return session_id

    def pause_now(self, facts: Facts) -> str:
        """Under the next free name, of the moment that the facts tell of; returns the session's id."""
        self.layout.ensure()
        with self.locked():
            seconds = facts.at.timestamp() if facts.at else self._clock()
            name = self.files.free_session_id(seconds)
            self.pause(replace(facts, session_id=name))
        return name

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Alone in the sessions folder. Sessions that end together wait here for each other."""
        with self.files.locked(FolderWork(self.settings, self.files, self._clock).is_stored):
            yield

    def pause(self, facts: Facts, closing: Closing | None = None) -> Settled:
        """Pause what is worked on in the project, under the name that the facts tell. Call when `locked`."""
        work = FolderWork(self.settings, self.files, self._clock)
        settled = pause_session(self.files, work, facts, closing)
        if work.is_taken:
            remember_project(self.settings)
        return settled

    def commit(self, session_id: str) -> str:
        """Commit a session's files to the project's repository; everything else stays as it was."""
        paths = [self.files.folder / f"{session_id}{kind}" for kind in (".json", ".yaml", ".md")]
        commit = commit_files(self.settings.project, paths, f"Pause {session_id}")
        names = [str(path.relative_to(self.layout.root)) for path in paths]
        self.layout.trust.accept_files(str(self.layout.root), names)  # tracked because the user said so
        return commit

    def load_session(self, session_id: str) -> dict[str, Any]:
        return self.files.read(session_id)

    def list_sessions(self) -> list[str]:
        """Newest first."""
        return self.files.session_ids()


def with_world(facts: Facts, folder: Path, since: str | None) -> Facts:
    """Git and the changed files, or all files where there is no git; a repository that cannot be read costs
    that fact, not the pause."""
    if facts.git_state is not None or facts.folder_files is not None:
        return facts  # captured already
    try:
        git = capture_git_state(folder, since=since)
    except HoldfastError as error:
        log.warning("git state was omitted: %s", error.message)
        return facts
    if git is None:
        return replace(facts, folder_files=fingerprint_folder(folder))
    root = Path(os.fsdecode(decode_path(git.worktree))) if git.worktree else folder
    changed = (*git.files_modified, *git.files_uncompared)
    return replace(facts, git_state=git, files=with_folders(root, changed, partial(_untracked, root)))


def _untracked(root: Path, folder: str) -> list[str]:
    try:
        return untracked_in(root, folder)
    except HoldfastError:
        return []  # then nobody can tell what becomes of it


def _commit(facts: Facts) -> str | None:
    """What counts as the start for a workflow that begins with this pause."""
    if facts.git_state is None:
        return None
    return facts.git_state.commit_at_snapshot or BEFORE_FIRST_COMMIT


def remember_project(settings: Settings) -> None:
    """Note the project's folder beside the database, so that a lost database can be rebuilt."""
    if settings.project in known_projects(settings):
        return
    private_folder(settings.home)
    with storage_errors("record the project"), lock_file(settings.home / "projects.lock"):
        projects = dict.fromkeys((*known_projects(settings), settings.project))
        keep_if_damaged(settings.home / "projects", lambda data: [_project(line) for line in _lines(data)])
        lines = [encode_path(os.fsencode(project)) for project in projects]
        replace_file(settings.home / "projects", "".join(f"{line}\n" for line in lines).encode())


def known_projects(settings: Settings) -> list[Path]:
    try:
        data = (settings.home / "projects").read_bytes()
    except FileNotFoundError:
        return []
    found: list[Path] = []
    for line in _lines(data):
        with contextlib.suppress(ValueError):  # a line that none of us wrote
            found.append(_project(line))
    return found


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line]


def _project(line: bytes) -> Path:
    try:
        name = decode_path(line.decode())
    except InvalidInputError as error:
        raise ValueError(error.message) from None
    if b"\0" in name:
        raise ValueError("no path holds this character")
    return Path(os.fsdecode(name))
