"""The only place that reads the wall clock. Doors hand a `Clock` down; tests hand a fixed one."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.base.timestamps import iso

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

Clock = Callable[[], float]
"""Seconds since the epoch."""

system_clock: Clock = time.time


def to_datetime(seconds: float) -> datetime:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, tz=UTC)


def seconds_between(start: str, end: str) -> float:
    """Seconds from one ISO timestamp to another; both may come from another program."""
    from datetime import UTC, datetime

    def moment(text: str) -> datetime:
        parsed = datetime.fromisoformat(text)
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)

    return (moment(end) - moment(start)).total_seconds()


__all__ = ["Clock", "iso", "seconds_between", "system_clock", "to_datetime"]
