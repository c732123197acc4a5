"""Start the heavy work in a process of its own: with all that is installed, outliving the agent if asked."""

import os
import sys
import time

from holdfast.hooks.fast import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.fast.event import AgentEvent

_SCRIPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "background.py")


def run(event: "AgentEvent", task: str, *words: str, wait: float) -> bool:
    """Do it and wait for its end, at most so many seconds; whether it was done. It goes on after that."""
    child = _start(event, task, words)
    deadline = time.monotonic() + wait
    pause = 0.002
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status == 0
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)


def detach(event: "AgentEvent", task: str, *words: str, holding: str = "") -> None:
    """Do it in a process that is nobody's child: agents kill what is left of theirs.

    Where a file is named, it holds that from before it starts to its end: others can tell it is to come.
    """
    descriptor = notes.hold(holding) if holding else None
    try:
        _detach(event, task, words)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _detach(event: "AgentEvent", task: str, words: tuple[str, ...]) -> None:
    if hasattr(os, "posix_spawn"):
        try:
            _spawn(event, task, words)
        except NotImplementedError:
            pass  # an older system cannot start a session that way
        else:
            return
    child = os.fork()
    if child == 0:
        try:
            _start(event, task, words)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _spawn(event: "AgentEvent", task: str, words: tuple[str, ...]) -> None:
    """The quickest way to start a process; we end right after it and leave it to nobody."""
    nothing = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1, 2)]
    os.posix_spawn(
        sys.executable, _arguments(event, task, words), _environ(), file_actions=nothing, setsid=True
    )


def _arguments(event: "AgentEvent", task: str, words: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-E", _SCRIPT, task, event.agent, event.session, event.project, *words]


def _environ() -> dict[str, str]:
    """Without the mark of a workflow's task: what that leaves behind is ended, and this is no part of it."""
    return {name: value for name, value in os.environ.items() if name != "HOLDFAST_RUN"}


def _start(event: "AgentEvent", task: str, words: tuple[str, ...]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.execve(sys.executable, _arguments(event, task, words), _environ())  # noqa: S606 - our own script
    finally:
        os._exit(1)
