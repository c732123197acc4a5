"""Put the context of the paused session into the new one; settle first what a crash left behind."""

from holdfast.hooks import context, notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event

KIND = "housekeeping"


def run(event: "Event", answer: "Answer") -> None:
    source = "compact" if event.moment == "compacted" else event.text("source") or "startup"
    if source == "compact":
        for name in ("advised-auto-pause", "advised-critical", "stopped", "held-since"):
            notes.remove(event.note(name))
        words = context.own_context(event) or context.latest_context(event)
    elif source == "resume":
        context.settle_orphans(event)
        words = context.own_context(event) or context.latest_context(event)
        answer.context += context.asides(event)
    elif source == "startup":
        context.settle_orphans(event)
        words = context.latest_context(event)
        answer.context += context.asides(event)
    else:  # clear: a clean start is what was asked for; fork: the conversation is there already
        return
    if words:
        answer.context.append(words)
