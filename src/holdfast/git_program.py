"""Running git: with no more of our environment than it should have, nobody to ask, and not for ever."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import GitError
from holdfast.safe_git import (
    LIST_SETTINGS,
    NO_PROTOCOL,
    Setting,
    git_command,
    guarded,
    read_settings,
)

TIME_LIMIT = 60.0
"""Seconds that one git process gets."""


@dataclass(frozen=True)
class Answer:
    code: int
    out: bytes
    err: bytes


_KEPT = (
    # Everything else that starts with GIT_ goes: a hook or an alias that started us may have
    # set GIT_DIR, GIT_INDEX_FILE and more of another repository, and new ones are invented.
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
    *("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"),  # containers set safe.directory so
    *("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_EXEC_PATH"),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
)
_PROMPTERS = {"DISPLAY", "WAYLAND_DISPLAY", "GPG_TTY", "SSH_ASKPASS"}
_ALWAYS = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    **NO_PROTOCOL,
}


def base_environment(git_dir: str | None = None) -> dict[str, str]:
    """`git_dir` says that the repository is there, and that none further out is meant if it is not."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in _PROMPTERS and (not name.startswith("GIT_") or name.startswith(_KEPT))
    }
    return {**kept, **_ALWAYS, **({"GIT_DIR": git_dir} if git_dir else {})}


def repository_settings(folder: Path, git_dir: str | None = None) -> list[Setting]:
    return read_settings(output(folder, _list_settings(folder, git_dir)))


def _list_settings(folder: Path, git_dir: str | None) -> Answer:
    return run_git(folder, *LIST_SETTINGS, environment=base_environment(git_dir))


def guarded_environment(folder: Path) -> dict[str, str]:
    """For a command that looks into files: no filter runs, neither here nor in a submodule."""
    settings = [*repository_settings(folder)]
    _add_submodules(folder, None, settings, {folder.resolve()})
    return guarded(base_environment(), settings, users_filters=False)


def _add_submodules(folder: Path, git_dir: str | None, settings: list[Setting], seen: set[Path]) -> None:
    """Their settings, and those of submodules in them: `git status` goes into each in the same way."""
    for submodule in _submodules(folder, base_environment(git_dir)):
        place = submodule.resolve()
        listed = _list_settings(submodule, ".git")
        if place in seen or listed.code != 0:  # git cannot go into that one either
            continue
        seen.add(place)
        settings += read_settings(listed.out)
        _add_submodules(submodule, ".git", settings, seen)


def _submodules(folder: Path, environment: Mapping[str, str]) -> list[Path]:
    listed = run_git(folder, "ls-files", "--stage", "-z", "--full-name", "--", ":/", environment=environment)
    entries = output(folder, listed).split(b"\0")
    names = [entry.partition(b"\t")[2] for entry in entries if entry.startswith(b"160000 ")]
    if not names:
        return []
    answer = run_git(folder, "rev-parse", "--show-toplevel", environment=environment)
    top = Path(os.fsdecode(output(folder, answer).removesuffix(b"\n")))
    return [place for name in names if os.path.lexists((place := top / os.fsdecode(name)) / ".git")]


def run_git(
    folder: Path, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> Answer:
    """Run git to its end, whatever its exit code.

    A command that looks into files of the work tree, runs hooks or reaches a remote needs an
    environment from `guarded_environment`.
    """
    try:
        process = subprocess.Popen(
            git_command(*arguments),
            cwd=folder,
            env=base_environment() if environment is None else environment,
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # No terminal to ask on, and one group to end with all that git started.
            start_new_session=True,
        )
    except OSError as error:
        raise _not_started(folder, error) from error
    with process:
        try:
            out, err = process.communicate(stdin or None, timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise _too_slow(folder, arguments) from error
        except BaseException:
            _end(process)
            raise
    return Answer(process.returncode, out, err)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asked first, for git then takes its lock files with it."""
    if os.name == "nt":
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(2)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def output(folder: Path, answer: Answer) -> bytes:
    if answer.code != 0:
        raise failure(folder, answer)
    return answer.out


def _not_started(folder: Path, error: OSError) -> GitError:
    if not folder.is_dir():
        return GitError(f"no such folder: {folder}", hint="was it moved or deleted?")
    if isinstance(error, FileNotFoundError):
        return GitError("git is not installed, or not on PATH", hint="install it from https://git-scm.com")
    return GitError(f"git could not be started in {folder}: {error.strerror}", hint="check the permissions")


def _too_slow(folder: Path, arguments: Sequence[str]) -> GitError:
    command = next(word for word in arguments if re.fullmatch("[a-z][a-z-]+", word))
    return GitError(
        f"`git {command}` took more than {TIME_LIMIT:g} seconds in {folder}",
        hint="try it by hand: a slow disk or a signing key that asks may hold it up",
    )


def failure(folder: Path, answer: Answer) -> GitError:
    if b"dubious ownership" in answer.err or b"unsafe repository" in answer.err:
        command = re.search(rb"git config --global --add safe\.directory \S.*", answer.err)
        advice = os.fsdecode(command[0]) if command else "git config --global --add safe.directory FOLDER"
        return GitError(
            f"the git repository at {folder} belongs to another user, so git does not read it",
            hint=f"if you trust it: `{advice}`",
        )
    return GitError(
        f"git cannot read the repository at {folder}: {reason(answer)}",
        hint="`git status` there shows the same; `git fsck` looks for damage",
    )


def reason(answer: Answer) -> str:
    """The line that says it: git's own, else the last, which is where hooks put it."""
    lines = [line.strip() for line in answer.err.decode(errors="replace").splitlines() if line.strip()]
    spoken = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    told = (spoken or lines[-1:] or [f"exit code {answer.code}"])[0]
    return told.removeprefix("fatal: ").removeprefix("error: ")[:300]
