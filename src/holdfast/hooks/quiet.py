"""Quiet mode: nudges of one agent session are silenced while its marker file exists.

The marker holds the number of prompts since, so presence is the state and the
content only the counter. `os` alone: this is on the path of every hook.
"""

from __future__ import annotations

import os

from holdfast.errors import StorageError


def marker_path(state_folder: str, file_name: str) -> str:
    return os.path.join(state_folder, f"quiet-{file_name}")


def is_quiet(marker: str) -> bool:
    return os.path.exists(marker)


def prompts_since(marker: str) -> int | None:
    """Prompts since it became quiet; None where it is not."""
    try:
        descriptor = os.open(marker, os.O_RDONLY)
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
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.write(descriptor, b"0")
        os.close(descriptor)
        os.replace(temporary, marker)
    except OSError as error:
        raise StorageError(f"could not write {marker}: {error.strerror}") from error


def turn_off(marker: str) -> bool:
    """Nudges again; whether it was quiet."""
    try:
        os.unlink(marker)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageError(f"could not remove {marker}: {error.strerror}") from error
    return True
