"""Resume contexts as files beside the sessions: prepared when one is settled, only read when one starts."""

import os
import time

from holdfast.hooks.fast import notes, spawn
from holdfast.model import frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent

LIMITS = {"claude": 9_500, "codex": 5_000, "gemini": 20_000, "opencode": 20_000}
"""Characters that each agent takes whole."""
ROOM_FOR_HEADING = 500
_LONGEST_SAVING = 10.0
RECOVERED = "recovered"
"""Names the sessions that this one found killed when it started."""
HANDED_OVER = "HOLDFAST_HANDED_OVER"
"""Names the session whose context a hand-over has put into the first prompt already."""


def context_file(sessions: str, name: str, agent: str) -> str:
    return os.path.join(sessions, f"{name}.context-{LIMITS[agent]}.md")


def own_context(event: "AgentEvent") -> str | None:
    """The context of this very agent session, as last settled."""
    name = (notes.read(event.note("settled"), 100) or b"").decode("ascii", "replace").split("\n")[0]
    return _worded(event, name, frame.WOUND_DOWN) if name else None


def latest_context(event: "AgentEvent") -> str | None:
    """The context of the session paused last in this worktree, unless a live session took it up already."""
    name = _latest(event)
    if not name:
        return None
    holder = _take_up(event, name)
    if holder is not None:
        return (
            f"[holdfast] The paused session {name} of this folder was taken up by another session that is "
            f"still open ({holder}). `holdfast context {name}` prints it if you need it, too."
        )
    if event.environ.get(HANDED_OVER) == name:
        return None
    return _worded(event, name, frame.PAUSED_HERE)


def settle_orphans(event: "AgentEvent") -> None:
    """Make a snapshot of the sessions that were killed: nobody else did.

    The snapshot of one that has just ended is being made beside us: that is waited for, a while.
    """
    begun = time.monotonic()
    notes.remove(event.note(RECOVERED))
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
            "`holdfast context latest` prints it soon."
        )
    names = (notes.read(event.note(RECOVERED)) or b"").decode("ascii", "replace").split()
    others = [f"`holdfast context {name}`" for name in names if name != _latest(event)]
    if others:
        shown = ", ".join(others[-3:])
        told.append(f"[holdfast] {frame.ANOTHER_SESSION} was cut off before its end: {shown} prints it.")
    return told


def _being_saved(event: "AgentEvent") -> bool:
    """Whether a session of this folder has ended, and a process lives that makes its snapshot."""
    folder = os.path.join(event.state, "hooks")
    paths = [os.path.join(folder, name, notes.SETTLING) for name in _names(folder)]
    return any(_is_held(path) for path in paths if os.path.exists(path))


def _is_held(path: str) -> bool:
    from pathlib import Path

    from holdfast.base.durable import is_held

    return is_held(Path(path))


def _was_cut_off(folder: str) -> bool:
    """Whether who settled it is gone, and had not come to its end: that removes the mark first."""
    mark = os.path.join(folder, notes.SETTLING)
    return os.path.exists(mark) and not _is_held(mark) and os.path.exists(mark)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _worded(event: "AgentEvent", name: str, why: str) -> str | None:
    path = context_file(_sessions(event), name, event.agent)
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
    path = os.path.join(_sessions(event), "LATEST-SESSION.txt")
    return (notes.read(path, 100) or b"").decode("ascii", "replace").strip()


def _sessions(event: "AgentEvent") -> str:
    return os.path.join(event.project, ".holdfast", "sessions")


def _take_up(event: "AgentEvent", name: str) -> str | None:
    """Note that this session goes on from that one; the other that does, where one is alive."""
    path = os.path.join(event.state, "hooks", "taken-up")
    with notes.Locked(path) as descriptor:
        words = os.read(descriptor, 1024).decode("utf-8", "replace").split("\n")
        if len(words) == 2 and words[0] == name and words[1] != event.key and _is_open(event, words[1]):
            return words[1]
        data = f"{name}\n{event.key}".encode()
        os.pwrite(descriptor, data, 0)
        os.ftruncate(descriptor, len(data))
    return None


def _is_open(event: "AgentEvent", key: str) -> bool:
    folder = os.path.join(event.state, "hooks", key)
    return not os.path.exists(os.path.join(folder, "ended")) and _is_alive(folder)


def _is_alive(folder: str) -> bool:
    lines = (
        (notes.read(os.path.join(folder, "who"), 8192) or b"").decode("utf-8", "surrogateescape").split("\n")
    )
    if len(lines) != 5 or not lines[3].isdigit():
        return False
    from holdfast.base.process import is_alive

    return is_alive({"pid": int(lines[3]), "started": lines[4] or None})


def _has_orphan(event: "AgentEvent") -> bool:
    """A session whose process ended unexpectedly, or a journal that nobody alive is writing."""
    if os.path.exists(os.path.join(_sessions(event), "ACTIVE-PAUSE.jsonl")):
        return True  # whether it is one is looked at where it can be settled
    return any(True for _ in killed_sessions(os.path.join(event.state, "hooks"), event.key))


def killed_sessions(folder: str, besides: str) -> "Iterator[str]":
    """Folders of sessions that had prompts and are not alive, and did not end, or whose settling did not."""
    for name in _names(folder):
        path = os.path.join(folder, name)
        if name == besides or not os.path.exists(os.path.join(path, "prompts")):
            continue
        if (os.path.exists(os.path.join(path, "ended")) and not _was_cut_off(path)) or _is_alive(path):
            continue
        yield path


if TYPE_CHECKING:
    from collections.abc import Iterator
