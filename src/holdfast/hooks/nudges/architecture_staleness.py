"""The notes on the architecture are much older than the code they describe."""

import os

from holdfast.hooks import pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

FILES = ("ARCHITECTURE.md", "docs/architecture.md", "docs/ARCHITECTURE.md", "DESIGN.md", "docs/design.md")
_STALE = 45 * 86_400.0


def check(event: "Event") -> str | None:
    if event.prompts < 2 or not pace.is_due(event, "architecture_staleness", prompts=200):
        return None
    last_commit = _changed(os.path.join(event.project, ".git", "logs", "HEAD"))
    for name in FILES:
        changed = _changed(os.path.join(event.project, name))
        if changed and last_commit - changed > _STALE:
            pace.spoke(event, "architecture_staleness")
            days = (last_commit - changed) / 86_400
            return (
                f"[holdfast] {name} was last changed {days:.0f} days before the newest commit. "
                "Trust the code over it, and bring it up to date when this work touches what it describes."
            )
    return None


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
