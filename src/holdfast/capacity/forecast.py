"""When the window will be full, judging by how it filled so far."""

from __future__ import annotations

from collections.abc import Sequence


def seconds_until_full(samples: Sequence[tuple[float, float]], *, full: float = 1.0) -> float | None:
    """From (seconds, share) samples in order; None where the share does not grow.

    A least-squares line through all of them: one large tool result must not decide it.
    """
    if len(samples) < 2:
        return None
    mean_time = sum(time for time, _ in samples) / len(samples)
    mean_share = sum(share for _, share in samples) / len(samples)
    spread = sum((time - mean_time) ** 2 for time, _ in samples)
    if spread == 0:
        return None
    slope = sum((time - mean_time) * (share - mean_share) for time, share in samples) / spread
    if slope <= 0:
        return None
    return max(0.0, (full - samples[-1][1]) / slope)
