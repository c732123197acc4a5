"""All triggers: why and when a session is paused. Nothing else decides that; the numbers are in `thresholds`.

A trigger only ever *requests* a pause. The running side honours the request at its
next boundary (between tasks, between tool batches); work in flight is never cut off
by a threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from holdfast.base.errors import InvalidInputError
from holdfast.base.text import counted
from holdfast.model.thresholds import LEVELS, WORKFLOW_PAUSE, placed_levels

Trigger = Literal["pause", "task_complete", "exhaustion", "timeout", "crash", "failure"]


class Level(IntEnum):
    """How full the context window is, in words."""

    NORMAL = 0
    CAUTION = 1
    WARNING = 2
    AUTO_PAUSE = 3
    CRITICAL = 4

    @property
    def label(self) -> str:
        return self.name.lower().replace("_", "-")


@dataclass(frozen=True)
class Levels:
    """Where each level starts, as a share of the context window."""

    caution: float = LEVELS["caution"]
    warning: float = LEVELS["warning"]
    auto_pause: float = LEVELS["auto_pause"]
    critical: float = LEVELS["critical"]

    @classmethod
    def given(cls, levels: Mapping[str, float]) -> Levels:
        """With these levels; the others give way to them. Raises where these do not rise themselves."""
        return cls(**placed_levels(dict(levels)))

    def __post_init__(self) -> None:
        bounds = (self.caution, self.warning, self.auto_pause, self.critical)
        if list(bounds) != sorted(bounds) or not bounds[0] > 0 or bounds[-1] > 1:
            raise InvalidInputError(
                "levels must increase, greater than 0 and at most 1: "
                f"{', '.join(f'{bound:g}' for bound in bounds)}",
                hint="caution < warning < auto_pause < critical, as fractions such as 0.85",
            )

    def at(self, share: float) -> Level:
        bounds = (self.caution, self.warning, self.auto_pause, self.critical)
        return Level(sum(share >= bound for bound in bounds))


@dataclass(frozen=True)
class PausePolicy:
    """When a workflow is paused without anybody asking."""

    exhaustion_at: float = WORKFLOW_PAUSE
    every_tasks: int | None = None
    timeout_seconds: float | None = None
    force_after_seconds: float = 300.0
    """How long a requested pause waits for its boundary before it is forced."""


@dataclass(frozen=True)
class Situation:
    """What a policy looks at: of this session, not of the workflow's whole life."""

    context_share: float | None = None
    tasks_done: int = 0
    seconds_running: float = 0.0


@dataclass(frozen=True)
class PauseCause:
    trigger: Trigger
    reason: str


def pause_cause(policy: PausePolicy, now: Situation) -> PauseCause | None:
    """Why to request a pause at this moment, the most pressing cause first; None to go on.

    The causes not seen here come from outside: somebody asks (`pause`), the process is
    gone (`crash`), or a task failed (`failure`).
    """
    if now.context_share is not None and now.context_share >= policy.exhaustion_at:
        return PauseCause(
            "exhaustion", f"context is {now.context_share:.0%} full (limit {policy.exhaustion_at:.0%})"
        )
    if policy.timeout_seconds is not None and now.seconds_running >= policy.timeout_seconds:
        return PauseCause("timeout", f"the session has run for {policy.timeout_seconds:g} s")
    if policy.every_tasks is not None and now.tasks_done >= policy.every_tasks:
        return PauseCause("task_complete", f"{counted(now.tasks_done, 'task')} done in this session")
    return None


@dataclass(frozen=True)
class Expectation:
    """What a task is likely to need, and what that rests on."""

    seconds: float
    context_share: float | None
    basis: str


def does_not_fit(
    policy: PausePolicy, now: Situation, task_id: str, expected: Expectation | None
) -> PauseCause | None:
    """Why not to start this task in this session any more; None to start it.

    A session that has done nothing yet starts any task: a new one would have no more room.
    """
    if expected is None or now.tasks_done == 0:
        return None
    share = now.context_share
    if share is not None and expected.context_share is not None:
        left = policy.exhaustion_at - share
        if expected.context_share > left:
            return PauseCause(
                "exhaustion",
                f"task {task_id} would not fit: it may add {expected.context_share:.0%} to a context "
                f"that has {max(0.0, left):.0%} left ({expected.basis})",
            )
    if policy.timeout_seconds is not None:
        left = policy.timeout_seconds - now.seconds_running
        if expected.seconds > left:
            return PauseCause(
                "timeout",
                f"task {task_id} would not fit: it may take {expected.seconds:.0f} s and the session has "
                f"{max(0.0, left):.0f} s left ({expected.basis})",
            )
    return None


def must_force(policy: PausePolicy, seconds_waiting: float, limit: float | None = None) -> bool:
    """Whether a requested pause has waited long enough for its boundary; `limit` is the request's own."""
    return seconds_waiting >= (policy.force_after_seconds if limit is None else limit)
