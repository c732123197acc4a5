"""Pass on what the user asked to be reminded of with `holdfast remind`; each session hears it once."""

import os

from holdfast.hooks import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"


def check(event: "Event") -> str | None:
    data = notes.read(os.path.join(event.state, "reminders"))
    if not data:
        return None
    heard = (notes.read(event.note("reminded"), 1 << 16) or b"").decode("utf-8", "replace").split("\n")
    pending = [line for line in data.decode("utf-8", "replace").split("\n") if line and line not in heard]
    if not pending:
        return None
    notes.write(event.note("reminded"), "\n".join((*heard, *pending)).encode())
    words = "; ".join(line.partition("\t")[2] or line for line in pending)
    return f"[holdfast] The user asked to be reminded: {words}. (`holdfast remind --done` clears this.)"
