"""Sessions of a workflow, run in this process: boundaries, triggers, what is recorded."""

from __future__ import annotations

import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.base.errors import (
    CannotDoError,
    HeldElsewhereError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
    SessionAlreadyRunningError,
)
from holdfast.base.process import is_alive
from holdfast.model.entry import (
    AgentSessionReported,
    DecisionRecorded,
    PauseRequested,
    TaskFinished,
    TaskStarted,
    UsageReported,
    Warned,
    WorkflowResumed,
)
from holdfast.model.frame import WRAP_UP
from holdfast.model.usage import UsageMetadata
from holdfast.project.settings import Settings
from holdfast.workflows.drivers import driver_named
from holdfast.workflows.drivers.model_tools import WorktreeTools
from holdfast.workflows.drivers.prompts import prompt_for
from holdfast.workflows.drivers.protocol import (
    Assignment,
    Done,
    DriverSession,
    Exhausted,
    Failed,
    RateLimited,
    Report,
    TaskInterrupted,
    TaskOutcome,
)
from holdfast.workflows.plan import Plan, parse_plan
from holdfast.workflows.worker import Here
from store.samples import DECISION
from transcripts.claude_files import answered, called, file_of, said, typed

from .harness import PATIENCE, ScriptedDriver, Workshop, plan_of, wait_for

NOTE = "echo {} >> log"


def noting(*names: str, **options: Any) -> Any:
    return plan_of(*(NOTE.format(name) for name in names), **options)


def usage(share: float) -> UsageMetadata:
    return UsageMetadata(
        prompt_tokens=int(share * 1000),
        completion_tokens=0,
        total_tokens=int(share * 1000),
        context_window_size=1000,
        tokens_remaining=1000 - int(share * 1000),
        utilization_percent=share,
    )


def scripted(monkeypatch: pytest.MonkeyPatch, *script: Any) -> ScriptedDriver:
    driver = ScriptedDriver(script)

    def named(name: str, settings: Settings) -> Any:
        return driver_named(name, settings) if name == "shell" else driver

    for module in ("service", "worker"):
        monkeypatch.setattr(f"holdfast.workflows.{module}.driver_named", named)
    return driver


PROMPTS = parse_plan(
    "issue: {id: W, title: Work}\ndriver: scripted\ntasks:\n"
    "  - {id: a, prompt: first}\n  - {id: b, prompt: second, depends_on: [a]}\n"
)


def test_a_plan_is_worked_off_in_order(any_workshop: Workshop) -> None:
    ended = any_workshop.run(noting("a", "b", "c"))
    assert (ended.status, ended.claim, ended.run_id) == ("completed", None, None)
    assert any_workshop.log() == ["a", "b", "c"]
    told = any_workshop.entries(ended, TaskStarted, TaskFinished)
    assert [(type(one).__name__, one.task_id) for one in told] == [  # type: ignore[union-attr]
        (kind, f"t{number}") for number in (1, 2, 3) for kind in ("TaskStarted", "TaskFinished")
    ]


def test_every_n_tasks_it_pauses_and_goes_on_where_it_was(any_workshop: Workshop) -> None:
    paused = any_workshop.run(noting("a", "b", "c", "d", "e", pause_every=2))
    assert (paused.status, paused.session_count) == ("paused", 1)
    assert any_workshop.log() == ["a", "b"]
    with any_workshop.service() as service:
        snapshot = service.store.latest_snapshot(paused.id)
    assert snapshot is not None
    assert (snapshot.trigger, snapshot.tasks_completed, snapshot.next_task_id) == ("task_complete", 2, "t3")
    assert (any_workshop.place.sessions / f"{snapshot.session_id}.json").exists()
    again = any_workshop.resume(paused)
    assert (again.status, again.session_count) == ("paused", 2)
    last = any_workshop.resume(again, message="finish it")
    assert last.status == "completed"
    assert any_workshop.log() == ["a", "b", "c", "d", "e"]
    resumed = any_workshop.entries(last, WorkflowResumed)
    assert resumed[-1].message == "finish it"  # type: ignore[union-attr]


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_session_that_ran_too_long_is_interrupted(any_workshop: Workshop, parallel: int) -> None:
    plan = plan_of("echo a >> log; test -e ok || sleep 60", "echo b >> log", timeout=0.2, parallel=parallel)
    paused = any_workshop.run(plan)
    assert (paused.status, paused.pause_reason) == ("paused", "the session has run for 0.2 s")
    assert any_workshop.tasks(paused)["t1"].status == "pending"
    with any_workshop.service() as service:
        assert service.snapshots(paused.id)[-1].trigger == "timeout"
    (any_workshop.project / "ok").touch()


