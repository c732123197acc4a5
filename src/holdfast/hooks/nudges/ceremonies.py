"""Was the paused session taken up, and was the last one wrapped up? Asked once, early in a session."""

import os

from holdfast.hooks import notes, pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

_ASKED_BY_PROMPT = 3
_RECENT = 7 * 86_400.0


def check(event: "Event") -> str | None:
    if event.prompts > _ASKED_BY_PROMPT or not pace.is_due(event, "ceremonies", prompts=10_000):
        return None
    sessions = os.path.join(event.project, ".holdfast", "sessions")
    latest = os.path.join(sessions, "LATEST-SESSION.txt")
    try:
        paused = os.stat(latest).st_mtime
    except FileNotFoundError:
        return None
    taken = (notes.read(os.path.join(event.state, "hooks", "taken-up"), 1024) or b"").split(b"\n")
    name = (notes.read(latest, 100) or b"").strip().decode("ascii", "replace")
    if taken[:1] == [name.encode()] or event.now - paused > _RECENT:
        return None
    pace.spoke(event, "ceremonies")
    return (
        f"[holdfast] A paused session of this folder was not taken up yet: {name}. "
        "If this work belongs to it, read `holdfast context latest` first."
    )
