"""The files every session loads whole have grown so large that they crowd out the work."""

import os

from holdfast.hooks import pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

FILES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", ".claude/CLAUDE.md", "CLAUDE.local.md", "CONTEXT.md")
_LARGE = 40_000


def check(event: "Event") -> str | None:
    if not pace.is_due(event, "knowledge_growth", prompts=200):
        return None
    large = [f"{name} ({size // 1000} kB)" for name in FILES if (size := _size(event, name)) > _LARGE]
    if not large:
        return None
    pace.spoke(event, "knowledge_growth")
    return (
        f"[holdfast] Loaded into every session and grown large: {', '.join(large)}. "
        "Suggest to the user to move what is seldom needed into files that are read on demand."
    )


def _size(event: "Event", name: str) -> int:
    try:
        return os.stat(os.path.join(event.project, name)).st_size
    except OSError:
        return 0
