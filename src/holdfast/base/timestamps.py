"""Moments as text. Apart from `holdfast.base.clock`, whose types a hook cannot afford to load."""

import time


def iso(seconds: float) -> str:
    """`2026-01-06T12:00:00.250Z`: UTC, milliseconds; sorts as text.

    Built from `time` alone, since importing `datetime` would double what a hook costs.
    """
    milliseconds = int(seconds * 1000)
    whole, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{rest:03d}Z"
