"""Where a project's files live: `.holdfast/`, private, and invisible to git."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.base.durable import private_folder, private_folders, storage_errors
from holdfast.base.errors import ForeignFolderError
from holdfast.project import formats
from holdfast.project.formats import FOLDER
from holdfast.project.trust import Trust, data_home, nearest_project


@dataclass(frozen=True)
class ProjectLayout:
    """Names only; nothing is made until `ensure`. A foreign folder counts as none (see `project.trust`)."""

    root: Path
    home: Path | None = None
    """The data folder of the user whose mark counts; the environment's where none is given."""

    @property
    def trust(self) -> Trust:
        return Trust(str(self.home or ""))

    @property
    def folder(self) -> Path:
        return Path(self.trust.folder_of(str(self.root)))

    @property
    def sessions(self) -> Path:
        return self.folder / formats.SESSIONS

    @property
    def state(self) -> Path:
        return self.folder / formats.STATE

    @property
    def sidecar(self) -> Path:
        return self.folder / formats.SIDECAR

    @property
    def config(self) -> Path:
        return self.folder / formats.CONFIG

    @property
    def journal(self) -> Path:
        return self.sessions / formats.JOURNAL

    @property
    def has_waiting(self) -> bool:
        """Whether there are sessions that the database has not taken yet, or pauses that were interrupted."""
        waiting = (formats.UNINDEXED, formats.STAGING, formats.COMMIT)
        return any(any(self.sessions.glob(f"{prefix}*")) for prefix in waiting)

    @property
    def foreign_because(self) -> str | None:
        return self.trust.foreign_because(str(self.root))

    def ensure(self) -> ProjectLayout:
        """Make the folders, a program's new project as well; hooks have looked whether theirs is still there.

        Raises where the folder is foreign: nothing is written into it either.
        """
        with storage_errors(f"make the folder {self.root / FOLDER}"):
            self.root.mkdir(parents=True, exist_ok=True)
            self.trust.make_own(str(self.root))
            reason = self.foreign_because
        if reason:
            raise ForeignFolderError(f"{self.root / FOLDER} is ignored: {reason}")
        private_folders(self.sessions, self.state)
        return self

    def ensure_scratch(self, name: str = "") -> Path:
        """A folder for what the running work itself needs, such as an agent's conversation or a log.

        Work in a folder whose `.holdfast` is foreign goes on: it is in the user's data folder then.
        """
        if not self.foreign_because:
            return private_folder(self.ensure().state / name)
        from hashlib import sha256

        digest = sha256(os.fsencode(self.root.absolute())).hexdigest()[:16]
        return private_folder((self.home or Path(data_home())) / "scratch" / digest / name)


def find_project(start: Path) -> Path:
    return Path(nearest_project(str(start)))
