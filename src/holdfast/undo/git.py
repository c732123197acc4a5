"""Run git with nothing of the user's around it: no settings, hooks, filters or replaced objects."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from holdfast.base.errors import GitError
from holdfast.base.git import NO_PROTOCOL, git_command

TIME_LIMIT = 300.0
_SCRUBBED = {
    "LC_ALL": "C",
    "HOME": os.devnull,
    "XDG_CONFIG_HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    **NO_PROTOCOL,
}


def environment() -> dict[str, str]:
    return {**_SCRUBBED, "PATH": os.environ.get("PATH", os.defpath)}


def command_in(folder: Path, *arguments: str) -> list[str]:
    return git_command(f"--git-dir={folder}", *arguments)


def run_git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """In the repository at `folder`; a failure is a `GitError`."""
    done = _run(command_in(folder, *arguments), folder, stdin)
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip()
        raise GitError(f"git {arguments[0]} failed: {reason}", hint="`holdfast doctor` looks at the set-up")
    return done.stdout


def list_unignored(root: Path) -> list[bytes] | None:
    """What git would look at in the user's work tree, ignored files left out; None where it cannot say."""
    done = _ask(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    return _names(done.stdout) if done.returncode == 0 else None


def find_ignored(root: Path, folders: Iterable[bytes]) -> set[bytes]:
    """Those of these folders that git would not look into."""
    done = _ask(root, "check-ignore", "-z", "--stdin", stdin=b"\0".join(folders))
    return set(_names(done.stdout))


def ignore_sources(root: Path) -> list[Path]:
    """Files outside of the tree that have a say in what git lists."""
    names = ("index", "info/exclude", "config")
    if (root / ".git").is_dir():
        return [root / ".git" / name for name in names]
    words = [word for name in names for word in ("--git-path", name)]
    done = _ask(root, "rev-parse", *words)
    return [root / os.fsdecode(name) for name in done.stdout.splitlines()]


def _ask(root: Path, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """A question about the user's work tree."""
    return _run(git_command("--literal-pathspecs", *arguments), root, stdin)


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
        done = _run(git_command("merge-file", "-p", "-q", *map(str, places)), folder, b"")
    finally:
        for place in places:
            place.unlink(missing_ok=True)
    if done.returncode == 0:
        return done.stdout
    if 0 < done.returncode < 128:  # so many conflicts
        return None
    raise GitError(f"git merge-file failed: {done.stderr.decode(errors='replace').strip()}")


def _run(command: list[str], folder: Path, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=environment(),
            input=stdin,
            capture_output=True,
            check=False,
            timeout=TIME_LIMIT,
        )
    except FileNotFoundError as error:
        raise GitError("git is not installed", hint="install git, then run the same command") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise GitError(f"git could not be run: {error}") from error
