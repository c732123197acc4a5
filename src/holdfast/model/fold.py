"""A session's state is a fold over its entries, starting from the last snapshot.

Folding from the snapshot keeps a pause's cost with the work done since, not with all history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.model import entry as e
from holdfast.model.findings import Decision, ErrorRecord, ReviewerFeedback, TestState
from holdfast.model.message import TodoItem
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.statuses import TaskProgress, is_not_yet
from holdfast.model.task import TaskDAG
from holdfast.model.usage import UsageMetrics


@dataclass(frozen=True)
class PendingRetry:
    """A task that is tried again by itself in this session: it failed, or its loop goes round once more."""

    at: datetime
    failures: int = 0
    rounds: int = 0

    @classmethod
    def following(cls, before: PendingRetry | None, reason: str | None, at: datetime) -> PendingRetry:
        failures, rounds = (before.failures, before.rounds) if before else (0, 0)
        return cls(at, failures, rounds + 1) if is_not_yet(reason) else cls(at, failures + 1, rounds)


@dataclass
class SessionFold(TaskProgress):
    """The state under construction. Dictionaries keep the first order and the last word."""

    task_dag: TaskDAG = field(default_factory=TaskDAG)
    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])
    errors: dict[str, ErrorRecord] = field(default_factory=dict[str, ErrorRecord])
    feedback: dict[str, ReviewerFeedback] = field(default_factory=dict[str, ReviewerFeedback])
    test_state: TestState | None = None
    constraints: dict[str, None] = field(default_factory=dict[str, None])
    todos: tuple[TodoItem, ...] = ()
    usage: UsageMetrics = field(default_factory=UsageMetrics)
    agent_session: e.AgentSessionReported | None = None
    work: e.WorkCommitted | None = None
    base: SessionSnapshot | None = None
    resumed: e.WorkflowResumed | None = None
    session_started: datetime | None = None
    retries: dict[str, PendingRetry] = field(default_factory=dict[str, PendingRetry])
    through: int = 0
    has_base: bool = False

    @classmethod
    def starting_from(cls, snapshot: SessionSnapshot | None) -> SessionFold:
        if snapshot is None:
            return cls()
        return cls(
            task_dag=snapshot.task_dag,
            current_task_id=snapshot.current_task_id,
            decisions={item.id: item for item in snapshot.decisions},
            errors={item.id: item for item in snapshot.errors},
            feedback={item.review_id: item for item in snapshot.reviewer_feedback or ()},
            test_state=snapshot.test_state,
            constraints=dict.fromkeys(snapshot.constraints),
            todos=_still_to_do(snapshot),
            work=snapshot.work,
            base=snapshot,
            through=snapshot.folded_through,
            has_base=True,
        )

    def take(self, events: Iterable[e.Event]) -> SessionFold:
        for event in events:
            if isinstance(event.entry, e.WorkflowCreated | e.WorkflowResumed):
                self.session_started = None  # it may wait in a queue first
            elif self.session_started is None and isinstance(event.entry, e.SessionTaken | e.TaskStarted):
                self.session_started = event.at
            apply = _EFFECTS.get(type(event.entry))
            if apply is not None:
                apply(self, event.entry)
            self.through = event.seq
        return self

    def tasks(self) -> TaskDAG:
        return self.task_dag.updated(self.task_changes) if self.task_changes else self.task_dag


def _still_to_do(snapshot: SessionSnapshot) -> tuple[TodoItem, ...]:
    """What is done was told with the session that did it."""
    if snapshot.closed:
        return ()
    return tuple(todo for todo in snapshot.todos if todo.status != "completed")


def _created(state: SessionFold, entry: e.WorkflowCreated) -> None:
    if not state.has_base:  # a snapshot knows better what became of the plan
        state.task_dag = entry.task_dag
        state.constraints = dict.fromkeys(entry.constraints)


def _task_started(state: SessionFold, entry: e.TaskStarted) -> None:
    state.start(state.task_dag.by_id, entry.task_id, entry.attempt)


def _task_finished(state: SessionFold, entry: e.TaskFinished) -> None:
    state.finish(entry.task_id, entry.outcome, entry.result, is_retried=entry.retry_at is not None)
    if entry.outputs:
        state.change(entry.task_id, outputs=entry.outputs)
    if entry.retry_at is not None:
        before = state.retries.get(entry.task_id)
        state.retries[entry.task_id] = PendingRetry.following(before, entry.result, entry.retry_at)


def _skipped(state: SessionFold, entry: e.TaskSkipped) -> None:
    state.skip(entry.task_id, entry.reason)


def _decision(state: SessionFold, entry: e.DecisionRecorded) -> None:
    state.decisions[entry.decision.id] = entry.decision


def _error(state: SessionFold, entry: e.ErrorRecorded) -> None:
    state.errors[entry.error.id] = entry.error


def _feedback(state: SessionFold, entry: e.FeedbackRecorded) -> None:
    state.feedback[entry.feedback.review_id] = entry.feedback


def _tests(state: SessionFold, entry: e.TestsRun) -> None:
    state.test_state = entry.state


def _usage(state: SessionFold, entry: e.UsageReported) -> None:
    state.usage = entry.usage


def _constraint(state: SessionFold, entry: e.ConstraintPinned) -> None:
    state.constraints[entry.text] = None


def _todos(state: SessionFold, entry: e.TodosSet) -> None:
    state.todos = entry.todos


def _approved(state: SessionFold, entry: e.TaskApproved) -> None:
    state.change(entry.task_id, approval=False)  # nothing is left to be asked


def _agent_session(state: SessionFold, entry: e.AgentSessionReported) -> None:
    state.agent_session = entry


def _work(state: SessionFold, entry: e.WorkCommitted) -> None:
    state.work = entry


def _resumed(state: SessionFold, entry: e.WorkflowResumed) -> None:
    state.resume(state.task_dag.by_id, entry.retry)
    state.retries = {}
    state.resumed = entry
    state.usage = UsageMetrics()  # a new session starts with an empty window
    state.agent_session = None


_EFFECTS: dict[type[Any], Callable[[SessionFold, Any], None]] = {
    e.WorkflowCreated: _created,
    e.TaskApproved: _approved,
    e.TaskSkipped: _skipped,
    e.AgentSessionReported: _agent_session,
    e.WorkCommitted: _work,
    e.TaskStarted: _task_started,
    e.TaskFinished: _task_finished,
    e.DecisionRecorded: _decision,
    e.ErrorRecorded: _error,
    e.FeedbackRecorded: _feedback,
    e.TestsRun: _tests,
    e.UsageReported: _usage,
    e.ConstraintPinned: _constraint,
    e.TodosSet: _todos,
    e.WorkflowResumed: _resumed,
}
