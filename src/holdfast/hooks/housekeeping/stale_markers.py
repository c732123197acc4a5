"""Remove notes of sessions that nobody will come back to."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event

KIND = "housekeeping"

_STALE = 14 * 86_400.0
_STALE_TEMPORARY = 3_600.0


def run(event: "Event", answer: "Answer") -> None:  # noqa: ARG001
    before = event.now - _STALE
    for path in _entries(os.path.join(event.state, "hooks")):
        if os.path.isdir(path) and path != event.folder and _newest(path) < before:
            _remove_folder(path)
    for path in _entries(event.state):
        name = os.path.basename(path)
        is_marker = name.startswith("quiet-") and not name.endswith(".tmp")
        if (is_marker and _changed(path) < before) or (
            name.endswith(".tmp") and _changed(path) < event.now - _STALE_TEMPORARY
        ):
            os.unlink(path)


def _entries(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except FileNotFoundError:
        return []


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return float("inf")


def _newest(folder: str) -> float:
    return max(map(_changed, (folder, *_entries(folder))))


def _remove_folder(folder: str) -> None:
    for path in _entries(folder):
        os.unlink(path)
    os.rmdir(folder)
