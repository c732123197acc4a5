"""Something to look at: a project whose agent was paused twice, and a plan that can be run.

`make run` and the tests of the dashboard start from it.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from holdfast.base.clock import system_clock
from holdfast.model.entry import (
    ConstraintPinned,
    DecisionRecorded,
    Entry,
    ErrorRecorded,
    TaskFinished,
    TaskStarted,
    TestsRun,
    UsageReported,
)
from holdfast.model.findings import Decision, ErrorRecord, TestState
from holdfast.model.task import Task, TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Issue
from holdfast.project.settings import Settings
from holdfast.sessions.pause import with_world
from holdfast.sessions.transitions import Core, Facts
from holdfast.sessions.winddown import IncrementalPauseManager
from holdfast.store.sql import SqlStore
from holdfast.testing import FixedClock

WINDOW = 200_000

PLAN = """\
issue:
  id: DEMO-1
  title: Add a health endpoint
  description: A sample. Every task only waits a moment and says what it would do.
constraints: [Keep the public API as it is.]
parallel: 2
tasks:
  - {id: read, description: Read how routes are made, run: "echo reading; sleep 3"}
  - {id: test, description: Write a failing test, depends_on: [read], run: "echo writing the test; sleep 4"}
  - {id: route, description: Add the route, depends_on: [test], run: "echo adding the route; sleep 5"}
  - {id: checks, description: Check database and queue, depends_on: [test], run: "echo checking; sleep 4"}
  - {id: cache, description: Keep the answer for a second, depends_on: [checks], run: "echo caching; sleep 3"}
  - {id: docs, description: Describe it, depends_on: [route], run: "echo '# Health' > HEALTH.md; sleep 3"}
  - {id: green, description: See the test pass, depends_on: [route, cache], run: "echo green; sleep 4"}
  - {id: lint, description: Style and types, depends_on: [route, cache], run: "echo tidy; sleep 2"}
  - {id: load, description: Try it under load, depends_on: [green], run: "echo steady; sleep 5"}
  - {id: review, description: Review the change, depends_on: [green, lint, docs], run: "echo fine; sleep 3"}
  - {id: merge, description: Merge, depends_on: [review, load], run: "echo merged; sleep 2"}
"""

_TASKS = {
    "schema": ("Read the schema of orders and refunds", ()),
    "model": ("Add a Refund model", ("schema",)),
    "migration": ("Write the migration", ("model",)),
    "api-test": ("Write failing tests for POST /refunds", ("schema",)),
    "api": ("Implement POST /refunds", ("model", "api-test")),
    "events": ("Publish refund.created", ("api",)),
    "worker": ("Retry failed payouts", ("events", "migration")),
    "docs": ("Describe refunds in the API guide", ("api",)),
    "rollout": ("Put it behind a flag", ("worker", "docs")),
}


def make_project(folder: Path) -> Path:
    """A small git repository to work in."""
    folder.mkdir(parents=True)
    who = {"NAME": "Sample", "EMAIL": "sample@example.org"}
    env = os.environ | {
        f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in who.items()
    }
    (folder / "app.py").write_text("def routes():\n    return []\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "First"]):
        subprocess.run(["git", *command], cwd=folder, env=env, check=True)
    return folder


class History:
    """An agent's work on refunds, hours ago: two sessions and between them a wind-down."""

    def __init__(self, settings: Settings, project: Path, hours_ago: float = 5) -> None:
        self.clock = FixedClock(system_clock() - hours_ago * 3600)
        self._settings = replace(settings, project=project.resolve())
        self._project = project

    def write(self) -> str:
        """Its workflow's id."""
        store = SqlStore(self._settings.db)
        try:
            return self._write(Core(store, self.clock))
        finally:
            store.close()

    def _write(self, core: Core) -> str:
        tasks = TaskDAG(
            tasks=tuple(
                Task(id=name, description=text, depends_on=needs, prompt=text)
                for name, (text, needs) in _TASKS.items()
            )
        )
        issue = Issue(id="SHOP-214", title="Refunds for partly delivered orders")
        rules = ("Money is integer cents, never a float.",)
        workflow = core.open(issue, self._settings.worktree, task_dag=tasks, constraints=rules)
        say = _Sayer(core, workflow.id, self.clock)
        started = core.store.workflow(workflow.id).commit_at_start

        say.task("schema", 340, 0.17)
        say(DecisionRecorded(decision=_decision("d1", self._now())))
        say.task("model", 610, 0.34)
        say(ErrorRecorded(error=_error("e1", self._now(), "unresolved")))
        say.task("api-test", 480, 0.55)
        say(TestsRun(state=_red(self._now())))
        say.task("migration", 700, 0.79)
        say(UsageReported(usage=say.usage(0.86)))
        (self._project / "refunds.py").write_text("class Refund:\n    cents: int\n")
        core.settle(
            workflow.id,
            with_world(
                Facts(trigger="exhaustion", reason="context is 86% full (limit 85%)", usage=say.usage(0.86)),
                self._project,
                started,
            ),
        )
        self._wind_down()
        self.clock.advance(1500)

        core.claim(workflow.id, "The payout sandbox is back; go on with the API.")
        say.begin()
        say(ConstraintPinned(text="No new dependency without asking."))
        say.task("api", 920, 0.28)
        say(ErrorRecorded(error=_error("e1", self._now(), "fixed")))
        say(DecisionRecorded(decision=_second_decision("d2", self._now())))
        say.task("events", 540, 0.47)
        say.task("docs", 260, 0.58)
        say(TestsRun(state=TestState(phase="green", last_test_command="pytest tests/refunds -q")))
        (self._project / "refunds.py").write_text("class Refund:\n    cents: int\n    reason: str\n")
        (self._project / "api.py").write_text("def post_refund(order, cents):\n    ...\n")
        core.settle(
            workflow.id,
            with_world(
                Facts(
                    trigger="pause",
                    reason="Waiting for a word from finance on rounding",
                    usage=say.usage(0.58),
                ),
                self._project,
                started,
            ),
        )
        return workflow.id

    def _wind_down(self) -> None:
        """The agent itself went on for a while, ran out, and recorded its last steps."""
        winding = IncrementalPauseManager(settings=self._settings, clock=self.clock)
        self.clock.advance(900)
        winding.start_incremental_pause(0.90, {"model": "claude-sonnet-4-5"})
        winding.append_action("tool_call", {"tool": "Read", "path": "worker.py"}, 0.905)
        winding.append_action("tool_call", {"tool": "Edit", "path": "refunds.py"}, 0.915)
        winding.append_action("assistant_response", {"summary": "Retries wait twice as long each time"}, 0.92)
        winding.finalize_pause()

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)


