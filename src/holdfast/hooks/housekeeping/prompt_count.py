"""Count the session's prompts; the pace of nudges goes by it."""

from holdfast.hooks import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event

KIND = "housekeeping"


def run(event: "Event", answer: "Answer") -> None:  # noqa: ARG001
    event.prompts = notes.count_up(event.note("prompts"))
