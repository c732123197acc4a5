"""What undo asks git, with nothing of the user's around it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from holdfast.base import git
from holdfast.base.errors import GitError

_TIME_LIMIT = 300.0


def run_git(folder: Path, *arguments: str) -> bytes:
    """In the repository at `folder`; a failure is a `GitError`."""
    done = _ask(folder, f"--git-dir={folder}", *arguments)
    if done.code != 0:
        raise GitError(
            f"git {arguments[0]} failed: {git.reason(done)}",
            hint="run `holdfast doctor` to check the installation",
        )
    return done.out


def list_unignored(root: Path) -> list[bytes] | None:
    """What git would look at in the user's work tree, ignored files left out; None where it cannot say."""
    done = _ask(root, "--literal-pathspecs", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return _names(done.out) if done.code == 0 else None


def find_ignored(root: Path, folders: Iterable[bytes]) -> set[bytes]:
    """Those of these folders that git would not look into."""
    done = _ask(root, "--literal-pathspecs", "check-ignore", "-z", "--stdin", stdin=b"\0".join(folders))
    return set(_names(done.out))


def ignore_sources(root: Path) -> list[Path]:
    """Files outside of the tree that have a say in what git lists."""
    names = ("index", "info/exclude", "config")
    if (root / ".git").is_dir():
        return [root / ".git" / name for name in names]
    words = [word for name in names for word in ("--git-path", name)]
    done = _ask(root, "--literal-pathspecs", "rev-parse", *words)
    return [root / os.fsdecode(name) for name in done.out.splitlines()]


def _ask(folder: Path, *arguments: str, stdin: bytes = b"") -> git.GitResult:
    environment = git.sealed_environment()
    return git.run_git(folder, *arguments, stdin=stdin, environment=environment, time_limit=_TIME_LIMIT)


def _names(output: bytes) -> list[bytes]:
    return [name for name in output.split(b"\0") if name]


def merge_texts(folder: Path, ours: bytes, base: bytes, theirs: bytes) -> bytes | None:
    """The change from `base` to `theirs` made in `ours`; None where the two touch the same lines."""
    if any(b"\0" in text for text in (ours, base, theirs)):
        return None
    names = ["ours", "base", "theirs"]
    places = [folder / f"merge-{os.getpid()}-{name}" for name in names]
    try:
        for place, text in zip(places, (ours, base, theirs), strict=True):
            place.write_bytes(text)
        done = _ask(folder, "merge-file", "-p", "-q", *map(str, places))
    finally:
        for place in places:
            place.unlink(missing_ok=True)
    if done.code == 0:
        return done.out
    if 0 < done.code < 128:  # so many conflicts
        return None
    raise GitError(f"git merge-file failed: {git.reason(done)}")
