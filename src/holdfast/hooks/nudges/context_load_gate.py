"""Before the first edit: name the rules of the project that this agent does not load by itself."""

import os

from holdfast.hooks import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

EDITING_TOOLS = (
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "write_file",
    "replace",
    "edit",
    "write",
    "apply_patch",
)
_GUIDES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", "CONTRIBUTING.md")
_LOADED_BY = {
    "claude": ("CLAUDE.md",),
    "gemini": ("GEMINI.md",),
    "codex": ("AGENTS.md",),
    "opencode": ("AGENTS.md",),
}


def check(event: "Event") -> str | None:
    if event.tool not in EDITING_TOOLS or not notes.create(event.note("edit-gate")):
        return None
    unread = [
        name
        for name in _GUIDES
        if name not in _LOADED_BY[event.agent] and os.path.exists(os.path.join(event.project, name))
    ]
    if not unread:
        return None
    return (
        f"[holdfast] First edit of this session. This project's rules also stand in {', '.join(unread)}, "
        "which your program does not load by itself: read what applies before you go on, if you have not."
    )
