"""Files that are ours alone: made whole and taken away whole."""

from __future__ import annotations

from pathlib import Path

from holdfast.base.errors import InvalidInputError
from holdfast.hooks.install.files import Change, read_text


def plan_install(path: Path, content: str) -> Change:
    return Change(path, _known(path), content)


def plan_uninstall(path: Path, within: Path) -> Change:
    return Change(path, _known(path), None, within=within)


def _known(path: Path) -> str | None:
    """Every file of ours says whose it is; another one at its place is somebody's work."""
    found = read_text(path)
    if found is not None and "holdfast" not in found.lower():
        raise InvalidInputError(f"{path} is not ours", hint="move it away; nothing was changed")
    return found
