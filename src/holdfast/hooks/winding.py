"""Where the wind-down journal is, and whether this session has one going."""

import os

from holdfast.hooks import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event


def journal_path(event: "Event") -> str:
    return os.path.join(event.project, ".holdfast", "sessions", "ACTIVE-PAUSE.jsonl")


def winding_down(event: "Event") -> str:
    """The name of this session's own wind-down; empty where it has none."""
    return (notes.read(event.note("winding"), 100) or b"").decode("ascii", "replace").strip()
