"""The plugin that calls us was written by another version of the program."""

import os

from holdfast.hooks import notes, pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"


def check(event: "Event") -> str | None:
    plugin = plugin_version(event)
    if not plugin:
        return None
    from holdfast._version import __version__

    if plugin == __version__ or not pace.is_due(event, "version_skew", prompts=50):
        return None
    pace.spoke(event, "version_skew")
    return (
        f"[holdfast] The plugin is of version {plugin}, the program of {__version__}. "
        f"`holdfast install {event.agent}` brings them together."
    )


def plugin_version(event: "Event") -> str:
    """As the plugin says through a variable, or in its manifest; empty where there is none."""
    told = event.environ.get("HOLDFAST_PLUGIN_VERSION")
    if told:
        return told
    root = event.environ.get("CLAUDE_PLUGIN_ROOT")
    data = notes.read(os.path.join(root, ".claude-plugin", "plugin.json")) if root else None
    if data is None:
        return ""
    from holdfast.hooks.payload import members, text

    manifest = members(data)
    return text(manifest.get("version")) if text(manifest.get("name")) == "holdfast" else ""
