"""How much of what is repeated or random a run does: `HOLDFAST_SOAK`.

1 is the whole sample, as CI runs it. Without a word it is a part of that, another one each time; `make soak`
does many times as much.
"""

from __future__ import annotations

import os
import random

SOAK = float(os.environ.get("HOLDFAST_SOAK", "0.1"))
QUICK = SOAK < 1
"""A part of the sample, in memory, by programs that are forked."""
_chance = random.Random()  # not the one that every test begins anew


def repeated(times: int, *, least: int = 1) -> int:
    """So many times in the whole sample; how many times in this run."""
    return max(least, round(times * SOAK))


def starts_program() -> bool:
    """Whether a program that a test runs is started as its users start it, and not forked.

    In CI a third of the thousands are: what can go wrong in a start goes wrong for many of them.
    """
    return not QUICK and (SOAK >= 10 or _chance.random() < 1 / 3)
