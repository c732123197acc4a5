"""What a snapshot knows of the git repository it was taken in.

A path is text, as `base/text.py` makes it: every consumer of `files_modified` that opens a
file goes through `decode_path`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from holdfast.base.text import decode_path, encode_path
from holdfast.model.base import Value

__all__ = ["GitOperation", "GitState", "decode_path", "encode_path"]

GitOperation = Literal["merge", "rebase", "cherry-pick", "revert", "bisect", "am"]


class GitState(Value):
    """Git repository state at snapshot time. `None` means absent or unknown."""

    branch: str | None = Field(
        description="Checked-out branch, even before its first commit; null on a detached HEAD"
    )
    commit_at_workflow_start: str | None = Field(
        description="SHA when workflow began; none if before the first commit, or not known"
    )
    commit_at_snapshot: str | None = Field(description="SHA at snapshot time; none before the first commit")
    files_modified: tuple[str, ...] = Field(
        description="Paths changed since workflow start: committed, staged, unstaged and untracked; "
        "a fully untracked folder is one path that ends in a slash"
    )
    files_staged: tuple[str, ...] = Field(description="Files in staging area")
    files_uncommitted: tuple[str, ...] | None = Field(
        default=None, description="Paths of uncommitted changes; null in snapshots of older versions"
    )
    has_uncommitted_changes: bool = Field(description="Dirty working tree? Untracked files count")
    uncommitted_summary: str | None = Field(
        default=None, description="Brief summary of uncommitted changes; none in a clean tree"
    )

    start_commit_missing: bool = Field(
        default=False,
        description="The start commit is gone (history rewritten, shallow clone): "
        "files_modified holds the uncommitted changes only",
    )
    operation: GitOperation | None = Field(default=None, description="Git operation in progress")
    upstream: str | None = Field(default=None, description="Tracked branch, such as origin/main")
    ahead: int | None = Field(default=None, ge=0, description="Commits missing from the upstream")
    behind: int | None = Field(default=None, ge=0, description="Upstream commits missing here")
    worktree: str | None = Field(default=None, description="Root folder of the work tree")
    submodules_changed: tuple[str, ...] = Field(
        default=(), description="Submodules that moved to another commit since the start, or are dirty"
    )
    files_uncompared: tuple[str, ...] = Field(
        default=(),
        description="Files that may have changed: only running a filter (such as Git LFS) could tell, and "
        "filters are not run",
    )
    left_out: str | None = Field(
        default=None,
        description="Fingerprint of the names that a sparse checkout leaves out; null where none is set up",
    )
    staged: str | None = Field(
        default=None,
        description="Fingerprint of what is staged; null if nothing is, and in snapshots of older versions",
    )
    ignore_rules: str | None = Field(
        default=None,
        description="Fingerprint of ignore rules that git does not track; null if an older version paused",
    )