def test_a_task_that_takes_too_long_has_failed(any_workshop: Workshop) -> None:
    plan = parse_plan(
        "issue: {id: W, title: Work}\nretries: 1\nretry_delay: 0\ntasks:\n"
        "  - {id: a, run: 'test $HOLDFAST_ATTEMPT = 2 || exec sleep 60', timeout: 0.5}\n"
    )
    done = any_workshop.run(plan)
    first, second = (entry for entry in any_workshop.entries(done, TaskFinished))
    assert (first.outcome, first.result) == ("failed", "timed out after 0.5 s")  # type: ignore[union-attr]
    assert (second.outcome, done.status) == ("completed", "completed")  # type: ignore[union-attr]


def test_a_task_that_fails_fails_the_workflow_with_its_words(workshop: Workshop) -> None:
    ended = workshop.run(plan_of("echo sails torn; exit 3", "echo b >> log"))
    assert (ended.status, workshop.log()) == ("failed", [])
    assert workshop.tasks(ended)["t1"].result == "exit code 3: sails torn"


def test_side_by_side(workshop: Workshop) -> None:
    """Each waits for the other: they end only if they run at the same time."""
    meet = "touch {0}; while [ ! -e {1} ]; do sleep 0.01; done; echo {0} >> log"
    tasks = plan_of(meet.format("a", "b"), meet.format("b", "a"), "echo c >> log", chained=False, parallel=2)
    ended = workshop.run(tasks)
    assert ended.status == "completed"
    assert sorted(workshop.log()) == ["a", "b", "c"]


def test_on_a_pause_siblings_finish_and_later_ones_stay_unstarted(workshop: Workshop) -> None:
    tasks = plan_of(
        "echo a >> log", "sleep 0.3; echo b >> log", "echo c >> log", chained=False, parallel=2, pause_every=1
    )
    paused = workshop.run(tasks)
    assert (paused.status, workshop.log()) == ("paused", ["a", "b"])
    states = {name: task.status for name, task in workshop.tasks(paused).items()}
    assert states == {"t1": "completed", "t2": "completed", "t3": "pending"}
    assert workshop.resume(paused).status == "completed"


def test_a_failure_lets_siblings_finish(workshop: Workshop) -> None:
    waits = "while [ ! -e go ]; do sleep 0.05; done; echo b >> log"
    tasks = plan_of("false", waits, "echo c >> log", chained=False, parallel=2)
    with workshop.service() as service, ThreadPoolExecutor(1) as beside:
        ending = beside.submit(workshop.run, tasks)
        wait_for(lambda: any(isinstance(event.entry, TaskFinished) for event in service.events()))
        (workshop.project / "go").touch()
        ended = ending.result(PATIENCE)
    assert (ended.status, workshop.log()) == ("failed", ["b"])


def test_one_active_workflow_a_worktree(workshop: Workshop) -> None:
    with Here(workshop.settings) as here:
        here.service.start(noting("a"), claim=here.claim)
        with pytest.raises(HeldElsewhereError, match="another workflow is active"):
            here.service.start(noting("b"), claim=here.claim)


