"""What earlier tasks of all workflows tell about the next one: how long, how much of the window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from holdfast.model.entry import TaskFinished, WorkflowPaused
from holdfast.model.policy import Expectation
from holdfast.store.protocol import Store

MOST_TASKS = 500
_FEWEST_TASKS = 5


@dataclass(frozen=True)
class DriverRecord:
    """How tasks of one driver went."""

    driver: str
    tasks: int
    failed: int
    seconds_median: float
    seconds_high: float
    """Four of five took no longer."""
    share_median: float | None
    share_high: float | None
    """Four of five added no more to the context window; None where it does not tell."""


@dataclass(frozen=True)
class Experience:
    drivers: tuple[DriverRecord, ...]

    @classmethod
    def of(cls, store: Store) -> Experience:
        """Out of the newest tasks of all workflows."""
        by_driver: dict[str, list[TaskFinished]] = {}
        for one in store.recent_entries("task_finished", MOST_TASKS):
            if (
                isinstance(one, TaskFinished)
                and one.outcome in ("completed", "failed")
                and one.seconds is not None
            ):
                by_driver.setdefault(one.driver or "shell", []).append(one)
        return cls(tuple(_record(name, tasks) for name, tasks in sorted(by_driver.items())))

    def expectation(self, driver: str) -> Expectation | None:
        """What the next task of this driver will need, where there is enough to judge by."""
        found = next((one for one in self.drivers if one.driver == driver), None)
        if found is None or found.tasks < _FEWEST_TASKS:
            return None
        return Expectation(
            seconds=found.seconds_high,
            context_share=found.share_high,
            basis=f"80% of the last {found.tasks} {driver} tasks needed no more",
        )


def pauses_by_trigger(store: Store) -> dict[str, int]:
    """What usually ends a session."""
    paused = store.recent_entries("workflow_paused", MOST_TASKS)
    return dict(Counter(one.trigger for one in paused if isinstance(one, WorkflowPaused)).most_common())


def _record(driver: str, tasks: Sequence[TaskFinished]) -> DriverRecord:
    seconds = [one.seconds for one in tasks if one.seconds is not None]
    shares = [one.context_share for one in tasks if one.context_share is not None]
    return DriverRecord(
        driver=driver,
        tasks=len(tasks),
        failed=sum(one.outcome == "failed" for one in tasks),
        seconds_median=round(median(seconds), 3),
        seconds_high=round(_high(seconds), 3),
        share_median=round(median(shares), 4) if shares else None,
        share_high=round(_high(shares), 4) if shares else None,
    )


def _high(values: Sequence[float]) -> float:
    return quantiles(values, n=5, method="inclusive")[-1] if len(values) > 1 else values[0]
