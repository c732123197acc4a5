"""From the auto-pause level on, record what happens: tool calls, prompts, responses, incidents."""

from holdfast.hooks import notes
from holdfast.hooks.winding import winding_down

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event

KIND = "housekeeping"

_RETRY_AFTER = 60.0
"""Seconds; another session's wind-down may be in the way of ours for long."""


def run(event: "Event", answer: "Answer") -> None:  # noqa: ARG001
    if not winding_down(event) and not _begun(event):
        return
    from holdfast.hooks import journal

    kind, data = _action(event)
    share = event.gauge.share if event.gauge else _last_share(event)
    journal.append(event, kind, data, share)


def _begun(event: "Event") -> bool:
    """Begin a wind-down where the window is full enough; whether there is one now."""
    gauge = event.gauge
    if gauge is None or gauge.share < event.settings.auto_pause or event.moment == "compact":
        return False
    held = notes.read(event.note("held-since"), 32) or b"0"
    if event.now - float(held) < _RETRY_AFTER:
        return False
    from holdfast.hooks import spawn

    model = (notes.read(event.note("model"), 200) or b"").decode("utf-8", "replace")
    words = (repr(min(1.0, gauge.share)), str(gauge.tokens), str(gauge.window), model)
    spawn.run(event, "begin", *words, wait=6.0)
    if winding_down(event):
        return True
    notes.write(event.note("held-since"), repr(event.now).encode())
    return False


def _last_share(event: "Event") -> float:
    from holdfast.hooks.usage import last_known

    known = last_known(event)
    return known.share if known else 0.0


def _action(event: "Event") -> tuple[str, str]:
    from holdfast.hooks import journal
    from holdfast.hooks.payload import quoted

    if event.moment == "after_tool":
        return "tool_call", journal.tool_data(event)
    if event.moment == "prompt":
        return "user_message", journal.text_data("prompt", event.text("prompt"))
    if event.moment == "response":
        said = event.text("last_assistant_message") or event.text("prompt_response")
        return "assistant_response", journal.text_data("text", said)
    what = event.text("error") or event.text("trigger")
    return "system_event", f'{{"event": {quoted(event.name)}, "detail": {quoted(what)}}}'
