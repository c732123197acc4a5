"""Commands that change a repository, above all one: the commit that a pause may make."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.base.errors import GitError, InvalidInputError
from holdfast.base.git import (
    Setting,
    allowed_protocols,
    base_environment,
    guarded,
    guarded_environment,
    other_end,
    reason,
    repository_settings,
    run_git,
)
from holdfast.capture.git import Place, locate, operation_in


def commit_files(folder: Path, paths: Sequence[Path], message: str) -> str:
    """Commit exactly these files, ignored ones too, and return the commit.

    Whatever else is staged or changed stays as it is. Files that HEAD already holds as they
    are make no new commit. On failure the index holds what it held before.
    """
    if not paths:
        raise InvalidInputError("no file to commit")
    try:
        return _commit_files(folder, paths, message)
    except GitError as error:
        raise GitError(
            f"the snapshot was not committed to git: {error.message}",
            hint=f"the snapshot itself is safe; {error.hint}",
        ) from error


def _commit_files(folder: Path, paths: Sequence[Path], message: str) -> str:
    top = _place_to_commit_in(folder).top
    names = [_name_in_tree(top, folder / path) for path in paths]
    before = _index_entries(top, names)
    environment = guarded_environment(top)
    try:
        _add(top, names, environment)
        _commit(top, names, message, environment)
    except BaseException:
        with suppress(GitError):  # the failure that led here is the one worth telling
            _take_back(top, names, before, environment)
        raise
    return _write(top, "rev-parse", "--verify", "HEAD").decode().strip()


def _place_to_commit_in(folder: Path) -> Place:
    place = locate(folder)
    if place is None:
        raise GitError(f"{folder} is in no git work tree", hint="run `git init` there first")
    operation = operation_in(place.git_dir)
    if operation is not None:
        raise GitError(f"a {operation} is in progress", hint=f"finish or abort the {operation} first")
    return place


def _name_in_tree(top: Path, path: Path) -> bytes:
    """The name as the index has it. Symlinks on the way are followed, a link itself is not."""
    if path.is_dir() and not path.is_symlink():
        raise InvalidInputError(f"{path} is a folder; name the files in it")
    try:
        relative = (path.parent.resolve() / path.name).relative_to(top)
    except ValueError as error:
        raise InvalidInputError(f"{path} lies outside of the repository at {top}") from error
    return os.fsencode(relative.as_posix())


def _index_entries(top: Path, names: Sequence[bytes]) -> bytes:
    """In the form that `update-index --index-info` takes."""
    return _write(top, "ls-files", "--stage", "-z", "--", *map(_literal, names))


def _literal(name: bytes) -> str:
    """A pathspec that matches this name alone."""
    return ":(top,literal)" + os.fsdecode(name)


def _add(top: Path, names: Sequence[bytes], environment: Mapping[str, str]) -> None:
    # Unlike `git add -f` this takes names as they are, and in a sparse checkout too.
    _write(top, "update-index", "--add", "-z", "--stdin", stdin=_listed(names), environment=environment)


def _listed(names: Sequence[bytes]) -> bytes:
    return b"".join(name + b"\0" for name in names)


def _commit(top: Path, names: Sequence[bytes], message: str, environment: Mapping[str, str]) -> None:
    """A failure is none where HEAD holds the files all the same, so that there was nothing to commit."""
    try:
        _write(
            top,
            *("-c", "gc.auto=0", "-c", "maintenance.auto=false"),  # a pause is no time for housekeeping
            *("commit", "--quiet", "--cleanup=whitespace", "--file=-"),
            *("--only", "--", *map(_literal, names)),
            stdin=message.encode(errors="replace"),
            environment=environment,
        )
    except GitError:
        if not _head_holds(top, names):
            raise


def _head_holds(top: Path, names: Sequence[bytes]) -> bool:
    """HEAD and index agree on these files."""
    pathspecs = map(_literal, names)
    return run_git(top, "diff-index", "--cached", "--quiet", "HEAD", "--", *pathspecs).code == 0


def _take_back(top: Path, names: Sequence[bytes], before: bytes, environment: Mapping[str, str]) -> None:
    """Give these files the index entries they had, or none."""
    if _head_holds(top, names):
        return
    gone = ("update-index", "-z", "--force-remove", "--stdin")
    _write(top, *gone, stdin=_listed(names), environment=environment)
    if before:
        _write(top, "update-index", "-z", "--index-info", stdin=before, environment=environment)


_ADVICE = (
    (b"index.lock", "another git process is at work here; if none is, remove the lock file it names"),
    (b"tell me who you are", "set `git config user.name` and `user.email`"),
    (b"empty ident name", "set `git config user.name` and `user.email`"),
    (b"failed to sign", "unlock your signing key first"),
)


def change_repository(folder: Path, *arguments: str, git_dir: str | None = None) -> str:
    """Run a git command that changes a repository of our own; `GitError` in git's words where it fails."""
    environment = _users_own(git_dir, repository_settings(folder, git_dir))
    return _write(folder, *arguments, environment=environment).decode(errors="replace")


def reach_remote(
    folder: Path, address: str, command: str, *arguments: str, git_dir: str | None = None
) -> str:
    """Like `change_repository`, for a command that reaches a remote: with the protocol of `address` alone."""
    settings = repository_settings(folder, git_dir)
    protocols = allowed_protocols(address, settings)
    environment = _users_own(git_dir, settings) | {"GIT_ALLOW_PROTOCOL": protocols}
    words = (command, *other_end(command, protocols), *arguments)
    return _write(folder, *words, environment=environment).decode(errors="replace")


def _users_own(git_dir: str | None, settings: Sequence[Setting]) -> dict[str, str]:
    return guarded(base_environment(git_dir), settings, users_filters=True)


def _write(
    top: Path, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> bytes:
    answer = run_git(top, *arguments, stdin=stdin, environment=environment)
    if answer.code == 0:
        return answer.out
    advice = next((advice for sign, advice in _ADVICE if sign in answer.err), None)
    raise GitError(
        reason(answer),
        hint=advice or "see to what git says, then commit the files yourself with `git add -f`",
    )
