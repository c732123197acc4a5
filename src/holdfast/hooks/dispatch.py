"""One event, all that is due at its moment: housekeeping, then guards, then nudges.

The only place that knows of quiet mode. Each part may fail by itself; that is noted and costs only it.
"""

import sys

from holdfast.hooks.answer import Answer
from holdfast.hooks.quiet import is_quiet, marker_path, reminder
from holdfast.hooks.registry import GUARDS, HOUSEKEEPING, NUDGES, RUNNERS_OWN, WORDS
from holdfast.project.trust import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from holdfast.hooks.event import Event


TASK_OF = "HOLDFAST_WORKFLOW"
"""Names the workflow whose task the agent works off, as drivers tell whatever they start."""


def dispatch(event: "Event") -> Answer:
    answer = Answer()
    if event.foreign:
        _without_folder(event, answer)
        return answer
    is_task = bool(event.environ.get(TASK_OF))
    for name in _due(HOUSEKEEPING, event):
        if is_task and name in RUNNERS_OWN:
            continue
        _attempt(event, "housekeeping", name, lambda module: module.run(event, answer))
    for name in _due(GUARDS, event):
        _attempt(event, "guards", name, lambda module: _guard(event, answer, module))
    if answer.blocked or answer.stop:
        return answer
    if event.moment in _WITH_NUDGES:
        _nudge(event, answer)
    return answer


def _without_folder(event: "Event", answer: Answer) -> None:
    """Guards need no notes. Everything else would read or write a folder that came from elsewhere."""
    for name in _due(GUARDS, event):
        _attempt(event, "guards", name, lambda module: _guard(event, answer, module))
    if event.moment == "status":
        answer.status = "holdfast: not trusted here"
    elif event.moment == "start" or (event.moment == "prompt" and _was_recorded(event)):
        answer.context.append(
            f"[holdfast] The folder .holdfast here is ignored, and nothing is recorded: {event.foreign}. "
            "Only the user may accept it, with `holdfast trust` in a terminal. Do not run that yourself."
        )


def _was_recorded(event: "Event") -> bool:
    """Whether the folder was ours when the session began: what git brought since ended the recording."""
    from os.path import exists, join

    return exists(join(event.project, FOLDER, "state", "hooks", event.key, "who"))


_WITH_NUDGES = frozenset(moment for moments in NUDGES.values() for moment in moments)


def _due(table: dict[str, tuple[str, ...]], event: "Event") -> list[str]:
    return [
        name
        for name, moments in table.items()
        if event.moment in moments and (name not in WORDS or WORDS[name] in event.data)
    ]


def _guard(event: "Event", answer: Answer, module: "ModuleType") -> None:
    if answer.blocked is None:
        answer.blocked = module.check(event)


def _nudge(event: "Event", answer: Answer) -> None:
    marker = marker_path(event.state, event.key)
    if is_quiet(marker):
        if event.moment == "prompt":
            answer.quiet_line = _quiet_line(event, marker)
        return

    def tell(module: "ModuleType") -> None:
        words = module.check(event)
        if words:
            answer.context.append(words)

    for name in _due(NUDGES, event):
        _attempt(event, "nudges", name, tell)


def _quiet_line(event: "Event", marker: str) -> str | None:
    try:
        return reminder(marker, event.note("quiet-prompts"), prompt_identity(event))
    except Exception as error:  # noqa: BLE001 - as below
        _note(event, error, "the quiet reminder")
        return None


def prompt_identity(event: "Event") -> str:
    """What tells two prompts apart, as far as the agent says; empty where every call counts as one."""
    stamp = event.text("prompt_id") or event.text("turn_id") or event.text("message_id")
    return stamp or event.text("timestamp")


def _attempt(event: "Event", kind: str, name: str, use: "Callable[[ModuleType], None]") -> None:
    try:
        use(_loaded(kind, name))
    except Exception as error:  # noqa: BLE001 - a hook's part ends here; the agent must not feel it
        _note(event, error, f"{event.agent} {event.name} {kind}/{name}")


def _note(event: "Event", error: Exception, doing: str) -> None:
    from holdfast.hooks import trouble

    trouble.note(event.state, trouble.describe(error, doing))


def _loaded(kind: str, name: str) -> "ModuleType":
    path = f"holdfast.hooks.{kind}.{name}"
    __import__(path)
    return sys.modules[path]


if TYPE_CHECKING:
    from collections.abc import Callable
