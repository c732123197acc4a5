"""For tests of code that uses Holdfast: a clock that stands still, a store that forgets, sudden deaths."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from holdfast.base.faults import clear_traps, set_trap, watch_points
from holdfast.store.memory import MemoryStore

__all__ = ["FixedClock", "MemoryStore", "SimulatedCrash", "crash_at", "die_at", "points_passed"]


class FixedClock:
    """Shows the time it was set to until it is told to move on."""

    def __init__(self, seconds: float = 1_767_700_800.0) -> None:  # 2026-01-06T12:00:00Z
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


class SimulatedCrash(BaseException):
    """The process is gone; nobody may catch this and go on."""


@contextmanager
def crash_at(point: str, *, after: int = 0) -> Generator[None]:
    """Raise `SimulatedCrash` at a fault point, once it was passed `after` times."""
    set_trap(point, _counting(after, _crash))
    try:
        yield
    finally:
        clear_traps()


def die_at(point: str, *, after: int = 0) -> None:
    """From now on this process gets a SIGKILL at that point: for children of a test."""
    set_trap(point, _counting(after, lambda: os.kill(os.getpid(), signal.SIGKILL)))


@contextmanager
def points_passed() -> Generator[set[str]]:
    """The names of all fault points that the block passes."""
    seen: set[str] = set()
    watch_points(seen)
    try:
        yield seen
    finally:
        watch_points(None)


def _counting(after: int, action: Callable[[], None]) -> Callable[[], None]:
    left = after

    def reached() -> None:
        nonlocal left
        if left == 0:
            action()
        left -= 1

    return reached


def _crash() -> None:
    raise SimulatedCrash