def test_what_a_dead_process_left_behind_makes_room_for_the_next(workshop: Workshop) -> None:
    with workshop.service() as service:
        left = service.start(noting("a"), claim="run-nowhere-1-aaa#1")
        assert service.is_abandoned(left)
        other = service.start(noting("b"), claim="run-nowhere-1-bbb#1")
        assert service.workflow(left.id).status == "paused"
        assert service.snapshots(left.id)[-1].trigger == "crash"
        service.cancel(other.id)
    assert workshop.resume(left).status == "completed"


def test_only_one_of_two_resumes_gets_it(workshop: Workshop) -> None:
    paused = workshop.run(noting("a", "b", pause_every=1))
    with Here(workshop.settings) as here:
        here.service.resume_workflow(paused.id, claim=here.claim)
        with pytest.raises(SessionAlreadyRunningError, match="already running"):
            here.service.resume_workflow(paused.id, claim=here.claim)


def test_a_pause_asked_for_by_somebody_else_is_honoured_at_the_boundary(any_workshop: Workshop) -> None:
    ended: list[Any] = []
    with Here(any_workshop.settings) as here:
        slow = plan_of("touch began; while [ ! -e go ]; do sleep 0.01; done", "echo b >> log")
        workflow = here.service.start(slow, claim=here.claim)
        thread = threading.Thread(target=lambda: ended.append(here.run(workflow)))
        thread.start()
        wait_for((any_workshop.project / "began").exists)
        with any_workshop.service() as service:
            assert service.pause_workflow(workflow.id, "going home", wait=False) is None
            (any_workshop.project / "go").touch()
            wait_for(lambda: service.workflow(workflow.id).status == "paused")
            paused = service.workflow(workflow.id)
        thread.join()
    assert (paused.pause_reason, any_workshop.log()) == ("going home", [])
    events = {type(one).__name__: one for one in any_workshop.entries(paused)}
    assert "PauseRequested" in events
    assert any_workshop.tasks(paused)["t1"].status == "completed"


def test_a_pause_that_waited_long_enough_cuts_the_task_off(workshop: Workshop) -> None:
    hangs = plan_of("touch began; [ $HOLDFAST_ATTEMPT = 2 ] || sleep 60; echo a >> log")
    ended: list[Any] = []
    with Here(workshop.settings) as here:
        workflow = here.service.start(hangs, claim=here.claim)
        thread = threading.Thread(target=lambda: ended.append(here.run(workflow)))
        thread.start()
        wait_for((workshop.project / "began").exists)
        with workshop.service() as service:
            assert service.pause_workflow(workflow.id, force_after=0.1)
        thread.join()
    paused = ended[0]
    assert (paused.status, workshop.log()) == ("paused", [])
    assert workshop.tasks(paused)["t1"].status == "pending"
    warned = workshop.entries(paused, Warned)
    assert "interrupted" in warned[0].text  # type: ignore[union-attr]
    assert workshop.resume(paused).status == "completed"
    assert [one.attempt for one in workshop.entries(paused, TaskStarted)] == [1, 2]  # type: ignore[union-attr]


def test_a_run_that_is_over_waits_for_nobody(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """DBOS ends its threads when each has slept enough, and one listens for messages that we never send."""
    slept: list[float] = []
    sleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: (slept.append(seconds), sleep(seconds)))
    assert workshop.run(plan_of("true")).status == "completed"
    assert slept
    assert max(slept) <= 0.1


def test_cancel_stops_the_task_in_flight(workshop: Workshop) -> None:
    ended: list[Any] = []
    with Here(workshop.settings) as here:
        workflow = here.service.start(plan_of("touch began; sleep 600; touch over"), claim=here.claim)
        thread = threading.Thread(target=lambda: ended.append(here.run(workflow)))
        thread.start()
        wait_for((workshop.project / "began").exists)
        here.service.cancel(workflow.id)
        thread.join()
    assert ended[0].status == "cancelled"
    assert not (workshop.project / "over").exists()
    with workshop.service() as service, pytest.raises(IllegalTransitionError):
        service.resume_workflow(workflow.id)


