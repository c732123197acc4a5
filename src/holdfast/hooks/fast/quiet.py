"""Quiet mode: nudges of one agent session are silenced while its marker file exists.

The marker holds the number of prompts since, so presence is the state and the
content only the counter. `os` alone: this is on the path of every hook.
"""

import os

from holdfast.hooks.fast import notes
from holdfast.project.formats import quiet_marker

WORD = "holdfast:quiet"
_PROMPTS_WITHOUT_HINT = 5
_REMEMBERED_PROMPTS = 64


def marker_path(state_folder: str, file_name: str) -> str:
    return os.path.join(state_folder, quiet_marker(file_name))


def is_quiet(marker: str) -> bool:
    return os.path.exists(marker)


def prompts_since(marker: str) -> int | None:
    """Prompts since it became quiet; None where it is not."""
    data = notes.read(marker, 32)
    return None if data is None else notes.count_in(data)


def turn_on(marker: str) -> None:
    """Quiet from now on; where it is quiet already, the counter starts again."""
    try:
        notes.write(marker, b"0")
    except OSError as error:
        raise _storage_error(f"could not write {marker}: {error.strerror}") from error


def turn_off(marker: str) -> bool:
    """Nudges again; whether it was quiet."""
    try:
        return notes.remove(marker)
    except OSError as error:
        raise _storage_error(f"could not remove {marker}: {error.strerror}") from error


def reminder(marker: str, remembered: str, prompt: str) -> str | None:
    """Count this prompt and return its line; None where another hook has done so for the same prompt.

    `remembered` is a file with the newest prompts that were counted. It is also the lock, since the
    marker itself may be replaced at any time.
    """
    notes.ensure_folder(os.path.dirname(remembered))
    with notes.Locked(remembered) as descriptor:
        known = os.read(descriptor, 1 << 16).decode("utf-8", "replace").split("\n")
        if prompt and prompt in known:
            return None
        try:
            number = notes.count_up(marker, os.O_RDWR)
        except FileNotFoundError:
            return None
        if prompt:
            notes.overwrite(descriptor, "\n".join((*known, prompt)[-_REMEMBERED_PROMPTS:]).encode())
    if number <= _PROMPTS_WITHOUT_HINT:
        return WORD
    prompts = "1 prompt" if number == 1 else f"{number} prompts"
    return f"{WORD} ({prompts}) — nudges back on with /holdfast:unquiet"


def _storage_error(message: str) -> Exception:
    """Loaded here and not above: hooks only read."""
    from holdfast.base.errors import StorageError

    return StorageError(message)
