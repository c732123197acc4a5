"""A plan was approved: written down, it outlives the session; in the conversation, it does not."""

from holdfast.hooks import notes
from holdfast.hooks.payload import text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

_PLANNING_TOOLS = ("ExitPlanMode", "exit_plan_mode", "plan_exit")
_LONG = 600


def check(event: "Event") -> str | None:
    if event.tool not in _PLANNING_TOOLS:
        return None
    if len(text(event.tool_input().get("plan"))) < _LONG or not notes.create(event.note("spec-told")):
        return None
    return (
        "[holdfast] This plan is long enough to outlive the session. Once it is approved, put it into a file "
        "of the project (docs/ or specs/) and work from there: a resumed session will find it."
    )