def test_a_task_that_needs_approval_waits_for_it(workshop: Workshop) -> None:
    tasks = parse_plan(
        "issue: {id: W, title: Work}\ntasks:\n  - {id: a, run: 'echo a >> log'}\n"
        "  - {id: b, run: 'echo b >> log', depends_on: [a], approval: true}\n"
    )
    blocked = workshop.run(tasks)
    assert (blocked.status, workshop.log()) == ("blocked", ["a"])
    with Here(workshop.settings) as here:
        with pytest.raises(IllegalTransitionError, match="is waiting for approval"):
            here.service.resume_workflow(blocked.id)
        ended = here.run(here.service.approve(blocked.id, claim=here.claim))
    assert (ended.status, workshop.log()) == ("completed", ["a", "b"])


def test_a_refused_approval_is_asked_for_again_by_a_resume(workshop: Workshop) -> None:
    tasks = parse_plan("issue: {id: W, title: Work}\ntasks:\n  - {id: a, run: 'true', approval: true}\n")
    blocked = workshop.run(tasks)
    with workshop.service() as service:
        failed = service.reject(blocked.id, "not like this")
        assert (failed.status, failed.pause_reason) == ("failed", "task a was rejected: not like this")
        assert [line.trigger for line in service.snapshots(blocked.id)] == ["failure"]
        with pytest.raises(IllegalTransitionError):
            service.approve(blocked.id)
    assert workshop.resume(failed).status == "blocked"


def test_a_blocked_workflow_can_be_paused(workshop: Workshop) -> None:
    tasks = parse_plan("issue: {id: W, title: Work}\ntasks:\n  - {id: a, run: 'true', approval: true}\n")
    blocked = workshop.run(tasks)
    with workshop.service() as service:
        assert service.pause_workflow(blocked.id)
    assert workshop.resume(blocked).status == "blocked"


def test_going_on_from_an_older_snapshot_runs_what_was_not_done_then(workshop: Workshop) -> None:
    paused = workshop.run(noting("a", "b", "c", pause_every=1))
    workshop.resume(paused)
    with workshop.service() as service:
        first = service.snapshots(paused.id)[0]
        second = service.snapshots(paused.id)[1]
        with pytest.raises(NotFoundError):
            service.resume_workflow(paused.id, snapshot_id="snap_nothing")
    assert workshop.log() == ["a", "b"]
    third = workshop.resume(paused, snapshot_id=first.id)
    assert (third.status, workshop.log()) == ("paused", ["a", "b", "b"])
    assert workshop.resume(third).status == "completed"
    assert workshop.log() == ["a", "b", "b", "c"]
    assert second.tasks_completed == 2


def test_drift_is_told_and_strict_refuses(workshop: Workshop) -> None:
    workshop.place.git("commit", "--quiet", "--allow-empty", "-m", "start")
    paused = workshop.run(noting("a", "b", pause_every=1))
    workshop.place.git("checkout", "--quiet", "-b", "elsewhere")
    with workshop.service() as service:
        with pytest.raises(CannotDoError, match="The branch was main and is elsewhere"):
            service.resume_workflow(paused.id, strict=True)
        assert service.workflow(paused.id).status == "paused"
        resumed = service.resume_workflow(paused.id, claim="run-nowhere-1-aaa#1")
        assert resumed.drift[0].startswith("The branch was main and is elsewhere")


def test_a_worktree_that_is_taken_away_pauses_and_waits_for_its_return(workshop: Workshop) -> None:
    away = workshop.project.with_name("away")
    paused = workshop.run(plan_of(f"mv {workshop.project} {away}", "echo b >> log"))
    assert paused.status == "paused"
    assert "is gone" in (paused.pause_reason or "")
    with workshop.service() as service, pytest.raises(CannotDoError, match="is gone"):
        service.resume_workflow(paused.id)
    shutil.move(away, workshop.project)
    assert workshop.resume(paused).status == "completed"
    assert workshop.log() == ["b"]


