"""The context gauge for the agent's status line."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event

KIND = "housekeeping"

_CELLS = 10


def run(event: "Event", answer: "Answer") -> None:
    gauge = event.gauge
    if gauge is None:
        answer.status = "holdfast: no model call yet"
        return
    filled = min(_CELLS, round(gauge.share * _CELLS))
    words = [f"holdfast {'▰' * filled}{'▱' * (_CELLS - filled)} {gauge.share:.0%}"]
    words.append(f"{_short(gauge.tokens)}/{_short(gauge.window)}")
    settings = event.settings
    for name, bound in (("critical", settings.critical), ("winding down", settings.auto_pause)):
        if gauge.share >= bound:
            words.append(name)
            break
    if os.path.exists(os.path.join(event.state, f"quiet-{event.key}")):
        words.append("quiet")
    answer.status = " · ".join(words)


def _short(tokens: int) -> str:
    return f"{tokens / 1000:.0f}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.1f}M"
