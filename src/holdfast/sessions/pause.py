"""`SessionPauseManager`: turn "stop here" into a session's files and an entry in the database.

The files come first and decide: once they are in place the pause is safe, whatever the
database does. A database that is away, full or damaged gets the session later: the
folder remembers what it has not taken.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Generator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.durable import private_folder, replace_file, storage_errors
from holdfast.base.errors import ConflictError, HoldfastError, InvalidInputError
from holdfast.capture.files import fingerprint_files
from holdfast.capture.git import BEFORE_FIRST_COMMIT, capture_git_state, commit_files
from holdfast.model.fold import SessionFold
from holdfast.model.git import GitState, decode_path, encode_path
from holdfast.model.task import TaskDAG
from holdfast.model.workflow import OPEN, Issue
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Settings, project_settings
from holdfast.sessions.transitions import Core, Facts, Settled, going_on, opening, opening_pause
from holdfast.store.documents import read_session_document, render_files
from holdfast.store.session_files import Closing, FileSet, SessionFiles

if TYPE_CHECKING:
    from holdfast.store.sql import SqlStore

log = logging.getLogger("holdfast.pauses")

_ATTEMPTS = 20
_NOT_INDEXED = "%s is safe in %s but not in the database yet: %s (`holdfast reindex` adds it)"


@contextlib.contextmanager
def open_store(settings: Settings) -> Generator[SqlStore]:
    """The configured database; SQLAlchemy is loaded here and not before."""
    from holdfast.store.sql import SqlStore

    store = SqlStore(settings.db)
    try:
        yield store
    finally:
        store.close()


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
        self.layout.ensure()
        with self.files.locked():
            session_id = self.files.free_session_id(self._clock())
            self.pause(Facts(reason=message, session_id=session_id))
        if commit:
            self.commit(session_id)
        return session_id

    def pause(self, facts: Facts, closing: Closing | None = None) -> Settled:
        """Put the session's files in place and add it to the database. Call with the folder locked.

        The folder's lock keeps sessions that end together apart. A runner, a server or a command may still
        change the workflow in between: then the same session is made anew from the state there is now.
        """
        settled = self._placed(facts, closing)
        facts = replace(facts, git_state=settled.snapshot.git_state, files=settled.snapshot.files)
        for _ in range(_ATTEMPTS):
            try:
                self._index(settled)
            except ConflictError:
                settled = self._placed(facts)
            else:
                return settled
        log.warning(_NOT_INDEXED, settled.snapshot.session_id, self.files.folder, "it kept changing")
        return settled

    def _placed(self, facts: Facts, closing: Closing | None = None) -> Settled:
        settled = self._settled(facts)
        self.files.place(
            FileSet(
                session_id=settled.snapshot.session_id,
                files=render_files(settled.snapshot, settled.workflow),
                closing=closing,
                becomes_latest=not self._gives_way(facts),
                to_be_indexed=True,
            )
        )
        return settled

    def _gives_way(self, facts: Facts) -> bool:
        """To the latest session, which did something: this one did not, or was over before that."""
        latest = self.files.latest()
        if latest is None or not self.files.latest_worked():
            return False
        return not facts.worked or (facts.at is not None and facts.at < self._created_at(latest))

    def _created_at(self, session_id: str) -> datetime:
        """As far as can be told: where its file is damaged, long ago."""
        try:
            return datetime.fromisoformat(str(self.files.read(session_id)["created_at"]))
        except (HoldfastError, KeyError, ValueError):
            return datetime.min.replace(tzinfo=UTC)

    def _settled(self, facts: Facts) -> Settled:
        worktree = self.settings.worktree
        name = encode_path(os.fsencode(self.settings.project.name))
        issue = Issue(id=name, title=f"Work in {name}")
        try:
            with open_store(self.settings) as store:
                core = Core(store, self._clock)
                started = next(
                    (flow.commit_at_start for flow in store.workflows(worktree=worktree, limit=1)), None
                )
                facts = with_world(facts, self.settings.project, started)
                return core.prepare_worktree_pause(worktree, issue, facts, commit_at_start=_commit(facts))
        except HoldfastError as error:
            log.warning("the database cannot be asked: %s", error.message)
            return self._settled_from_files(issue, facts)

    def _settled_from_files(self, issue: Issue, facts: Facts) -> Settled:
        """Go on from the last session's files, as if they were the database."""
        now = to_datetime(self._clock())
        latest = self.files.latest()
        found = read_session_document(self.files.read(latest), where=f"{latest}.json") if latest else None
        if found is None or found[1].status not in OPEN:
            facts = with_world(facts, self.settings.project, None)
            first = opening(issue, self.settings.worktree, TaskDAG(), (), _commit(facts), now)
            return opening_pause(first, SessionFold(), facts, now)
        snapshot, workflow = found
        facts = with_world(facts, self.settings.project, workflow.commit_at_start)
        return opening_pause(
            going_on(workflow, now, snapshot), SessionFold.starting_from(snapshot), facts, now
        )

    def _index(self, settled: Settled) -> None:
        """Give the database what the files already hold; if it refuses, it gets it later."""
        session_id = settled.snapshot.session_id
        try:
            with open_store(self.settings) as store:
                store.apply(settled.change)
        except ConflictError:
            raise
        except HoldfastError as error:
            log.warning(_NOT_INDEXED, session_id, self.files.folder, error.message)
            return
        self.files.mark_indexed(session_id)
        remember_project(self.settings)

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
    """Git and the changed files; a repository that cannot be read costs that fact, not the pause."""
    if facts.git_state is not None:
        return facts  # captured already
    git: GitState | None = None
    try:
        git = capture_git_state(folder, since=since)
    except HoldfastError as error:
        log.warning("git state is left out: %s", error.message)
    if git is None:
        return facts
    root = Path(os.fsdecode(decode_path(git.worktree))) if git.worktree else folder
    return replace(facts, git_state=git, files=fingerprint_files(root, git.files_modified))


def _commit(facts: Facts) -> str | None:
    """What counts as the start for a workflow that begins with this pause."""
    if facts.git_state is None:
        return None
    return facts.git_state.commit_at_snapshot or BEFORE_FIRST_COMMIT


def remember_project(settings: Settings) -> None:
    """Note the project's folder beside the database, so that a lost database can be rebuilt."""
    known = known_projects(settings)
    if settings.project in known:
        return
    private_folder(settings.home)
    lines = [encode_path(os.fsencode(project)) for project in (*known, settings.project)]
    with storage_errors("note the project"):
        replace_file(settings.home / "projects", "".join(f"{line}\n" for line in lines).encode())


def known_projects(settings: Settings) -> list[Path]:
    try:
        text = (settings.home / "projects").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    found: list[Path] = []
    for line in text.split("\n"):
        with contextlib.suppress(InvalidInputError):  # a line that none of us wrote
            found += [Path(os.fsdecode(decode_path(line)))] if line else []
    return found


__all__ = ["SessionPauseManager", "known_projects", "open_store", "remember_project", "with_world"]
