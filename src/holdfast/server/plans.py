"""A plan that came as JSON: the same rules as for one in a file."""

from __future__ import annotations

from pydantic import ValidationError

from holdfast.base.errors import InvalidInputError
from holdfast.model.base import invalid
from holdfast.model.task import Task, TaskDAG
from holdfast.model.workflow import WorkflowOptions
from holdfast.server.models import PlanDocument, PlanTask
from holdfast.workflows.plan import Plan, driver_of

_NOT_OPTIONS = {"issue", "tasks", "constraints"}


def plan_of(document: PlanDocument) -> Plan:
    given = document.model_dump(exclude=_NOT_OPTIONS, exclude_none=True)
    try:
        options = WorkflowOptions.model_validate(given)
        tasks = TaskDAG(tasks=tuple(map(_task, document.tasks)))
    except ValidationError as error:
        raise invalid("the plan cannot be run", error) from None
    for task in tasks.tasks:
        _refuse_without_work(task, options)
    return Plan(issue=document.issue, tasks=tasks, constraints=document.constraints, options=options)


def _task(given: PlanTask) -> Task:
    fields = given.model_dump(exclude_none=True)
    fields.setdefault("description", given.id)
    return Task.model_validate(fields)


def _refuse_without_work(task: Task, options: WorkflowOptions) -> None:
    driver = driver_of(task, options)
    work = task.run if driver == "shell" else task.prompt or task.run
    if not (work or "").strip():
        needed = "command (`run`)" if driver == "shell" else "prompt"
        raise InvalidInputError(
            f"task {task.id!r} has no {needed}", hint=f"the driver {driver} needs one; see docs/workflows.md"
        )


def document_of(plan: Plan) -> PlanDocument:
    """The other way round: what a client sends."""
    fields = set(PlanTask.model_fields)
    return PlanDocument(
        issue=plan.issue,
        tasks=tuple(PlanTask.model_validate(task.model_dump(include=fields)) for task in plan.tasks.tasks),
        constraints=plan.constraints,
        **plan.options.model_dump(),
    )
