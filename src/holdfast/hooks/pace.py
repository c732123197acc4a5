"""How often a nudge may speak: it says its pace, and what it said last is noted per session."""

from holdfast.hooks import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event


def is_due(event: "Event", name: str, prompts: int) -> bool:
    """Whether that many prompts have passed since this nudge spoke; a question, it changes nothing."""
    return event.prompts - _told(event).get(name, -prompts) >= prompts


def spoke(event: "Event", name: str) -> None:
    told = _told(event)
    told[name] = event.prompts
    notes.write(event.note("told"), "\n".join(f"{key} {value}" for key, value in told.items()).encode())


def _told(event: "Event") -> dict[str, int]:
    """Read once an event: all nudges of a prompt ask."""
    known = event.told
    if known is None:
        known = {}
        for line in (notes.read(event.note("told"), 4096) or b"").decode("ascii", "replace").split("\n"):
            name, _, number = line.partition(" ")
            if number.isdigit():
                known[name] = int(number)
        event.told = known
    return known
