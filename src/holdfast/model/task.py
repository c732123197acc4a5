"""A plan as a graph of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal, Self

from pydantic import Field, model_validator

from holdfast.model.base import Value

TaskStatus = Literal["pending", "in_progress", "blocked", "completed", "failed"]

REMAINING: frozenset[TaskStatus] = frozenset({"pending", "in_progress", "blocked"})


class Task(Value):
    id: str = Field(min_length=1)
    description: str
    status: TaskStatus = "pending"
    depends_on: tuple[str, ...] = ()
    run: str | None = Field(default=None, description="Shell command, for the shell driver")
    prompt: str | None = Field(default=None, description="What an agent is asked, for the agent drivers")
    driver: str | None = Field(default=None, description="Who works it off, where not the plan's driver")
    approval: bool = Field(default=False, description="Whether somebody must approve before it starts")
    review: bool = Field(default=False, description="Whether its result is a review of the work so far")
    junit: str | None = Field(default=None, description="Where its tests write JUnit XML, in the worktree")
    attempts: int = Field(default=0, ge=0, description="How often it was started; above 1 it was cut off")
    result: str | None = Field(default=None, description="How it ended, in a line")


class TaskDAG(Value):
    """All tasks of a workflow, in the order they were written, with their statuses.

    Refuses doubled ids, unknown dependencies and cycles, so whoever holds one can run it.
    """

    tasks: tuple[Task, ...] = ()

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        known = self.by_id
        if len(known) != len(self.tasks):
            seen: set[str] = set()
            doubled = next(task.id for task in self.tasks if task.id in seen or seen.add(task.id))
            raise ValueError(f"two tasks are called {doubled!r}")
        if self._in_order():
            return self
        for task in self.tasks:
            for needed in task.depends_on:
                if needed not in known:
                    raise ValueError(f"task {task.id!r} depends on {needed!r}, which does not exist")
        try:
            TopologicalSorter({task.id: task.depends_on for task in self.tasks}).prepare()
        except CycleError as error:
            raise ValueError(f"tasks depend on each other in a circle: {' → '.join(error.args[1])}") from None
        return self

    def _in_order(self) -> bool:
        """Whether each task stands behind all it needs, as in most plans: then all is well."""
        before: set[str] = set()
        for task in self.tasks:
            if not before.issuperset(task.depends_on):
                return False
            before.add(task.id)
        return True

    @cached_property
    def by_id(self) -> dict[str, Task]:
        return {task.id: task for task in self.tasks}

    def ready(self) -> Iterator[Task]:
        """Tasks that could start now, in plan order."""
        known = self.by_id
        for task in self.tasks:
            if task.status == "pending" and all(
                known[needed].status == "completed" for needed in task.depends_on
            ):
                yield task

    def count(self, *statuses: TaskStatus) -> int:
        held = [task.status for task in self.tasks]
        return sum(map(held.count, statuses))

    def updated(self, changes: Mapping[str, Mapping[str, object]]) -> TaskDAG:
        """A copy in which the named tasks have these fields; the shape stays, so it is not checked again."""
        tasks = tuple(task.changed(**changes[task.id]) if task.id in changes else task for task in self.tasks)
        return TaskDAG.model_construct(tasks=tasks)
