"""The way a run is told to stop: the hub holds the controller, everybody else sees the signal.

A pause and an abort unwind as `BaseException`, so that a node which catches
`Exception` cannot swallow them. A pause may still turn into an abort, never the other way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class FlowInterrupt(BaseException):
    """The run is to stop here."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "")
        self.reason = reason


class FlowPaused(FlowInterrupt):
    """Stop; somebody will resume."""


class FlowAborted(FlowInterrupt):
    """Stop for good."""


class AbortSignal:
    """What a node may look at."""

    __slots__ = ("_listeners", "aborted", "reason", "resumable")

    def __init__(self) -> None:
        self.aborted = False
        self.resumable = False
        self.reason: str | None = None
        self._listeners: list[Callable[[], object]] = []

    def check(self) -> None:
        """Unwind if the run is to stop."""
        if self.aborted:
            raise FlowPaused(self.reason) if self.resumable else FlowAborted(self.reason)

    def add_listener(self, listener: Callable[[], object]) -> None:
        """Called when the signal fires, and once more should a pause turn into an abort."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], object]) -> None:
        self._listeners.remove(listener)

    async def wait(self) -> None:
        """Until the signal fires."""
        if self.aborted:
            return
        fired = asyncio.get_running_loop().create_future()

        def fire() -> None:
            if not fired.done():
                fired.set_result(None)

        self.add_listener(fire)
        try:
            await fired
        finally:
            self.remove_listener(fire)


class AbortController:
    __slots__ = ("signal",)

    def __init__(self) -> None:
        self.signal = AbortSignal()

    def abort(self, *, resumable: bool = False, reason: str | None = None) -> bool:
        """Fire. False where that changes nothing: paused twice, or aborted before."""
        signal = self.signal
        if signal.aborted and (resumable or not signal.resumable):
            return False
        signal.aborted = True
        signal.resumable = resumable
        signal.reason = reason
        for listener in tuple(signal._listeners):  # pyright: ignore[reportPrivateUsage]
            listener()
        return True
