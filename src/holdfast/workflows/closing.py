"""The end of a session: facts captured, snapshot and state in one commit, then its files."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from holdfast.base.errors import HoldfastError
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import RESUMABLE, Workflow
from holdfast.project.layout import ProjectLayout
from holdfast.sessions.pause import with_world
from holdfast.sessions.transitions import Core, Facts, Settled
from holdfast.store.documents import render_files
from holdfast.store.protocol import Change
from holdfast.store.session_files import FileSet, SessionFiles

log = logging.getLogger("holdfast.runner")


def close_session(
    core: Core,
    worktree: Path,
    facts: Facts,
    current: Callable[[], Workflow],
    apply: Callable[[Change], bool],
    seconds: float,
) -> SessionSnapshot:
    """Pause (or fail) what `current` gives; `apply` says whether the commit went through, else it is made
    anew.

    The database decides. Files that cannot be written cost themselves: they are an export.
    """
    if not worktree.is_dir():
        return _committed(core, facts, current, apply).snapshot
    facts = with_world(facts, worktree, current().commit_at_start)
    try:
        layout = ProjectLayout(worktree).ensure()
        files = SessionFiles(layout.sessions)
        with files.locked():
            facts = replace(facts, session_id=files.free_session_id(seconds))
            settled = _committed(core, facts, current, apply)
            session_id = settled.snapshot.session_id
            files.place(FileSet(session_id, render_files(settled.snapshot, settled.workflow)))
    except HoldfastError as error:
        log.warning("the session's files were not written: %s", error.message)
        found = current()
        if found.status in RESUMABLE:
            latest = core.store.latest_snapshot(found.id)
            if latest is not None:
                return latest
        settled = _committed(core, facts, current, apply)
    return settled.snapshot


def _committed(
    core: Core, facts: Facts, current: Callable[[], Workflow], apply: Callable[[Change], bool]
) -> Settled:
    while True:
        settled = core.prepare_pause(current(), facts)
        if apply(settled.change):
            return settled
