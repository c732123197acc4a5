"""The only place that reads the wall clock. Doors hand a `Clock` down; tests hand a fixed one.

Hooks load this, so it loads nothing but `time`.
"""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable  # noqa: F401 - in the text below
    from datetime import datetime
    from typing import TypeAlias

Clock: "TypeAlias" = "Callable[[], float]"
"""Seconds since the epoch."""

system_clock: Clock = time.time


def iso(seconds: float) -> str:
    """`2026-01-06T12:00:00.250Z`: UTC, milliseconds; sorts as text.

    Built from `time` alone, since importing `datetime` would double what a hook costs.
    """
    milliseconds = int(seconds * 1000)
    whole, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{rest:03d}Z"


def to_datetime(seconds: float) -> "datetime":
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, tz=UTC)


def seconds_between(start: str, end: str) -> float:
    """Seconds from one ISO timestamp to another; both may come from another program."""
    from datetime import UTC, datetime

    def moment(text: str) -> datetime:
        parsed = datetime.fromisoformat(text)
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)

    return (moment(end) - moment(start)).total_seconds()
