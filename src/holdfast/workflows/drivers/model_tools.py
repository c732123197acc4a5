"""What a model may do in the worktree: read, write, edit and list files, and run commands.

File names are relative to the worktree and stay in it: no absolute names, no `..`, no link
that leads out; git's own folder and Holdfast's are not written. Commands start in the
worktree, under the guard, with a time limit. What a tool has to say is clipped, with a
sign of how much is missing, so that one answer cannot fill the window. A tool answers a
mistake with words rather than by raising: the model reads them and tries otherwise.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Concatenate, ParamSpec

from holdfast.base.text import clipped, one_line
from holdfast.project.formats import FOLDER
from holdfast.workflows.drivers.guarded import Guarded, meaning
from holdfast.workflows.drivers.protocol import Assignment, Report

MOST_CHARACTERS = 16_000
_LARGEST_FILE = 8 << 20
_MOST_LISTED = 500
_NOT_WRITTEN = frozenset((".git", FOLDER))
_NOT_LISTED = _NOT_WRITTEN | {"node_modules", "__pycache__", ".venv"}

_P = ParamSpec("_P")


class ToolRefusedError(Exception):
    """Not done, and why; told to the model."""


def _answered(
    tool: Callable[Concatenate[WorktreeTools, _P], str],
) -> Callable[Concatenate[WorktreeTools, _P], str]:
    @wraps(tool)
    def answer(self: WorktreeTools, /, *args: _P.args, **kwargs: _P.kwargs) -> str:
        try:
            return tool(self, *args, **kwargs)
        except ToolRefusedError as refusal:
            return f"error: {refusal}"
        except OSError as error:
            return f"error: {error.strerror or error}"

    return answer


@dataclass(frozen=True)
class WorktreeTools:
    assignment: Assignment
    report: Report
    command_seconds: float
    most_characters: int = MOST_CHARACTERS

    @property
    def all(self) -> tuple[Callable[..., str], ...]:
        return self.read_file, self.write_file, self.edit_file, self.list_files, self.run_command

    @_answered
    def read_file(self, path: str, first_line: int = 1, line_count: int = 2000) -> str:
        """Read lines of a text file.

        Args:
            path: its name, relative to the worktree.
            first_line: the first line wanted, counted from 1.
            line_count: how many lines at most.
        """
        self.report.say(f"read_file {path}")
        lines = self._content(self._inside(path)).split("\n")
        first = max(1, first_line)
        wanted = lines[first - 1 : first - 1 + max(1, line_count)]
        text = "\n".join(wanted)
        if len(text) > self.most_characters:
            shown = text[: self.most_characters]
            left = len(text) - self.most_characters
            next_line = first + shown.count("\n")
            return f"{shown}\n[… {left} characters left out; read on with first_line={next_line}]"
        after = len(lines) - (first - 1 + len(wanted))
        return f"{text}\n[… {after} lines left out]" if after > 0 else text

    @_answered
    def write_file(self, path: str, content: str) -> str:
        """Write a file anew, with the folders it needs.

        Args:
            path: its name, relative to the worktree.
            content: all of its text.
        """
        self.report.say(f"write_file {path}")
        target = self._for_writing(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        self._put(target, content)
        return f"wrote {len(content)} characters to {path}"

    @_answered
    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace a piece of a text file.

        Args:
            path: its name, relative to the worktree.
            old: the piece as it stands there, long enough to occur only once.
            new: what to put in its place.
        """
        self.report.say(f"edit_file {path}")
        target = self._for_writing(path)
        text = self._content(target, exactly=True)
        found = text.count(old) if old else 0
        if found != 1:
            raise ToolRefusedError(f"the old text occurs {found} times in {path}; it must occur once")
        self._put(target, text.replace(old, new))
        return f"edited {path}"

    @_answered
    def list_files(self, path: str = ".") -> str:
        """List the files in a folder and in all folders below it.

        Args:
            path: the folder, relative to the worktree.
        """
        self.report.say(f"list_files {path}")
        folder = self._inside(path)
        if not folder.is_dir():
            raise ToolRefusedError(f"{path} is not a folder")
        names = list(islice(self._files_below(folder), _MOST_LISTED + 1))
        if len(names) > _MOST_LISTED:
            names[-1] = f"[… more than {_MOST_LISTED} files; list a folder below]"
        return self._clip("\n".join(names)) or "no files"

    @_answered
    def run_command(self, command: str) -> str:
        """Run a shell command in the worktree. Gives its exit code and what it printed.

        Args:
            command: as for /bin/sh; it has nobody to ask and must end by itself.
        """
        self.report.say(f"run_command {clipped(one_line(command), 160)}")
        process = Guarded(["/bin/sh", "-c", command], self.assignment, kind="tool")
        with process:
            code = process.wait(self.command_seconds)
            if code is None:
                process.end()
                how = f"ended after {self.command_seconds:g} s, which is the limit"
            else:
                how = meaning(code)
            printed = process.printed(self.most_characters)
        return f"{how}\n{printed}".rstrip()

    def _inside(self, name: str) -> Path:
        pure = PurePosixPath(name)
        if not name or "\0" in name or pure.is_absolute() or Path(name).is_absolute() or ".." in pure.parts:
            raise ToolRefusedError(f"{name!r}: a name relative to the worktree is needed, without ..")
        root = Path(os.path.realpath(self.assignment.worktree))
        real = Path(os.path.realpath(root / name))
        if not real.is_relative_to(root):
            raise ToolRefusedError(f"{name}: a link there leads out of the worktree")
        return real

    def _for_writing(self, name: str) -> Path:
        path = self._inside(name)
        root = Path(os.path.realpath(self.assignment.worktree))
        parts = path.relative_to(root).parts
        if not parts or any(part.lower() in _NOT_WRITTEN for part in parts):
            raise ToolRefusedError(f"{name} is not to be written")
        return path

    def _content(self, path: Path, *, exactly: bool = False) -> str:
        # Not blocking: a pipe would wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - it is open already
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ToolRefusedError(f"{path.name} is not a file")
            data = file.read(_LARGEST_FILE + 1)
        if len(data) > _LARGEST_FILE:
            raise ToolRefusedError(
                f"{path.name} is larger than {_LARGEST_FILE >> 20} MB; use a command on it"
            )
        try:
            return data.decode()
        except UnicodeDecodeError:
            if exactly:
                raise ToolRefusedError(f"{path.name} is not valid UTF-8 text") from None
            return data.decode(errors="replace")

    def _put(self, path: Path, text: str) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(path, flags, 0o666), "wb") as file:  # noqa: PTH123 - it is open already
            file.write(text.encode("utf-8", "replace"))

    def _files_below(self, folder: Path) -> Iterator[str]:
        root = Path(os.path.realpath(self.assignment.worktree))
        for where, folders, files in os.walk(folder):
            folders[:] = sorted(name for name in folders if name not in _NOT_LISTED)
            for name in sorted(files):
                yield str((Path(where) / name).relative_to(root))

    def _clip(self, text: str) -> str:
        if len(text) <= self.most_characters:
            return text
        left = len(text) - self.most_characters
        return f"{text[: self.most_characters]}\n[… {left} characters left out]"
