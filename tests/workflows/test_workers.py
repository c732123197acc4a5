"""Workers on one database: sharing, dying, being stopped and continued."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from cli.harness import Place
from holdfast.base.errors import ConflictError, SessionAlreadyRunningError
from holdfast.base.faults import clear_traps, set_trap
from holdfast.base.process import is_alive
from holdfast.model.entry import SessionTaken, TaskFinished, TaskStarted
from holdfast.model.statuses import Lease
from holdfast.model.workflow import Workflow
from holdfast.sessions.transitions import Facts
from holdfast.testing import FixedClock
from holdfast.workflows.drivers.guarded import attempt_mark
from holdfast.workflows.engine import Engine
from holdfast.workflows.lease import BEAT_SECONDS, LEASE_SECONDS, is_gone
from holdfast.workflows.service import OrchestratorService
from holdfast.workflows.worker import SWEEP_SECONDS, Here, Worker
from postgres import PORT

from .harness import PATIENCE, Workshop, plan_of, wait_for


def beside(workshop: Workshop, name: str) -> Workshop:
    return Workshop(Place(workshop.place.root, name), workshop.database)


def start(workshop: Workshop, *commands: str) -> Workflow:
    with workshop.service() as service:
        return service.start(plan_of(*commands))


def holder_of(workshop: Workshop, workflow: Workflow) -> str | None:
    with workshop.service() as service:
        return service.workflow(workflow.id).claim


def pid_in(claim: str) -> int:
    found = re.search(r"-(\d+)-[0-9a-f]+#\d+$", claim)
    assert found
    return int(found[1])


@contextmanager
def cut_off_by_hand(url: str) -> Generator[tuple[str, Callable[[], None]]]:
    """The same database by another address, and what takes that address away."""
    folder = Path(parse_qs(url.partition("?")[2])["host"][0])
    with tempfile.TemporaryDirectory() as other, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{other}/.s.PGSQL.{PORT}")
        listener.listen()
        ends: list[socket.socket] = []

        def carry(source: socket.socket, target: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while block := source.recv(1 << 16):
                    target.sendall(block)
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_RDWR)

        def take() -> None:
            with contextlib.suppress(OSError):
                while True:
                    one, two = listener.accept()[0], socket.socket(socket.AF_UNIX)
                    two.connect(f"{folder}/.s.PGSQL.{PORT}")
                    ends.extend((one, two))
                    for pair in ((one, two), (two, one)):
                        threading.Thread(target=carry, args=pair, daemon=True).start()

        def cut() -> None:
            for end in (listener, *ends):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            Path(other, f".s.PGSQL.{PORT}").unlink(missing_ok=True)

        threading.Thread(target=take, daemon=True).start()
        try:
            yield url.replace(str(folder), other), cut
        finally:
            cut()
            for end in ends:
                end.close()


def test_a_worker_that_nobody_waits_for_gives_up_when_its_database_is_gone(
    place: Place, postgres_url: str
) -> None:
    workshop = Workshop(place, postgres_url)
    flow = start(workshop, "touch begun; sleep 300")
    with workshop.program("worker", "--until-idle", "--concurrency", "1"):
        wait_for((workshop.project / "begun").exists)
        second = beside(workshop, "second")
        other = start(second, "true")
        with cut_off_by_hand(postgres_url) as (address, cut):
            place.environment["HOLDFAST_DB"] = address
            with workshop.program("worker", "--until-idle", "--lease", "0.5") as watching:
                with workshop.service() as service:  # then it waits for what the other runs
                    wait_for(lambda: service.workflow(other.id).status == "completed")
                cut()
                assert watching.wait(PATIENCE) == 1
                assert "cannot be reached since" in (watching.stderr.read() if watching.stderr else "")
        place.environment["HOLDFAST_DB"] = postgres_url
        place.ok("cancel", flow.id)


def test_a_cancel_says_that_another_machine_is_still_at_it(workshop: Workshop) -> None:
    there = Lease("worker-there-1-aaa", "worker", "there", 1, None, 3600.0)
    with workshop.service() as service:
        service.store.leases.add(there)
        flow = service.start(plan_of("true"), claim=f"{there.id}#1")
    told = workshop.place.json("cancel", flow.id)
    assert told == {"status": "cancelled", "workflow_id": flow.id, "stopping_elsewhere": True}
    here = workshop.run(plan_of("true", "true", pause_every=1))
    assert workshop.place.json("cancel", here.id)["stopping_elsewhere"] is False


def test_what_waits_is_run_whatever_the_database(any_workshop: Workshop) -> None:
    shops = [any_workshop, beside(any_workshop, "second"), beside(any_workshop, "third")]
    flows = [start(shop, "echo a >> log", "echo b >> log") for shop in shops]
    Worker(any_workshop.settings).run(until_idle=True)
    for shop, flow in zip(shops, flows, strict=True):
        with shop.service() as service:
            assert service.workflow(flow.id).status == "completed"
        assert shop.log() == ["a", "b"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_another_worker_goes_on(place: Place, postgres_url: str, how: str) -> None:
    """The first is killed, or stopped and continued; in no case does it write anything any more."""
    workshop = Workshop(place, postgres_url)
    wait = "echo $HOLDFAST_ATTEMPT >> began; while [ ! -e go ]; do sleep 0.05; done"
    flow = start(workshop, "echo a >> log", wait, "echo c >> log")
    with workshop.program("worker") as one, workshop.program("worker") as two:
        wait_for(lambda: workshop.log("began") == ["1"])
        claim = holder_of(workshop, flow)
        assert claim is not None
        first, second = (one, two) if pid_in(claim) == one.pid else (two, one)
        first.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        wait_for(lambda: workshop.log("began") == ["1", "2"])
        if how == "stopped":
            first.send_signal(signal.SIGCONT)
            assert first.wait(PATIENCE) == 3
            assert "considered dead" in (first.stderr.read() if first.stderr else "")
        (workshop.project / "go").touch()
        wait_for(lambda: _status(workshop, flow) == "completed")
        assert pid_in(workshop.entries(flow, SessionTaken)[-1].claim) == second.pid  # type: ignore[union-attr]
    assert workshop.log() == ["a", "c"]
    assert [one.attempt for one in workshop.entries(flow, TaskStarted)] == [1, 1, 2, 1]  # type: ignore[union-attr]
    finished = [one.task_id for one in workshop.entries(flow, TaskFinished)]  # type: ignore[union-attr]
    assert finished == ["t1", "t2", "t3"]


def test_a_worker_that_is_gone_is_found_out_within_ten_seconds() -> None:
    """Its lease runs out, and the others look after it in the next round."""
    assert LEASE_SECONDS + BEAT_SECONDS + SWEEP_SECONDS < 10


def _status(workshop: Workshop, flow: Workflow) -> str:
    with workshop.service() as service:
        return service.workflow(flow.id).status


@pytest.mark.timeout(120)
def test_a_worker_told_to_end_leaves_at_the_boundary_and_another_goes_on(workshop: Workshop) -> None:
    flow = start(workshop, "touch began; while [ ! -e go ]; do sleep 0.05; done", "echo b >> log")
    with workshop.program("worker") as first:
        wait_for((workshop.project / "began").exists)
        first.send_signal(signal.SIGTERM)
        assert first.stderr
        assert any("Stopping" in line for line in iter(first.stderr.readline, ""))
        (workshop.project / "go").touch()
        assert first.wait(PATIENCE) == 0
    with workshop.service() as service:
        left = service.workflow(flow.id)
    assert (left.status, left.claim) == ("in_progress", None)
    Worker(workshop.settings).run(until_idle=True)
    assert (_status(workshop, flow), workshop.log()) == ("completed", ["b"])
    assert [one.attempt for one in workshop.entries(flow, TaskStarted)] == [1, 1]  # type: ignore[union-attr]


@pytest.mark.timeout(120)
def test_detached_work_finds_a_worker(workshop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(
        "issue: {id: D, title: Detached}\ntasks:\n  - {id: a, run: 'echo a >> log'}\n"
    )
    started = workshop.place.json("run", tmp_path / "plan.yaml", "--detach")
    followed = subprocess.run(
        [*_program(), "events", started["id"], "--follow", "--json"],
        cwd=workshop.project,
        env=workshop.place.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    seen = [json.loads(line)["entry"]["type"] for line in followed.stdout.splitlines()]
    assert seen[-2:] == ["task_finished", "workflow_status_changed"]
    assert workshop.log() == ["a"]


@pytest.mark.timeout(120)
def test_nothing_of_a_stopped_workers_task_runs_once_it_is_paused(workshop: Workshop) -> None:
    """Its command does not stop with it, and must not run beside the next attempt."""
    flow = start(workshop, "echo $$ > pid; touch began; while :; do sleep 0.05; done")
    with workshop.program("worker") as worker:
        wait_for((workshop.project / "began").exists)
        worker.send_signal(signal.SIGSTOP)
        with workshop.service() as service:
            wait_for(lambda: service.is_abandoned(service.workflow(flow.id)))
            service.pause_workflow(flow.id, force_after=0)
        assert not is_alive({"pid": int((workshop.project / "pid").read_text()), "started": None})
    assert _status(workshop, flow) == "paused"


def test_a_runner_woken_after_its_lease_starts_nothing_of_what_another_has_taken(workshop: Workshop) -> None:
    """It slept between the record of a task's start and the start itself."""
    clock = FixedClock(time.time())
    flow = start(workshop, "echo ran >> log")

    def sleep() -> None:
        clock.advance(60)
        with workshop.service() as service:
            service.core.take(flow.id, service.workflow(flow.id).run_id or "", "worker-elsewhere-1-aaa#1")

    set_trap("task.starting", sleep)
    try:
        with Here(workshop.settings, clock=clock) as here:
            here.claim = "worker-here-1-bbb#1"
            taken = here.service.core.take(flow.id, flow.run_id or "", here.claim)
            with pytest.raises(SessionAlreadyRunningError, match="taken over"):
                here.run(taken)
    finally:
        clear_traps()
    assert workshop.log() == []


