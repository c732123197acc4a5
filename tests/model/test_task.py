"""Plans: refused where they cannot be run, and what is ready in those that can."""

from __future__ import annotations

import pytest
from hypothesis import given
from pydantic import ValidationError

from holdfast.model.task import Task, TaskDAG, TaskStatus
from model.strategies import plans


def plan(**needs: str) -> TaskDAG:
    """`plan(a="", b="a")`: b depends on a."""
    return TaskDAG(
        tasks=tuple(Task(id=name, description=name, depends_on=tuple(on)) for name, on in needs.items())
    )


def with_status(dag: TaskDAG, **statuses: TaskStatus) -> TaskDAG:
    return dag.updated({name: {"status": status} for name, status in statuses.items()})


@pytest.mark.parametrize("needs", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "c", "b": "a", "c": "b", "d": ""}])
def test_tasks_that_wait_for_each_other_are_refused_and_named(needs: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match=r"in a circle: .*a.* → "):
        plan(**needs)


def test_a_dependency_that_does_not_exist_is_refused_and_named() -> None:
    with pytest.raises(ValidationError, match="'b' depends on 'x', which does not exist"):
        plan(a="", b="x")


@pytest.mark.parametrize("needs", [(), ("a",)])
def test_two_tasks_of_one_name_are_refused_and_named(needs: tuple[str, ...]) -> None:
    tasks = [Task(id=name, description="") for name in ("a", "b", "b")]
    with pytest.raises(ValidationError, match="two tasks are called 'b'"):
        TaskDAG(tasks=(*tasks, Task(id="c", description="", depends_on=needs)))


def test_a_task_without_a_name_is_refused() -> None:
    with pytest.raises(ValidationError):
        Task(id="", description="x")


def test_ready_are_those_whose_needs_are_done_in_plan_order() -> None:
    dag = plan(d="b", a="", b="a", c="")
    assert [task.id for task in dag.ready()] == ["a", "c"]
    assert [task.id for task in with_status(dag, a="completed").ready()] == ["b", "c"]
    assert [task.id for task in with_status(dag, a="completed", b="completed").ready()] == ["d", "c"]


@pytest.mark.parametrize("status", ["in_progress", "blocked", "failed", "completed"])
def test_a_task_that_is_not_pending_is_not_ready(status: TaskStatus) -> None:
    assert [task.id for task in with_status(plan(a="", b=""), a=status).ready()] == ["b"]


@pytest.mark.parametrize("status", ["pending", "in_progress", "blocked", "failed"])
def test_a_task_waits_until_its_need_is_completed(status: TaskStatus) -> None:
    assert "b" not in [task.id for task in with_status(plan(a="", b="a"), a=status).ready()]


def test_a_dependency_named_twice_is_one() -> None:
    assert [task.id for task in with_status(plan(a="", b="aa"), a="completed").ready()] == ["b"]


def test_counts_are_by_status() -> None:
    dag = with_status(plan(a="", b="", c=""), a="completed", b="failed")
    assert (dag.count("completed"), dag.count("pending", "failed"), dag.count()) == (1, 2, 0)


def test_an_update_keeps_order_and_dependencies_and_the_rest_of_the_task() -> None:
    dag = plan(a="", b="a")
    after = dag.updated({"b": {"status": "completed", "result": "done"}, "unknown": {"status": "failed"}})
    assert after.tasks == (dag.tasks[0], dag.tasks[1].changed(status="completed", result="done"))
    assert dag.by_id["b"].status == "pending"


def test_an_update_with_a_status_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError):
        plan(a="").updated({"a": {"status": "asleep"}})


@given(dag=plans())
def test_an_updated_plan_is_as_good_as_a_new_one(dag: TaskDAG) -> None:
    updated = dag.updated({task.id: {"status": "pending"} for task in dag.tasks})
    assert TaskDAG.model_validate(updated.model_dump()) == updated
    assert updated.by_id.keys() == dag.by_id.keys()


@given(dag=plans())
def test_doing_what_is_ready_gets_everything_done(dag: TaskDAG) -> None:
    dag = dag.updated({task.id: {"status": "pending"} for task in dag.tasks})
    for _ in dag.tasks:
        dag = dag.updated({next(dag.ready()).id: {"status": "completed"}})
    assert dag.count("completed") == len(dag.tasks)
