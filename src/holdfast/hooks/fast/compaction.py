"""Where this agent will compact this session: as set, as it was told, as seen earlier, or by the table."""

import os

from holdfast.hooks.fast import notes
from holdfast.hooks.fast.payload import NotAnObjectError, amount, mapping, members, number
from holdfast.model.thresholds import compaction_point
from holdfast.project import formats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent

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
    if event.agent == "claude":
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
        return min(lowered, compaction_point("claude", (), "", window))
    return compaction_point("claude", (), "", window) if own.isdigit() else 0


def _told_codex(event: "AgentEvent") -> int:
    home = event.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    for line in (notes.read(os.path.join(home, "config.toml"), 1 << 16) or b"").split(b"\n"):
        name, _, value = line.partition(b"=")
        if name.strip() == b"model_auto_compact_token_limit":
            digits = value.partition(b"#")[0].strip().replace(b"_", b"")
            return int(digits) if digits.isdigit() else 0
    return 0


def _told_gemini(event: "AgentEvent", window: int) -> int:
    home = event.environ.get("GEMINI_CLI_HOME") or os.path.expanduser("~")
    try:
        settings = members(notes.read(os.path.join(home, ".gemini", "settings.json"), 1 << 16) or b"")
    except NotAnObjectError:  # none, or one with comments
        return 0
    share = amount(mapping(settings.get("model")).get("compressionThreshold"))
    return int(window * share) if share <= 1 else 0
