"""How the world differs from what a snapshot saw: branch, commits, files.

Git tells it, and for files that were changed at the pause already their fingerprints do. Where there is no
git, the fingerprints of all files do.
What neither of them covers counts as unknown, never as unchanged: a folder in which git
ignores everything, files that it was told not to look at. Single files that it ignores are left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from holdfast.base.errors import HoldfastError
from holdfast.base.redact import redact
from holdfast.base.text import decode_path
from holdfast.capture.files import FileTracker, changed_modes, list_folder
from holdfast.capture.git import hidden_changes, is_ignored, seen_git_state, uncompared_files, untracked_in

if TYPE_CHECKING:
    from holdfast.model.git import GitState
    from holdfast.model.snapshot import FileFingerprint, SessionSnapshot
    from holdfast.model.workflow import Workflow

_MOST_FILES_NAMED = 10

DriftState = Literal["same", "changed", "cannot_tell"]


@dataclass(frozen=True)
class FolderDrift:
    """In sentences for the next session; none where all is as it was."""

    changes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    """What could not be compared, and why."""

    @property
    def state(self) -> DriftState:
        if self.changes:
            return "changed"
        return "cannot_tell" if self.unknown else "same"

    @property
    def sentences(self) -> tuple[str, ...]:
        return (*self.changes, *self.unknown)


def find_workflow_drift(workflow: Workflow, snapshot: SessionSnapshot | None) -> FolderDrift:
    """Work in a clone of our own has no folder of the user's that could have changed meanwhile."""
    if workflow.options.repository is not None:
        return FolderDrift()
    return find_drift(snapshot, Path(os.fsdecode(decode_path(workflow.worktree))))


def find_drift(snapshot: SessionSnapshot | None, folder: Path) -> FolderDrift:
    if snapshot is None:
        return cannot_tell("there is no snapshot to compare with")
    if not folder.is_dir():
        return cannot_tell(f"the folder {folder} does not exist")
    before = snapshot.git_state
    if before is None and snapshot.folder_files is not None:
        return _told_by_fingerprints(snapshot.folder_files, folder)
    if before is None:
        return cannot_tell("no git state was recorded at the pause")
    try:
        return _told_by_git(snapshot, before, folder)
    except HoldfastError as error:
        return cannot_tell(error.message)


def _told_by_git(snapshot: SessionSnapshot, before: GitState, folder: Path) -> FolderDrift:
    now = seen_git_state(folder, since=before.commit_at_snapshot)
    if now is None:
        return FolderDrift(changes=("The folder is no longer a git repository.",))
    if is_ignored(folder):
        return cannot_tell("git ignores all new files in the folder")
    changed, unknown = _files(snapshot, before, now, folder)
    files = _named("Changed on disk since the pause", changed)
    return FolderDrift(
        changes=(*_branch(before, now), *_commits(before, now), *files, *_staged(before, now)),
        unknown=(
            *_named("Cannot tell whether these changed since the pause", unknown),
            *_ignore_rules(before, now, changed),
        ),
    )


def _told_by_fingerprints(before: tuple[FileFingerprint, ...], folder: Path) -> FolderDrift:
    prints = {one.path: one for one in before}
    now = list_folder(folder)
    compared = FileTracker.compare(prints, map(decode_path, now or ()), root=folder).paths
    changed = list(dict.fromkeys((*compared, *changed_modes(before, folder))))
    return FolderDrift(
        changes=tuple(_named("Changed on disk since the pause", changed)),
        unknown=() if now is not None else ("Cannot tell whether files were added: there are too many.",),
    )


def cannot_tell(why: str) -> FolderDrift:
    return FolderDrift(unknown=(f"Cannot tell whether the files changed: {why}.",))


def _branch(before: GitState, now: GitState) -> Iterator[str]:
    if before.branch != now.branch:
        yield f"The branch was {before.branch or '(detached)'} and is {now.branch or '(detached)'} now."
    if now.operation and now.operation != before.operation:
        yield f"A {now.operation} is in progress that had not started at the pause."


