"""When levels are reached: the settings, and where the agent compacts.

The settings come from a note that is kept beside the session's: reading TOML would take too long. The
note says which settings files it was made from and how they looked. Where they look different
now, `holdfast.hooks.background` reads them again and writes the note anew.
"""

import os

from holdfast.hooks.fast import notes
from holdfast.hooks.fast.payload import NotAnObjectError, amount, mapping, members, number, without_comments
from holdfast.model.thresholds import LEVELS, compaction_point, placed_levels
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
        """0: as `point_for` finds out."""

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


# ── where the agent compacts ──────────────────────────────────────────────────────────────────────

# Of this session: as set, as the agent was told, as seen earlier, or by the table.

_KEPT_FOR_OUTPUT = 20_000
_LEAST_SEEN = 0.3
"""A compaction below this share of the window was not for want of room."""


def point_for(event: "AgentEvent", model: str, window: int, tokens: int) -> int:
    set_point = event.settings.compact_at or number(event.fields.get("compact_at"))
    if set_point:
        return min(set_point, window)
    point = _as_the_agent_was_told(event, window) or _seen(event, model, window, tokens)
    point = min(point or compaction_point(event.agent, _version(event), model, window), window)
    # Well beyond the point and not compacted: this one does not do it there.
    return point if tokens <= point + (window - point) // 2 else window


def learn(event: "AgentEvent", model: str, window: int, tokens: int) -> None:
    """This session compacts by itself with so much in its window: the next one is warned before that."""
    if not window or tokens < window * _LEAST_SEEN:
        return
    key = _key(event, model, window)
    others = [line for line in _seen_lines(event) if not line.startswith(key)]
    notes.write(_file(event), b"\n".join([*others[-50:], key + b"%d" % tokens]))


def _seen(event: "AgentEvent", model: str, window: int, tokens: int) -> int:
    key = _key(event, model, window)
    found = [line[len(key) :] for line in _seen_lines(event) if line.startswith(key)]
    seen = int(found[-1]) if found and found[-1].isdigit() else 0
    return seen if tokens <= seen * 1.05 else 0  # further than that: it has changed since


def _seen_lines(event: "AgentEvent") -> list[bytes]:
    return (notes.read(_file(event), 1 << 14) or b"").split(b"\n")


def _key(event: "AgentEvent", model: str, window: int) -> bytes:
    return f"{event.agent} {model or '-'} {window} ".encode()


def _file(event: "AgentEvent") -> str:
    return os.path.join(formats.hooks_folder(event.state), formats.COMPACTIONS)


def _version(event: "AgentEvent") -> tuple[int, ...]:
    told = event.text("version").split(".")
    return tuple(int(part) for part in told) if all(part.isdigit() for part in told) else ()


def _as_the_agent_was_told(event: "AgentEvent", window: int) -> int:
    if event.agent == "claude-code":
        return _told_claude(event, window)
    if event.agent == "codex":
        return _told_codex(event)
    return _told_gemini(event, window) if event.agent == "gemini" else 0


def _told_claude(event: "AgentEvent", window: int) -> int:
    given = event.environ.get
    if given("DISABLE_AUTO_COMPACT") or given("DISABLE_COMPACT"):
        return window
    own = given("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "")
    if own.isdigit() and 0 < int(own) < window:
        window = int(own)
    share = given("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "")
    if share.isdigit() and 0 < int(share) <= 100:
        lowered = (window - _KEPT_FOR_OUTPUT) * int(share) // 100
        return min(lowered, compaction_point("claude-code", (), "", window))
    return compaction_point("claude-code", (), "", window) if own.isdigit() else 0


def _told_codex(event: "AgentEvent") -> int:
    home = event.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    for line in (notes.read(os.path.join(home, "config.toml"), 1 << 16) or b"").split(b"\n"):
        if line.lstrip().startswith(b"["):
            break  # what follows belongs to a profile, which may not be the one in use
        name, _, value = line.partition(b"=")
        if name.strip() == b"model_auto_compact_token_limit":
            digits = value.partition(b"#")[0].strip().replace(b"_", b"")
            return int(digits) if digits.isdigit() else 0
    return 0


def _told_gemini(event: "AgentEvent", window: int) -> int:
    home = event.environ.get("GEMINI_CLI_HOME") or os.path.expanduser("~")
    try:
        data = notes.read(os.path.join(home, ".gemini", "settings.json"), 1 << 16) or b""
        settings = members(without_comments(data.decode("utf-8", "replace")).encode())
    except NotAnObjectError:  # none
        return 0
    share = amount(mapping(settings.get("model")).get("compressionThreshold"))
    return int(window * share) if share <= 1 else 0
