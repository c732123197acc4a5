"""The settings a hook needs, from a note that is kept beside the session's: reading TOML would take too long.

The note says which settings files it was made from and how they looked. Where they look different
now, `holdfast.hooks.background` reads them again and writes the note anew.
"""

import os

from holdfast.hooks.fast import notes
from holdfast.model.thresholds import LEVELS, placed_levels
from holdfast.project import formats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent


class HookSettings:
    __slots__ = (
        "_given",
        "auto_pause",
        "caution",
        "compact_at",
        "context_window",
        "critical",
        "on_exhaustion",
        "record_files",
        "warning",
    )

    def __init__(self) -> None:
        self._given: dict[str, float] = {}
        self._place_levels()
        self.on_exhaustion = "advise"
        self.record_files = True
        self.context_window = 0
        """0: as the agent or the model's name tells."""
        self.compact_at = 0
        """0: as `holdfast.hooks.fast.compaction` finds out."""

    def take(self, name: str, value: str) -> None:
        if name in LEVELS:
            self._given[name] = float(value)
            self._place_levels()
        elif name == "context_window":
            self.context_window = int(value)
        elif name == "compact_at":
            self.compact_at = int(value)
        elif name == "record_files":
            self.record_files = value.lower() not in ("false", "no", "off", "0")
        elif name == "on_exhaustion" and value in ("advise", "stop"):
            self.on_exhaustion = value

    def _place_levels(self) -> None:
        levels = placed_levels(self._given)
        self.caution, self.warning = levels["caution"], levels["warning"]
        self.auto_pause, self.critical = levels["auto_pause"], levels["critical"]

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        return self.caution, self.warning, self.auto_pause, self.critical


def settings_for(event: "AgentEvent") -> HookSettings:
    """The settings as of now; what cannot be read is left at its default."""
    note = os.path.join(formats.hooks_folder(event.state), formats.HOOK_SETTINGS)
    lines = _current(notes.read(note), event)
    if lines is None:
        lines = _read_again(event, note)
    settings = HookSettings()
    for line in (*lines, *_from_environ(event)):
        name, _, value = line.partition("=")
        try:
            settings.take(name, value)
        except ValueError:
            continue  # the command line complains about it; a hook must not
    return settings


def look(path: str) -> str:
    """How a settings file looks from outside; `-` where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return "-"
    return f"{found.st_mtime_ns}:{found.st_size}"


def _current(data: bytes | None, event: "AgentEvent") -> list[str] | None:
    """The note's lines, if the files it was made from look as they did."""
    if data is None:
        return None
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    home = f"home={event.environ.get('HOLDFAST_HOME', '')}"
    if len(lines) < 3 or lines[0] != home:
        return None
    for line in lines[1:3]:
        path, _, looked = line.rpartition("=")
        if look(path) != looked:
            return None
    return lines[3:]


def _read_again(event: "AgentEvent", note: str) -> list[str]:
    from holdfast.hooks.fast import spawn

    notes.ensure_folder(os.path.dirname(note))
    spawn.run(event, "settings", wait=5.0)
    return _current(notes.read(note), event) or []


def _from_environ(event: "AgentEvent") -> list[str]:
    found: list[str] = []
    for name in (*LEVELS, "on_exhaustion", "record_files", "context_window", "compact_at"):
        variable = f"HOLDFAST_{'LEVELS_' if name in LEVELS else ''}{name.upper()}"
        value = event.environ.get(variable)
        if value:
            found.append(f"{name}={value}")
    return found
