"""The shares of the context window at which something happens: the only place that has the numbers.

Hooks load this, so it loads nothing. `model.policy` says what the numbers mean.
"""

LEVELS = {"caution": 0.70, "warning": 0.85, "auto_pause": 0.90, "critical": 0.95}
"""Where each level begins unless the user says otherwise, from the lowest to the highest. Hooks count from
the compaction point: what an agent has beyond it is never used."""

COMPACTION = (
    # agent, from version, model, share of the window, tokens kept free of it
    ("claude-code", (2, 0), "", 1.0, 33_000),
    ("claude-code", (2, 0), "claude-haiku", 1.0, 0),  # goes on until the API refuses
    ("claude-code", (2, 0), "claude-sonnet-4-5", 1.0, 0),
    ("codex", (0, 40), "", 0.9, 0),
    ("gemini", (0, 20), "", 0.5, 0),
    ("opencode", (1, 0), "", 1.0, 32_000),
)
"""Where each agent empties its window by itself, as seen with the real ones. The row of the longest name that
fits the model holds, and of those the newest that the agent's version has reached."""
_LEAST_SHARE = 0.5


def compaction_point(agent: str, version: tuple[int, ...], model: str, window: int) -> int:
    """Tokens at which the agent compacts; the whole window where it never does, or nobody knows."""
    rows = [
        (len(prefix), since, share, free)
        for whose, since, prefix, share, free in COMPACTION
        if whose == agent and model.startswith(prefix) and (not version or version >= since)
    ]
    if not rows:
        return window
    _, _, share, free = max(rows)
    return max(int(window * share) - free, int(window * _LEAST_SHARE))


WORKFLOW_PAUSE = 0.85
"""Where a workflow pauses if neither its plan nor the user says it: before the auto-pause level, because
the running task goes on to its end, and the pause itself needs room."""

DEFAULT_PRIORITY = 100
"""Of a workflow whose plan does not say it: there is room on both sides."""


def placed_levels(given: dict[str, float]) -> dict[str, float]:
    """All levels: those the user gave as they are, the others as near to their defaults as these allow.

    Whether the given ones rise is for the caller to check.
    """
    names = list(LEVELS)
    placed: dict[str, float] = {}
    for index, name in enumerate(names):
        lower = [given[other] for other in names[:index] if other in given]
        higher = [given[other] for other in names[index + 1 :] if other in given]
        placed[name] = given[name] if name in given else max([min([LEVELS[name], *higher]), *lower])
    return placed