class _Sayer:
    """Records what happens, with time going by and the window filling."""

    def __init__(self, core: Core, workflow_id: str, clock: FixedClock) -> None:
        self._core, self._workflow_id, self._clock = core, workflow_id, clock
        self.begin()

    def begin(self) -> None:
        self._share, self._began = 0.04, self._clock()

    def __call__(self, *entries: Entry) -> None:
        self._core.record(self._workflow_id, *entries)
        self._clock.advance(4)

    def task(self, name: str, seconds: float, share: float) -> None:
        self(TaskStarted(task_id=name))
        steps, before = 5, self._share
        for step in range(1, steps + 1):
            self._clock.advance(seconds / steps)
            self(UsageReported(usage=self.usage(before + (share - before) * step / steps)))
        self(TaskFinished(task_id=name, outcome="completed", seconds=seconds, driver="claude-code"))

    def usage(self, share: float) -> UsageMetrics:
        self._share = share
        tokens = int(share * WINDOW)
        return UsageMetrics(
            tokens_used=tokens,
            tokens_remaining_estimate=WINDOW - tokens,
            context_utilization=round(share, 4),
            llm_calls=int(share * 120),
            tool_calls=int(share * 210),
            cost_usd=round(share * 3.4, 2),
            session_duration_seconds=int(self._clock() - self._began),
        )


def _decision(name: str, at: datetime) -> Decision:
    return Decision(
        id=name,
        timestamp=at,
        task_id="schema",
        decision_type="architecture",
        description="A refund is a row of its own, not a field of the order",
        rationale="An order can be refunded in parts, and each part has a reason and a payout.",
        alternatives_considered=("a JSON column on orders",),
    )


def _second_decision(name: str, at: datetime) -> Decision:
    return Decision(
        id=name,
        timestamp=at,
        task_id="api",
        decision_type="approach",
        description="POST /refunds takes an idempotency key",
        rationale="Clients retry on a timeout; two payouts for one click must not happen.",
    )


def _error(name: str, at: datetime, resolution: str) -> ErrorRecord:
    return ErrorRecord.model_validate(
        {
            "id": name,
            "timestamp": at,
            "task_id": "model",
            "error_type": "IntegrityError",
            "error_message": "NOT NULL constraint failed: refunds.reason",
            "resolution": resolution,
            "resolution_notes": "old rows get the reason 'unknown'" if resolution == "fixed" else None,
        }
    )


def _red(at: datetime) -> TestState:
    return TestState(
        phase="red",
        failing_tests=("test_partial_refund", "test_refund_twice"),
        expected_failures=("test_partial_refund",),
        last_test_run_at=at,
        last_test_command="pytest tests/refunds -q",
        last_test_output_summary="2 failed, 31 passed",
    )
