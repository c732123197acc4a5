"""Named points in the code at which a test can make the process die.

Costs one look at a dictionary where nobody has set one. `holdfast.testing` is the way to use it.
"""

from __future__ import annotations

from collections.abc import Callable

_traps: dict[str, Callable[[], None]] = {}
_seen: set[str] | None = None


def fault_point(name: str) -> None:
    """Here a crash would be interesting."""
    if _seen is not None:
        _seen.add(name)
    if _traps and name in _traps:
        _traps[name]()


def set_trap(name: str, action: Callable[[], None]) -> None:
    _traps[name] = action


def clear_traps() -> None:
    _traps.clear()


def watch_points(seen: set[str] | None) -> None:
    """Collect the names of the points that are passed, or stop doing so."""
    global _seen  # noqa: PLW0603 - one process, one observer
    _seen = seen
