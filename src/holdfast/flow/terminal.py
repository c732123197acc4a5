"""Ctrl-C for people who run flows in a terminal: once pauses, twice aborts, three times is Python's own."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from holdfast.base.errors import CannotDoError
from holdfast.flow.hub import Hub


@contextmanager
def pause_on_interrupt(
    hub: Hub, *, tell: Callable[[str], object] | None = None, reason: str = "Ctrl-C"
) -> Generator[None]:
    """Within this, Ctrl-C pauses all sessions of the hub, and a second one aborts them.

    `tell` is given a line for the person at the terminal. A third Ctrl-C raises
    KeyboardInterrupt right where the program is, should a node not let go.
    """
    if threading.current_thread() is not threading.main_thread():
        raise CannotDoError(
            "Ctrl-C is delivered to the main thread, but this is another thread",
            hint="run the hub's event loop in the main thread",
        )
    loop = asyncio.get_running_loop()
    pressed = 0

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 2:
            signal.default_int_handler(number, frame)
        # On the loop's own time: here we may be in the midst of anything.
        loop.call_soon_threadsafe(_pause if pressed == 1 else _abort, hub, reason, tell)

    before: Any = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _pause(hub: Hub, reason: str, tell: Callable[[str], object] | None) -> None:
    if tell is not None:
        tell("pausing after the current step; Ctrl-C again aborts")
    hub.pause(reason)


def _abort(hub: Hub, reason: str, tell: Callable[[str], object] | None) -> None:
    if tell is not None:
        tell("aborting")
    hub.abort(reason=f"{reason} twice")
