"""The hook program's frame: whatever happens inside, the agent goes on."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST = 8
"""Seconds after which a hook gives itself up; some moments wait for a snapshot."""
_LONGER = {"SessionStart": 28, "session.created": 28, "session.compacted": 28, "PreCompact": 55}
_LONGER["session.compacting"] = 55
USAGE = "usage: holdfast-hook AGENT EVENT < payload.json\n"


def run(arguments: list[str]) -> int:
    if len(arguments) != 2 or arguments[0] in ("-h", "--help"):
        os.write(2 if len(arguments) != 2 else 1, USAGE.encode())
        return 0
    agent, name = arguments
    _give_up_after(_LONGER.get(name, _LONGEST))
    try:
        return _answered(agent, name)
    except Exception as error:  # noqa: BLE001 - a hook ends here, and may not be felt
        _note(error, agent, name)
        return 0


def _answered(agent: str, name: str) -> int:
    from holdfast.hooks.event import MOMENTS

    data = _stdin()
    if name not in MOMENTS.get(agent, ()):
        return 0  # an agent newer than we are
    from holdfast.hooks.answer import BLOCKED, rendered
    from holdfast.hooks.dispatch import dispatch
    from holdfast.hooks.event import Event

    event = Event(agent, name, data, os.environ)
    answer = dispatch(event)
    output = rendered(event, answer)
    if output:
        _write(1, output)
    if answer.blocked:
        _write(2, answer.blocked + "\n")
        return BLOCKED
    return 0


def _stdin() -> bytes:
    blocks: list[bytes] = []
    while block := os.read(0, 1 << 20):
        blocks.append(block)
    return b"".join(blocks)


def _write(descriptor: int, text: str) -> None:
    view = memoryview(text.encode("utf-8", "replace"))
    while view:
        view = view[os.write(descriptor, view) :]


def _give_up_after(seconds: int) -> None:
    """`signal` itself loads `enum`; its C core is built in."""
    core: Any = __import__("_signal")
    if hasattr(core, "alarm"):  # not on Windows
        core.signal(core.SIGALRM, _give_up)
        core.alarm(seconds)


def _give_up(*_: object) -> None:
    try:
        from holdfast.hooks import trouble
        from holdfast.hooks.event import project_of, state_folder

        state = state_folder(project_of(sys.argv[1], "", os.environ))
        trouble.note(state, f"{' '.join(sys.argv[1:3])}: gave up waiting")
    finally:
        os._exit(0)


def _note(error: Exception, agent: str, name: str) -> None:
    from holdfast.hooks import trouble
    from holdfast.hooks.event import project_of, state_folder

    try:
        state = state_folder(project_of(agent, "", os.environ))
    except OSError:
        return
    trouble.note(state, trouble.describe(error, f"{agent} {name}"))
