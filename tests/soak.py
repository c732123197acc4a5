"""How much of what is repeated or random a run does: `HOLDFAST_SOAK`.

1 is the whole sample, as CI runs it. Without a word it is a part of that, another one each time; `make soak`
does many times as much.
"""

from __future__ import annotations

import os

SOAK = float(os.environ.get("HOLDFAST_SOAK", "0.1"))
STARTS_EVERY_PROGRAM = SOAK >= 1
"""Whether a program that a test runs is started as its users start it, and not forked."""


def repeated(times: int, *, least: int = 1) -> int:
    """So many times in the whole sample; how many times in this run."""
    return max(least, round(times * SOAK))
