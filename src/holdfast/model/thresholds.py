"""The shares of the context window at which something happens: the only place that has the numbers.

Hooks load this, so it loads nothing. `model.policy` says what the numbers mean.
"""

LEVELS = {"caution": 0.70, "warning": 0.85, "auto_pause": 0.90, "critical": 0.95}
"""Where each level begins unless the user says otherwise, from the lowest to the highest."""

WORKFLOW_PAUSE = 0.85
"""Where a workflow pauses if neither its plan nor the user says it: before the auto-pause level, because
the running task goes on to its end, and the pause itself needs room."""


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
