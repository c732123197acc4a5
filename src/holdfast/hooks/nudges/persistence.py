"""Long since anything was recorded: decisions live only in the conversation until they are."""

import os

from holdfast.hooks import pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

_PROMPTS = 20
_SECONDS = 2 * 3_600.0


def check(event: "Event") -> str | None:
    if event.prompts < _PROMPTS or not pace.is_due(event, "persistence", prompts=_PROMPTS):
        return None
    if event.now - _last_record(event) < _SECONDS:
        return None
    pace.spoke(event, "persistence")
    return (
        f"[holdfast] {event.prompts} prompts into this session, and nothing was recorded for hours. State "
        "the decisions made so far and why, in one message: a snapshot picks them up from there."
    )


def _last_record(event: "Event") -> float:
    """When this session began or a session was last written in this project, whichever is later."""
    newest = 0.0
    for path in (
        event.note("who"),
        event.note("settled"),
        os.path.join(event.project, ".holdfast", "sessions", "LATEST-SESSION.txt"),
    ):
        try:
            newest = max(newest, os.stat(path).st_mtime)
        except FileNotFoundError:
            continue
    return newest
