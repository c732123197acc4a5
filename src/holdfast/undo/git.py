"""What undo asks git: in its own repository with nothing of the user's, in the user's as the user set it.

Which files the user's git ignores, and whether it may read a repository at all, is for the user's own
settings to say; a repository's own `core.excludesFile` does not count.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.base import git
from holdfast.base.errors import GitError
from holdfast.undo.users_index import UsersIndex, read_index

_TIME_LIMIT = 300.0
_CONVERTING = ("filter", "ident", "working-tree-encoding")
_PORTION = 200


def run_git(folder: Path, *arguments: str) -> bytes:
    """In the repository at `folder`; a failure is a `GitError`."""
    done = _ask(folder, f"--git-dir={folder}", *arguments)
    if done.code != 0:
        raise GitError(
            f"git {arguments[0]} failed: {git.reason(done)}",
            hint="run `holdfast doctor` to check the installation",
        )
    return done.out


class UsersGit:
    """The user's repository around a work tree: which files of it count."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._environment: Mapping[str, str] = git.base_environment()
        settings = git.run_git(root, *git.LIST_SETTINGS, environment=self._environment)
        found = git.read_settings(settings.out) if settings.code == 0 else []
        users = [one.value for one in found if one.name == "core.excludesfile" and not one.is_foreign]
        self._excludes = users[-1] if users else _default_excludes(self._environment)
        self._environment = git.with_settings(self._environment, [("core.excludesFile", self._excludes)])

    def list_unignored(self) -> list[bytes] | None:
        """What git would look at, ignored files left out; None where there is no repository."""
        done = self._ask("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        if done.code != 0 and b"not a git repository" in done.err:
            return None  # a folder that is called .git
        return _names(git.output(self._root, done))

    def find_ignored(self, folders: Iterable[bytes]) -> set[bytes]:
        """Those of these folders that git would not look into."""
        listed = b"\0".join(b"./" + one for one in folders)  # `:x` alone would be more than a name
        done = self._run("check-ignore", "-z", "--stdin", stdin=listed)
        return {name.removeprefix(b"./") for name in _names(done.out)}

    def list_ignored(self) -> list[bytes]:
        """Files and whole folders that git ignores."""
        done = self._ask("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        return _names(done.out)

    def index(self) -> UsersIndex | None:
        """Of the files that hold to the byte what git has of them; None where that cannot be told."""
        place = next((one for one in self.ignore_sources() if one.name == "index"), None)
        found = read_index(place) if place and (self._root / ".git").exists() else None
        if found is None:
            return None
        names = list(found.files)
        sizes = self._sizes(one.oid for one in found.files.values())
        other = {
            path
            for path, one, size in zip(names, found.files.values(), sizes, strict=True)
            if size != str(one.size).encode()
        }
        return found.without({*other, *self._converted(names)})

    def _sizes(self, oids: Iterable[str]) -> list[bytes]:
        listed = "".join(f"{oid}\n" for oid in oids).encode()
        done = self._ask("cat-file", "--buffer", "--batch-check=%(objectsize)", stdin=listed)
        return git.output(self._root, done).splitlines()

    def _converted(self, names: Sequence[bytes]) -> set[bytes]:
        """Files that are another thing in the work tree than in git, whatever their size."""
        done = self._ask("check-attr", "-z", "--stdin", *_CONVERTING, stdin=b"\0".join(names))
        fields = git.output(self._root, done).split(b"\0")
        return {
            name for name, value in zip(fields[::3], fields[2::3], strict=False) if value != b"unspecified"
        }

    def read_blobs(self, oids: Iterable[str]) -> Iterator[bytes]:
        """What these objects hold, those that are there; in portions, for there may be many."""
        wanted = list(oids)
        for start in range(0, len(wanted), _PORTION):
            listed = "".join(f"{oid}\n" for oid in wanted[start : start + _PORTION]).encode()
            yield from _blobs(self._ask("cat-file", "--batch", stdin=listed).out)

    def ignore_sources(self) -> list[Path]:
        """Files outside of the tree that have a say in what git lists."""
        names = ("index", "info/exclude", "config")
        excludes = Path(self._excludes).expanduser()
        if (self._root / ".git").is_dir():
            return [excludes, *(self._root / ".git" / name for name in names)]
        words = [word for name in names for word in ("--git-path", name)]
        done = self._ask("rev-parse", *words)
        return [excludes, *(self._root / os.fsdecode(name) for name in done.out.splitlines())]

    def _ask(self, *arguments: str, stdin: bytes = b"") -> git.GitResult:
        return self._run("--literal-pathspecs", *arguments, stdin=stdin)

    def _run(self, *arguments: str, stdin: bytes = b"") -> git.GitResult:
        return git.run_git(
            self._root,
            *arguments,
            stdin=stdin,
            environment=self._environment,
            time_limit=_TIME_LIMIT,
        )


def _blobs(output: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(output):
        end = output.index(b"\n", position)
        head = output[position:end].split(b" ")
        position = end + 1
        if len(head) == 3 and head[1] == b"blob":
            size = int(head[2])
            yield output[position : position + size]
            position += size + 1


def _default_excludes(environment: Mapping[str, str]) -> str:
    home = Path(environment.get("HOME", os.devnull))
    return str(Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "ignore")


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
