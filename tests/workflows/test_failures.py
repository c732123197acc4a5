"""A task that fails: what is kept at that point, and how the work goes on from there."""

from __future__ import annotations

import pytest

from holdfast.base.errors import HeldElsewhereError
from holdfast.model.entry import TaskFinished, TaskStarted, WorkflowPaused, WorkflowStatusChanged
from holdfast.model.workflow import Workflow
from holdfast.workflows.notices import _told
from holdfast.workflows.service import OrchestratorService
from holdfast.workflows.worker import Here, Worker

from .harness import Workshop, plan_of

NEEDS_OK = ("echo a >> log", "test -e ok", "echo c >> log")


def test_the_failure_leaves_a_snapshot_and_is_tried_again(any_workshop: Workshop) -> None:
    failed = any_workshop.run(plan_of(*NEEDS_OK))
    assert (failed.status, failed.pause_reason) == ("failed", "task t2: exit code 1")
    with any_workshop.service() as service:
        snapshot = service.store.latest_snapshot(failed.id)
    assert snapshot is not None
    assert (snapshot.trigger, snapshot.pause_reason) == ("failure", failed.pause_reason)
    assert (snapshot.tasks_completed, snapshot.tasks_remaining, snapshot.next_task_id) == (1, 2, "t2")
    assert (any_workshop.place.sessions / f"{snapshot.session_id}.json").exists()
    told = any_workshop.entries(failed, WorkflowPaused, WorkflowStatusChanged)
    assert [entry.type for entry in told[-2:]] == ["workflow_paused", "workflow_status_changed"]
    (any_workshop.project / "ok").touch()
    done = any_workshop.resume(failed)
    assert (done.status, done.session_count, done.pause_reason) == ("completed", 2, None)
    assert any_workshop.log() == ["a", "c"]
    assert {name: task.attempts for name, task in any_workshop.tasks(done).items()} == {
        "t1": 1,
        "t2": 2,
        "t3": 1,
    }


def test_it_fails_again_with_a_snapshot_of_its_own(any_workshop: Workshop) -> None:
    again = any_workshop.resume(any_workshop.run(plan_of(*NEEDS_OK)))
    assert (again.status, again.session_count, any_workshop.log()) == ("failed", 2, ["a"])
    with any_workshop.service() as service:
        lines = service.snapshots(again.id)
        assert service.tasks(again.id).by_id["t2"].attempts == 2
    assert [(line.session_number, line.trigger) for line in lines] == [(1, "failure"), (2, "failure")]


def test_it_goes_on_from_an_older_snapshot_too(workshop: Workshop) -> None:
    paused = workshop.run(plan_of("echo a >> log", "echo b >> log", "test -e ok", pause_every=1))
    failed = workshop.resume(workshop.resume(paused))
    assert failed.status == "failed"
    with workshop.service() as service:
        first = service.snapshots(failed.id)[0]
    (workshop.project / "ok").touch()
    assert workshop.resume(failed, snapshot_id=first.id).status == "paused"
    assert workshop.log() == ["a", "b", "b"]


def test_all_that_failed_side_by_side_is_named_and_tried_again(workshop: Workshop) -> None:
    plan = plan_of("test -e ok", "exit 3", "echo c >> log", chained=False, parallel=2)
    failed = workshop.run(plan)
    assert failed.pause_reason is not None
    assert {part.split(":")[0] for part in failed.pause_reason.split("; ")} <= {"task t1", "task t2"}
    (workshop.project / "ok").touch()
    again = workshop.resume(failed)
    assert (again.status, again.pause_reason) == ("failed", "task t2: exit code 3")
    assert workshop.tasks(again)["t1"].status == "completed"


def test_an_older_version_left_no_snapshot(any_workshop: Workshop) -> None:
    with any_workshop.service() as service:
        failed = _stopped_at_its_failure(service)
        service.core.move(failed.id, "failed", "task t2: exit code 1")
    (any_workshop.project / "ok").touch()
    done = any_workshop.resume(failed)
    assert (done.status, done.session_count, any_workshop.log()) == ("completed", 2, ["c"])


def test_a_process_that_died_right_after_the_failure(any_workshop: Workshop) -> None:
    with any_workshop.service() as service:
        left = _stopped_at_its_failure(service, claim="run-nowhere-1-aaa#1")
        assert service.is_abandoned(left)
    (any_workshop.project / "ok").touch()
    done = any_workshop.resume(left)
    assert (done.status, any_workshop.log()) == ("completed", ["c"])


def test_a_worker_that_died_right_after_the_failure(any_workshop: Workshop) -> None:
    with any_workshop.service() as service:
        left = _stopped_at_its_failure(service, claim="worker-nowhere-1-aaa#1")
    Worker(any_workshop.settings).run(until_idle=True)
    with any_workshop.service() as service:
        failed = service.workflow(left.id)
        assert (failed.status, failed.pause_reason) == ("failed", "task t2: exit code 1")
        assert [line.trigger for line in service.snapshots(left.id)] == ["failure"]
        (any_workshop.project / "ok").touch()
        service.resume_workflow(left.id)
    Worker(any_workshop.settings).run(until_idle=True)
    with any_workshop.service() as service:
        assert (service.workflow(left.id).status, any_workshop.log()) == ("completed", ["c"])


def _stopped_at_its_failure(service: OrchestratorService, claim: str = "run-nowhere-1-aaa#1") -> Workflow:
    """A workflow of which nothing is known after the record that its second task failed."""
    workflow = service.start(plan_of(*NEEDS_OK), claim=claim)
    return service.core.record(
        workflow.id,
        TaskStarted(task_id="t1"),
        TaskFinished(task_id="t1", outcome="completed"),
        TaskStarted(task_id="t2"),
        TaskFinished(task_id="t2", outcome="failed", result="exit code 1"),
    )


def test_it_holds_no_worktree(any_workshop: Workshop) -> None:
    failed = any_workshop.run(plan_of("test -e ok"))
    with Here(any_workshop.settings) as here:
        other = here.service.start(plan_of("true"), claim=here.claim)
        with pytest.raises(HeldElsewhereError, match="another workflow is active"):
            here.service.resume_workflow(failed.id)
        assert here.service.workflow(failed.id).status == "failed"
        assert here.run(other).status == "completed"
        assert here.service.cancel(failed.id).status == "cancelled"


def test_one_notice_says_what_to_do() -> None:
    paused = WorkflowPaused(
        snapshot_id="snap_1", session_id="session-1", session_number=1, trigger="failure", reason="task a: no"
    )
    assert _told("wf_1", paused) is None
    failed = WorkflowStatusChanged(status="failed", reason="task a: no")
    assert _told("wf_1", failed) == (
        "Workflow wf_1 failed",
        "task a: no\nTry again with: holdfast resume wf_1",
    )
