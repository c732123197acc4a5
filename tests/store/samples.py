"""Workflows, snapshots and changes for the tests; `full_…` have every field set to something."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.base.errors import ConflictError
from holdfast.model.entry import (
    AgentSessionReported,
    ConstraintPinned,
    DecisionRecorded,
    Entry,
    ErrorRecorded,
    FeedbackRecorded,
    HandoverTakenUp,
    PauseRequested,
    SessionTaken,
    SnapshotDeleted,
    SnapshotEnriched,
    SnapshotImported,
    TaskApproved,
    TaskFinished,
    TaskSkipped,
    TaskStarted,
    TestsRun,
    TodosSet,
    UsageReported,
    Warned,
    WorkCommitted,
    WorkflowCreated,
    WorkflowForked,
    WorkflowMoved,
    WorkflowPaused,
    WorkflowResumed,
    WorkflowStatusChanged,
)
from holdfast.model.findings import Decision, ErrorRecord, Evidence, ReviewerFeedback, TestState
from holdfast.model.git import GitState
from holdfast.model.message import TodoItem
from holdfast.model.snapshot import ActionGlimpse, FileFingerprint, IncrementalPause, SessionSnapshot
from holdfast.model.task import Task, TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Issue, PauseRequest, Workflow, WorkflowOptions
from holdfast.store.protocol import Change, Store

NOON = datetime(2026, 1, 6, 12, tzinfo=UTC)
NOTE = WorkflowStatusChanged(status="in_progress")
"""An entry where the test does not care which."""


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def workflow(name: str = "wf_1", **fields: Any) -> Workflow:
    """In a worktree of its own, unless told otherwise."""
    given: dict[str, Any] = {
        "id": name,
        "issue": Issue(id="7", title="Mend the sail"),
        "worktree": f"/srv/{name}",
        "status": "in_progress",
        "created_at": NOON,
        "updated_at": NOON,
    }
    return Workflow.model_validate(given | fields)


def snapshot(name: str = "snap_1", of: str = "wf_1", number: int = 1, **fields: Any) -> SessionSnapshot:
    given: dict[str, Any] = {
        "id": name,
        "workflow_id": of,
        "session_number": number,
        "session_id": f"session-20260106-12000{number % 10}",
        "created_at": NOON,
        "trigger": "pause",
    }
    return SessionSnapshot.model_validate(given | fields)


def new(flow: Workflow, *entries: Entry, **more: Any) -> Change:
    return Change(flow, None, entries or (NOTE,), **more)


def next_of(flow: Workflow, *entries: Entry, seconds: float = 1, **more: Any) -> Change:
    """The change that follows on this state of the workflow."""
    after = flow.touched(flow.updated_at + timedelta(seconds=seconds))
    return Change(after, flow.revision, entries or (NOTE,), **more)


def numbered(number: int) -> TaskFinished:
    """An entry that can be told from others."""
    return TaskFinished(task_id=f"t{number}", outcome="completed", result=str(number))


def everything(store: Store) -> tuple[Any, ...]:
    """All that can be read, to see whether anything changed."""
    flows = store.workflows(limit=1000)
    return (
        flows,
        [store.snapshot(line.id) for flow in flows for line in store.snapshots(flow.id)],
        store.events(),
    )


def retried(store: Store, workflow_id: str, entry: Entry) -> int:
    """Apply an entry on whatever state is current, as often as it takes; how often others were first."""
    for attempt in range(10_000):
        try:
            store.apply(next_of(store.workflow(workflow_id), entry))
        except ConflictError:
            continue
        return attempt
    raise AssertionError("never got through")


DECISION = Decision(
    id="d1",
    timestamp=at(0.25),
    task_id="t1",
    decision_type="library",
    description="Use canvas",
    rationale="It holds",
    alternatives_considered=("hemp", "tarpaulin \N{SAILBOAT}"),
    evidence=(Evidence(source="transcript", messages=(3, 4), quote="“canvas”\nit is"),),
)
ERROR = ErrorRecord(
    id="e1",
    timestamp=at(1),
    task_id="t2",
    error_type="TornError",
    error_message="seam 'x'; DROP TABLE workflows; --",
    context="in a gale",
    resolution="unresolved",
    resolution_notes="later",
    evidence=(Evidence(source="journal", messages=(1,)),),
)
FEEDBACK = ReviewerFeedback(
    review_id="r1",
    reviewer_persona="bosun",
    timestamp=at(2),
    approved=False,
    severity="major",
    comments=("looser", "tighter"),
    addressed=True,
)
TESTS = TestState(
    phase="red",
    failing_tests=("test_holds",),
    expected_failures=("test_holds",),
    last_test_run_at=at(3),
    last_test_command="make test",
    last_test_output_summary="1 failed",
)
USAGE = UsageMetrics(
    tokens_used=170_000,
    tokens_remaining_estimate=30_000,
    context_utilization=0.85,
    llm_calls=12,
    tool_calls=34,
    cost_usd=1.25,
    session_duration_seconds=5400,
)
PLAN = TaskDAG(
    tasks=(
        Task(id="t1", description="cut", status="completed", run="cut --all", result="ok"),
        Task(id="t2", description="sew", depends_on=("t1",), prompt="sew it"),
        Task(id="t3", description="hoist", status="blocked", depends_on=("t1", "t2")),
    )
)
ISSUE = Issue(id="7", title="Mend the sail", description="It tore.\n\nBadly; see 'log' \\ 100% \N{ANCHOR}")


def full_workflow(**fields: Any) -> Workflow:
    return workflow(
        issue=ISSUE,
        worktree="/srv/söil 'x'",
        status="blocked",
        revision=1,
        session_count=3,
        created_at=at(0.000001),
        updated_at=at(1.123456),
        paused_at=at(1.5),
        pause_reason="wind\n“up”",
        pause_request=PauseRequest(trigger="timeout", reason="late", requested_at=at(0.5), force_after=0.5),
        commit_at_start="c0ffee" * 6 + "c0ff",
        options=WorkflowOptions(driver="codex", parallel=3, timeout=1.5, branch="söil", resume_on_reset=True),
        run_id="wf_1/3.1",
        claim="worker-a-1#2",
        resume_at=at(9.000001),
        **fields,
    )


def full_snapshot(**fields: Any) -> SessionSnapshot:
    return snapshot(
        created_at=at(7.654321),
        trigger="exhaustion",
        pause_reason="full",
        task_dag=PLAN,
        current_task_id="t2",
        next_task_id="t2",
        git_state=GitState(
            branch="main",
            commit_at_workflow_start="a" * 40,
            commit_at_snapshot="b" * 40,
            files_modified=("sail.txt", '"caf\\351.txt"'),
            files_staged=("sail.txt",),
            has_uncommitted_changes=True,
            uncommitted_summary="2 modified",
            start_commit_missing=True,
            operation="merge",
            upstream="origin/main",
            ahead=1,
            behind=2,
            worktree="/srv/wf_1",
            submodules_changed=("rig",),
        ),
        files=(
            FileFingerprint(
                path="sail.txt", hash=f"sha256:{'0' * 64}", mtime_ns=1_767_700_800_123_456_789, size=9
            ),
            FileFingerprint(path="gone.txt", hash="absent", mtime_ns=0, size=0),
        ),
        decisions=(DECISION,),
        errors=(ERROR,),
        reviewer_feedback=(FEEDBACK,),
        test_state=TESTS,
        constraints=("never cut the mast",),
        usage=USAGE,
        incremental_pause=IncrementalPause(
            action_count=12,
            duration_seconds=60,
            context_range=(0.9, 0.97),
            tool_calls=4,
            actions_summary=(ActionGlimpse(type="tool_call", timestamp="2026-01-06T12:00:00.000Z"),),
            skipped_lines=1,
        ),
        folded_through=5,
        work=WorkCommitted(task_id="t1", commit="c0ffee", ref="refs/holdfast/wf_1/a"),
        agent_session=AgentSessionReported(task_id="t2", agent="codex", agent_session_id="s-1"),
        **fields,
    )


ONE_OF_EACH: tuple[Entry, ...] = (
    HandoverTakenUp(snapshot_id="snap_1", message="go on"),
    WorkflowCreated(issue=ISSUE, worktree="/srv/wf_1", task_dag=PLAN, constraints=("a",)),
    WorkflowStatusChanged(status="blocked", reason="wind"),
    SessionTaken(run_id="wf_1/3.1", claim="worker-a-1#2", took_over_from="worker-b-1#9"),
    Warned(text="the wind turns"),
    TaskApproved(task_id="t1"),
    TaskSkipped(task_id="t1", reason="by hand"),
    AgentSessionReported(task_id="t1", agent="codex", agent_session_id="s-1", transcript="/srv/s.jsonl"),
    WorkCommitted(task_id="t1", commit="c0ffee", ref="refs/holdfast/wf_1/a"),
    TaskStarted(task_id="t1", attempt=2),
    TaskFinished(
        task_id="t1",
        outcome="interrupted",
        result="cut off",
        attempt=2,
        seconds=1.5,
        driver="shell",
        tokens=7,
        context_share=0.25,
    ),
    DecisionRecorded(decision=DECISION),
    ErrorRecorded(error=ERROR),
    FeedbackRecorded(feedback=FEEDBACK),
    TestsRun(state=TESTS),
    UsageReported(usage=USAGE),
    ConstraintPinned(text="b"),
    TodosSet(todos=(TodoItem(text="Paint the mast", status="pending"),)),
    PauseRequested(trigger="exhaustion", reason="85 %"),
    WorkflowPaused(
        snapshot_id="snap_1",
        session_id="session-20260106-120000",
        session_number=1,
        trigger="pause",
        reason="x",
    ),
    WorkflowResumed(snapshot_id="snap_1", session_number=2, message="go"),
    SnapshotEnriched(snapshot_id="snap_1", decisions=1, errors=2),
    SnapshotDeleted(snapshot_id="snap_1"),
    SnapshotImported(snapshot_id="snap_1", session_id="session-20260106-120000"),
    WorkflowMoved(worktree="/srv/elsewhere"),
    WorkflowForked(origin_id="wf_0", snapshot_id="snap_1", task_id="t1"),
)
