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
    try:
        descriptor = os.open(marker, os.O_RDONLY | notes.NO_FOLLOW)
    except FileNotFoundError:
        return None
    try:
        text = os.read(descriptor, 32).strip()
    finally:
        os.close(descriptor)
    return int(text) if text.isdigit() else 0


def turn_on(marker: str) -> None:
    """Quiet from now on; where it is quiet already, the counter starts again."""
    temporary = f"{marker}.{os.getpid()}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | notes.NO_FOLLOW, 0o600)
        os.write(descriptor, b"0")
        os.close(descriptor)
        os.replace(temporary, marker)
    except OSError as error:
        raise _storage_error(f"could not write {marker}: {error.strerror}") from error


def turn_off(marker: str) -> bool:
    """Nudges again; whether it was quiet."""
    try:
        os.unlink(marker)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _storage_error(f"could not remove {marker}: {error.strerror}") from error
    return True


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
        number = _count_prompt(marker)
        if number is None:
            return None
        if prompt:
            data = "\n".join((*known, prompt)[-_REMEMBERED_PROMPTS:]).encode()
            os.pwrite(descriptor, data, 0)
            os.ftruncate(descriptor, len(data))
    if number <= _PROMPTS_WITHOUT_HINT:
        return WORD
    prompts = "1 prompt" if number == 1 else f"{number} prompts"
    return f"{WORD} ({prompts}) — nudges back on with /holdfast:unquiet"


def _count_prompt(marker: str) -> int | None:
    """One prompt more in the marker; None where it is gone."""
    try:
        descriptor = os.open(marker, os.O_RDWR | notes.NO_FOLLOW)
    except FileNotFoundError:
        return None
    try:
        text = os.read(descriptor, 32).strip()
        number = (int(text) if text.isdigit() else 0) + 1
        data = b"%d" % number
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
    finally:
        os.close(descriptor)
    return number


def _storage_error(message: str) -> Exception:
    """Loaded here and not above: hooks only read."""
    from holdfast.base.errors import StorageError

    return StorageError(message)
