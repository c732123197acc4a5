"""Record what a turn of the agent changes in files, beside it; a tool waits for the look before at most."""

import os
import time

from holdfast.hooks import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event

KIND = "housekeeping"

TURNING = "turning"
"""There while the tree is looked at before a turn. The shell in front of us knows the name, too."""
RECORDING = "recording"
"""There while a turn's changes are watched; says which turn."""
ENDING = "ending"
"""The same, from the turn's end until it is recorded."""
TRANSACTION = "transaction"
NAMED = "named"
"""The files and commands that this turn's tools were called with, a JSON object a line."""

_LONGEST_WAIT = 5.0
_STALE = 60.0
_LONGEST_NAME = 64 * 1024
_NAMING = (
    "file_path",
    "filePath",
    "path",
    "absolute_path",
    "notebook_path",
    "command",
    "cmd",
    "input",
    "patchText",
)


def run(event: "Event", answer: "Answer") -> None:  # noqa: ARG001
    if event.moment == "before_tool":
        _wait_for_the_look(event)
        if os.path.exists(event.note(RECORDING)):
            _note_named(event)
    elif event.moment in ("response", "incident"):
        if os.path.exists(event.note(RECORDING)):
            os.replace(event.note(RECORDING), event.note(ENDING))
            _leave_ending(event, "record")
    elif event.moment == "end":
        if os.path.exists(event.note(TRANSACTION)):
            _leave_ending(event, "finish")
    elif event.settings.record_files and _in_git(event.project):
        if event.moment == "start":
            _leave_to_others(event, "look")
        elif notes.create(event.note(TURNING)) or _is_stale(event.note(TURNING)):
            _leave_to_others(event, "watch", str(event.prompts))


def _leave_to_others(event: "Event", task: str, *words: str) -> None:
    from holdfast.hooks import spawn

    spawn.detach(event, task, *words)


def _leave_ending(event: "Event", task: str) -> None:
    """The agent may be gone before our turn in the side-car comes: others see there that it is no crash."""
    from holdfast.hooks import spawn

    name = (notes.read(event.note(TRANSACTION), 200) or b"").decode("ascii", "replace")
    folder = os.path.join(event.project, ".holdfast", "sidecar")
    mark = os.path.join(folder, f"holdfast-ending-{name}") if os.path.isdir(folder) else ""
    spawn.detach(event, task, holding=mark)


def _wait_for_the_look(event: "Event") -> None:
    """It has the time in which the model thinks; hardly ever is any of it left to wait for."""
    deadline = time.monotonic() + _LONGEST_WAIT
    while os.path.exists(event.note(TURNING)) and time.monotonic() < deadline:
        if _is_stale(event.note(TURNING)):
            notes.remove(event.note(TURNING))
        time.sleep(0.01)


def _note_named(event: "Event") -> None:
    """Whose a change is, where several sessions work in this folder at once, this tells later."""
    given = event.tool_input()
    named = [
        f'"{key}": '.encode() + given[key].replace(b"\n", b" ").replace(b"\r", b" ")
        for key in _NAMING
        if key in given and len(given[key]) <= _LONGEST_NAME
    ]
    if not named:
        return
    from holdfast.hooks.journal import without_secrets

    head = b'{"tool": %b, "cwd": %b, ' % (event.raw("tool_name"), event.raw("cwd"))
    text = (head + b'"given": {' + b", ".join(named) + b"}}").decode("utf-8", "surrogateescape")
    line = without_secrets(text).encode("utf-8", "surrogateescape") + b"\n"
    descriptor = os.open(event.note(NAMED), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def _is_stale(path: str) -> bool:
    """Left by a process that was killed."""
    try:
        return time.time() - os.stat(path).st_mtime > _STALE
    except FileNotFoundError:
        return True


def _in_git(project: str) -> bool:
    """Elsewhere nobody says which files are work, and reading all there are may take for ever."""
    while not os.path.exists(f"{project}/.git"):
        parent = os.path.dirname(project)
        if parent == project:
            return False
        project = parent
    return True
