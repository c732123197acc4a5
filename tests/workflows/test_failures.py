"""A task that fails: what is kept at that point, and how the work goes on from there."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from cli.harness import start_program
from holdfast.base.errors import (
    HeldElsewhereError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
)
from holdfast.model.entry import TaskFinished, TaskStarted, WorkflowPaused, WorkflowStatusChanged
from holdfast.model.workflow import Workflow
from holdfast.workflows.plan import parse_plan
from holdfast.workflows.runner_context import _told
from holdfast.workflows.service import OrchestratorService
from holdfast.workflows.worker import Here, Worker

from .harness import Workshop, plan_of, wait_for

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


def test_a_program_started_without_news_of_its_children_knows_a_failure(workshop: Workshop) -> None:
    (workshop.project / "plan.yaml").write_text("issue: {id: I, title: T}\ntasks: [{id: t1, run: exit 3}]\n")
    deaf = partial(signal.signal, signal.SIGCHLD, signal.SIG_IGN)  # a program that is started inherits that
    environment = workshop.place.environment
    with start_program(
        ["run", "plan.yaml"], cwd=workshop.project, env=environment, text=True, preexec_fn=deaf
    ) as process:
        _, told = process.communicate()
    assert (process.returncode, "task t1: exit code 3" in told) == (1, True)


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


THREE = "issue: {id: W, title: Work}\ntasks:\n"


def test_one_of_two_failed_tasks_is_retried_and_the_other_skipped(any_workshop: Workshop) -> None:
    plan = parse_plan(
        THREE + "  - {id: a, run: 'test -e ok; echo a >> log; test -e ok'}\n"
        "  - {id: b, run: 'echo b >> log; exit 4'}\n"
        "  - {id: c, run: 'echo c >> log', depends_on: [a, b]}\n",
        keep_going=True,
    )
    failed = any_workshop.run(plan)
    assert failed.pause_reason == "task a: exit code 1; task b: exit code 4"
    (any_workshop.project / "ok").touch()
    with Here(any_workshop.settings) as here:
        again = here.run(here.service.retry(failed.id, "a", claim=here.claim).workflow)
        assert (again.status, again.pause_reason) == ("failed", "task b: exit code 4")
        with pytest.raises(IllegalTransitionError, match="task a is completed; only a failed task"):
            here.service.retry(failed.id, "a")
        with pytest.raises(NotFoundError, match="has no task 'x'"):
            here.service.skip(failed.id, "x")
        done = here.run(here.service.skip(failed.id, "b", "not now", claim=here.claim))
        assert (done.status, any_workshop.log()) == ("completed", ["a", "b", "a", "c"])
        task = here.service.tasks(done.id).by_id["b"]
        assert (task.status, task.result) == ("skipped", "not now")


def test_what_does_not_depend_on_it_runs_where_the_plan_says_so(any_workshop: Workshop) -> None:
    tasks = (
        THREE + "  - {id: a, run: 'false'}\n  - {id: b, run: 'echo b >> log'}\n"
        "  - {id: c, run: 'echo c >> log', depends_on: [a]}\n"
    )
    stopped = any_workshop.run(parse_plan(tasks))
    assert (stopped.status, any_workshop.log()) == ("failed", [])
    kept_going = any_workshop.run(parse_plan(tasks, keep_going=True))
    assert (kept_going.status, any_workshop.log()) == ("failed", ["b"])
    states = {name: task.status for name, task in any_workshop.tasks(kept_going).items()}
    assert states == {"a": "failed", "b": "completed", "c": "pending"}


@pytest.mark.parametrize("parallel", [1, 2])
def test_it_is_retried_by_itself_as_often_as_the_plan_says(any_workshop: Workshop, parallel: int) -> None:
    plan = parse_plan(
        THREE + "  - {id: a, run: 'echo $HOLDFAST_ATTEMPT >> log; test $HOLDFAST_ATTEMPT = 3', retries: 2}\n"
        "  - {id: b, run: 'echo b >> log; false', depends_on: [a]}\n",
        retry_delay=0.01,
        retries=1,
        parallel=parallel,
    )
    failed = any_workshop.run(plan)
    assert (failed.status, failed.pause_reason) == ("failed", "task b: exit code 1")
    assert any_workshop.log() == ["1", "2", "3", "b", "b"]
    ends = [entry for entry in any_workshop.entries(failed, TaskFinished) if isinstance(entry, TaskFinished)]
    assert [bool(end.retry_at) for end in ends] == [True, True, False, True, False]


def test_a_task_is_repeated_until_its_condition_holds(any_workshop: Workshop) -> None:
    condition = "test $(wc -l <log) -ge 3 || { echo too few; exit 1; }"
    task = f"  - {{id: a, run: 'echo x >> log', until: {condition!r}, max: MOST}}\n"
    then = "  - {id: b, run: 'echo b >> log', depends_on: [a]}\n"
    failed = any_workshop.run(parse_plan(THREE + task.replace("MOST", "2") + then))
    assert failed.pause_reason == "task a: the condition does not hold yet: exit code 1: too few"
    assert any_workshop.log() == ["x", "x"]
    (any_workshop.project / "log").unlink()
    done = any_workshop.run(parse_plan(THREE + task.replace("MOST", "4") + then))
    assert (done.status, any_workshop.log()) == ("completed", ["x", "x", "x", "b"])


def test_rounds_of_a_loop_and_retries_of_failures_are_counted_apart(any_workshop: Workshop) -> None:
    """Rounds 1 and 3 hold not yet, attempts 2 and 4 fail."""
    runs = "echo $HOLDFAST_ATTEMPT >> log; test $(($HOLDFAST_ATTEMPT % 2)) = 1"
    task = f"  - {{id: a, run: '{runs}', until: test $(wc -l <log) -ge 5, max: 3, retries: RETRIES}}\n"
    failed = any_workshop.run(parse_plan(THREE + task.replace("RETRIES", "1"), retry_delay=0.0))
    assert (failed.pause_reason, any_workshop.log()) == ("task a: exit code 1", ["1", "2", "3", "4"])
    (any_workshop.project / "log").unlink()
    done = any_workshop.run(parse_plan(THREE + task.replace("RETRIES", "2"), retry_delay=0.0))
    assert (done.status, any_workshop.log()) == ("completed", ["1", "2", "3", "4", "5"])


def test_a_loop_without_a_condition_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"plan:3: .*`until`, which is missing"):
        parse_plan(THREE + "  - {id: a, run: 'true', max: 3}\n")


def test_a_retry_that_is_due_later_can_be_paused(any_workshop: Workshop) -> None:
    plan = parse_plan(THREE + "  - {id: a, run: 'test -e ok', retries: 5}\n", retry_delay=600.0)
    with any_workshop.service() as service, ThreadPoolExecutor(1) as beside:
        ending = beside.submit(any_workshop.run, plan)
        wait_for(lambda: any(isinstance(event.entry, TaskFinished) for event in service.events()))
        (waiting,) = service.workflows()
        assert service.pause_workflow(waiting.id) is not None
        assert ending.result(60).status == "paused"
    (any_workshop.project / "ok").touch()
    assert any_workshop.resume(waiting).status == "completed"


def test_status_tells_what_failed_and_when_it_is_tried_again(workshop: Workshop) -> None:
    flaky = "  - {id: flaky, run: 'echo boom; exit 1', retries: 5}\n"
    plan = parse_plan(f"{THREE}{flaky}  - {{id: slow, run: touch slow; sleep 60}}\n", retry_delay=3000.0)
    with workshop.service() as service, ThreadPoolExecutor(1) as beside:
        ending = beside.submit(workshop.run, plan)
        wait_for((workshop.project / "slow").exists)
        told = workshop.place.run("status").out
        assert "Retrying:  flaky (attempt 1): exit code 1: boom\n           next attempt in " in told
        assert "Running:   slow\n" in told
        (retrying,) = workshop.place.json("status")["workflow"]["retrying_tasks"]
        assert (retrying["id"], retrying["attempt"], retrying["reason"]) == ("flaky", 1, "exit code 1: boom")
        (running,) = service.workflows()
        service.pause_workflow(running.id, force_after=0.0)
        ending.result(60)
    assert "Retrying:" not in workshop.place.run("status").out


def test_a_worker_keeps_to_the_time_of_a_retry_that_a_dead_one_noted(any_workshop: Workshop) -> None:
    with any_workshop.service() as service:
        plan = parse_plan(THREE + "  - {id: a, run: 'echo a >> log; false', retries: 2}\n", retry_delay=0.01)
        left = service.start(plan, claim="worker-nowhere-1-aaa#1")
        retry_at = datetime.now(UTC) + timedelta(seconds=0.01)
        service.core.record(
            left.id,
            TaskStarted(task_id="a"),
            TaskFinished(task_id="a", outcome="failed", result="exit code 1", retry_at=retry_at),
        )
    Worker(any_workshop.settings).run(until_idle=True)
    with any_workshop.service() as service:
        assert service.workflow(left.id).status == "failed"
        assert service.tasks(left.id).by_id["a"].attempts == 3
    assert any_workshop.log() == ["a", "a"]


def test_a_task_that_waits_for_approval_is_skipped(any_workshop: Workshop) -> None:
    plan = parse_plan(
        THREE + "  - {id: a, run: 'echo a >> log', approval: true}\n"
        "  - {id: b, run: 'echo b >> log', depends_on: [a]}\n"
    )
    blocked = any_workshop.run(plan)
    with Here(any_workshop.settings) as here:
        done = here.run(here.service.skip(blocked.id, "a", claim=here.claim))
    assert (done.status, any_workshop.log()) == ("completed", ["b"])


def test_one_notice_says_what_to_do() -> None:
    paused = WorkflowPaused(
        snapshot_id="snap_1", session_id="session-1", session_number=1, trigger="failure", reason="task a: no"
    )
    assert _told("wf_1", paused) is None
    failed = WorkflowStatusChanged(status="failed", reason="task a: no")
    assert _told("wf_1", failed) == (
        "Workflow wf_1 failed",
        "task a: no\nTry again with: holdfast retry --workflow wf_1",
    )
