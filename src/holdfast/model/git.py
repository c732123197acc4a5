"""What a snapshot knows of the git repository it was taken in.

A path is text. Git's own names are bytes, so one that is no valid UTF-8 is written the way
git prints it: in double quotes with C escapes (`"caf\\351.txt"`). `encode_path` and
`decode_path` are exact inverses; every consumer of `files_modified` that opens a file
goes through `decode_path`.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from holdfast.base.errors import InvalidInputError
from holdfast.model.base import Value

__all__ = ["GitOperation", "GitState", "decode_path", "encode_path"]

GitOperation = Literal["merge", "rebase", "cherry-pick", "revert", "bisect", "am"]


class GitState(Value):
    """Git repository state at snapshot time. `None` says that there is none, or none known."""

    branch: str | None = Field(description="Branch checked out, born or not; none on a detached HEAD")
    commit_at_workflow_start: str | None = Field(
        description="SHA when workflow began; none if before the first commit, or not known"
    )
    commit_at_snapshot: str | None = Field(description="SHA at snapshot time; none before the first commit")
    files_modified: tuple[str, ...] = Field(
        description="Paths changed since workflow start: committed, staged, unstaged and untracked; "
        "a folder that is untracked as a whole stands as one path that ends in a slash"
    )
    files_staged: tuple[str, ...] = Field(description="Files in staging area")
    has_uncommitted_changes: bool = Field(description="Dirty working tree? Untracked files count")
    uncommitted_summary: str | None = Field(
        default=None, description="Brief summary of uncommitted changes; none in a clean tree"
    )

    start_commit_missing: bool = Field(
        default=False,
        description="The start commit is gone (history rewritten, shallow clone): "
        "files_modified holds the uncommitted changes only",
    )
    operation: GitOperation | None = Field(default=None, description="What git is in the middle of")
    upstream: str | None = Field(default=None, description="Branch this one tracks, as origin/main")
    ahead: int | None = Field(default=None, ge=0, description="Commits the upstream lacks")
    behind: int | None = Field(default=None, ge=0, description="Commits of the upstream lacking here")
    worktree: str | None = Field(default=None, description="Root folder of the work tree")
    submodules_changed: tuple[str, ...] = Field(
        default=(), description="Submodules moved to another commit since the start, or dirty inside"
    )


_LETTERS = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPES = {byte: f"\\{letter}" for letter, byte in _LETTERS.items()}
_QUOTED = re.compile(r'"((?:[^"\\]|\\[abtnvfr"\\]|\\[0-3][0-7]{2})*)"', re.ASCII | re.DOTALL)
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|.)", re.DOTALL)


def encode_path(name: bytes) -> str:
    """The name itself where it is UTF-8, else as git quotes it."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return _quote(name)
    # A leading quote marks the quoted form, so a name that has one must be quoted too.
    return _quote(name) if text.startswith('"') else text


def decode_path(text: str) -> bytes:
    """The bytes that `encode_path` was given."""
    try:
        return _unquote(text) if text.startswith('"') else text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"not a path: {text!r}") from error


def _quote(name: bytes) -> str:
    return '"' + "".join(_escape(byte) for byte in name) + '"'


def _escape(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def _unquote(text: str) -> bytes:
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        raise InvalidInputError(f"not a quoted path: {text!r}")
    pieces = _ESCAPE.split(quoted[1])
    # split() alternates plain text and what stood behind a backslash.
    return b"".join(
        bytes([_LETTERS.get(piece) or int(piece, 8)]) if index % 2 else piece.encode()
        for index, piece in enumerate(pieces)
    )
