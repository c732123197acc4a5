"""How an agent's settings file is changed: seen first, kept beside, replaced whole, mode and all."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from holdfast._version import __version__
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
    note: str | None = None
    """What the user must know of it."""

    @property
    def is_needed(self) -> bool:
        return self.before != self.after

    @property
    def lines(self) -> tuple[int, int]:
        """How many are added, and how many taken away."""
        changed = [line[:1] for line in self.diff().splitlines()[2:]]
        return changed.count("+"), changed.count("-")

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
        target = (
            self.path.resolve()
        )  # a link stays a link, a dangling one too: people keep these files elsewhere
        with storage_errors(f"write {self.path}"):
            _keep(backup_path(self.path), self.backup, _mode(target))
            if self.after is None:
                target.unlink(missing_ok=True)
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

# Files that are ours alone: made whole and taken away whole. The folders are the agent's, so a file of the
# user's may stand at such a place: it is set aside, and what they made of one of ours is left alone.

_RECORD = ".holdfast-installed.json"


class OwnFiles:
    """What we have below an agent's folder, and the record of what was written there.

    A file is ours if it is what some installation of this version writes, or if it is as the record has it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._record = folder / _RECORD
        self._recorded = read_text(self._record)
        self._hashes = _hashes(self._recorded)

    def install(
        self, texts: Mapping[Path, str], gone: Mapping[Path, str] | None = None
    ) -> tuple[FileChange, ...]:
        """Those with that text are made; those that are gone with this form are taken away."""
        record = json.dumps({self._name(path): _hash(text) for path, text in texts.items()}, indent=2) + "\n"
        made = (self._made(path, text) for path, text in texts.items())
        removed = (self._removed(path, text) for path, text in (gone or {}).items())
        return (*made, *removed, FileChange(self._record, self._recorded, record))

    def uninstall(self, texts: Mapping[Path, str]) -> tuple[FileChange, ...]:
        removed = (self._removed(path, text) for path, text in texts.items())
        return (*removed, FileChange(self._record, self._recorded, None))

    def _made(self, path: Path, text: str) -> FileChange:
        found, kept = read_text(path), read_text(backup_path(path))
        if found is None or found == text or self._is_ours(path, found, text):
            return FileChange(path, found, text, backup=kept)
        if kept not in (None, found):
            raise InvalidInputError(
                f"{path} was not created by Holdfast", hint="move it; nothing was changed"
            )
        note = f"{path} was not created by Holdfast; it is kept as {backup_path(path).name}."
        return FileChange(path, found, text, backup=found, note=note)

    def _removed(self, path: Path, text: str) -> FileChange:
        found = read_text(path)
        if found is None:
            return FileChange(path, None, None)
        if self._is_ours(path, found, text):
            return FileChange(path, found, read_text(backup_path(path)), within=self._folder)
        note = f"{path} is kept: it is not as Holdfast wrote it."
        return FileChange(path, found, found, note=note)

    def _is_ours(self, path: Path, found: str, text: str) -> bool:
        return self._hashes.get(self._name(path)) == _hash(found) or _is_written_by_us(found, text)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def _hashes(record: str | None) -> dict[str, object]:
    try:
        told: object = json.loads(record or "{}")
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, object]", told) if isinstance(told, dict) else {}


def _hash(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _is_written_by_us(found: str, text: str) -> bool:
    """Whether it is that text, from whichever interpreter and of whichever version."""
    pattern = re.escape(text)
    for mine, any_one in ((sys.executable, r"[^\s\"']+"), (f'"{__version__}"', r'"[^"]+"')):
        pattern = pattern.replace(re.escape(mine), any_one)
    return re.fullmatch(pattern, found) is not None
