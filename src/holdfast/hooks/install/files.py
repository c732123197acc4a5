"""How an agent's settings file is changed: seen first, kept beside, replaced whole, mode and all."""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from holdfast.base.durable import make_folder, storage_errors, sync_folder, write_new
from holdfast.base.errors import InvalidInputError

_NEW_FILE, _NEW_FOLDER = 0o644, 0o755
_BACKUP = ".holdfast-backup"


@dataclass(frozen=True)
class FileChange:
    """A file as it is and as it shall be; None where it is not there."""

    path: Path
    before: str | None
    after: str | None
    backup: str | None = None
    """What the copy beside the file shall hold; None: no copy is left."""
    within: Path | None = None
    """Folders below this one were made for the file, and go with it once they are empty."""

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        return "".join(
            difflib.unified_diff(
                _lines(self.before),
                _lines(self.after),
                str(self.path) if self.before is not None else os.devnull,
                str(self.path) if self.after is not None else os.devnull,
            )
        )

    def apply(self) -> None:
        if not self.is_needed:
            return
        target = self.path.resolve()  # a link stays a link: people keep these files elsewhere
        with storage_errors(f"write {self.path}"):
            _keep(backup_path(self.path), self.backup, _mode(target))
            if self.after is None:
                self.path.unlink(missing_ok=True)
                self._remove_empty_folders()
            else:
                make_folder(target.parent, _NEW_FOLDER)
                _replace(target, self.after, _mode(target))

    def _remove_empty_folders(self) -> None:
        folder = self.path.parent
        with contextlib.suppress(OSError):
            while self.within in folder.parents:
                folder.rmdir()
                folder = folder.parent


def backup_path(path: Path) -> Path:
    return path.with_name(path.name + _BACKUP)


def read_text(path: Path) -> str | None:
    """The file's text, ends of lines as they are; None where there is no file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # of a pipe nobody might ever write to
            raise InvalidInputError(f"{path} is not a regular file", hint="move it away")
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"{path}: byte {error.start} is not valid UTF-8", hint="fix the file; nothing was changed"
        ) from None
    except OSError as error:
        raise InvalidInputError(f"{path} cannot be read: {error.strerror}") from None


def _lines(text: str | None) -> list[str]:
    lines = (text or "").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return _NEW_FILE


def _keep(path: Path, text: str | None, mode: int) -> None:
    if text is None:
        path.unlink(missing_ok=True)
    else:
        make_folder(path.parent, _NEW_FOLDER)
        _replace(path, text, mode)


def _replace(path: Path, text: str, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write_new(temporary, text.encode())
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


# ── own files ─────────────────────────────────────────────────────────────────────────────────────

# Files that are ours alone: made whole and taken away whole.


def plan_install(path: Path, content: str) -> FileChange:
    return FileChange(path, _known(path), content)


def plan_uninstall(path: Path, within: Path) -> FileChange:
    return FileChange(path, _known(path), None, within=within)


def _known(path: Path) -> str | None:
    """Every file of ours says whose it is; another one at its place is somebody's work."""
    found = read_text(path)
    if found is not None and "holdfast" not in found.lower():
        raise InvalidInputError(f"{path} was not created by Holdfast", hint="move it; nothing was changed")
    return found
