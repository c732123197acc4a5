"""Which nudges, guards and housekeeping run at which moment. Each is a file of that name.

A table instead of a look into the folders: an event loads only the files it needs.
"""

HOUSEKEEPING = {
    "presence": (
        "start",
        "prompt",
        "before_tool",
        "after_tool",
        "batch",
        "model",
        "response",
        "status",
        "compact",
    ),
    "prompt_count": ("prompt",),
    "stale_markers": ("start", "end"),
    "usage": ("start", "prompt", "after_tool", "batch", "model", "response", "status", "before_tool"),
    "journal": ("prompt", "after_tool", "response", "incident", "compact"),
    "wind_down": ("prompt", "before_tool", "after_tool", "batch"),
    "file_changes": ("start", "prompt", "before_tool", "response", "incident", "end"),
    "snapshot": ("compact", "end"),
    "resume_context": ("start", "compacted"),
    "status_line": ("status",),
}
RUNNERS_OWN = frozenset(
    ("prompt_count", "journal", "wind_down", "file_changes", "snapshot", "resume_context")
)
"""Housekeeping that the runner of a workflow does itself: the pause of its tasks is not the agent's."""
GUARDS = {
    "dangerous_commands": ("before_tool",),
    "unpinned_program": ("before_tool",),
}
NUDGES = {
    "context_size": ("prompt",),
    "ceremonies": ("prompt",),
    "persistence": ("prompt",),
    "journal_upkeep": ("prompt",),
    "reminders": ("prompt",),
    "version_skew": ("prompt",),
    "machine_resources": ("prompt",),
    "knowledge_growth": ("prompt",),
    "architecture_staleness": ("prompt",),
    "context_load_gate": ("before_tool",),
    "qa_before_commit": ("before_tool",),
    "plan_to_spec": ("before_tool",),
    "post_commit": ("after_tool",),
}

KINDS = {"housekeeping": HOUSEKEEPING, "guards": GUARDS, "nudges": NUDGES}
"""In the order in which they run."""

WORDS = {
    "qa_before_commit": b"commit",
    "post_commit": b"commit",
    "plan_to_spec": b"lan",
}
"""A word without which a payload does not concern that one: its file is not even loaded then."""
