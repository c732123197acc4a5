"""For tests of code that uses Holdfast: a clock that stands still, a store that forgets."""

from __future__ import annotations

from holdfast.store.memory import MemoryStore

__all__ = ["FixedClock", "MemoryStore"]


class FixedClock:
    """Shows the time it was set to until it is told to move on."""

    def __init__(self, seconds: float = 1_767_700_800.0) -> None:  # 2026-01-06T12:00:00Z
        self.seconds = seconds

    def __call__(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds
