"""How the world differs from what a snapshot saw: branch, commits, files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.capture.files import FileTracker
from holdfast.capture.git import capture_git_state
from holdfast.errors import HoldfastError
from holdfast.model.git import GitState, decode_path
from holdfast.model.snapshot import SessionSnapshot

_MOST_FILES_NAMED = 10


def find_drift(snapshot: SessionSnapshot, folder: Path) -> tuple[str, ...]:
    """In sentences for the next session; none where all is as it was."""
    before = snapshot.git_state
    if before is None:
        return ()
    try:
        now = capture_git_state(folder, since=before.commit_at_snapshot)
    except HoldfastError as error:
        return (f"The repository cannot be read any more: {error.message}.",)
    if now is None:
        return ("The folder is no git repository any more.",)
    root = Path(os.fsdecode(decode_path(now.worktree))) if now.worktree else folder
    return (*_branch(before, now), *_commits(before, now), *_files(snapshot, before, now, root))


def _branch(before: GitState, now: GitState) -> Iterator[str]:
    if before.branch != now.branch:
        yield f"The branch was {before.branch or '(detached)'} and is {now.branch or '(detached)'} now."
    if now.operation and now.operation != before.operation:
        yield f"A {now.operation} is in progress that was not at the pause."


def _commits(before: GitState, now: GitState) -> Iterator[str]:
    if before.commit_at_snapshot == now.commit_at_snapshot:
        return
    then, since = (
        commit[:12] if commit else "none" for commit in (before.commit_at_snapshot, now.commit_at_snapshot)
    )
    if now.start_commit_missing:
        yield f"The commit of the pause ({then}) is gone: history was rewritten; HEAD is {since}."
    else:
        yield f"HEAD was {then} at the pause and is {since} now."


def _files(snapshot: SessionSnapshot, before: GitState, now: GitState, root: Path) -> Iterator[str]:
    """Those that were changed at the pause by their content, the others by what git says of them now."""
    changed = FileTracker.compare({one.path: one for one in snapshot.files}, root=root).paths
    known = set(before.files_modified)
    changed += [path for path in now.files_modified if path not in known]
    if changed:
        more = f" and {len(changed) - _MOST_FILES_NAMED} more" if len(changed) > _MOST_FILES_NAMED else ""
        yield f"Changed on the disk since the pause: {', '.join(changed[:_MOST_FILES_NAMED])}{more}."
