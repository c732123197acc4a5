"""A workflow whose window really fills up: a real model on loopback, with a small one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.model.entry import AgentSessionReported
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import Workflow
from holdfast.workflows.plan import Plan, parse_plan
from real_model import RealModel

from .harness import Workshop

_MOST_SESSIONS = 8
pytestmark = pytest.mark.timeout(1200)  # a real model is slow where every core is busy


@pytest.fixture
def with_model(workshop: Workshop, real_model: RealModel) -> Workshop:
    workshop.settings = replace(
        workshop.settings,
        agent_model=real_model.name,
        agent_model_url=real_model.base_url,
        context_window=real_model.context_tokens,
    )
    return workshop


def prompts(*texts: str) -> Plan:
    tasks = "".join(f"  - {{id: t{number}, prompt: {text!r}}}\n" for number, text in enumerate(texts, 1))
    return parse_plan(f"driver: model\nissue: {{id: FRUIT-7, title: Count fruit}}\ntasks:\n{tasks}")


def snapshot_of(workshop: Workshop, workflow: Workflow) -> SessionSnapshot:
    with workshop.service() as service:
        found = service.store.latest_snapshot(workflow.id)
    assert found is not None
    return found


@pytest.mark.whole_sample
def test_a_window_that_fills_up_pauses_and_the_next_session_finishes(with_model: Workshop) -> None:
    filler = " ".join(("apple", "pear", "plum") * 250)
    words = [f"Remember {number}: {filler}. Say only: yes." for number in range(2)]
    words.append("Say only: yes.")  # which leaves room for a small model that says more
    workflow = with_model.run(prompts(*words))
    assert (workflow.status, workflow.session_count) == ("paused", 1)
    paused = snapshot_of(with_model, workflow)
    assert paused.trigger == "exhaustion"
    assert (paused.usage.context_utilization or 0) >= 0.85
    assert paused.tasks_completed == 2
    sessions = 1
    while workflow.status == "paused" and sessions < _MOST_SESSIONS:
        workflow = with_model.resume(workflow)
        sessions += 1
    assert workflow.status == "completed"
    assert {task.status for task in with_model.tasks(workflow).values()} == {"completed"}
    _first, second, *_ = with_model.entries(workflow, AgentSessionReported)
    assert isinstance(second, AgentSessionReported)
    told = Path(second.transcript or "").read_text()
    assert "FRUIT-7" in told
    assert paused.task_dag.tasks[0].id in told


def test_overrunning_the_window_by_force_is_a_pause_and_no_failure(with_model: Workshop) -> None:
    workflow = with_model.run(prompts("word " * 4_000))
    assert workflow.status == "paused"
    assert snapshot_of(with_model, workflow).trigger == "exhaustion"
    assert with_model.tasks(workflow)["t1"].status == "pending"
