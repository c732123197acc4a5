"""Note who runs this session, so that a later one can tell whether it ended or was killed."""

import os

from holdfast.hooks import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.answer import Answer
    from holdfast.hooks.event import Event

KIND = "housekeeping"


def run(event: "Event", answer: "Answer") -> None:  # noqa: ARG001
    if event.moment != "start" and os.path.exists(event.note("who")):
        return
    notes.ensure_folder(event.folder)
    notes.remove(event.note("ended"))
    if event.moment == "start" and event.text("model"):
        notes.write(event.note("started-with"), event.text("model").encode())
    pid, started = _agent_process(event)
    lines = (event.agent, event.session, event.text("transcript_path"), str(pid), started)
    notes.write(event.note("who"), "\n".join(lines).encode("utf-8", "surrogateescape"))


def _agent_process(event: "Event") -> tuple[int, str]:
    from holdfast.base.process import identify, lasting_parent

    told = event.environ.get("CLAUDE_PID", "") if event.agent == "claude" else ""
    identity = identify(int(told) if told.isdigit() else lasting_parent())
    return identity["pid"], identity["started"] or ""
