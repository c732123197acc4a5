"""All items of a file or a folder. Large trees are shared out to a process for each processor."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from holdfast.base.errors import CannotDoError, GitError, InvalidInputError, NotFoundError
from holdfast.base.text import Progress, untold
from holdfast.docaudit.items import CodeItem, analyse
from holdfast.docaudit.languages import SourceError, language_of, read_source
from holdfast.model.git import decode_path, encode_path
from holdfast.project.formats import FOLDER
from holdfast.undo.git import UsersGit

_NOT_OURS = frozenset(
    (b"node_modules", b"bower_components", b"__pycache__", b"site-packages", b"dist", b"build", b"venv")
)
_WORTH_A_PROCESS = 2 << 20
_MOST_PROCESSES = 8
_MOST_SEARCHED = 1_000
_MOST_CALLERS = 5
_LONGEST_CALL = 300


@dataclass
class Analysis:
    items: list[CodeItem] = field(default_factory=list[CodeItem])
    """By file, and in it from top to bottom."""
    files: list[str] = field(default_factory=list[str])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    """Files that were not read, each with the reason."""

    def in_file(self, filepath: str) -> list[CodeItem]:
        return [item for item in self.items if item.filepath == filepath]


def scope_of(project: Path, path: str) -> str:
    """The path below the project's folder, as sessions keep it; `.` for all of it."""
    location = Path(path).absolute()
    if not os.path.lexists(location):
        raise NotFoundError(f"no such file or folder: {path}", hint="give a source file or a folder")
    try:
        inside = location.resolve().relative_to(project.resolve())
    except ValueError:
        raise InvalidInputError(
            f"{path} is outside the project {project}", hint="change to its folder, or pass --project"
        ) from None
    return encode_path(os.fsencode(inside))


def find_files(project: Path, scope: str) -> list[str]:
    """Source files below `scope` that git does not ignore; without git, all but the usual clutter."""
    root, inside = os.fsencode(project), decode_path(scope)
    if os.path.isfile(root + b"/" + inside):  # noqa: PTH113 - bytes
        return [scope]
    names = _unignored(project, inside)
    return sorted({encode_path(name) for name in names if language_of(os.fsdecode(name))})


def _unignored(project: Path, inside: bytes) -> Iterable[bytes]:
    below = b"" if inside == b"." else inside + b"/"
    if any((folder / ".git").exists() for folder in (project, *project.parents)):
        listed: list[bytes] = []
        with suppress(GitError):  # a repository that git cannot read: then all files are looked at
            listed = [name for name in UsersGit(project).list_unignored() or () if name.startswith(below)]
        if listed:
            base = os.fsencode(project) + b"/"
            return [name for name in listed if os.path.isfile(base + name)]  # noqa: PTH113 - bytes
    return _walk(os.fsencode(project), inside)


def _walk(root: bytes, inside: bytes) -> Iterator[bytes]:
    start = root if inside == b"." else root + b"/" + inside
    for folder, folders, names in os.walk(start):
        folders[:] = [
            name
            for name in folders
            if name not in _NOT_OURS and not name.startswith(b".") and name != os.fsencode(FOLDER)
        ]
        for name in names:
            yield os.path.relpath(folder + b"/" + name, root)


def analyse_files(
    project: Path, files: Sequence[str], *, processes: int | None = None, progress: Progress = untold
) -> Analysis:
    shares = _shares(project, files, processes or _processors())
    helpers = [_Helper(project, share) for share in shares[1:]]
    found: dict[str, list[CodeItem] | str] = {}
    try:
        for filepath, items in analyse_each(project, shares[0]):
            found[filepath] = items
            progress("Reading code", len(found), len(files))
        for helper in helpers:
            found.update(helper.result())
            progress("Reading code", len(found), len(files))
    finally:
        for helper in helpers:
            helper.close()
    analysis = Analysis()
    for filepath in files:
        items = found[filepath]
        if isinstance(items, str):
            analysis.skipped[filepath] = items
        else:
            analysis.files.append(filepath)
            analysis.items += items
    return analysis


def analyse_each(project: Path, files: Iterable[str]) -> Iterator[tuple[str, list[CodeItem] | str]]:
    """Each file with its items, or with the reason why it was not read."""
    for filepath in files:
        try:
            yield filepath, analyse(read_source(project, filepath))
        except SourceError as error:
            yield filepath, error.message
        except RecursionError:
            yield filepath, f"{filepath} is nested too deeply"


def find_callers(project: Path, files: Sequence[str], item: CodeItem) -> list[str]:
    """Lines that seem to call it, or to use it as a component, by its name alone; of a few files."""
    name = item.name.partition("#")[0].rpartition(".")[2].strip("\"'")
    called = re.compile(rf"(?<![\w$])(?:new\s+)?{re.escape(name)}\s*\(|<{re.escape(name)}\b")
    found: list[str] = []
    nearest = sorted(files, key=lambda one: one != item.filepath)
    for filepath in nearest[:_MOST_SEARCHED]:
        try:
            lines = read_source(project, filepath).data.decode("utf-8-sig").splitlines()
        except (SourceError, UnicodeDecodeError):
            continue
        for number, line in enumerate(lines, 1):
            inside = filepath == item.filepath and item.line <= number <= item.end_line
            if not inside and called.search(line) and len(line) < _LONGEST_CALL:
                found.append(f"{filepath}:{number}: {line.strip()}")
        if len(found) >= _MOST_CALLERS:
            break
    return found[:_MOST_CALLERS]


def _processors() -> int:
    count = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(count, _MOST_PROCESSES)


def _shares(project: Path, files: Sequence[str], processes: int) -> list[list[str]]:
    """Of about the same size in bytes; one share where more are not worth a process."""
    sizes: dict[str, int] = {}
    base = os.fsencode(project) + b"/"
    for filepath in files:
        with contextlib.suppress(OSError):  # told when it is read
            sizes[filepath] = os.lstat(base + decode_path(filepath)).st_size
    count = max(1, min(processes, sum(sizes.values()) // _WORTH_A_PROCESS))
    shares: list[list[str]] = [[] for _ in range(count)]
    filled = [0] * count
    for filepath in sorted(files, key=lambda one: sizes.get(one, 0), reverse=True):
        least = filled.index(min(filled))
        shares[least].append(filepath)
        filled[least] += sizes.get(filepath, 0)
    return shares


class _Helper:
    """Another process with a share of the files: it ends by itself when nobody reads what it says."""

    def __init__(self, project: Path, files: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.docaudit.search"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C at the terminal is for us to take
        )
        request = orjson.dumps({"project": encode_path(os.fsencode(project)), "files": list(files)})
        assert self._process.stdin is not None  # noqa: S101 - we asked for a pipe
        self._process.stdin.write(request)
        self._process.stdin.close()

    def result(self) -> Iterator[tuple[str, list[CodeItem] | str]]:
        assert self._process.stdout is not None  # noqa: S101 - we asked for a pipe
        answer = self._process.stdout.read()
        if self._process.wait() != 0:
            raise CannotDoError("a worker process ended unexpectedly", hint="run the same command again")
        for filepath, told in orjson.loads(answer):
            yield filepath, told if isinstance(told, str) else [CodeItem(**one) for one in told]

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _analyse_share() -> None:
    """What such a process does: files on standard input, items on standard output."""
    request = orjson.loads(sys.stdin.buffer.read())
    project = Path(os.fsdecode(decode_path(request["project"])))
    sys.stdout.buffer.write(orjson.dumps(list(analyse_each(project, request["files"]))))


if __name__ == "__main__":
    _analyse_share()
