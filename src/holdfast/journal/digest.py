"""What a journal amounts to, in one streaming pass: for the snapshot's section and for `stats`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.base.clock import seconds_between
from holdfast.journal.action import PauseAction

SUMMARY_LENGTH = 10


@dataclass
class Digest:
    action_count: int = 0
    by_type: Counter[str] = field(default_factory=Counter[str])
    by_tool: Counter[str] = field(default_factory=Counter[str])
    first: PauseAction | None = None
    last: PauseAction | None = None
    latest: deque[PauseAction] = field(default_factory=lambda: deque[PauseAction](maxlen=SUMMARY_LENGTH))
    context_high: float = 0.0

    def take(self, actions: Iterable[PauseAction]) -> Digest:
        for action in actions:
            self.add(action)
        return self

    def add(self, action: PauseAction) -> None:
        self.first = self.first or action
        self.last = action
        self.latest.append(action)
        self.action_count += 1
        self.by_type[action.type] += 1
        self.context_high = max(self.context_high, action.context_percentage)
        if action.type == "tool_call":
            self.by_tool[str(action.data.get("tool", "unknown"))] += 1

    @property
    def context_range(self) -> tuple[float, float]:
        if self.first is None or self.last is None:
            return (0.0, 0.0)
        return (self.first.context_percentage, self.last.context_percentage)

    @property
    def context_per_action(self) -> float | None:
        """How much of the window an action took, on average."""
        if self.action_count < 2:
            return None
        start, end = self.context_range
        return (end - start) / (self.action_count - 1)

    @property
    def duration_seconds(self) -> float:
        return span_seconds(self.first, self.last)


def span_seconds(first: PauseAction | None, last: PauseAction | None) -> float:
    """Time between two actions; 0 where a timestamp of another program cannot be read."""
    if first is None or last is None:
        return 0.0
    try:
        return max(0.0, seconds_between(first.timestamp, last.timestamp))
    except ValueError:
        return 0.0
