"""Take in what the agent last reported about its context window."""

from holdfast.hooks import usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event

KIND = "housekeeping"


def run(event: "Event", answer: "Answer") -> None:  # noqa: ARG001
    if event.moment == "start" and event.text("source") in ("compact", "clear"):
        usage.forget(event)
    elif event.moment in ("start", "before_tool"):  # no model call since the last look
        event.gauge = usage.last_known(event)
    else:
        event.gauge = usage.measured(event, event.settings) or usage.last_known(event)
