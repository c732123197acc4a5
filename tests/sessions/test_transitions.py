"""The verbs, each on a store in memory; what depends on the store runs over all of them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.base.clock import to_datetime
from holdfast.base.errors import (
    ConflictError,
    HeldElsewhereError,
    HoldfastError,
    IllegalTransitionError,
    InvalidInputError,
    NotFoundError,
    SessionAlreadyRunningError,
)
from holdfast.model.entry import (
    ConstraintPinned,
    DecisionRecorded,
    Entry,
    ErrorRecorded,
    FeedbackRecorded,
    PauseRequested,
    SnapshotDeleted,
    SnapshotEnriched,
    TaskFinished,
    TaskStarted,
    TestsRun,
    UsageReported,
    WorkflowCreated,
    WorkflowMoved,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStatusChanged,
)
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import Task, TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Issue, Workflow, WorkflowOptions, WorkflowStatus
from holdfast.sessions.transitions import Core, Facts
from holdfast.store.memory import MemoryStore
from holdfast.store.protocol import Store
from holdfast.testing import FixedClock
from store.samples import DECISION, ERROR, FEEDBACK, TESTS, USAGE, everything, full_snapshot

ISSUE = Issue(id="7", title="Mend the sail", description="It tore.")
PLAN = TaskDAG(
    tasks=(
        Task(id="cut", description="cut"),
        Task(id="sew", description="sew", depends_on=("cut",)),
        Task(id="hoist", description="hoist", depends_on=("sew",)),
        Task(id="sweep", description="sweep"),
    )
)
FACTS = Facts(reason="lunch", session_id="session-20260106-120000")


@pytest.fixture
def core(clock: FixedClock) -> Core:
    return Core(MemoryStore(), clock)


@pytest.fixture
def running(core: Core) -> Workflow:
    return core.open(ISSUE, "/srv/sail", task_dag=PLAN, constraints=("no nails",), commit_at_start="c0ffee")


def entries(core: Core, workflow: Workflow) -> list[Entry]:
    return [event.entry for event in core.store.events(workflow_id=workflow.id)]


def kinds(core: Core, workflow: Workflow) -> list[str]:
    return [entry.type for entry in entries(core, workflow)]


class TestOpen:
    def test_gives_a_running_workflow_with_all_it_was_told(self, core: Core, clock: FixedClock) -> None:
        opened = core.open(ISSUE, "/srv/sail", commit_at_start="c0ffee")
        now = to_datetime(clock())
        assert opened.model_dump(exclude={"id", "revision"}) == {
            "issue": ISSUE.model_dump(),
            "worktree": "/srv/sail",
            "status": "in_progress",
            "session_count": 1,
            "created_at": now,
            "updated_at": now,
            "paused_at": None,
            "pause_reason": None,
            "pause_request": None,
            "commit_at_start": "c0ffee",
            "options": WorkflowOptions().model_dump(),
            "run_id": None,
            "claim": None,
            "resume_at": None,
        }
        assert core.store.workflow(opened.id) == opened

    def test_tells_what_happened(self, core: Core, running: Workflow) -> None:
        assert entries(core, running) == [
            WorkflowCreated(issue=ISSUE, worktree="/srv/sail", task_dag=PLAN, constraints=("no nails",)),
            WorkflowStatusChanged(status="in_progress"),
        ]

    @pytest.mark.usefixtures("running")
    def test_is_refused_while_another_is_active_in_that_worktree(self, core: Core) -> None:
        with pytest.raises(HeldElsewhereError, match="/srv/sail"):
            core.open(ISSUE, "/srv/sail")
        assert len(core.store.workflows()) == 1

    def test_gives_each_workflow_an_id_of_its_own(self, core: Core) -> None:
        assert len({core.open(ISSUE, f"/srv/{number}").id for number in range(50)}) == 50


class TestRecord:
    def test_adds_the_entries_in_their_order_as_one_change(self, core: Core, running: Workflow) -> None:
        after = core.record(running.id, TaskStarted(task_id="cut"), ConstraintPinned(text="quietly"))
        assert entries(core, running)[2:] == [TaskStarted(task_id="cut"), ConstraintPinned(text="quietly")]
        assert after.revision == running.revision + 1
        assert core.store.workflow(running.id) == after

    def test_notes_the_moment(self, core: Core, running: Workflow, clock: FixedClock) -> None:
        clock.advance(90)
        assert core.record(running.id, TaskStarted(task_id="cut")).updated_at == to_datetime(clock())

    def test_works_while_the_workflow_is_blocked(self, core: Core, running: Workflow) -> None:
        core.move(running.id, "blocked")
        core.record(running.id, TaskStarted(task_id="cut"))
        assert entries(core, running)[-1] == TaskStarted(task_id="cut")

    @pytest.mark.parametrize("end", ["paused", "completed", "failed", "cancelled"])
    def test_is_refused_unless_the_workflow_runs(
        self, core: Core, running: Workflow, end: WorkflowStatus
    ) -> None:
        core.settle(running.id, FACTS) if end == "paused" else core.move(running.id, end)
        before = everything(core.store)
        with pytest.raises(IllegalTransitionError, match=end):
            core.record(running.id, TaskStarted(task_id="cut"))
        assert everything(core.store) == before

    def test_a_task_that_is_not_in_the_plan_does_not_keep_the_workflow_from_pausing(
        self, core: Core, running: Workflow
    ) -> None:
        with contextlib.suppress(HoldfastError):  # refusing it would be as good
            core.record(running.id, TaskStarted(task_id="no such task"))
        assert core.settle(running.id, FACTS).task_dag == PLAN


class TestMove:
    @pytest.mark.parametrize("status", ["blocked", "completed", "failed", "cancelled"])
    def test_brings_a_running_workflow_there(
        self, core: Core, running: Workflow, status: WorkflowStatus
    ) -> None:
        moved = core.move(running.id, status, "wind")
        assert (moved.status, core.store.workflow(running.id)) == (status, moved)
        assert entries(core, running)[-1] == WorkflowStatusChanged(status=status, reason="wind")

    def test_unblocks(self, core: Core, running: Workflow) -> None:
        core.move(running.id, "blocked")
        assert core.move(running.id, "in_progress").status == "in_progress"

    def test_ends_a_request_for_a_pause(self, core: Core, running: Workflow) -> None:
        core.request_pause(running.id)
        assert core.move(running.id, "completed").pause_request is None

    @pytest.mark.parametrize("status", ["paused", "pending"])
    def test_is_not_the_way_to_pause(self, core: Core, running: Workflow, status: WorkflowStatus) -> None:
        with pytest.raises(InvalidInputError, match=status):
            core.move(running.id, status)

    def test_is_not_the_way_to_resume(self, core: Core, running: Workflow) -> None:
        core.settle(running.id, FACTS)
        with pytest.raises((IllegalTransitionError, InvalidInputError)):
            core.move(running.id, "in_progress")
        assert core.store.workflow(running.id).status == "paused"

    def test_is_refused_once_the_workflow_has_ended(self, core: Core, running: Workflow) -> None:
        core.move(running.id, "completed")
        before = everything(core.store)
        with pytest.raises(IllegalTransitionError, match="completed"):
            core.move(running.id, "in_progress")
        assert everything(core.store) == before

    def test_of_a_workflow_that_is_not_there_is_not_found(self, core: Core) -> None:
        with pytest.raises(NotFoundError):
            core.move("wf_none", "completed")


class TestRequestPause:
    def test_is_recorded_and_changes_no_status(
        self, core: Core, running: Workflow, clock: FixedClock
    ) -> None:
        asked = core.request_pause(running.id, "exhaustion", "85 %")
        assert asked.status == "in_progress"
        assert asked.pause_request is not None
        assert asked.pause_request.model_dump() == {
            "trigger": "exhaustion",
            "reason": "85 %",
            "requested_at": to_datetime(clock()),
            "force_after": None,
        }
        assert entries(core, running)[-1] == PauseRequested(trigger="exhaustion", reason="85 %")

    def test_twice_is_once(self, core: Core, running: Workflow, clock: FixedClock) -> None:
        first = core.request_pause(running.id, "exhaustion", "85 %")
        clock.advance(5)
        assert core.request_pause(running.id, "timeout", "late") == first
        assert kinds(core, running).count("pause_requested") == 1

    def test_is_over_once_the_workflow_is_paused(self, core: Core, running: Workflow) -> None:
        core.request_pause(running.id)
        core.settle(running.id, FACTS)
        assert core.store.workflow(running.id).pause_request is None

    def test_is_refused_where_nothing_runs(self, core: Core, running: Workflow) -> None:
        core.settle(running.id, FACTS)
        with pytest.raises(IllegalTransitionError, match="paused"):
            core.request_pause(running.id)

    def test_is_honoured_for_a_workflow_it_was_accepted_for(self, core: Core, running: Workflow) -> None:
        core.move(running.id, "blocked")
        try:
            core.request_pause(running.id)
        except IllegalTransitionError:
            return  # refusing at once would be as good
        core.settle(running.id, FACTS)
        assert core.store.workflow(running.id).status == "paused"


class TestSettle:
    def test_pauses_the_workflow_and_says_why(self, core: Core, running: Workflow, clock: FixedClock) -> None:
        clock.advance(60)
        snapshot = core.settle(
            running.id, Facts(trigger="timeout", reason="late", session_id="session-20260106-120100")
        )
        paused = core.store.workflow(running.id)
        assert (paused.status, paused.pause_reason, paused.paused_at) == (
            "paused",
            "late",
            to_datetime(clock()),
        )
        assert entries(core, running)[-1] == WorkflowPaused(
            snapshot_id=snapshot.id,
            session_id="session-20260106-120100",
            session_number=1,
            trigger="timeout",
            reason="late",
        )

    def test_stores_the_snapshot_it_returns(self, core: Core, running: Workflow) -> None:
        snapshot = core.settle(running.id, FACTS)
        assert core.store.snapshot(snapshot.id) == snapshot
        assert core.store.latest_snapshot(running.id) == snapshot

    def test_folds_all_that_was_recorded(self, core: Core, running: Workflow) -> None:
        core.record(
            running.id,
            TaskStarted(task_id="cut"),
            TaskFinished(task_id="cut", outcome="completed", result="two halves"),
            DecisionRecorded(decision=DECISION),
            ErrorRecorded(error=ERROR),
            FeedbackRecorded(feedback=FEEDBACK),
            TestsRun(state=TESTS),
            UsageReported(usage=USAGE),
            ConstraintPinned(text="quietly"),
        )
        snapshot = core.settle(running.id, FACTS)
        assert snapshot.task_dag.by_id["cut"].status == "completed"
        assert snapshot.task_dag.by_id["cut"].result == "two halves"
        assert (snapshot.tasks_completed, snapshot.tasks_remaining) == (1, 3)
        assert (snapshot.current_task_id, snapshot.next_task_id) == (None, "sew")
        assert snapshot.decisions == (DECISION,)
        assert snapshot.errors == (ERROR,)
        assert snapshot.reviewer_feedback == (FEEDBACK,)
        assert snapshot.test_state == TESTS
        assert snapshot.usage == USAGE
        assert snapshot.constraints == ("no nails", "quietly")

    def test_adds_the_facts_of_the_world(self, core: Core, running: Workflow) -> None:
        sample = full_snapshot()
        facts = Facts(
            trigger="exhaustion",
            reason="full",
            session_id="session-20260106-120000",
            git_state=sample.git_state,
            files=sample.files,
            usage=USAGE,
            incremental_pause=sample.incremental_pause,
        )
        snapshot = core.settle(running.id, facts)
        for name in ("trigger", "git_state", "files", "usage", "incremental_pause"):
            assert getattr(snapshot, name) == getattr(facts, name)
        assert (snapshot.pause_reason, snapshot.session_id) == ("full", "session-20260106-120000")

    def test_names_the_session_by_the_clock_where_no_name_was_given(
        self, core: Core, running: Workflow
    ) -> None:
        assert core.settle(running.id, Facts()).session_id == "session-20260106-120000"

    def test_makes_an_interrupted_task_pending_again_and_the_next(
        self, core: Core, running: Workflow
    ) -> None:
        core.record(running.id, TaskStarted(task_id="sweep"))
        snapshot = core.settle(running.id, FACTS)
        assert snapshot.task_dag.by_id["sweep"].status == "pending"
        assert (snapshot.current_task_id, snapshot.next_task_id) == ("sweep", "sweep")

    def test_takes_a_task_that_was_told_to_be_interrupted_for_pending(
        self, core: Core, running: Workflow
    ) -> None:
        core.record(
            running.id, TaskStarted(task_id="cut"), TaskFinished(task_id="cut", outcome="interrupted")
        )
        snapshot = core.settle(running.id, FACTS)
        assert snapshot.task_dag.by_id["cut"].status == "pending"
        assert snapshot.next_task_id == "cut"

    def test_knows_no_next_task_when_nothing_is_ready(self, core: Core, running: Workflow) -> None:
        core.record(
            running.id,
            TaskFinished(task_id="cut", outcome="blocked"),
            TaskFinished(task_id="sweep", outcome="completed"),
        )
        assert core.settle(running.id, FACTS).next_task_id is None

    def test_is_refused_for_a_workflow_that_is_paused(self, core: Core, running: Workflow) -> None:
        core.settle(running.id, FACTS)
        before = everything(core.store)
        with pytest.raises(IllegalTransitionError):
            core.settle(running.id, FACTS)
        assert everything(core.store) == before

    def test_prepared_and_not_applied_changes_nothing(self, core: Core, running: Workflow) -> None:
        before = everything(core.store)
        core.prepare_pause(running, FACTS)
        assert everything(core.store) == before

    def test_prepared_before_somebody_elses_change_is_refused(self, core: Core, running: Workflow) -> None:
        settled = core.prepare_pause(running, FACTS)
        core.record(running.id, TaskStarted(task_id="cut"))
        with pytest.raises(ConflictError):
            core.store.apply(settled.change)

    def test_carries_everything_over_several_sessions(self, core: Core, running: Workflow) -> None:
        core.record(
            running.id, DecisionRecorded(decision=DECISION), TaskFinished(task_id="cut", outcome="completed")
        )
        first = core.settle(running.id, FACTS)
        core.claim(running.id)
        core.record(running.id, ErrorRecorded(error=ERROR), TaskFinished(task_id="sew", outcome="completed"))
        second = core.settle(running.id, FACTS)
        assert (first.session_number, second.session_number) == (1, 2)
        assert (second.decisions, second.errors) == ((DECISION,), (ERROR,))
        assert second.tasks_completed == 2
        assert second.next_task_id == "hoist"

    def test_counts_usage_for_the_session_alone(self, core: Core, running: Workflow) -> None:
        core.record(running.id, UsageReported(usage=USAGE))
        core.settle(running.id, FACTS)
        core.claim(running.id)
        assert core.settle(running.id, FACTS).usage == UsageMetrics()


class TestEnrich:
    @pytest.fixture
    def paused(self, core: Core, running: Workflow) -> SessionSnapshot:
        core.record(
            running.id,
            DecisionRecorded(decision=DECISION),
            DecisionRecorded(decision=DECISION.changed(id="d2")),
            ErrorRecorded(error=ERROR),
        )
        return core.settle(running.id, FACTS)

    def test_adds_findings_after_those_it_has(self, core: Core, paused: SessionSnapshot) -> None:
        more = DECISION.changed(id="d0"), ERROR.changed(id="e0")
        enriched = core.enrich(paused.id, [more[0]], [more[1]])
        assert [item.id for item in enriched.decisions] == ["d1", "d2", "d0"]
        assert [item.id for item in enriched.errors] == ["e1", "e0"]
        assert core.store.snapshot(paused.id) == enriched

    def test_replaces_a_finding_of_the_same_id_in_its_place(
        self, core: Core, paused: SessionSnapshot
    ) -> None:
        better = DECISION.changed(rationale="It holds in a gale")
        enriched = core.enrich(paused.id, [better])
        assert enriched.decisions == (better, DECISION.changed(id="d2"))

    def test_changes_nothing_else(self, core: Core, paused: SessionSnapshot) -> None:
        enriched = core.enrich(paused.id, [DECISION.changed(id="d0")])
        assert enriched.changed(decisions=paused.decisions) == paused

    def test_counts_what_is_new(self, core: Core, running: Workflow, paused: SessionSnapshot) -> None:
        core.enrich(paused.id, [DECISION, DECISION.changed(id="d0")], [ERROR.changed(id="e0")])
        assert entries(core, running)[-1] == SnapshotEnriched(snapshot_id=paused.id, decisions=1, errors=1)

    def test_reaches_the_next_session(self, core: Core, running: Workflow, paused: SessionSnapshot) -> None:
        core.claim(running.id)
        core.enrich(paused.id, [DECISION.changed(id="late")])
        assert [item.id for item in core.settle(running.id, FACTS).decisions] == ["d1", "d2", "late"]

    def test_of_a_snapshot_that_is_not_there_is_not_found(self, core: Core) -> None:
        with pytest.raises(NotFoundError):
            core.enrich("snap_none")


class TestClaim:
    def test_starts_the_next_session_from_the_last_snapshot(self, core: Core, running: Workflow) -> None:
        paused = core.settle(running.id, FACTS)
        workflow, snapshot = core.claim(running.id, "go on")
        assert snapshot == paused
        assert (workflow.status, workflow.session_count) == ("in_progress", 2)
        assert (workflow.paused_at, workflow.pause_reason) == (None, None)
        assert entries(core, running)[-1] == WorkflowResumed(
            snapshot_id=paused.id, session_number=2, message="go on"
        )

    def test_goes_on_without_a_snapshot_where_it_was_deleted(self, core: Core, running: Workflow) -> None:
        core.delete_snapshot(core.settle(running.id, FACTS).id)
        workflow, snapshot = core.claim(running.id)
        assert (workflow.status, snapshot) == ("in_progress", None)

    def test_of_a_running_workflow_is_refused(self, core: Core, running: Workflow) -> None:
        with pytest.raises(SessionAlreadyRunningError, match=running.id):
            core.claim(running.id)

    def test_of_a_failed_workflow_is_another_session_with_its_failed_task_pending(
        self, core: Core, running: Workflow
    ) -> None:
        core.record(running.id, TaskStarted(task_id="cut"))
        core.record(running.id, TaskFinished(task_id="cut", outcome="failed", result="it tore"))
        failed = core.settle(running.id, Facts(trigger="failure", reason="task cut: it tore"))
        stopped = core.store.workflow(running.id)
        assert (stopped.status, stopped.pause_reason) == ("failed", "task cut: it tore")
        assert kinds(core, stopped)[-2:] == ["workflow_paused", "workflow_status_changed"]
        assert (failed.trigger, failed.next_task_id) == ("failure", "cut")
        assert failed.task_dag.by_id["cut"].status == "failed"
        workflow, snapshot = core.claim(running.id)
        assert (workflow.session_count, workflow.pause_reason, snapshot) == (2, None, failed)
        task = core.fold(workflow).tasks().by_id["cut"]
        assert (task.status, task.attempts) == ("pending", 1)

    def test_of_one_that_failed_without_a_snapshot_keeps_what_was_recorded(
        self, core: Core, running: Workflow
    ) -> None:
        core.record(
            running.id,
            TaskFinished(task_id="sweep", outcome="completed"),
            TaskFinished(task_id="cut", outcome="failed"),
        )
        core.move(running.id, "failed")
        workflow, snapshot = core.claim(running.id)
        assert (workflow.session_count, snapshot) == (2, None)
        tasks = core.fold(workflow).tasks().by_id
        assert (tasks["sweep"].status, tasks["cut"].status) == ("completed", "pending")

    @pytest.mark.parametrize("end", ["completed", "cancelled"])
    def test_of_an_ended_workflow_is_refused(
        self, core: Core, running: Workflow, end: WorkflowStatus
    ) -> None:
        core.move(running.id, end)
        with pytest.raises(IllegalTransitionError, match=end):
            core.claim(running.id)

    def test_is_refused_while_another_workflow_is_active_there(self, core: Core, running: Workflow) -> None:
        core.settle(running.id, FACTS)
        core.open(ISSUE, "/srv/sail")
        with pytest.raises(HeldElsewhereError, match="/srv/sail"):
            core.claim(running.id)
        assert core.store.workflow(running.id).status == "paused"

    def test_of_a_workflow_that_is_not_there_is_not_found(self, core: Core) -> None:
        with pytest.raises(NotFoundError):
            core.claim("wf_none")


def at_once(count: int, deed: Callable[[int], object]) -> list[object]:
    """What each of that many threads got or raised."""
    barrier = threading.Barrier(count)
    results: list[object] = [None] * count

    def run(number: int) -> None:
        barrier.wait()
        try:
            results[number] = deed(number)
        except HoldfastError as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_of_eight_claims_at_once_one_wins(store: Store, clock: FixedClock) -> None:
    core = Core(store, clock)
    workflow = core.open(ISSUE, "/srv/sail")
    for session in range(2, 6):
        core.settle(workflow.id, FACTS)
        results = at_once(8, lambda _: core.claim(workflow.id))
        losers = [result for result in results if isinstance(result, HoldfastError)]
        assert len(losers) == 7
        assert {type(error) for error in losers} == {SessionAlreadyRunningError}
        assert core.store.workflow(workflow.id).session_count == session


def test_of_eight_workflows_opened_at_once_in_a_worktree_one_is(store: Store, clock: FixedClock) -> None:
    results = at_once(8, lambda _: Core(store, clock).open(ISSUE, "/srv/sail"))
    assert sum(isinstance(result, Workflow) for result in results) == 1
    assert len(store.workflows(worktree="/srv/sail")) == 1


def test_a_pause_asked_for_by_eight_at_once_is_recorded_once(store: Store, clock: FixedClock) -> None:
    core = Core(store, clock)
    workflow = core.open(ISSUE, "/srv/sail")
    results = at_once(8, lambda number: core.request_pause(workflow.id, reason=str(number)))
    assert all(isinstance(result, Workflow | ConflictError) for result in results)
    assert kinds(core, workflow).count("pause_requested") == 1


def test_entries_recorded_by_eight_at_once_are_all_there_or_refused(store: Store, clock: FixedClock) -> None:
    core = Core(store, clock)
    workflow = core.open(ISSUE, "/srv/sail")
    results = at_once(8, lambda number: core.record(workflow.id, ConstraintPinned(text=str(number))))
    kept = {str(number) for number, result in enumerate(results) if isinstance(result, Workflow)}
    pinned = [entry.text for entry in entries(core, workflow) if isinstance(entry, ConstraintPinned)]
    assert kept
    assert sorted(pinned) == sorted(kept)


class TestDeleteSnapshot:
    def test_removes_it_and_tells(self, core: Core, running: Workflow) -> None:
        paused = core.settle(running.id, FACTS)
        assert core.delete_snapshot(paused.id) == paused
        assert core.store.latest_snapshot(running.id) is None
        assert entries(core, running)[-1] == SnapshotDeleted(snapshot_id=paused.id)

    def test_costs_nothing_that_was_recorded(self, core: Core, running: Workflow) -> None:
        core.record(
            running.id, DecisionRecorded(decision=DECISION), TaskFinished(task_id="cut", outcome="completed")
        )
        first = core.settle(running.id, FACTS)
        core.delete_snapshot(first.id)
        core.claim(running.id)
        second = core.settle(running.id, FACTS)
        assert (second.decisions, second.task_dag) == (first.decisions, first.task_dag)

    def test_of_one_that_is_not_there_is_not_found(self, core: Core) -> None:
        with pytest.raises(NotFoundError):
            core.delete_snapshot("snap_none")


class TestRelocate:
    def test_notes_where_the_folder_is_now(self, core: Core, running: Workflow) -> None:
        moved = core.relocate(running.id, "/srv/elsewhere")
        assert core.store.workflow(running.id) == moved
        assert moved.changed(worktree=running.worktree, revision=running.revision) == running
        assert entries(core, running)[-1] == WorkflowMoved(worktree="/srv/elsewhere")

    def test_is_refused_where_another_workflow_is_active(self, core: Core, running: Workflow) -> None:
        core.open(ISSUE, "/srv/elsewhere")
        with pytest.raises(HeldElsewhereError, match="/srv/elsewhere"):
            core.relocate(running.id, "/srv/elsewhere")
        assert core.store.workflow(running.id) == running


class TestPauseOfAWorktree:
    def apply(self, core: Core, **facts: Any) -> tuple[Workflow, SessionSnapshot]:
        settled = core.prepare_worktree_pause("/srv/sail", ISSUE, Facts(**facts), commit_at_start="abc")
        core.store.apply(settled.change)
        assert core.store.workflow(settled.workflow.id) == settled.workflow
        assert core.store.snapshot(settled.snapshot.id) == settled.snapshot
        return settled.workflow, settled.snapshot

    def test_opens_a_workflow_where_there_is_none(self, core: Core) -> None:
        workflow, snapshot = self.apply(core, reason="lunch")
        assert (workflow.status, workflow.session_count, workflow.commit_at_start) == ("paused", 1, "abc")
        assert snapshot.session_number == 1
        assert kinds(core, workflow) == ["workflow_created", "workflow_status_changed", "workflow_paused"]

    def test_goes_on_with_the_active_one(self, core: Core, running: Workflow) -> None:
        core.record(running.id, DecisionRecorded(decision=DECISION))
        workflow, snapshot = self.apply(core)
        assert (workflow.id, workflow.status) == (running.id, "paused")
        assert snapshot.decisions == (DECISION,)

    def test_resumes_the_paused_one_first(self, core: Core, running: Workflow) -> None:
        core.record(running.id, DecisionRecorded(decision=DECISION))
        core.settle(running.id, FACTS)
        workflow, snapshot = self.apply(core)
        assert (workflow.id, workflow.session_count, snapshot.session_number) == (running.id, 2, 2)
        assert snapshot.decisions == (DECISION,)
        assert kinds(core, workflow)[-2:] == ["workflow_resumed", "workflow_paused"]

    def test_can_be_repeated(self, core: Core) -> None:
        numbers = [self.apply(core)[1].session_number for _ in range(3)]
        assert numbers == [1, 2, 3]
        assert len(core.store.workflows()) == 1

    def test_pauses_a_blocked_one(self, core: Core, running: Workflow) -> None:
        core.move(running.id, "blocked")
        workflow, _ = self.apply(core)
        assert (workflow.id, workflow.status) == (running.id, "paused")

    def test_opens_a_new_one_where_the_old_has_ended(self, core: Core, running: Workflow) -> None:
        core.move(running.id, "completed")
        workflow, _ = self.apply(core)
        assert workflow.id != running.id

    def test_prefers_the_active_one_to_a_paused_one(
        self, core: Core, running: Workflow, clock: FixedClock
    ) -> None:
        paused = core.settle(running.id, FACTS)
        active = core.open(ISSUE, "/srv/sail")
        clock.advance(5)
        core.enrich(paused.id, [DECISION])  # the paused one was changed last
        workflow, _ = self.apply(core)
        assert workflow.id == active.id

    def test_leaves_other_worktrees_alone(self, core: Core) -> None:
        other = core.open(ISSUE, "/srv/other")
        self.apply(core)
        assert core.store.workflow(other.id) == other

    def test_leaves_a_plan_alone_that_somebody_runs(self, core: Core) -> None:
        """Running, blocked or paused; what its own agent records is its own."""
        plan = core.open(ISSUE, "/srv/sail", task_dag=PLAN, options=WorkflowOptions(), claim="c1")
        beside, _ = self.apply(core)
        core.settle(plan.id, FACTS)
        again, _ = self.apply(core)
        assert beside.id == again.id != plan.id
        noted = core.note("/srv/sail", DecisionRecorded(decision=DECISION), workflow_id=plan.id)
        assert noted is not None
        assert noted.id == plan.id
        elsewhere = core.note("/srv/sail", DecisionRecorded(decision=DECISION))
        assert elsewhere is not None
        assert elsewhere.id == beside.id


class TestTakeIn:
    @pytest.fixture
    def elsewhere(self, clock: FixedClock) -> Core:
        return Core(MemoryStore(), clock)

    def pause_elsewhere(self, elsewhere: Core) -> tuple[SessionSnapshot, Workflow]:
        settled = elsewhere.prepare_worktree_pause("/srv/sail", ISSUE, FACTS)
        elsewhere.store.apply(settled.change)
        return settled.snapshot, settled.workflow

    def test_brings_a_session_and_its_workflow_here(self, core: Core, elsewhere: Core) -> None:
        snapshot, workflow = self.pause_elsewhere(elsewhere)
        assert core.take_in(snapshot, workflow)
        assert core.store.snapshot(snapshot.id) == snapshot.changed(folded_through=0)
        assert core.store.workflow(workflow.id) == workflow.changed(revision=1)

    def test_twice_is_once(self, core: Core, elsewhere: Core) -> None:
        taken = self.pause_elsewhere(elsewhere)
        core.take_in(*taken)
        before = everything(core.store)
        assert not core.take_in(*taken)
        assert everything(core.store) == before

    def test_of_all_sessions_gives_the_workflow_as_it_was(
        self, core: Core, elsewhere: Core, clock: FixedClock
    ) -> None:
        sessions: list[tuple[SessionSnapshot, Workflow]] = []
        for _ in range(3):
            sessions.append(self.pause_elsewhere(elsewhere))
            clock.advance(60)
        for session in sessions:
            core.take_in(*session)
        last_snapshot, last_workflow = sessions[-1]
        assert core.store.workflow(last_workflow.id).changed(revision=1) == last_workflow.changed(revision=1)
        latest = core.store.latest_snapshot(last_workflow.id)
        assert latest is not None
        assert latest.changed(folded_through=0) == last_snapshot.changed(folded_through=0)

    def test_of_a_session_lets_the_work_go_on(self, core: Core, elsewhere: Core) -> None:
        opened = elsewhere.open(ISSUE, "/srv/sail", task_dag=PLAN, constraints=("no nails",))
        elsewhere.record(
            opened.id, DecisionRecorded(decision=DECISION), TaskFinished(task_id="cut", outcome="completed")
        )
        snapshot = elsewhere.settle(opened.id, FACTS)
        core.take_in(snapshot, elsewhere.store.workflow(opened.id))
        core.claim(opened.id)
        core.record(opened.id, TaskFinished(task_id="sew", outcome="completed"))
        later = core.settle(opened.id, FACTS)
        assert (later.session_number, later.decisions) == (2, (DECISION,))
        assert later.constraints == ("no nails",)
        assert [task.status for task in later.task_dag.tasks] == [
            "completed",
            "completed",
            "pending",
            "pending",
        ]

    def test_gives_a_session_whose_number_is_taken_the_next(self, core: Core, elsewhere: Core) -> None:
        snapshot, workflow = self.pause_elsewhere(elsewhere)
        core.take_in(snapshot, workflow)
        core.take_in(snapshot.changed(id="snap_twin"), workflow)
        assert core.store.snapshot("snap_twin").session_number == 2
        assert core.store.workflow(workflow.id).session_count == 2

    def test_never_moves_an_active_workflow_back(
        self, core: Core, elsewhere: Core, clock: FixedClock
    ) -> None:
        first = self.pause_elsewhere(elsewhere)
        core.take_in(*first)
        clock.advance(60)
        core.claim(first[1].id)
        clock.advance(60)
        core.take_in(*self.pause_elsewhere(elsewhere))
        assert core.store.workflow(first[1].id).status == "in_progress"

    def test_never_moves_a_workflow_back_to_what_an_older_file_says(
        self, core: Core, elsewhere: Core, clock: FixedClock
    ) -> None:
        first = self.pause_elsewhere(elsewhere)
        clock.advance(60)
        second = self.pause_elsewhere(elsewhere)
        core.take_in(*second)
        core.take_in(*first)
        after = core.store.workflow(first[1].id)
        assert (after.updated_at, after.session_count) == (second[1].updated_at, 2)

    def test_of_an_older_session_leaves_the_latest_the_latest(
        self, core: Core, elsewhere: Core, clock: FixedClock
    ) -> None:
        snapshot, workflow = self.pause_elsewhere(elsewhere)
        clock.advance(60)
        core.take_in(*self.pause_elsewhere(elsewhere))
        newest = core.store.latest_snapshot(workflow.id)
        assert newest is not None
        core.take_in(snapshot.changed(id="snap_twin", session_number=newest.session_number), workflow)
        latest = core.store.latest_snapshot(workflow.id)
        assert latest is not None
        assert latest.id == newest.id

    def test_costs_a_running_workflow_nothing_that_it_recorded(self, core: Core, elsewhere: Core) -> None:
        snapshot, workflow = self.pause_elsewhere(elsewhere)
        core.take_in(snapshot, workflow)
        core.claim(workflow.id)
        core.record(workflow.id, DecisionRecorded(decision=DECISION))
        core.take_in(snapshot.changed(id="snap_twin", session_number=7), workflow)
        assert core.settle(workflow.id, FACTS).decisions == (DECISION,)

    @pytest.mark.parametrize("number", [1, 2, 3])
    def test_leaves_a_running_workflow_able_to_pause(self, core: Core, elsewhere: Core, number: int) -> None:
        snapshot, workflow = self.pause_elsewhere(elsewhere)
        core.take_in(snapshot, workflow)
        core.claim(workflow.id)
        core.take_in(snapshot.changed(id="snap_twin", session_number=number), workflow)
        core.settle(workflow.id, FACTS)
        assert core.store.workflow(workflow.id).status == "paused"
