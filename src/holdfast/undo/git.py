"""What undo asks git: in its own repository with nothing of the user's, in the user's as the user set it.

Which files the user's git ignores, and whether it may read a repository at all, is for the user's own
settings to say; a repository's own `core.excludesFile` does not count.
"""

from __future__ import annotations

import marshal
import os
import stat
import struct
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO

from holdfast.base import git
from holdfast.base.errors import GitError
from holdfast.project.formats import FOLDER
from holdfast.undo import users_index
from holdfast.undo.state import KnownFile
from holdfast.undo.users_index import (
    IndexedFile,
    Survey,
    SurveyedPart,
    names_in,
    readable_count,
    usual_modes,
)

_TIME_LIMIT = 300.0
_PLACING = ("core.worktree", "core.bare")
_RENAMING = ("core.ignorecase", "core.precomposeunicode")
_CONVERTING = ("filter", "ident", "working-tree-encoding")
_ATTRIBUTES = b".gitattributes"
_PORTION = 200
_COLLAPSED = ("--exclude-standard", "--directory")
_OURS = os.fsencode(FOLDER) + b"/"
_MOST_FOLDERS = 100
SHARED_FROM = 5_000
"""So many files are worth a process or two."""
_MOST_PROCESSES = 4


@dataclass
class TreeSurvey:
    """A tree as the user's index tells of it, and all of which that cannot be said."""

    index: bytes
    modes: tuple[int, int]
    """Of all files of which nothing else is said: of plain and of executable ones."""
    others: list[bytes]
    """Files that git does not know and does not ignore; repositories with a slash at the end."""
    ignored: list[bytes]
    """Files and whole folders that git ignores."""
    odd: dict[bytes, IndexedFile | None] = field(default_factory=dict[bytes, IndexedFile | None])
    """Files to be looked at; with stamp, size and id where their content needs no reading for it."""
    folders: dict[bytes, int] = field(default_factory=dict[bytes, int])
    inside: set[bytes] = field(default_factory=set[bytes])
    """Folders in these."""


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
        self._settings = git.read_settings(settings.out) if settings.code == 0 else []
        users = [
            one.value for one in self._settings if one.name == "core.excludesfile" and not one.is_foreign
        ]
        self._excludes = users[-1] if users else _default_place(self._environment, "ignore")
        self._environment = git.with_settings(self._environment, [("core.excludesFile", self._excludes)])

    @property
    def covers_root(self) -> bool:
        """Whether git's work tree is around the root: settings may say that it is another folder, or none."""
        return not self._is_placed or self._told_of_place().startswith(b"true\n")

    @property
    def _is_placed(self) -> bool:
        return any(one.name in _PLACING and one.value != "false" for one in self._settings)

    def _told_of_place(self) -> bytes:
        """Whether we are in the work tree, and by which path, each on its line."""
        return self._ask("rev-parse", "--is-inside-work-tree", "--show-prefix").out

    def list_unignored(self) -> list[bytes] | None:
        """What git would look at, ignored files left out; None where there is no repository."""
        if not self.covers_root:
            return None
        done = self._ask("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        if done.code != 0 and b"not a git repository" in done.err:
            return None  # a folder that is called .git
        return _names(git.output(self._root, done))

    def find_ignored(self, folders: Iterable[bytes], *options: str) -> set[bytes]:
        """Those of these folders that git would not look into."""
        listed = b"\0".join(b"./" + one for one in folders)  # `:x` alone would be more than a name
        done = self._run("check-ignore", "-z", "--stdin", *options, stdin=listed)
        return {name.removeprefix(b"./") for name in _names(done.out)}

    def list_ignored(self) -> list[bytes]:
        """Files and whole folders that git ignores."""
        return _names(self._ask("ls-files", "-z", "--others", "--ignored", *_COLLAPSED).out)

    def survey(self, now: float, keep_index: Callable[[bytes], None]) -> TreeSurvey | None:
        """What the user's index tells of the tree; None where there is none that can be read for it.

        A large one is handed to `keep_index`, which waits for the disk, while other processes work.
        """
        place = next((one for one in self.ignore_sources() if one.name == "index"), None)
        if place is None or not place.is_file() or self._has_other_ids or not self._is_top:
            return None
        try:
            with place.open("rb") as index:  # git puts another in its place at any time
                surveyed = self._survey_by(index, now, keep_index)
        except (OSError, struct.error, ValueError, IndexError, EOFError):
            return None
        if surveyed is None:
            return None
        data, modes, parts = surveyed
        if not all(is_whole for *_, is_whole in parts):
            return None
        odd: dict[bytes, IndexedFile | None] = {}
        folders: dict[bytes, int] = {}
        for its_odd, its_folders, *_ in parts:
            odd |= its_odd
            folders |= its_folders
        strange = [one for one in self._strange_in(parts) if one.rstrip(b"/") not in folders]
        others, ignored = self._list_unknown(strange)
        inside = {one[:-1] for one in strange if one.endswith(b"/")}.union(*(part[2] for part in parts))
        odd |= dict.fromkeys(self._converted_in(data, others))
        return TreeSurvey(data, modes, others, ignored, odd, folders, inside)

    def _survey_by(
        self, index: IO[bytes], now: float, keep_index: Callable[[bytes], None]
    ) -> tuple[bytes, tuple[int, int], list[SurveyedPart]] | None:
        times = os.fstat(index.fileno()).st_mtime_ns, int(now * 1_000_000_000)
        data = index.read()
        count = readable_count(data)
        if not count:
            return None
        base = os.fsencode(self._root) + b"/"
        modes = usual_modes(data, count, base)
        if count >= SHARED_FROM:
            with _surveying(index, base, modes, times, count) as answers:
                keep_index(data)  # at the same time, as this is
                return data, modes, answers()
        part = Survey(data, base, modes, times)
        part.run(0, count, alone=False)
        return data, modes, [part.found]

    def _strange_in(self, parts: Sequence[SurveyedPart]) -> list[bytes]:
        """Names in the tree that the index does not know; folders with a slash at the end.

        A folder's files may be in two parts: what neither of them knows is strange.
        """
        if any(one.name in _RENAMING and one.value == "true" for one in self._settings):
            # A name here may be another one in the index. Git tells no folder that has a file's place there.
            return self._list("--others", "--directory") + _taking_places(parts)
        found: dict[bytes, set[bytes]] = {}
        for _, folders, _, strange, _ in parts:
            for folder in folders:
                here = strange.get(folder, set[bytes]())
                found[folder] = found[folder] & here if folder in found else here
        names = (folder + b"/" + name if folder else name for folder, here in found.items() for name in here)
        return sorted(
            name + suffix
            for name in names
            if name.rpartition(b"/")[2] != b".git" and (suffix := self._suffix_of(name)) is not None
        )

    def _suffix_of(self, name: bytes) -> bytes | None:
        """None for what git does not look at, like a pipe."""
        try:
            mode = os.lstat(os.fsencode(self._root) + b"/" + name).st_mode
        except OSError:
            return None
        if stat.S_ISDIR(mode):
            return b"/"
        return b"" if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else None

    @property
    def _is_top(self) -> bool:
        """Whether the names in the index are those below the root."""
        if not (self._root / ".git").exists():
            return False
        return not self._is_placed or self._told_of_place() == b"true\n\n"

    @property
    def _has_other_ids(self) -> bool:
        formats = [one.value for one in self._settings if one.name == "extensions.objectformat"]
        return bool(formats) and formats[-1] != "sha1"

    def _list_unknown(self, strange: Iterable[bytes]) -> tuple[list[bytes], list[bytes]]:
        """Of what git does not know: what it would look at, and what it ignores.

        Each of the two lists would take git a walk through the tree. Only folders that are strange to it, and
        not ignored as a whole, are walked for both.
        """
        names = [one for one in strange if not one.startswith(_OURS)]
        ignored = self.find_ignored(names, "--no-index") if names else set[bytes]()
        folders = [one for one in names if one.endswith(b"/") and one not in ignored]
        if len(folders) > _MOST_FOLDERS:
            return self._list("--others", "--exclude-standard"), self.list_ignored()
        others = [one for one in names if one not in ignored and not one.endswith(b"/")]
        if folders:
            places = ["--", *map(os.fsdecode, folders)]
            others += self._list("--others", "--exclude-standard", *places)
            ignored.update(self._list("--others", "--ignored", *_COLLAPSED, *places))
        return others, sorted(ignored)

    def _list(self, *options: str) -> list[bytes]:
        return _names(git.output(self._root, self._ask("ls-files", "-z", *options)))

    def _converted_in(self, data: bytes, others: Iterable[bytes]) -> set[bytes]:
        """Files that are another thing in the work tree than in git; mostly no attribute says so of any."""
        named = [one for one in others if one.endswith(_ATTRIBUTES)]
        names = list[bytes]()
        if _ATTRIBUTES in data or data[7] == 4:
            names = names_in(data)
            named += [one for one in names if one.endswith(_ATTRIBUTES)]
        places = [self._root / os.fsdecode(one) for one in named]
        places += [
            Path(one.value).expanduser() for one in self._settings if one.name == "core.attributesfile"
        ]
        places += [self._root / ".git" / "info" / "attributes", Path("/etc/gitattributes")]
        places += [Path(_default_place(self._environment, "attributes"))]
        if not any(word in text for place in places for text in [_text_of(place)] for word in _CONVERTING):
            return set()
        return self._converted(names or names_in(data))

    def wrong_sizes(self, files: Mapping[bytes, KnownFile]) -> set[bytes]:
        """Those whose content in git has another size than they had here: line ends, mostly."""
        sizes = self._sizes(one.oid for one in files.values())
        pairs = zip(files.items(), sizes, strict=True)
        return {path for (path, one), size in pairs if size != str(one.size).encode()}

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


def _taking_places(parts: Iterable[SurveyedPart]) -> list[bytes]:
    """Folders where the index has a file; not those where it has a repository, which is nothing strange."""
    replacing = ((name, strange) for *_, names, strange, _ in parts for name in names)
    places = ((name, *name.rpartition(b"/")[::2], strange) for name, strange in replacing)
    return [name + b"/" for name, folder, own, strange in places if own in strange.get(folder, ())]


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


def _default_place(environment: Mapping[str, str], name: str) -> str:
    home = Path(environment.get("HOME", os.devnull))
    return str(Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "git" / name)


def _text_of(place: Path) -> str:
    try:
        return place.read_text(errors="replace") if place.is_file() else ""
    except OSError:
        return ""


@contextmanager
def _surveying(
    index: IO[bytes], base: bytes, modes: tuple[int, int], times: tuple[int, int], count: int
) -> Generator[Callable[[], list[SurveyedPart]]]:
    """Processes that share the tree, as many as there are processors, up to what is of use."""
    shares = max(1, min(os.cpu_count() or 1, _MOST_PROCESSES))
    bounds = [count * number // shares for number in range(shares + 1)]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for first, last in pairwise(bounds):
            numbers = map(str, (first, last, *modes, *times))
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-I", "-S", users_index.__file__, os.fsdecode(base), *numbers],
                    stdin=index,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            )
        yield lambda: [marshal.loads(one.communicate(timeout=_TIME_LIMIT)[0]) for one in processes]  # noqa: S302 - our own process
    finally:
        for one in processes:
            one.kill()
            one.communicate()


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