def test_a_locked_index_holds_nothing_up(workshop: Workshop) -> None:
    (workshop.project / ".git" / "index.lock").touch()
    paused = workshop.run(noting("a", "b", pause_every=1))
    assert paused.status == "paused"
    assert workshop.resume(paused).status == "completed"


def with_options(**options: Any) -> Plan:
    return replace(PROMPTS, options=PROMPTS.options.changed(**options))


def test_a_plan_whose_driver_is_missing_starts_nothing(workshop: Workshop) -> None:
    with workshop.service() as service:
        with pytest.raises(InvalidInputError, match="no such driver: 'magic'"):
            service.start(with_options(driver="magic"))
        assert not service.workflows()


# ── what drivers report ─────────────────────────────────────────────────────────────────────


def fills(share: float) -> Any:
    def work(_assignment: Assignment, report: Report) -> TaskOutcome:
        report.usage(usage(share), tool_calls=2, cost_usd=0.5)
        return Done("done")

    return work


def test_a_window_that_fills_up_pauses_at_85_percent(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = scripted(monkeypatch, fills(0.85), fills(0.1))
    paused = workshop.run(PROMPTS)
    assert (paused.status, len(driver.asked)) == ("paused", 1)
    with workshop.service() as service:
        snapshot = service.store.latest_snapshot(paused.id)
    assert snapshot is not None
    assert snapshot.trigger == "exhaustion"
    assert (snapshot.usage.context_utilization, snapshot.usage.tool_calls, snapshot.usage.cost_usd) == (
        0.85,
        2,
        0.5,
    )
    assert workshop.resume(paused, message="carry on").status == "completed"
    second = driver.asked[1]
    assert (second.session_number, second.message) == (2, "carry on")
    assert second.context is not None
    assert "second" in second.context or "b" in second.context
    assert second.earlier is not None
    assert (second.earlier.trigger, second.earlier.context_utilization) == ("exhaustion", 0.85)


def test_below_the_limit_it_goes_on(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, fills(0.5), fills(0.84))
    ended = workshop.run(PROMPTS)
    assert ended.status == "completed"
    totals = workshop.entries(ended, UsageReported)
    assert [one.usage.llm_calls for one in totals] == [1, 2]  # type: ignore[union-attr]


@pytest.mark.parametrize("outcome", [Exhausted("window full"), RateLimited("too many requests")])
def test_exhaustion_is_a_pause_and_no_failure(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, outcome: TaskOutcome
) -> None:
    scripted(monkeypatch, lambda *_: outcome, lambda *_: Done(), lambda *_: Done())
    paused = workshop.run(PROMPTS)
    assert paused.status == "paused"
    assert workshop.tasks(paused)["a"].status == "pending"
    assert [one.trigger for one in workshop.entries(paused, PauseRequested)] == ["exhaustion"]  # type: ignore[union-attr]
    ended = workshop.resume(paused)
    assert ended.status == "completed"
    assert [(one.task_id, one.attempt) for one in workshop.entries(ended, TaskStarted)] == [  # type: ignore[union-attr]
        ("a", 1),
        ("a", 2),
        ("b", 1),
    ]


def test_a_quota_that_comes_back_is_waited_for_if_asked(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = datetime(2030, 1, 1, tzinfo=UTC)
    scripted(monkeypatch, lambda *_: RateLimited("quota", back))
    paused = workshop.run(with_options(resume_on_reset=True))
    assert (paused.status, paused.resume_at) == ("paused", back)
    with workshop.service() as service:
        assert [flow.id for flow in service.store.due(back)] == [paused.id]
        assert not service.store.due(datetime(2029, 1, 1, tzinfo=UTC))


def test_a_driver_that_breaks_is_a_failed_task(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any) -> TaskOutcome:
        raise RuntimeError("no wind")

    driver = scripted(monkeypatch, breaks, lambda *_: Done("sailed"), lambda *_: Done("sailed"))
    ended = workshop.run(PROMPTS)
    assert ended.status == "failed"
    assert workshop.tasks(ended)["a"].result == "the scripted driver failed: RuntimeError: no wind"
    assert workshop.resume(ended).status == "completed"
    assert [(one.task.id, one.attempt) for one in driver.asked] == [("a", 1), ("a", 2), ("b", 1)]
    assert "the scripted driver failed" in (driver.asked[1].context or "")


def test_findings_and_the_agents_session_are_recorded(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first(_assignment: Assignment, report: Report) -> TaskOutcome:
        report.agent_session(DriverSession("s-1", "codex", Path("/srv/s.jsonl")))
        report.found(DecisionRecorded(decision=DECISION))
        return Done()

    driver = scripted(monkeypatch, first, lambda *_: Failed("no"))
    ended = workshop.run(PROMPTS)
    assert workshop.entries(ended, AgentSessionReported, DecisionRecorded) == [
        AgentSessionReported(task_id="a", agent="codex", agent_session_id="s-1", transcript="/srv/s.jsonl"),
        DecisionRecorded(decision=DECISION),
    ]
    assert driver.asked[1].agent_session == DriverSession("s-1", "codex", Path("/srv/s.jsonl"))


@pytest.mark.parametrize("outcome", [Failed("no"), RateLimited("too many requests"), RuntimeError("no")])
def test_what_the_tools_of_a_lost_attempt_left_is_gone(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, outcome: TaskOutcome | Exception
) -> None:
    def fails(assignment: Assignment, report: Report) -> TaskOutcome:
        tools = WorktreeTools(assignment, report, command_seconds=60)
        assert tools.run_command("setsid sleep 300 & echo $! > pid").startswith("exit code 0")
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    scripted(monkeypatch, fails)
    workshop.run(PROMPTS)
    pid = int((workshop.place.project / "pid").read_text())
    assert not is_alive({"pid": pid, "started": None})


def test_told_to_stop_now_it_cuts_off_and_pauses(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(assignment: Assignment, _report: Report) -> TaskOutcome:
        here.quit.set()
        assert assignment.stop.wait(30)
        return TaskInterrupted(assignment.stop.reason or "")

    scripted(monkeypatch, waits)
    with Here(workshop.settings) as here:
        paused = here.run(here.service.start(PROMPTS, claim=here.claim))
    assert paused.status == "paused"
    assert workshop.tasks(paused)["a"].status == "pending"


def test_a_transcript_is_read_after_the_pause(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot is safe first; then it gets what the agent's own session tells."""
    transcript = workshop.place.root / "session.jsonl"
    transcript.write_bytes(file_of(typed("Store it"), said("Let us use SQLite because it is small.")))

    def work(_assignment: Assignment, report: Report) -> TaskOutcome:
        report.agent_session(DriverSession("s-1", "claude-code", transcript))
        return Exhausted("full")

    scripted(monkeypatch, work)
    paused = workshop.run(PROMPTS)
    with workshop.service() as service:
        wait_for(lambda: service.store.recent_entries("snapshot_enriched", 1))
        wait_for(lambda: (found := service.store.latest_snapshot(paused.id)) and found.gathered)


def in_conversation(transcript: Path, share: float, outcome: TaskOutcome) -> Any:
    def work(_assignment: Assignment, report: Report) -> TaskOutcome:
        report.agent_session(DriverSession("s-1", "claude-code", transcript))
        report.usage(usage(share))
        return outcome

    return work


def talks_on(_assignment: Assignment, report: Report) -> TaskOutcome:
    for _ in range(4):
        report.usage(usage(0.9), tool_calls=1)
    return TaskInterrupted(_assignment.stop.reason or "never told to stop")


def test_before_exhaustion_the_agent_hands_over_in_its_own_words(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored with the pause, checked against its record, and read by the next session."""
    transcript = workshop.place.root / "session.jsonl"
    transcript.write_bytes(
        file_of(
            typed("Store it"),
            called("t1", "Bash", command="pytest -q"),
            answered("t1", "FAILED tests/test_a.py::test_it\n1 failed", error=True),
            said("One test fails."),
            typed(WRAP_UP),
            said("Now: finish the storage."),
        )
    )
    words = "Now: finish the storage.\nState: all tests pass."
    driver = scripted(
        monkeypatch,
        in_conversation(transcript, 0.86, Done()),
        lambda *_: Done(words),
        lambda *_: Done(),
    )
    paused = workshop.run(PROMPTS)
    asked = driver.asked[1]
    assert (asked.wraps_up, asked.agent_session and asked.agent_session.id) == (True, "s-1")
    assert "Watch out: the user's rules" in prompt_for(asked, is_begun=True)
    with workshop.service() as service:

        def checked() -> Any:
            found = service.store.latest_snapshot(paused.id)
            return found if found and "[the record: " in (found.handover or "") else None

        snapshot = wait_for(checked)
    assert [turn.said for turn in snapshot.gathered.turns] == ["Store it"]
    assert snapshot.gathered.last_words == "One test fails."
    assert workshop.resume(paused).status == "completed"
    told = driver.asked[2].context or ""
    assert "Now: finish the storage." in told
    assert "State: all tests pass. [the record: the newest run of `pytest -q` failed]" in told


@pytest.mark.parametrize(
    ("outcome", "answer", "warning"),
    [
        (Done(), lambda *_: Failed("it broke"), "the agent wrote no handover: it broke"),
        (Done(), lambda *_: Done(" "), "the agent wrote no handover: it said nothing"),
        (Done(), talks_on, "the agent wrote no handover: it took more than 3 model calls"),
        (Exhausted("at its level", has_room=True), lambda *_: Done("Now: go on"), None),
        (Exhausted("full"), None, None),
        (RateLimited("too many requests"), None, None),
    ],
)
def test_a_handover_that_fails_costs_no_pause(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, outcome: TaskOutcome, answer: Any, warning: Any
) -> None:
    missing = workshop.place.root / "session.jsonl"
    driver = scripted(monkeypatch, in_conversation(missing, 0.86, outcome), *([answer] if answer else []))
    paused = workshop.run(PROMPTS)
    assert (paused.status, len(driver.asked)) == ("paused", 2 if answer else 1)
    assert [one.text for one in workshop.entries(paused, Warned)] == ([warning] if warning else [])  # type: ignore[union-attr]
    with workshop.service() as service:
        snapshot = service.store.latest_snapshot(paused.id)
    assert snapshot is not None
    assert snapshot.handover == ("Now: go on" if answer and not warning else None)


def test_a_forced_pause_does_not_wait_for_the_handover(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what had ended before is recorded once, though the workflow was changed meanwhile."""

    def force(assignment: Assignment, _report: Report) -> TaskOutcome:
        with workshop.service() as service:
            service.pause_workflow(assignment.workflow_id, force_after=0, wait=False)
        assert assignment.stop.wait(60)
        return TaskInterrupted(assignment.stop.reason or "")

    missing = workshop.place.root / "session.jsonl"
    scripted(monkeypatch, in_conversation(missing, 0.86, Done()), force)
    paused = workshop.run(PROMPTS)
    assert paused.status == "paused"
    told = [one.text for one in workshop.entries(paused) if isinstance(one, Warned)]
    assert told == ["the agent wrote no handover: the pause timed out"]
    assert len(workshop.entries(paused, TaskFinished)) == 1


def test_a_task_that_would_not_fit_is_left_to_the_next_session(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, *[fills(0.3) for _ in range(20)])
    for _ in range(3):
        workshop.run(PROMPTS)
    scripted(monkeypatch, fills(0.7), fills(0.1))
    paused = workshop.run(PROMPTS)
    assert paused.status == "paused"
    assert "task b would not fit" in (paused.pause_reason or "")
    assert "scripted tasks" in (paused.pause_reason or "")
    assert workshop.resume(paused).status == "completed"


def test_values_reach_the_tasks_that_depend_on_them(any_workshop: Workshop) -> None:
    tasks = (
        "issue: {id: W, title: Work}\npause_every: 2\ntasks:\n"
        "  - {id: build-it, run: 'echo version=1=2 >> $HOLDFAST_OUTPUTS'}\n"
        "  - {id: b, run: 'true', depends_on: [build-it]}\n"
        "  - {id: c, run: 'echo c$HOLDFAST_INPUT_BUILD_IT_VERSION >> log', depends_on: [b]}\n"
        "  - {id: d, run: 'echo d$HOLDFAST_INPUT_BUILD_IT_VERSION >> log'}\n"
    )
    paused = any_workshop.run(parse_plan(tasks))
    assert any_workshop.tasks(paused)["build-it"].outputs == {"version": "1=2"}
    assert any_workshop.resume(paused).status == "completed"
    assert any_workshop.log() == ["c1=2", "d"]


def test_a_value_without_a_name_fails_the_task(workshop: Workshop) -> None:
    failed = workshop.run(plan_of("echo 1.2 >> $HOLDFAST_OUTPUTS"))
    assert failed.pause_reason == "task t1: line 1 of HOLDFAST_OUTPUTS is not NAME=VALUE"


def test_a_log_of_gigabytes_in_place_of_values_is_not_read(workshop: Workshop) -> None:
    failed = workshop.run(plan_of("truncate -s 1T $HOLDFAST_OUTPUTS"))
    assert "HOLDFAST_OUTPUTS has 1,099,511,627,776 bytes, more than" in (failed.pause_reason or "")


def test_an_agent_is_told_when_its_loop_is_done_and_what_the_command_said(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fixes(assignment: Assignment, report: Report) -> TaskOutcome:
        (workshop.project / "fixed").touch()
        return Done("fixed it")

    driver = scripted(monkeypatch, lambda assignment, report: Done("looked at it"), fixes)
    plan = parse_plan(
        "issue: {id: W, title: Work}\ndriver: scripted\ntasks:\n"
        "  - {id: a, prompt: Fix it, until: 'test -e fixed || { echo torn; exit 1; }'}\n"
    )
    assert workshop.run(plan).status == "completed"
    first, second = (prompt_for(asked, is_begun=False) for asked in driver.asked)
    assert "It is done when this command succeeds: test -e fixed" in first
    assert "The last attempt ended with" not in first
    assert "exit code 1: torn" in second


def test_values_arrive_as_they_were_written_and_are_shown_without_secrets(any_workshop: Workshop) -> None:
    values = "build_key=app/2026/b1f9a3c77d.tgz", "url=https://jo:hunter2secret@host.io/x"
    tasks = (
        "issue: {id: W, title: Work}\npause_every: 1\ntasks:\n"
        f"""  - {{id: build, run: 'printf "%s\\n%s\\n" {values[0]} {values[1]} >> $HOLDFAST_OUTPUTS'}}\n"""
        "  - {id: ship, run: 'echo $HOLDFAST_INPUT_BUILD_BUILD_KEY $HOLDFAST_INPUT_BUILD_URL | tee -a log', "
        "depends_on: [build]}\n"
    )
    paused = any_workshop.run(parse_plan(tasks))
    assert "hunter2secret" not in str(any_workshop.tasks(paused)["build"].outputs)
    assert any_workshop.resume(paused).status == "completed"
    assert any_workshop.log() == [value.partition("=")[2] for value in values]
    told = "".join(map(str, any_workshop.entries(paused)))
    assert "hunter2secret" not in told
    with any_workshop.service() as service:
        assert service.store.originals(paused.id) == {}