def _commits(before: GitState, now: GitState) -> Iterator[str]:
    if before.commit_at_snapshot == now.commit_at_snapshot:
        return
    then, since = (
        commit[:12] if commit else "none" for commit in (before.commit_at_snapshot, now.commit_at_snapshot)
    )
    if now.start_commit_missing:
        yield f"The commit checked out at the pause ({then}) is gone: history was rewritten; HEAD is {since}."
    else:
        yield f"HEAD was {then} at the pause and is {since} now."


def _staged(before: GitState, now: GitState) -> Iterator[str]:
    """What is staged is work, too. Of what was committed meanwhile the commit tells."""
    if before.commit_at_snapshot != now.commit_at_snapshot:
        return
    then, since = set(before.files_staged), set(now.files_staged)
    yield from _named("Staged in git since the pause", sorted(since - then))
    yield from _named("No longer staged in git since the pause", sorted(then - since))
    if then == since and before.staged is not None and before.staged != now.staged:
        yield from _named("Staged in git with other content since the pause, among", sorted(since))


def _ignore_rules(before: GitState, now: GitState, changed: Iterable[str]) -> Iterator[str]:
    """A new file may be hidden by rules that git does not track; a changed `.gitignore` is told as a file."""
    if before.ignore_rules in (None, now.ignore_rules):
        return
    if not any(path.rpartition("/")[2] == ".gitignore" for path in changed):
        yield "Cannot tell whether files were added since the pause: git's ignore rules changed."


def _files(
    snapshot: SessionSnapshot, before: GitState, now: GitState, folder: Path
) -> tuple[list[str], list[str]]:
    """Those that changed, and those of which nobody can tell.

    Of what was changed at the pause git knows no content: there the fingerprints decide. Some have none:
    folders that are untracked as a whole, files that are too large or too many, submodules. Nor does git
    compare files that it was told to take for unchanged, those with a filter only by that filter, and modes,
    links and replaced commits only where its settings say so.
    """
    root = Path(os.fsdecode(decode_path(now.worktree))) if now.worktree else folder
    prints = {one.path: one for one in snapshot.files}
    known = set(before.files_modified) if before.has_uncommitted_changes else set[str]()
    unprinted = sorted(known - prints.keys())
    still = set(now.files_modified)
    printed = [path for path in unprinted if path in still and _is_printed(path, prints)]
    added = [decode_path(path) for one in printed for path in untracked_in(root, one)]
    gone = [path for path in unprinted if path.endswith("/") and path not in still]
    changed = [*FileTracker.compare(prints, added, root=root).paths, *changed_modes(snapshot.files, root)]
    changed += [path for path in gone if not _is_printed(path, prints)]
    changed += [path for path in now.files_modified if path not in known]
    unknown = [path for path in unprinted if path not in (*gone, *printed)]
    flagged = uncompared_files(root)
    hidden = hidden_changes(root, now)
    unknown += [path for path in (*now.files_uncompared, *flagged.present, *hidden) if path not in prints]
    if before.left_out is None:
        unknown += flagged.absent
    elif before.left_out != flagged.left_out:
        changed.append("what the sparse checkout leaves out")
    return list(dict.fromkeys(changed)), list(dict.fromkeys(unknown))


def _is_printed(folder: str, prints: Mapping[str, FileFingerprint]) -> bool:
    """Of an untracked folder all files have a fingerprint, or none has: git names none that is empty."""
    return folder.endswith("/") and any(path.startswith(folder) for path in prints)


def _named(what: str, paths: Iterable[str]) -> Iterator[str]:
    found = list(paths)
    if found:
        more = f" and {len(found) - _MOST_FILES_NAMED} more" if len(found) > _MOST_FILES_NAMED else ""
        names = dict.fromkeys(redact(one)[0] for one in found[:_MOST_FILES_NAMED])  # agents are told them
        yield f"{what}: {', '.join(names)}{more}."
