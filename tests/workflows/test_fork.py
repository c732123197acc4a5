"""A copy of a workflow from any of its tasks, while the original stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.base.errors import IllegalTransitionError, InvalidInputError, NotFoundError
from holdfast.model.entry import WorkflowForked
from holdfast.model.workflow import Workflow
from holdfast.workflows.plan import parse_plan
from holdfast.workflows.worker import Here

from .harness import Workshop, plan_of

NEEDS_OK = ("echo a >> log", "test -e ok", "echo c >> log")


def fork_of(workshop: Workshop, origin: Workflow, *task: str, **how: object) -> Workflow:
    with workshop.service() as service:
        return service.fork(origin.id, *task, **how)  # type: ignore[arg-type]


def test_from_the_task_that_failed(any_workshop: Workshop) -> None:
    failed = any_workshop.run(plan_of(*NEEDS_OK))
    forked = fork_of(any_workshop, failed, "t2")
    assert (forked.status, forked.issue, forked.options) == ("paused", failed.issue, failed.options)
    (any_workshop.project / "ok").touch()
    done = any_workshop.resume(forked)
    assert (done.status, any_workshop.log()) == ("completed", ["a", "c"])
    assert any_workshop.entries(done, WorkflowForked) == [WorkflowForked(origin_id=failed.id, task_id="t2")]
    with any_workshop.service() as service:
        assert service.workflow(failed.id) == failed
        assert service.tasks(failed.id).by_id["t2"].status == "failed"


def test_from_a_task_of_one_that_is_completed(any_workshop: Workshop) -> None:
    done = any_workshop.run(plan_of("echo a >> log", "echo b >> log", "echo c >> log"))
    again = any_workshop.resume(fork_of(any_workshop, done, "t2"))
    assert (again.status, any_workshop.log()) == ("completed", ["a", "b", "c", "b", "c"])
    assert [task.attempts for task in any_workshop.tasks(again).values()] == [1, 1, 1]
    with pytest.raises(IllegalTransitionError, match=r"all tasks of workflow wf_\w+ are completed"):
        fork_of(any_workshop, done)
    with pytest.raises(NotFoundError, match="has no task 'x'"):
        fork_of(any_workshop, done, "x")


def test_from_an_older_snapshot_and_twice(workshop: Workshop) -> None:
    paused = workshop.run(plan_of("echo a >> log", "echo b >> log", "echo c >> log", pause_every=1))
    later = workshop.resume(paused)
    with workshop.service() as service:
        first = service.snapshots(later.id)[0]
    one = fork_of(workshop, later, snapshot_id=first.id)
    two = fork_of(workshop, one)
    for flow in (one, one, two, two, later):
        ended = workshop.resume(flow)
        assert ended.status in ("paused", "completed")
    assert workshop.log() == ["a", "b", "b", "c", "b", "c", "c"]


def test_it_asks_for_approval_again(workshop: Workshop) -> None:
    plan = parse_plan(
        "issue: {id: W, title: Work}\ntasks:\n  - {id: a, run: 'echo a >> log', approval: true}\n"
        "  - {id: b, run: 'echo b >> log', depends_on: [a]}\n"
    )
    with Here(workshop.settings) as here:
        blocked = here.run(here.service.start(plan, claim=here.claim))
        done = here.run(here.service.approve(blocked.id, claim=here.claim))
    assert workshop.resume(fork_of(workshop, done, "a")).status == "blocked"
    assert workshop.log() == ["a", "b"]


def test_what_tasks_left_and_secrets_come_along(workshop: Workshop) -> None:
    secret = "ghp_" + "a1B2" * 9
    plan = parse_plan(
        "issue: {id: W, title: Work}\ntasks:\n"
        f"  - {{id: a, run: 'echo key={secret} >> $HOLDFAST_OUTPUTS'}}\n"
        f"  - {{id: b, run: 'echo $HOLDFAST_INPUT_A_KEY {secret} >> log; test -e ok', depends_on: [a]}}\n"
    )
    failed = workshop.run(plan)
    forked = fork_of(workshop, failed)
    assert secret not in forked.model_dump_json()
    (workshop.project / "ok").touch()
    assert workshop.resume(forked).status == "completed"
    assert workshop.log() == [secret] * 4


def test_in_a_folder_of_its_own_both_can_run(workshop: Workshop, tmp_path: Path) -> None:
    paused = workshop.run(plan_of("echo a >> log", "echo b >> log", pause_every=1))
    other = tmp_path / "other"
    with pytest.raises(NotFoundError, match="no such folder"):
        fork_of(workshop, paused, worktree=other)
    other.mkdir()
    forked = fork_of(workshop, paused, worktree=other)
    assert workshop.resume(forked).status == "completed"
    assert (workshop.log(), (other / "log").read_text()) == (["a"], "b\n")


def test_work_without_a_plan_or_with_a_repository(workshop: Workshop, tmp_path: Path) -> None:
    with workshop.service() as service:
        origin = service.core.open(plan_of("true").issue, str(workshop.project))
        with pytest.raises(IllegalTransitionError, match="has no plan to fork"):
            service.fork(origin.id)
        service.core.move(origin.id, "cancelled")
        plan = plan_of("true", repository=str(tmp_path / "r.git"))
        cloned = service.start(plan, claim="run-x#1")
        with pytest.raises(InvalidInputError, match="a clone of its repository"):
            service.fork(cloned.id, worktree=tmp_path)
        assert service.fork(cloned.id).worktree == cloned.worktree


def test_a_running_one_is_copied_as_recorded(workshop: Workshop) -> None:
    with Here(workshop.settings) as here:
        running = here.service.start(plan_of("echo a >> log", "echo b >> log"), claim=here.claim)
        forked = here.service.fork(running.id, "t2")
        assert here.service.workflow(running.id).status == "in_progress"
        assert here.run(running).status == "completed"
    assert workshop.resume(forked).status == "completed"
    assert workshop.log() == ["a", "b", "a", "b"]
