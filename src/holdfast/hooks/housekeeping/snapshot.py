"""Make a snapshot before a compaction (the agent waits for it) and at the session's end."""

from holdfast.hooks import notes, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event

KIND = "housekeeping"

_WAIT = 50.0


def run(event: "Event", answer: "Answer") -> None:
    notes.ensure_folder(event.folder)
    transcript = event.text("transcript_path")
    if event.moment == "end":
        notes.write(event.note("ended"), event.text("reason").encode() or b"end")
        spawn.detach(event, "settle", "end", transcript, holding=event.note(notes.SETTLING))
        return
    if not spawn.run(event, "settle", "compact", transcript, wait=_WAIT):
        raise TimeoutError("the snapshot before compaction was not made in time")
    if event.agent == "opencode":  # what it says here stands in the summary's instructions
        from holdfast.hooks.context import own_context

        context = own_context(event)
        if context:
            answer.context.append(context)