def test_who_was_too_slow_to_recover_a_workflow_ends_nothing(workshop: Workshop) -> None:
    """Somebody else took it up meanwhile, and is at work."""
    flow = start(workshop, "true")
    with workshop.service() as service:
        stale = service.core.take(flow.id, flow.run_id or "", "worker-nowhere-1-aaa#1")
        service.core.take(flow.id, flow.run_id or "", "worker-nowhere-2-bbb#1")
        service.core.record(flow.id, TaskStarted(task_id="t1", attempt=1))
        (task,) = service.tasks(flow.id).tasks
        environ = {**os.environ, "HOLDFAST_RUN": f"{attempt_mark(stale, task)}-1"}
        with subprocess.Popen(["sleep", "600"], env=environ) as command:
            with pytest.raises(ConflictError):
                service._settle(stale, "crash", "it is gone")  # pyright: ignore[reportPrivateUsage]
            assert command.poll() is None
            command.kill()


@pytest.mark.timeout(120)
def test_an_agent_that_outlives_its_killed_runner_is_gone_before_the_next_attempt(workshop: Workshop) -> None:
    """It gets some seconds to close its session, and takes them all."""
    flow = start(workshop, 'kill -0 $(cat pid) && echo beside >> log || echo alone >> log; [ "$SECOND" ]')
    with workshop.service() as service:
        run_id = service.workflow(flow.id).run_id or ""
        taken = service.core.take(flow.id, run_id, "worker-nowhere-1-aaa#1")
        service.core.record(flow.id, TaskStarted(task_id="t1", attempt=1))
        (task,) = service.tasks(flow.id).tasks
    mark = attempt_mark(taken, task.changed(attempts=1))
    script = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    environ = {**os.environ, "HOLDFAST_RUN": f"{mark}-1"}
    with subprocess.Popen([sys.executable, "-c", script], env=environ, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()
        (workshop.project / "pid").write_text(str(agent.pid))
        reaper = threading.Thread(target=agent.wait)
        reaper.start()
        Worker(workshop.settings).run(until_idle=True)
        reaper.join(PATIENCE)
        agent.kill()
    assert workshop.log() == ["alone"]


def test_a_worker_whose_database_is_deleted_ends(workshop: Workshop) -> None:
    """It would wait for ever for work that nobody can give it any more."""
    with workshop.program("worker") as worker:
        with workshop.service() as service:
            wait_for(service.has_workers)
        for path in workshop.place.home.glob("holdfast.db*"):
            path.unlink()
        assert worker.wait(PATIENCE) == 1
        assert "was deleted" in (worker.stderr.read() if worker.stderr else "")


def test_what_is_queued_while_the_only_worker_ends_is_run(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is still there, so that nobody starts another one."""
    late: list[Workflow] = []
    ends = Engine.__exit__

    def queued_meanwhile(engine: Engine, *error: Any) -> None:
        ends(engine, *error)
        if not late:
            with workshop.service() as service:
                assert service.has_workers()
                late.append(service.start(plan_of("echo late >> log")))

    monkeypatch.setattr(Engine, "__exit__", queued_meanwhile)
    Worker(workshop.settings).run(until_idle=True)
    assert (_status(workshop, late[0]), workshop.log()) == ("completed", ["late"])


def test_a_worker_that_was_killed_is_nobody_to_count_on(workshop: Workshop) -> None:
    with workshop.program("worker") as worker, workshop.service() as service:
        wait_for(service.has_workers)
        worker.kill()
        worker.wait(PATIENCE)
        assert not service.has_workers()


def _program() -> tuple[str, ...]:
    from cli.harness import PROGRAM

    return PROGRAM


def test_what_was_just_queued_is_left_to_the_worker_that_comes(workshop: Workshop) -> None:
    """One was started for it and is not there yet: a second resume is one too many."""
    workflow = start(workshop, "echo a >> log")
    with workshop.service() as service, pytest.raises(SessionAlreadyRunningError):
        service.resume_workflow(workflow.id)


def test_what_nobody_took_up_can_be_resumed(workshop: Workshop) -> None:
    workflow = start(workshop, "echo a >> log")
    in_a_while = workflow.updated_at.timestamp() + 60
    with OrchestratorService(workshop.settings, clock=lambda: in_a_while) as service:
        assert service.resume_workflow(workflow.id).workflow.session_count == 2
        assert service.workflow(workflow.id).status == "in_progress"


def test_a_lease_is_judged_by_the_databases_clock(any_workshop: Workshop) -> None:
    far = Lease("worker-far-1-aaa", "worker", "far away", 1, None, lease_seconds=0.2)
    with any_workshop.service() as service:
        leases = service.store.leases
        leases.add(far)
        assert not is_gone("worker-far-1-aaa#1", leases.all())
        wait_for(lambda: is_gone("worker-far-1-aaa#1", leases.all()))
        assert leases.renew(far.id)
        assert not is_gone("worker-far-1-aaa#1", leases.all())
        wait_for(lambda: leases.remove_expired(far.id))
        assert not leases.remove_expired(far.id)
        assert not leases.renew(far.id)
        assert is_gone("worker-far-1-aaa#1", leases.all())


def test_what_is_due_goes_on_by_itself(workshop: Workshop) -> None:
    with workshop.service() as service:
        workflow = service.start(plan_of("echo a >> log"), claim="run-nowhere-1-aaa#1")
        facts = Facts(trigger="exhaustion", reason="quota", resume_at=workflow.created_at)
        service.core.settle(workflow.id, facts)
    worker = Worker(workshop.settings)
    thread = threading.Thread(target=worker.run)
    thread.start()
    wait_for(lambda: _status(workshop, workflow) == "completed")
    worker.stop()
    thread.join()
    assert workshop.log() == ["a"]


@pytest.mark.timeout(120)
def test_a_plan_is_run_on_a_schedule_until_that_is_removed(workshop: Workshop) -> None:
    place, plan = workshop.place, workshop.project / "nightly.yaml"
    plan.write_text("issue: {id: N, title: Nightly}\ntasks:\n  - {id: a, run: 'echo ran >> log'}\n")
    refused = place.run("run", plan, "--every", "61 * * * *")
    assert (refused.code, "not a schedule" in refused.err) == (2, True)
    refused = place.run("run", plan, "--every", "0 3 30 2 *")
    assert (refused.code, "the schedule '0 3 30 2 *' never comes" in refused.err) == (2, True)
    place.environment["TZ"] = "Nowhere/AtAll"
    refused = place.run("run", plan, "--every", "0 3 * * *")
    assert (refused.code, "unknown time zone: 'Nowhere/AtAll'" in refused.err) == (2, True)
    place.environment["TZ"] = "Japan"
    assert place.json("schedules") == []
    made = place.json("run", plan, "--every", "* * * * * *", "--keep-going")
    assert (made["plan"], made["options"], made["zone"]) == (str(plan), {"keep_going": True}, "Japan")
    worker = Worker(workshop.settings)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        wait_for(workshop.log)
    finally:
        worker.stop()
        thread.join()
    (listed,) = place.json("schedules")
    assert (listed["schedule"], listed["every"]) == (made["schedule"], "* * * * * *")
    with workshop.service() as service:
        started = {each.id for each in service.workflows()}
    assert listed["last"][1] in {*started, "enqueued", "pending"}  # one more may be due as it leaves
    assert place.run("schedules", "--remove", made["schedule"]).code == 0
    assert place.json("schedules") == []
    assert place.run("schedules", "--remove", made["schedule"]).code == 1


def test_what_workers_without_a_lease_have_left_is_found_without_reading_the_rest(
    any_workshop: Workshop, tmp_path: Path
) -> None:
    with any_workshop.service() as service:
        store, plan = service.store, plan_of("true")
        left = service.start(plan, claim="worker-gone-1-aaa#7")
        for number, claim in enumerate(("worker-here-1-aaa#1", "run-here-1-aaa#1", None)):
            folder = tmp_path / str(number)
            folder.mkdir()
            service.start(plan, folder, claim=claim)
        lease = Lease("worker-here-1-aaa", "worker", "elsewhere", 1, None, 60.0)
        store.leases.add(lease)
        assert [flow.id for flow in store.left_behind()] == [left.id]
        assert store.claimed_by_workers() == 2
        store.leases.remove(lease.id)
        assert len(store.left_behind()) == 2
