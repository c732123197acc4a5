"""Resume contexts as files beside the sessions: prepared when one is settled, only read when one starts."""

import os
import time

from holdfast.hooks.fast import notes, spawn
from holdfast.model import frame
from holdfast.project import formats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent

LIMITS = {"claude": 9_500, "codex": 5_000, "gemini": 20_000, "opencode": 20_000}
"""Characters that each agent takes whole."""
ROOM_FOR_HEADING = 500
_LONGEST_SAVING = 10.0
HANDED_OVER = "HOLDFAST_HANDED_OVER"
"""Names the session whose context a hand-over has put into the first prompt already."""


def context_file(sessions: str, name: str, agent: str) -> str:
    return os.path.join(sessions, f"{name}.context-{LIMITS[agent]}.md")


def own_context(event: "AgentEvent") -> str | None:
    """The context of this very agent session, as last settled."""
    name = formats.parse_settled(notes.read(event.note(formats.SETTLED), 100))[0]
    return _worded(event, name, frame.WOUND_DOWN) if name else None


def latest_context(event: "AgentEvent") -> str | None:
    """The context of the session paused last in this worktree, unless a live session took it up already."""
    name = _latest(event)
    if not name:
        return None
    holder = _take_up(event, name)
    if holder is not None:
        return (
            f"[holdfast] The paused session {name} of this folder was resumed by another session that is "
            f"still open ({holder}). `holdfast context {name}` prints it if you also need it."
        )
    if event.environ.get(HANDED_OVER) == name:
        return None
    return _worded(event, name, frame.PAUSED_HERE)


def settle_orphans(event: "AgentEvent") -> None:
    """Make a snapshot of the sessions that were killed: nobody else did.

    The snapshot of one that has just ended is being made beside us: that is waited for, a while.
    """
    begun = time.monotonic()
    notes.remove(event.note(formats.RECOVERED))
    while _being_saved(event) and time.monotonic() < begun + _LONGEST_SAVING:
        time.sleep(0.02)
    if _has_orphan(event):
        spawn.run(event, "recover", wait=begun + 25.0 - time.monotonic())


def asides(event: "AgentEvent") -> list[str]:
    """A word on the sessions that were just there to settle and whose work is not what is handed over."""
    told: list[str] = []
    if _being_saved(event):
        told.append(
            f"[holdfast] {frame.ANOTHER_SESSION} ended just now and is still being saved: "
            "`holdfast context latest` will print it shortly."
        )
    names = (notes.read(event.note(formats.RECOVERED)) or b"").decode("ascii", "replace").split()
    others = [f"`holdfast context {name}`" for name in names if name != _latest(event)]
    if others:
        shown = ", ".join(others[-3:])
        told.append(f"[holdfast] {frame.ANOTHER_SESSION} was interrupted: {shown} prints it.")
    return told


def _being_saved(event: "AgentEvent") -> bool:
    """Whether a session of this folder has ended, and a process lives that makes its snapshot."""
    folder = formats.hooks_folder(event.state)
    paths = [os.path.join(folder, name, formats.SETTLING) for name in _names(folder)]
    return any(_is_held(path) for path in paths if os.path.exists(path))


def _is_held(path: str) -> bool:
    from pathlib import Path

    from holdfast.base.durable import is_held

    return is_held(Path(path))


def _was_cut_off(folder: str) -> bool:
    """Whether who settled it is gone, and had not come to its end: that removes the mark first."""
    mark = os.path.join(folder, formats.SETTLING)
    return os.path.exists(mark) and not _is_held(mark) and os.path.exists(mark)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _worded(event: "AgentEvent", name: str, why: str) -> str | None:
    path = context_file(formats.sessions_folder(event.project), name, event.agent)
    data = notes.read(path)
    if data is None:
        spawn.run(event, "contexts", name, wait=20.0)
        data = notes.read(path)
    if data is None:
        return None
    heading = (
        f"[holdfast] {why} ({name}). What follows was recorded then; check it against the files before "
        f"relying on it. More: `holdfast history {name} decisions|errors|tasks|journal`.\n\n"
    )
    commit, _, compiled = data.decode("utf-8", "replace").partition("\n")
    return (heading + _moved_on(event, commit) + compiled)[: LIMITS[event.agent]]


def _moved_on(event: "AgentEvent", commit: str) -> str:
    """A word of warning where the repository is at another commit than it was then."""
    now = _head(os.path.join(event.project, ".git"))
    if not now or not commit or now == commit:
        return ""
    before = commit[:10]
    return f"{frame.MOVED_ON}{before} to {now[:10]}: `git log {before}..`.\n\n"


def _head(git: str) -> str:
    """The commit that is checked out, where that can be told without starting git; else nothing."""
    head = (notes.read(os.path.join(git, "HEAD"), 512) or b"").decode("utf-8", "replace").strip()
    reference = head.removeprefix("ref: ")
    if reference == head:
        return head
    return (notes.read(os.path.join(git, reference), 100) or b"").decode("ascii", "replace").strip()


def _latest(event: "AgentEvent") -> str:
    path = formats.latest_file(event.project)
    return (notes.read(path, 100) or b"").decode("ascii", "replace").strip()


def _take_up(event: "AgentEvent", name: str) -> str | None:
    """Note that this session goes on from that one; the other that does, where one is alive."""
    path = os.path.join(formats.hooks_folder(event.state), formats.TAKEN_UP)
    with notes.Locked(path) as descriptor:
        taken, holder = formats.parse_taken_up(os.read(descriptor, 1024))
        if taken == name and holder not in ("", event.key) and _is_open(event, holder):
            return holder
        notes.overwrite(descriptor, formats.render_taken_up(name, event.key))
    return None


def _is_open(event: "AgentEvent", key: str) -> bool:
    folder = os.path.join(formats.hooks_folder(event.state), key)
    return not os.path.exists(os.path.join(folder, formats.ENDED)) and _is_alive(folder)


def _is_alive(folder: str) -> bool:
    process = formats.process_in_who(notes.read(os.path.join(folder, formats.WHO), 8192))
    if process is None:
        return False
    from holdfast.base.process import is_alive

    return is_alive({"pid": process[0], "started": process[1]})


def _has_orphan(event: "AgentEvent") -> bool:
    """A session whose process ended unexpectedly, or a journal that nobody alive is writing."""
    if os.path.exists(formats.journal_file(event.project)):
        return True  # whether it is one is looked at where it can be settled
    return any(True for _ in killed_sessions(formats.hooks_folder(event.state), event.key))


def killed_sessions(folder: str, besides: str) -> "Iterator[str]":
    """Folders of sessions that had prompts and are not alive, and did not end, or whose settling did not."""
    for name in _names(folder):
        path = os.path.join(folder, name)
        if name == besides or not os.path.exists(os.path.join(path, formats.PROMPTS)):
            continue
        if (os.path.exists(os.path.join(path, formats.ENDED)) and not _was_cut_off(path)) or _is_alive(path):
            continue
        yield path


if TYPE_CHECKING:
    from collections.abc import Iterator
