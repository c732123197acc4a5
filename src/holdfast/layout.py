"""Where a project's files live: `.holdfast/`, private, and invisible to git."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from holdfast.durable import private_folder, storage_errors, write_new

FOLDER = ".holdfast"


@dataclass(frozen=True)
class ProjectLayout:
    """Names only; nothing is made until `ensure`."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / FOLDER

    @property
    def sessions(self) -> Path:
        return self.folder / "sessions"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"

    @property
    def journal(self) -> Path:
        return self.sessions / "ACTIVE-PAUSE.jsonl"

    def ensure(self) -> ProjectLayout:
        """Make the folders; the ignore file comes first, so git never sees what follows."""
        private_folder(self.folder)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            # FileExistsError: another process was faster
            with storage_errors(f"write {ignore}"), contextlib.suppress(FileExistsError):
                write_new(ignore, b"*\n")
        private_folder(self.sessions)
        private_folder(self.state)
        return self


def find_project(start: Path) -> Path:
    """The nearest folder upwards that holds `.holdfast` or `.git`; else the folder itself."""
    for candidate in (start, *start.parents):
        if (candidate / FOLDER).is_dir() or (candidate / ".git").exists():
            return candidate
    return start
