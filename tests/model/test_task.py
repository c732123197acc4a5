"""Plans: refused where they cannot be run, and what is ready in those that can."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import given
from pydantic import BaseModel, TypeAdapter, ValidationError

from holdfast.model.base import explain
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
    with pytest.raises(ValidationError, match=r"circular dependency: .*a.* → "):
        plan(**needs)


def test_a_dependency_that_does_not_exist_is_refused_and_named() -> None:
    with pytest.raises(ValidationError, match="'b' depends on 'x', which does not exist"):
        plan(a="", b="x")


@pytest.mark.parametrize("needs", [(), ("a",)])
def test_two_tasks_of_one_name_are_refused_and_named(needs: tuple[str, ...]) -> None:
    tasks = [Task(id=name, description="") for name in ("a", "b", "b")]
    with pytest.raises(ValidationError, match="duplicate task id 'b'"):
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


FULL = Task(
    id="a",
    description="Ein Segel flicken ⛵",
    status="in_progress",
    depends_on=("b", "c"),
    run="make",
    prompt="mend it",
    driver="codex",
    approval=True,
    review=True,
    junit="report.xml",
    attempts=2,
    result="half done",
)


class TestATaskIsAValueLikeAnyOther:
    """It is not made by pydantic, but nobody should have to know."""

    @pytest.mark.parametrize(
        ("fields", "complaint"),
        [
            ({"id": "", "description": ""}, "id: String should have at least 1 character"),
            ({"id": "a"}, "description: Field required"),
            ({"id": "a", "description": 7}, "description: Input should be a valid string"),
            ({"id": "a", "description": "", "colour": "red"}, "colour: Extra inputs are not permitted"),
            (
                {"id": "a", "description": "", "depends_on": [1]},
                "depends_on.0: Input should be a valid string",
            ),
            (
                {"id": "a", "description": "", "attempts": -1},
                "attempts: Input should be greater than or equal to 0",
            ),
            ({"id": "a", "description": "", "status": "asleep"}, "status: Input should be 'pending', "),
        ],
    )
    def test_what_is_no_task_is_refused_in_the_same_words_everywhere(
        self, fields: dict[str, Any], complaint: str
    ) -> None:
        text = json.dumps(fields)
        for make, place in (
            (lambda: Task(**fields), ""),
            (lambda: Task.model_validate(fields), ""),
            (lambda: Task.model_validate_json(text), ""),
            (lambda: TaskDAG.model_validate({"tasks": [fields]}), "tasks.0."),
            (lambda: TaskDAG.model_validate_json(f'{{"tasks": [{text}]}}'), "tasks.0."),
        ):
            with pytest.raises(ValidationError) as caught:
                make()
            assert explain(caught.value).startswith(place + complaint)

    @pytest.mark.parametrize("thing", [None, 7, "a", object(), ["a", "b"]])
    def test_what_is_no_document_is_refused(self, thing: object) -> None:
        with pytest.raises(ValidationError, match="valid dictionary"):
            TaskDAG.model_validate({"tasks": [thing]})

    def test_a_change_is_checked_and_makes_another_one(self) -> None:
        assert FULL.changed(status="completed").status == "completed"
        assert FULL.status == "in_progress"
        with pytest.raises(ValidationError, match="colour"):
            FULL.changed(colour="red")

    def test_it_cannot_be_changed_in_place(self) -> None:
        with pytest.raises(AttributeError):
            FULL.id = "b"  # type: ignore[misc]

    def test_alike_are_equal_and_have_one_place_in_a_set(self) -> None:
        twin = Task.model_validate(FULL.model_dump())
        assert twin == FULL
        assert {twin, FULL} == {FULL}
        assert FULL.changed(result=None) != FULL

    def test_it_can_be_copied_pickled_and_dumped(self) -> None:
        assert copy.deepcopy(FULL) == pickle.loads(pickle.dumps(FULL)) == FULL  # noqa: S301 - our own
        assert FULL.model_copy(update={"result": "done"}) == FULL.changed(result="done")
        assert Task.model_validate_json(FULL.model_dump_json()) == FULL
        assert FULL.model_dump(include={"id", "depends_on"}) == {"id": "a", "depends_on": ("b", "c")}
        assert FULL.model_dump(mode="json")["depends_on"] == ["b", "c"]
        assert Task(id="a", description="").model_dump(exclude_defaults=True) == {
            "id": "a",
            "description": "",
        }

    def test_in_other_values_it_is_written_as_its_fields(self) -> None:
        class Answer(BaseModel):
            tasks: tuple[Task, ...]

        answer = Answer(tasks=(FULL,))
        assert answer.tasks[0] is FULL
        assert json.loads(answer.model_dump_json()) == {"tasks": [FULL.model_dump(mode="json")]}
        assert answer.model_dump() == {"tasks": (FULL.model_dump(),)}
        assert Answer.model_validate_json(answer.model_dump_json()) == answer

    def test_a_secret_in_it_can_be_taken_out(self) -> None:
        assert FULL.without_secrets() is FULL
        leaky = FULL.changed(run="curl -H 'Authorization: Bearer ghp_" + "a1B2" * 9 + "'")
        assert "ghp_" not in (leaky.without_secrets().run or "")

    @pytest.mark.parametrize("mode", ["validation", "serialization"])
    def test_its_schema_tells_of_every_field(self, mode: Any) -> None:
        schema = TypeAdapter(Task).json_schema(mode=mode)
        assert (schema["title"], schema["type"], schema["additionalProperties"]) == ("Task", "object", False)
        assert list(schema["properties"]) == list(FULL.model_dump())
        assert schema["properties"]["id"] == {"minLength": 1, "title": "Id", "type": "string"}
        assert schema["properties"]["run"]["description"] == "Shell command, for the shell driver"
        assert schema["properties"]["attempts"] | {"description": ""} == {
            "default": 0,
            "description": "",
            "minimum": 0,
            "title": "Attempts",
            "type": "integer",
        }
        assert TaskDAG.model_json_schema(mode=mode)["$defs"]["Task"] == schema
        assert Task.model_json_schema(mode=mode)["properties"] == schema["properties"]

    def test_only_what_every_task_needs_is_required(self) -> None:
        assert Task.model_json_schema()["required"] == ["id", "description"]

    def test_what_is_written_leaves_nothing_out(self) -> None:
        assert Task.model_json_schema(mode="serialization")["required"] == list(FULL.model_dump())


@given(dag=plans())
def test_a_plan_survives_being_packed_and_being_written(dag: TaskDAG) -> None:
    assert TaskDAG.unpacked(dag.packed()) == dag
    assert TaskDAG.model_validate_json(dag.model_dump_json()) == dag


def test_what_was_packed_once_can_be_read_for_ever() -> None:
    """The packed form has no names: fields are only ever added, at the end, and none changes its place."""
    early = [
        ["a", "Mend"],
        ["b", "Sail", "completed", ["a"], "make", None, None, False, True, None, 1, "done"],
    ]
    assert TaskDAG.unpacked(msgspec.msgpack.encode(early)) == TaskDAG(
        tasks=(
            Task(id="a", description="Mend"),
            Task(
                id="b",
                description="Sail",
                status="completed",
                depends_on=("a",),
                run="make",
                review=True,
                attempts=1,
                result="done",
            ),
        )
    )


_A = ["a", ""]


@pytest.mark.parametrize(
    "tasks",
    [
        None,
        {},
        "a",
        [None],
        ["a"],
        [[]],
        [["a"]],
        [["", ""]],
        [["a", 7]],
        [["a", "", "asleep"]],
        [["a", "", "pending", [1]]],
        [["a", "", "pending", ["b"]]],
        [["a", "", "pending", [], None, None, None, 1]],
        [["a", "", "pending", [], None, None, None, False, False, None, -1]],
        [["a", "", "pending", [], None, None, None, False, False, None, 0, None, "of the future"]],
        [_A, _A],
        [["a", "", "pending", ["b"]], ["b", "", "pending", ["a"]]],
    ],
    ids=repr,
)
def test_what_is_no_packed_plan_is_refused(tasks: object) -> None:
    with pytest.raises(ValueError, match="task"):
        TaskDAG.unpacked(msgspec.msgpack.encode(tasks))


@given(dag=plans())
def test_a_packed_plan_cut_off_anywhere_is_refused(dag: TaskDAG) -> None:
    packed = dag.packed()
    for length in range(len(packed)):
        with pytest.raises(ValueError, match="tasks: "):
            TaskDAG.unpacked(packed[:length])
