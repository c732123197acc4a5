"""A large workflow as agents leave it behind: half done, with its findings."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from types import GenericAlias
from typing import Any

from journals import words
from msgspec import structs
from pydantic import create_model

from holdfast.model.base import Value
from holdfast.model.findings import Decision, ErrorRecord
from holdfast.model.git import GitState
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import Task, TaskDAG, TaskStatus
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Issue, Workflow

_START = datetime(2026, 1, 6, 12, 0, tzinfo=UTC)


def paused_workflow(workflow_id: str) -> Workflow:
    return Workflow(
        id=workflow_id,
        issue=Issue(id="bench", title="A large piece of work"),
        worktree="bench",
        status="paused",
        created_at=_START,
        updated_at=_START,
        paused_at=_START,
    )


def large_snapshot(tasks: int) -> SessionSnapshot:
    rng = random.Random(3)
    plan = TaskDAG(tasks=tuple(_task(rng, number, tasks) for number in range(tasks)))
    following = next(plan.ready())
    return SessionSnapshot(
        id="snap-000000",
        workflow_id="wf-bench",
        session_number=1,
        session_id="session-20260106-120000",
        created_at=_START,
        trigger="exhaustion",
        pause_reason="context window nearly full",
        task_dag=plan,
        next_task_id=following.id,
        git_state=_git(),
        decisions=tuple(_decision(rng, number) for number in range(20)),
        errors=tuple(_error(rng, number) for number in range(10)),
        constraints=("Never force-push.", "Keep the public names."),
        usage=UsageMetrics(tokens_used=181_000, context_utilization=0.905, tool_calls=412, llm_calls=160),
        folded_through=2 * tasks,
    )


def _task(rng: random.Random, number: int, total: int) -> Task:
    status = _status(rng, number, total)
    earlier = range(max(0, number - 20), number)
    needed = sorted(rng.sample(earlier, min(len(earlier), rng.randint(0, 3))))
    done = f"{rng.randint(1, 60)} passed in {rng.random() * 9:.2f} s"
    return Task(
        id=f"task-{number:04d}",
        description=words(rng, rng.randint(80, 120)),
        status=status,
        depends_on=tuple(f"task-{other:04d}" for other in needed),
        run=f"pytest -q tests/unit/test_part_{number:04d}.py",
        result=done if status == "completed" else None,
    )


def _status(rng: random.Random, number: int, total: int) -> TaskStatus:
    if number < total * 6 // 10:
        return "completed"
    return "blocked" if rng.random() < 0.02 else "pending"


def _decision(rng: random.Random, number: int) -> Decision:
    return Decision(
        id=f"decision-{number:03d}",
        timestamp=_START + timedelta(minutes=number),
        task_id=f"task-{number:04d}",
        decision_type="approach",
        description=words(rng, 90),
        rationale=words(rng, 160),
        alternatives_considered=(words(rng, 50), words(rng, 50)),
    )


def _error(rng: random.Random, number: int) -> ErrorRecord:
    return ErrorRecord(
        id=f"error-{number:03d}",
        timestamp=_START + timedelta(minutes=number),
        task_id=f"task-{number:04d}",
        error_type="AssertionError",
        error_message=words(rng, 120),
        context=words(rng, 200),
        resolution="fixed",
    )


def _git() -> GitState:
    return GitState(
        branch="main",
        commit_at_workflow_start="1f" * 20,
        commit_at_snapshot="2e" * 20,
        files_modified=tuple(f"src/part_{number:02d}.py" for number in range(40)),
        files_staged=(),
        has_uncommitted_changes=True,
        uncommitted_summary="3 files changed",
    )


def _as_pydantic_would() -> type[SessionSnapshot]:
    fields: dict[str, Any] = {
        field.name: (field.type, ... if field.required else field.default) for field in structs.fields(Task)
    }
    task: Any = create_model("PydanticTask", __base__=Value, **fields)
    tasks: Any = GenericAlias(tuple, (task, ...))
    plan = create_model("PydanticDAG", __base__=TaskDAG, tasks=(tasks, ()))
    return create_model(
        "PydanticSnapshot", __base__=SessionSnapshot, __module__=__name__, task_dag=(plan, plan())
    )


PydanticSnapshot = _as_pydantic_would()
"""The same snapshot made of pydantic's values throughout, as a user of LangGraph would have it.

Our own tasks are another kind of value, which pydantic takes somewhat longer for.
"""
