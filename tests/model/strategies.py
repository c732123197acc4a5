"""Random values of the model: anything a snapshot or an entry may hold."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import strategies as st

from holdfast.model import entry as e
from holdfast.model.findings import Decision, ErrorRecord, Evidence, ReviewerFeedback, TestState
from holdfast.model.git import GitState
from holdfast.model.snapshot import ActionGlimpse, FileFingerprint, IncrementalPause, SessionSnapshot
from holdfast.model.task import Task, TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Issue, PauseRequest, Workflow, WorkflowOptions

TEXT = st.text(max_size=12)
"""Whatever Unicode has, line breaks and zero characters included, but no lone surrogates."""
SOME_TEXT = st.text(min_size=1, max_size=12)
MOMENT = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
COUNT = st.integers(0, 2**31 - 1)
SHARE = st.floats(0, 1.5, allow_nan=False)
TRIGGER = st.sampled_from(["pause", "task_complete", "exhaustion", "timeout", "crash"])
TASK_IDS = ("a", "b", "c", "d")


def few(values: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(values, max_size=3).map(tuple)


evidence = st.builds(Evidence, source=TEXT, messages=few(COUNT), quote=st.none() | TEXT)
decisions = st.builds(
    Decision,
    id=st.sampled_from(["d1", "d2", "d3"]),
    timestamp=MOMENT,
    task_id=st.none() | TEXT,
    decision_type=st.sampled_from(
        ["approach", "library", "architecture", "workaround", "skip", "clarification"]
    ),
    description=SOME_TEXT,
    rationale=TEXT,
    alternatives_considered=st.none() | few(TEXT),
    evidence=few(evidence),
)
errors = st.builds(
    ErrorRecord,
    id=st.sampled_from(["e1", "e2", "e3"]),
    timestamp=MOMENT,
    task_id=st.none() | TEXT,
    error_type=TEXT,
    error_message=TEXT,
    context=st.none() | TEXT,
    resolution=st.sampled_from(["fixed", "workaround", "deferred", "unresolved"]),
    resolution_notes=st.none() | TEXT,
    evidence=few(evidence),
)
feedback = st.builds(
    ReviewerFeedback,
    review_id=st.sampled_from(["r1", "r2"]),
    reviewer_persona=TEXT,
    timestamp=MOMENT,
    approved=st.booleans(),
    severity=TEXT,
    comments=few(TEXT),
    addressed=st.booleans(),
)
test_states = st.builds(
    TestState,
    phase=st.sampled_from(["red", "green", "refactor", "unknown"]),
    failing_tests=few(TEXT),
    expected_failures=few(TEXT),
    last_test_run_at=st.none() | MOMENT,
    last_test_command=st.none() | TEXT,
    last_test_output_summary=st.none() | TEXT,
)
usages = st.builds(
    UsageMetrics,
    tokens_used=COUNT,
    tokens_remaining_estimate=st.none() | COUNT,
    context_utilization=st.none() | SHARE,
    llm_calls=COUNT,
    tool_calls=COUNT,
    cost_usd=st.none() | st.floats(0, 1e6, allow_nan=False),
    session_duration_seconds=COUNT,
)
git_states = st.builds(
    GitState,
    branch=st.none() | TEXT,
    commit_at_workflow_start=st.none() | TEXT,
    commit_at_snapshot=st.none() | TEXT,
    files_modified=few(TEXT),
    files_staged=few(TEXT),
    has_uncommitted_changes=st.booleans(),
    uncommitted_summary=st.none() | TEXT,
    start_commit_missing=st.booleans(),
    operation=st.none() | st.sampled_from(["merge", "rebase", "cherry-pick", "revert", "bisect", "am"]),
    upstream=st.none() | TEXT,
    ahead=st.none() | COUNT,
    behind=st.none() | COUNT,
    worktree=st.none() | TEXT,
    submodules_changed=few(TEXT),
)
fingerprints = st.builds(
    FileFingerprint,
    path=TEXT,
    hash=st.just("absent") | st.binary(min_size=32, max_size=32).map(lambda data: f"sha256:{data.hex()}"),
    mtime_ns=st.integers(0, 2**63 - 1),
    size=COUNT,
)
winddowns = st.builds(
    IncrementalPause,
    enabled=st.booleans(),
    action_count=COUNT,
    duration_seconds=COUNT,
    context_range=st.tuples(SHARE, SHARE),
    tool_calls=COUNT,
    actions_summary=few(st.builds(ActionGlimpse, type=TEXT, timestamp=TEXT)),
    skipped_lines=COUNT,
)


@st.composite
def plans(draw: st.DrawFn) -> TaskDAG:
    """Up to four tasks; each depends on earlier ones only, then their order is shuffled."""
    names = TASK_IDS[: draw(st.integers(0, len(TASK_IDS)))]
    tasks = [
        Task(
            id=name,
            description=draw(TEXT),
            status=draw(st.sampled_from(["pending", "in_progress", "blocked", "completed", "failed"])),
            depends_on=tuple(draw(st.sets(st.sampled_from(names[:position])))) if position else (),
            run=draw(st.none() | TEXT),
            prompt=draw(st.none() | TEXT),
            driver=draw(st.none() | TEXT),
            approval=draw(st.booleans()),
            review=draw(st.booleans()),
            junit=draw(st.none() | TEXT),
            attempts=draw(COUNT),
            result=draw(st.none() | TEXT),
        )
        for position, name in enumerate(names)
    ]
    return TaskDAG(tasks=tuple(draw(st.permutations(tasks))))


@st.composite
def snapshots(draw: st.DrawFn) -> SessionSnapshot:
    plan = draw(plans())
    some_task = st.none() | st.sampled_from([task.id for task in plan.tasks]) if plan.tasks else st.none()
    return SessionSnapshot(
        id=draw(SOME_TEXT),
        workflow_id=draw(SOME_TEXT),
        session_number=draw(st.integers(1, 2**31 - 1)),
        session_id=draw(SOME_TEXT),
        created_at=draw(MOMENT),
        trigger=draw(TRIGGER),  # type: ignore[arg-type]
        pause_reason=draw(st.none() | TEXT),
        task_dag=plan,
        current_task_id=draw(some_task),
        next_task_id=draw(some_task),
        git_state=draw(st.none() | git_states),
        files=draw(few(fingerprints)),  # type: ignore[arg-type]
        decisions=tuple(draw(st.lists(decisions, max_size=3, unique_by=lambda item: item.id))),
        errors=tuple(draw(st.lists(errors, max_size=3, unique_by=lambda item: item.id))),
        reviewer_feedback=draw(
            st.none() | st.lists(feedback, max_size=2, unique_by=lambda item: item.review_id).map(tuple)
        ),
        test_state=draw(st.none() | test_states),
        constraints=draw(few(TEXT)),  # type: ignore[arg-type]
        usage=draw(usages),
        incremental_pause=draw(st.none() | winddowns),
        folded_through=draw(COUNT),
    )


issues = st.builds(Issue, id=TEXT, title=TEXT, description=TEXT)
workflows = st.builds(
    Workflow,
    id=SOME_TEXT,
    issue=issues,
    worktree=TEXT,
    status=st.sampled_from(
        ["pending", "in_progress", "blocked", "paused", "completed", "failed", "cancelled"]
    ),
    revision=st.integers(1, 2**31 - 1),
    session_count=st.integers(1, 2**31 - 1),
    created_at=MOMENT,
    updated_at=MOMENT,
    paused_at=st.none() | MOMENT,
    pause_reason=st.none() | TEXT,
    pause_request=st.none()
    | st.builds(PauseRequest, trigger=TRIGGER, reason=st.none() | TEXT, requested_at=MOMENT),
    commit_at_start=st.none() | TEXT,
    options=st.builds(WorkflowOptions, driver=TEXT, parallel=st.integers(1, 9), branch=st.none() | TEXT),
    run_id=st.none() | TEXT,
    claim=st.none() | TEXT,
    resume_at=st.none() | MOMENT,
)

PLAN = TaskDAG(tasks=tuple(Task(id=name, description=name) for name in TASK_IDS))
task_names = st.sampled_from(TASK_IDS)
entries = st.one_of(
    st.builds(e.TaskStarted, task_id=task_names, attempt=st.integers(1, 3)),
    st.builds(e.TaskApproved, task_id=task_names),
    st.builds(e.AgentSessionReported, task_id=task_names, agent=TEXT, agent_session_id=TEXT),
    st.builds(e.SessionTaken, run_id=TEXT, claim=TEXT),
    st.builds(
        e.TaskFinished,
        task_id=task_names,
        outcome=st.sampled_from(["completed", "failed", "blocked", "interrupted"]),
        result=st.none() | TEXT,
    ),
    st.builds(e.DecisionRecorded, decision=decisions),
    st.builds(e.ErrorRecorded, error=errors),
    st.builds(e.FeedbackRecorded, feedback=feedback),
    st.builds(e.TestsRun, state=test_states),
    st.builds(e.UsageReported, usage=usages),
    st.builds(e.ConstraintPinned, text=st.sampled_from(["x", "y", "z"])),
    st.builds(e.WorkflowResumed, session_number=st.integers(1, 9)),
    st.builds(e.PauseRequested, trigger=TRIGGER),
    st.builds(e.UnknownEntry, type=st.just("sail_set")),
)
"""What happens in a running session whose plan is `PLAN`."""
