"""The state of a git repository, read without ever writing to it.

A capture is four processes; with a filter set up, or HEAD moved since the workflow began, one more each:

    git rev-parse     where the repository is
    git config        which programs its settings name, so that none of them is run
    git ls-files      whether it has submodules, whose settings name more
    git status        branch, upstream, every uncommitted change
    git check-attr    which of these only a filter could have compared, where one is set up
    git diff-tree     what was committed since
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from holdfast.base.durable import opened
from holdfast.base.errors import GitError, InvalidInputError
from holdfast.base.git import (
    GitSetting,
    allowed_protocols,
    base_environment,
    failure,
    guarded,
    guarded_environment,
    other_end,
    output,
    reason,
    repository_settings,
    run_git,
    settings_with_submodules,
    silenced_filters,
)
from holdfast.base.text import decode_path, encode_path

if TYPE_CHECKING:
    from holdfast.model.git import GitOperation, GitState

BEFORE_FIRST_COMMIT: Final = "before-first-commit"
"""`since` of a workflow that began in an empty repository: all that is committed is new."""


def capture_git_state(folder: Path, *, since: str | None = None) -> GitState | None:
    """The whole repository that `folder` lies in; None where that is not in a git work tree.

    No work tree means no repository, a bare one, or a place inside `.git`. A repository
    that is there and cannot be read (damaged, owned by somebody else) is a `GitError`.

    `since` is the commit at which the workflow began, as its first capture named it. Without
    it the start is unknown, and only uncommitted changes count as modified.
    """
    found = _seen(folder, since)
    if found is None:
        return None
    from holdfast.model.git import GitState

    return GitState(**found)


def seen_git_state(folder: Path, *, since: str | None = None) -> GitState | None:
    """The same, for who only looks at it: nothing checks the fields, and pydantic is not loaded for it."""
    found = _seen(folder, since)
    return None if found is None else cast("GitState", SimpleNamespace(**found))


def _seen(folder: Path, since: str | None) -> dict[str, Any] | None:
    """The fields of a `GitState`."""
    _check_start(since)
    place = locate(folder)
    if place is None:
        return None
    status = _read_status(folder)
    uncompared = _uncompared(place.top, status)
    status = replace(status, changes=tuple(one for one in status.changes if one not in uncompared))
    committed = _committed_since(folder, since, status.commit)
    changes = (*status.changes, *(committed or ()))
    return {
        "branch": status.branch,
        "commit_at_workflow_start": None if since == BEFORE_FIRST_COMMIT else since,
        "commit_at_snapshot": status.commit,
        "files_modified": _paths(changes),
        "files_staged": _paths(change for change in status.changes if change.staged),
        "files_uncommitted": _paths(status.changes),
        "has_uncommitted_changes": bool(status.changes or uncompared),  # in doubt there are some
        "uncommitted_summary": _summary(status.changes, len(uncompared)),
        "start_commit_missing": committed is None,
        "operation": operation_in(place.git_dir),
        "upstream": status.upstream,
        "ahead": status.ahead,
        "behind": status.behind,
        "worktree": encode_path(os.fsencode(place.top)),
        "submodules_changed": _paths(change for change in changes if change.submodule),
        "files_uncompared": _paths(uncompared),
        "left_out": _left_out(place),
        "staged": status.staged,
        "ignore_rules": _ignore_rules(place, status.excludes),
    }


def _left_out(place: Place) -> str | None:
    """Asked where a sparse checkout was set up; to list the index of every repository takes too long."""
    if not (place.git_dir / "info" / "sparse-checkout").exists():
        return None
    return uncompared_files(place.top).left_out


def _ignore_rules(place: Place, excludes: Sequence[Path]) -> str:
    """Those whose change git does not tell of: outside of the tree, and at its top, where they may hide
    themselves."""
    own = place.git_dir / "commondir"  # of a linked work tree
    common = place.git_dir / _text_of(own).strip() if own.exists() else place.git_dir
    places = (place.top / ".gitignore", common / "info" / "exclude", *excludes)
    rules = [_rules_in(_text_of(one)) for one in places]
    return hashlib.sha256(repr(rules).encode()).hexdigest() if any(rules) else ""


def _rules_in(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


_MOST_RULES = 1 << 20


def _text_of(path: Path) -> str:
    try:
        # Without O_NONBLOCK a pipe would hold us until somebody writes to it. Links are followed, as by git.
        with opened(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)) as descriptor:
            is_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
            return os.fsdecode(os.read(descriptor, _MOST_RULES)) if is_file else ""
    except OSError:
        return ""


def _excludes_files(top: Path, settings: Iterable[GitSetting]) -> list[Path]:
    """Wherever a setting, the user's or the repository's, says that more rules are."""
    named = [one.value for one in settings if one.name == "core.excludesfile"]
    base = base_environment().get("XDG_CONFIG_HOME") or "~/.config"
    places = dict.fromkeys(named or [f"{base}/git/ignore"])
    return [top / os.path.expanduser(one) for one in places if one]  # noqa: PTH111 - one without a home stays


def is_ignored(folder: Path) -> bool:
    """Whether git tells nothing of what is made in the folder.

    It is ignored by a repository further out, or is the root of one that ignores everything (dot files in
    one's home). Rules that leave folders in, as `*` with `!*/` does, say which files count: git tells there.
    """
    with os.scandir(folder) as entries:
        inside = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    folders = [name for name in inside if name != ".git"]
    return bool(_ignored(folder, [_NO_NAME])) and (not folders or bool(_ignored(folder, folders)))


_NO_NAME = "a-folder-that-nobody-has/a-file"


def _ignored(folder: Path, names: Iterable[str]) -> bytes:
    """Those of them that the rules ignore. A file that is tracked all the same says nothing of others."""
    asked = b"\0".join(map(os.fsencode, names))
    answer = run_git(folder, "check-ignore", "--no-index", "-z", "--stdin", stdin=asked)
    if answer.code not in (0, 1):
        raise failure(folder, answer)
    return answer.out


@dataclass(frozen=True)
class UncomparedFiles:
    """Tracked files that git was told not to look at (`skip-worktree`, `assume-unchanged`)."""

    present: list[str]
    absent: list[str]
    """Not on the disk, as where a sparse checkout leaves them out."""

    @property
    def left_out(self) -> str:
        """Of the absent ones, to be compared: in a large repository they may be a million."""
        return hashlib.sha256("\0".join(self.absent).encode()).hexdigest()


def uncompared_files(top: Path) -> UncomparedFiles:
    listed = output(top, run_git(top, "ls-files", "-v", "-z", "--full-name", "--", ":/"))
    flagged = [entry[2:] for entry in listed.split(b"\0") if entry[:1] == b"S" or entry[:1].islower()]
    base = os.fsencode(top) + b"/"
    found = UncomparedFiles([], [])
    for name in flagged:
        (found.present if os.path.lexists(base + name) else found.absent).append(encode_path(name))
    return found


def hidden_changes(top: Path, seen: GitState) -> list[str]:
    """What `seen` left out since git was told to compare no modes or links, or to replace objects by others.

    On a file system that keeps no modes that is every file with another mode than it was committed with.
    """
    settings, repositories = settings_with_submodules(top)
    inside = [path for one in sorted(repositories - {top.resolve()}) for path in _uncompared_inside(top, one)]
    if any(one.name in _SEEING and one.value.lower() not in _ON for one in settings) or _replaces(top):
        found = _paths(_read_status(top, *_SEEING_ALL).changes)
        return [*inside, *(path for path in found if path not in (seen.files_uncommitted or ()))]
    return inside


def _uncompared_inside(top: Path, repository: Path) -> list[str]:
    """Files of a submodule that git was told not to look at."""
    base = os.fsencode(repository.relative_to(top.resolve())) + b"/"
    return [encode_path(base + decode_path(name)) for name in uncompared_files(repository).present]


_SEEING = ("core.filemode", "core.symlinks")
_ON = ("true", "yes", "on", "1")
_SEEING_ALL = (
    *("-c", "core.fileMode=true", "-c", "core.symlinks=true"),
    *("-c", "core.useReplaceRefs=false"),
)


def _replaces(top: Path) -> bool:
    return bool(output(top, run_git(top, "for-each-ref", "--count=1", "refs/replace/")))


def untracked_in(top: Path, folder: str) -> list[str]:
    """What git would add of an untracked folder."""
    name = decode_path(folder)
    asked = ("ls-files", "--others", "--exclude-standard", "-z", "--full-name", "--", _literal(name))
    return [encode_path(path) for path in output(top, run_git(top, *asked)).split(b"\0") if path]


# ── where ──────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Place:
    git_dir: Path
    top: Path
    """Root of the work tree."""


_LOCATION = re.compile(rb"(?P<git_dir>.+)\n(?:true\n(?P<top>.+)|false(?:\n.+)?)\n", re.DOTALL)


def locate(folder: Path) -> Place | None:
    answer = run_git(folder, "rev-parse", "--absolute-git-dir", "--is-inside-work-tree", "--show-toplevel")
    # Without a work tree the last question fails; the other two are answered.
    found = _LOCATION.fullmatch(answer.out)
    if found is not None:
        return _inside(folder, found["git_dir"], found["top"]) if found["top"] else None
    if b"not a git repository" in answer.err:
        _refuse_damaged(folder, below=None)
        return None
    if b"cannot use bare repository" in answer.err:
        return None
    raise failure(folder, answer)


def _inside(folder: Path, git_dir: bytes, top: bytes) -> Place:
    place = Place(Path(os.fsdecode(git_dir)), Path(os.fsdecode(top)))
    _refuse_damaged(folder, below=place.top)
    return place


def _refuse_damaged(folder: Path, *, below: Path | None) -> None:
    """Git walks past a `.git` that it cannot read, up to whatever lies further out.

    That would say "no repository" of a damaged one, or report the state of another.
    """
    here = folder.resolve()
    for parent in (here, *here.parents):
        if parent == below:
            return
        dot_git = parent / ".git"
        if _holds_a_repository(dot_git) and run_git(folder, "--git-dir", str(dot_git), "rev-parse").code != 0:
            raise GitError(
                f"the git repository at {parent} is damaged, unreadable, or its `.git` link is broken",
                hint="check its permissions; run `git fsck` to check for damage, or `git worktree repair` "
                "in the main work tree if it was moved",
            )


def _holds_a_repository(dot_git: Path) -> bool:
    """An empty `.git` folder means nothing: sandboxes put one there to shield the name."""
    if not os.access(dot_git, os.F_OK):
        return False
    if dot_git.is_file() or not os.access(dot_git, os.X_OK):
        return True
    return any((dot_git / name).exists() for name in ("HEAD", "config", "objects"))


def operation_in(git_dir: Path) -> GitOperation | None:
    # A rebase goes through merges and cherry-picks of its own, so it is asked about first.
    if (git_dir / "rebase-merge").is_dir():
        return "rebase"
    if (git_dir / "rebase-apply").is_dir():
        return "am" if (git_dir / "rebase-apply" / "applying").exists() else "rebase"
    if (git_dir / "MERGE_HEAD").exists():
        return "merge"
    if _has_ref(git_dir, "CHERRY_PICK_HEAD"):
        return "cherry-pick"
    if _has_ref(git_dir, "REVERT_HEAD"):
        return "revert"
    return _sequence(git_dir) or ("bisect" if (git_dir / "BISECT_LOG").exists() else None)


def _has_ref(git_dir: Path, name: str) -> bool:
    """A ref is a file, unless the repository keeps them in a table that only git can read."""
    if not (git_dir / "reftable").is_dir():
        return (git_dir / name).exists()
    return run_git(git_dir, "--git-dir=.", "rev-parse", "--verify", "--quiet", name).code == 0


def _sequence(git_dir: Path) -> GitOperation | None:
    """A pick or revert of several commits, between two of them."""
    todo = git_dir / "sequencer" / "todo"
    try:
        steps = todo.read_bytes() if todo.is_file() else b""
    except OSError:
        return None
    if steps.startswith((b"pick ", b"p ")):
        return "cherry-pick"
    return "revert" if steps.startswith(b"revert ") else None


# ── what is not committed ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Change:
    paths: tuple[bytes, ...]
    kind: str
    staged: bool = False
    submodule: bool = False
    index: bytes = b""
    """What the index holds in place of HEAD's, as modes and ids: of a conflict all three sides."""


@dataclass(frozen=True)
class _Status:
    branch: str | None
    commit: str | None
    upstream: str | None
    ahead: int | None
    behind: int | None
    changes: tuple[_Change, ...]
    staged: str | None
    """Fingerprint of what is in the index in place of HEAD's."""
    excludes: tuple[Path, ...]
    silenced_filters: frozenset[str]
    """Those that the settings name, and that git was not allowed to run."""


def _read_status(folder: Path, *options: str) -> _Status:
    settings = settings_with_submodules(folder)[0]
    environment = guarded(base_environment(), settings, users_filters=False)
    answer = run_git(
        folder,
        *options,
        # Whatever its settings say of the stamps that prove a file unchanged, and of submodules.
        *("-c", "core.trustctime=true", "-c", "core.checkStat=default"),
        *("-c", "status.showUntrackedFiles=normal", "status", "--ignore-submodules=none"),
        *("--porcelain=v2", "--branch", "-z", "--untracked-files=normal"),
        # Exact renames alone: anything less needs contents, which a partial clone would download.
        "--find-renames=100%",
        environment=environment,
    )
    if answer.code != 0:
        raise failure(folder, answer)
    headers, changes = _parse_status(answer.out)
    head = headers[b"branch.head"]
    if head == b"(unknown)":
        raise GitError(
            f"the branch checked out in {folder} is damaged: git cannot resolve its commit",
            hint="`git reflog` shows its earlier commits; `git fsck` checks for more damage",
        )
    oid = headers[b"branch.oid"]
    upstream = headers.get(b"branch.upstream")
    ahead, behind = _ahead_behind(headers.get(b"branch.ab"))
    return _Status(
        branch=None if head == b"(detached)" else encode_path(head),
        commit=None if oid == b"(initial)" else oid.decode(),
        upstream=None if upstream is None else encode_path(upstream),
        ahead=ahead,
        behind=behind,
        changes=changes,
        staged=_staged(changes),
        excludes=tuple(_excludes_files(folder, settings)),
        silenced_filters=silenced_filters(environment),
    )


def _uncompared(top: Path, status: _Status) -> set[_Change]:
    """Files that git calls modified because it compared them without the filter that is set for them.

    It compares only what was written to since it last looked, or in the same moment, as after a checkout.
    """
    by_path = {
        change.paths[0]: change
        for change in status.changes
        if change.kind == "modified" and not change.staged and not change.submodule
    }
    if not by_path or not status.silenced_filters:
        return set()
    answer = run_git(top, "check-attr", "--stdin", "-z", "filter", stdin=b"\0".join(by_path))
    told = output(top, answer).split(b"\0")
    filters = zip(told[::3], told[2::3], strict=False)
    return {by_path[path] for path, name in filters if os.fsdecode(name) in status.silenced_filters}


def _ahead_behind(counts: bytes | None) -> tuple[int | None, int | None]:
    """`+1 -2`; missing where the upstream is gone."""
    if counts is None:
        return None, None
    ahead, behind = counts.split()
    return int(ahead), -int(behind)


def _parse_status(output: bytes) -> tuple[dict[bytes, bytes], tuple[_Change, ...]]:
    headers: dict[bytes, bytes] = {}
    changes: list[_Change] = []
    records = iter(output.split(b"\0"))
    for record in records:
        match record[:1]:
            case b"#":
                _, key, value = record.split(b" ", 2)
                headers[key] = value
            case b"1":
                _, code, sub, _, mode, _, _, oid, path = record.split(b" ", 8)
                changes.append(_tracked(code, sub, path, b"%b %b" % (mode, oid)))
            case b"2":
                _, code, sub, _, mode, _, _, oid, _, path = record.split(b" ", 9)
                changes.append(_tracked(code, sub, path, b"%b %b" % (mode, oid), next(records)))
            case b"u":
                _, _, sub, *sides, path = record.split(b" ", 10)
                index = b" ".join(sides)
                changes.append(_Change((path,), "conflicted", submodule=sub[:1] == b"S", index=index))
            case b"?":
                changes.append(_Change((record[2:],), "untracked"))
            case _:
                pass  # the empty end
    return headers, tuple(changes)


def _staged(changes: Iterable[_Change]) -> str | None:
    entries = sorted((one.paths, one.index) for one in changes if one.index)
    return hashlib.sha256(repr(entries).encode()).hexdigest() if entries else None


_KINDS = {
    b"M": "modified",
    b"A": "added",
    b"D": "deleted",
    b"R": "renamed",
    b"C": "copied",
    b"T": "changed in type",
}


def _tracked(code: bytes, sub: bytes, path: bytes, held: bytes, origin: bytes | None = None) -> _Change:
    """`code` is two letters, index and work tree; a dot says unchanged there."""
    index, tree = code[:1], code[1:]
    decisive = b"D" if tree == b"D" else tree if index == b"." else index
    # The origin of a rename is gone from its place; that of a copy is as it was.
    paths = (path, origin) if origin is not None and b"R" in code else (path,)
    staged = index != b"."
    return _Change(paths, _KINDS[decisive], staged, submodule=sub[:1] == b"S", index=held if staged else b"")


def _summary(changes: Iterable[_Change], uncompared: int = 0) -> str | None:
    """`2 modified, 1 untracked; 1 staged`."""
    changes = tuple(changes)
    counts = Counter(change.kind for change in changes)
    counts["possibly modified"] = uncompared
    order = ("conflicted", *_KINDS.values(), "untracked", "possibly modified")
    kinds = ", ".join(f"{counts[kind]} {kind}" for kind in order if counts[kind])
    staged = sum(change.staged for change in changes)
    return (f"{kinds}; {staged} staged" if staged else kinds) or None


def _paths(changes: Iterable[_Change]) -> tuple[str, ...]:
    return tuple(sorted({encode_path(path) for change in changes for path in change.paths}))


# ── what was committed since ───────────────────────────────────────────────────────────────


def _check_start(since: str | None) -> None:
    if since in (None, BEFORE_FIRST_COMMIT) or re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", since):
        return
    raise InvalidInputError(
        f"not a full commit id: {since!r}", hint="`git rev-parse --verify REVISION` prints it"
    )


def _committed_since(folder: Path, since: str | None, head: str | None) -> tuple[_Change, ...] | None:
    """Where HEAD's tree differs from the one at the start; None if the start is gone."""
    if since is None or head is None or since == head:
        return ()
    if since == BEFORE_FIRST_COMMIT:
        answer = run_git(folder, "ls-tree", "-r", "-z", "--full-tree", head)
        return _parse_tree(output(folder, answer))
    answer = run_git(folder, "diff-tree", "-r", "-z", "--raw", "--no-renames", since, head, "--")
    if answer.code != 0 and run_git(folder, "cat-file", "-e", f"{since}^{{commit}}").code != 0:
        return None
    return _parse_tree_difference(output(folder, answer))


def committed_of(
    folder: Path, paths: Iterable[str], *, besides: str | None, since: datetime
) -> frozenset[str]:
    """Which of these files a commit names that was made since then, on whichever branch.

    `besides`: the commit that was checked out then, and with it all that came before. What HEAD has besides
    is new; of other branches, and where that commit is gone, the time tells.
    """
    asked = list(paths)
    recent = f"--since={since.isoformat()}"
    known = () if besides is None else ("--not", besides)
    found = _named_in_commits(folder, asked, "HEAD", *known)
    if found is None:
        known, found = (), frozenset[str]()
    if left := [path for path in asked if path not in found]:
        every = ("HEAD", "--branches", "--remotes", "--tags", *known)
        found |= _named_in_commits(folder, left, recent, *every) or frozenset()
    return found


def _named_in_commits(folder: Path, paths: Sequence[str], *commits: str) -> frozenset[str] | None:
    """None where one of the commits is not there."""
    words = ("log", "--format=", "--name-only", "--no-renames", "-z", *commits)
    answer = run_git(folder, *words, "--", *(_literal(decode_path(path)) for path in paths))
    if answer.code != 0:
        return None
    named = {encode_path(name.strip(b"\n")) for name in answer.out.split(b"\0")}
    return frozenset(
        path
        for path in paths
        if path in named or any(one.startswith(f"{path.rstrip('/')}/") for one in named)
    )


_SUBMODULE = b"160000"


def _parse_tree(output: bytes) -> tuple[_Change, ...]:
    """`mode type id<TAB>path`, ended by a NUL each."""
    entries = (record.split(b"\t", 1) for record in output.split(b"\0")[:-1])
    return tuple(_Change((path,), "added", submodule=facts.startswith(_SUBMODULE)) for facts, path in entries)


def _parse_tree_difference(output: bytes) -> tuple[_Change, ...]:
    """`:mode mode id id letter` and the path, in turns, ended by a NUL each."""
    records = output.split(b"\0")[:-1]
    return tuple(
        _Change((path,), _KINDS[facts[-1:]], submodule=_SUBMODULE in facts[1:].split()[:2])
        for facts, path in zip(records[::2], records[1::2], strict=True)
    )


# ── changing a repository ─────────────────────────────────────────────────────────────────────────

# Commands that change a repository, above all one: the commit that a pause may make.


def commit_files(folder: Path, paths: Sequence[Path], message: str) -> str:
    """Commit exactly these files, ignored ones too, and return the commit.

    Whatever else is staged or changed stays as it is. Files that HEAD already holds as they
    are make no new commit. On failure the index holds what it held before.
    """
    if not paths:
        raise InvalidInputError("no files to commit")
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
        raise GitError(f"{folder} is not in a git work tree", hint="run `git init` there first")
    operation = operation_in(place.git_dir)
    if operation is not None:
        raise GitError(f"a {operation} is in progress", hint=f"finish or abort the {operation} first")
    return place


def _name_in_tree(top: Path, path: Path) -> bytes:
    """The name as the index has it. Symlinks on the way are followed, a link itself is not."""
    if path.is_dir() and not path.is_symlink():
        raise InvalidInputError(f"{path} is a folder; give the files in it")
    try:
        relative = (path.parent.resolve() / path.name).relative_to(top)
    except ValueError as error:
        raise InvalidInputError(f"{path} is outside the repository at {top}") from error
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
    (b"index.lock", "another git process is running here; if none is, remove the lock file named above"),
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


def _users_own(git_dir: str | None, settings: Sequence[GitSetting]) -> dict[str, str]:
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
        hint=advice or "fix what git reports, then commit the files yourself with `git add -f`",
    )
