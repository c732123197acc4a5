"""Tell the agent how full its context window is, once it is worth knowing."""

from holdfast.hooks import pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"


def check(event: "Event") -> str | None:
    gauge = event.gauge
    if gauge is None or not event.settings.caution <= gauge.share < event.settings.auto_pause:
        return None  # above that the wind-down itself speaks
    is_warning = gauge.share >= event.settings.warning
    name = "context_size.warning" if is_warning else "context_size"
    if not pace.is_due(event, name, prompts=5 if is_warning else 15):
        return None
    pace.spoke(event, name)
    advice = (
        "Finish what is open before starting anything new."
        if is_warning
        else "Prefer targeted reads over whole files."
    )
    fill = f"{gauge.share:.0%} full ({gauge.tokens:,} of {gauge.window:,} tokens)"
    return f"[holdfast] Context is {fill}. {advice}"
