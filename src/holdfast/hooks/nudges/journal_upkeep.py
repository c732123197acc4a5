"""A wind-down that has been open for long, or that somebody else left open, wants to be finished."""

import os

from holdfast.hooks import pace
from holdfast.hooks.winding import journal_path, winding_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

_OPEN_FOR_LONG = 24 * 3_600.0
_LARGE = 20 * 1024 * 1024


def check(event: "Event") -> str | None:
    try:
        found = os.stat(journal_path(event))
    except FileNotFoundError:
        return None
    if not pace.is_due(event, "journal_upkeep", prompts=20):
        return None
    untouched = event.now - found.st_mtime
    if untouched < _OPEN_FOR_LONG and found.st_size < _LARGE:
        return None
    pace.spoke(event, "journal_upkeep")
    whose = "This session's" if winding_down(event) else "Another session's"
    return (
        f"[holdfast] {whose} wind-down journal is {_size(found.st_size)} and was last written "
        f"{untouched / 3600:.0f} h ago. `holdfast winddown finalize` makes it a snapshot."
    )


def _size(count: int) -> str:
    return f"{count / 1_048_576:.1f} MB" if count >= 1_048_576 else f"{max(1, count // 1024)} kB"
