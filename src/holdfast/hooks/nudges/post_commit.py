"""After a commit: have its reason stand in the conversation, where a snapshot finds it; note the commit."""

from holdfast.hooks import notes
from holdfast.hooks.nudges.qa_before_commit import is_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

_EVERY = 5


def check(event: "Event") -> str | None:
    if event.name == "PostToolUseFailure" or not is_commit(event.command()):
        return None
    number = notes.count_up(event.note("commits"))
    if number % _EVERY != 1:
        return None
    return (
        "[holdfast] Committed. If this commit settles a decision (an approach chosen, one rejected), say so "
        "in a sentence with the reason: the next session is told of decisions, not of diffs."
    )
