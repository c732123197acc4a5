"""An attempt at a task: the driver gets its assignment, is watched over, and says how it went."""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from holdfast.base.errors import CannotDoError, HoldfastError, InvalidInputError
from holdfast.base.faults import fault_point
from holdfast.base.redact import redact
from holdfast.base.text import encode_path
from holdfast.model.entry import AgentSessionReported, TestsRun, WorkCommitted
from holdfast.model.fold import SessionFold
from holdfast.model.policy import PauseCause, Situation, must_force, pause_cause
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.statuses import NOT_TO_BE_RUN, NOT_YET
from holdfast.model.task import Task, outputs_of
from holdfast.model.usage import ModelCall, UsageMetadata, UsageMetrics
from holdfast.model.workflow import Workflow
from holdfast.project.formats import agent_called
from holdfast.workflows.checkout import Checkout
from holdfast.workflows.drivers.guarded import attempt_mark, end_what_is_left, records_in
from holdfast.workflows.drivers.protocol import (
    Assignment,
    Done,
    DriverFinding,
    DriverSession,
    EarlierSession,
    Exhausted,
    Failed,
    RateLimited,
    StopSignal,
    TaskInterrupted,
    TaskOutcome,
)
from holdfast.workflows.lease import BEAT_SECONDS
from holdfast.workflows.originals import Originals
from holdfast.workflows.plan import driver_of
from holdfast.workflows.runner_context import Recorder, RunnerContext
from holdfast.workflows.task_log import CleanLog, TaskLog

# ── what a driver reports ─────────────────────────────────────────────────────────────────────────

# What a driver tells about one task, gathered until the task's end.


class SessionUsage:
    """What the session has used so far; the newest report says how full its window is."""

    def __init__(self, so_far: UsageMetrics) -> None:
        self._lock = threading.Lock()
        self.metrics = so_far

    def add(self, usage: UsageMetadata, tool_calls: int, cost_usd: float | None) -> UsageMetrics:
        with self._lock:
            before = self.metrics
            cost = before.cost_usd if cost_usd is None else (before.cost_usd or 0.0) + cost_usd
            self.metrics = before.changed(
                tokens_used=before.tokens_used + usage.total_tokens,
                tokens_remaining_estimate=usage.tokens_remaining,
                context_utilization=usage.utilization_percent,
                llm_calls=before.llm_calls + 1,
                tool_calls=before.tool_calls + tool_calls,
                cost_usd=cost,
            )
            return self.metrics


@dataclass
class TaskReport:
    """The `Report` a driver gets."""

    task_id: str
    session: SessionUsage
    on_usage: Callable[[UsageMetrics], None]
    on_agent_session: Callable[[AgentSessionReported], None]
    on_line: Callable[[str], None]
    on_output: Callable[[str], None]
    on_turn: Callable[[str], None] = lambda _: None
    on_call: Callable[[str | None, UsageMetadata], None] = lambda _, __: None
    model: str | None = None
    """The one called last."""
    findings: list[DriverFinding] = field(default_factory=list[DriverFinding])
    tokens: int | None = None
    outputs: dict[str, str] = field(default_factory=dict[str, str])

    def turn(self, model: str) -> None:
        self.model = model
        self.on_turn(model)

    def usage(self, usage: UsageMetadata, *, tool_calls: int = 0, cost_usd: float | None = None) -> None:
        self.on_call(self.model, usage)
        self.tokens = (self.tokens or 0) + usage.total_tokens
        self.on_usage(self.session.add(usage, tool_calls, cost_usd))

    def agent_session(self, session: DriverSession) -> None:
        self.on_agent_session(
            AgentSessionReported(
                task_id=self.task_id,
                agent=session.agent,
                agent_session_id=session.id,
                transcript=str(session.transcript) if session.transcript else None,
            )
        )

    def found(self, *findings: DriverFinding) -> None:
        self.findings += findings

    def say(self, line: str) -> None:
        self.on_line(line)
        self.on_output(f"{line}\n")

    def output(self, text: str) -> None:
        if text:
            self.on_output(text)
            self.on_line(next((line for line in reversed(text.splitlines()) if line.strip()), ""))


# ── the attempt ───────────────────────────────────────────────────────────────────────────────────

# An attempt at a task: the driver gets its assignment, is watched over, and says how it went.

log = logging.getLogger("holdfast.runner")


@dataclass(frozen=True)
class Ended:
    """An attempt, as it went."""

    task: Task
    outcome: TaskOutcome
    report: TaskReport
    seconds: float
    context_share: float | None
    """What it added to the context window."""
    committed: WorkCommitted | None = None
    retry_at: datetime | None = None
    """Where it failed and is tried again by itself."""


class TaskRunner:
    """All attempts of one session."""

    def __init__(
        self,
        around: RunnerContext,
        recorder: Recorder,
        fold: SessionFold,
        place: Checkout,
        originals: Originals,
        request_pause: Callable[[PauseCause], None],
        overdue: Callable[[], PauseCause | None],
    ) -> None:
        self._around, self._recorder, self._place = around, recorder, place
        self._originals = originals
        self._request_pause, self._overdue = request_pause, overdue
        self.usage = SessionUsage(fold.usage)
        self.forced: str | None = None
        """Why a task was cut off, once one was."""
        self.unkept: str | None = None
        """Why what a task did is not safe, once that was so."""
        self.handover: str | None = None
        """What the agent wrote for the next session, once it was asked."""
        self._can_be_asked = True
        self._lock, self._numbers = threading.Lock(), itertools.count(1)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._agent_session = fold.agent_session
        self._base = fold.base
        self._context: str | None = None
        self._tests = fold.test_state
        self._plan = fold.tasks().by_id
        self._outputs = {one.id: originals.outputs(one) for one in self._plan.values() if one.outputs}

    @property
    def _workflow(self) -> Workflow:
        return self._recorder.workflow

    def work(self, task: Task) -> Ended:
        stop, output = StopSignal(), self._log_of(task)
        report = TaskReport(
            task.id,
            self.usage,
            on_usage=self._take_usage,
            on_agent_session=self._take_agent_session,
            on_line=lambda line: self._around.listener(self._workflow.id, self._originals.hidden(line)),
            on_output=output.append,
        )
        driver = driver_of(task, self._workflow.options)
        report.on_turn = lambda model: self._wait_for_turn((driver, model), stop, report)
        report.on_call = partial(self._take_call, task.id, driver)
        before = self.usage.metrics.context_utilization
        began = time.monotonic()
        with self._around.watch.over(lambda: self._look(stop, task, time.monotonic() - began)):
            outcome = _judged(task, stop, self._driven(task, stop, report))
        output.close()
        outcome = self._originals.hidden_in_outcome(outcome)
        self._can_be_asked &= _can_go_on(outcome)
        report.findings = [self._originals.hidden_in_finding(one) for one in report.findings]
        for found in report.findings:
            if isinstance(found, TestsRun):
                self._tests = found.state
        committed: WorkCommitted | None = None
        if isinstance(outcome, Done):
            try:
                committed = self._place.keep(task)
            except HoldfastError as error:
                self.unkept = (
                    f"the work of task {task.id} could not be saved: {self._originals.hidden(error.message)}"
                )
                outcome = TaskInterrupted(self.unkept)
        if isinstance(outcome, Done):
            self._outputs[task.id] = written = report.outputs
            report.outputs = self._originals.copied(task.id, written)
            if report.outputs != written:
                self._recorder.keep(outputs_of(task), json.dumps(written))
        seconds = time.monotonic() - began
        after = self.usage.metrics.context_utilization
        grown = None if after is None else max(0.0, after - (before or 0.0))
        return Ended(task, outcome, report, seconds, grown, committed)

    @property
    def may_wrap_up(self) -> bool:
        """Whether to ask the agent for its handover: once, and if provider and window take another turn."""
        return self._can_be_asked and self._agent_session is not None

    def wrap_up(self) -> str | None:
        """Ask the agent for its handover, in one short turn of its own conversation; why there is none."""
        self._can_be_asked = False
        reported = self._agent_session
        task = self._plan.get(reported.task_id) if reported else None
        if task is None:
            return "its task is not in the plan any more"
        stop, began, calls = StopSignal(), time.monotonic(), itertools.count(1)

        def count(usage: UsageMetrics) -> None:
            self._take_usage(usage)
            if next(calls) > _WRAP_UP_CALLS:
                stop.request(f"it took more than {_WRAP_UP_CALLS} model calls")

        report = TaskReport(
            task.id,
            self.usage,
            on_usage=count,
            on_agent_session=lambda _: None,
            on_line=lambda line: self._around.listener(self._workflow.id, self._originals.hidden(line)),
            on_output=lambda _: None,
        )
        report.say("asking the agent for its handover")
        with self._around.watch.over(lambda: self._look_at_wrap_up(stop, time.monotonic() - began)):
            outcome = self._driven(task, stop, report, wraps_up=True)
        outcome = self._originals.hidden_in_outcome(outcome)
        if not isinstance(outcome, Done):
            return outcome.reason
        self.handover = (outcome.result or "").strip() or None
        return None if self.handover else "it said nothing"

    def _look_at_wrap_up(self, stop: StopSignal, seconds: float) -> None:
        if seconds >= WRAP_UP_SECONDS:
            stop.request(f"it took longer than {WRAP_UP_SECONDS:g} s")
        if self._around.quit.is_set():
            stop.request("Holdfast was told to stop now")
        workflow = self._around.core.store.workflow(self._workflow.id)
        if self._recorder.is_over(workflow):
            stop.request("the workflow is not ours any more")
        elif _must_force(workflow, self._around.clock()):
            stop.request("the pause timed out")

    def _log_of(self, task: Task) -> CleanLog:
        output = TaskLog(self._around.settings.home, self._workflow.id, task.id, task.attempts)
        return CleanLog(output, lambda text: redact(self._originals.hidden(text))[0])

    def _driven(
        self, task: Task, stop: StopSignal, report: TaskReport, *, wraps_up: bool = False
    ) -> TaskOutcome:
        name = driver_of(task, self._workflow.options)
        try:
            assignment = replace(self._assignment(task, name, stop), wraps_up=wraps_up)
            return self._run(name, assignment, report)
        except HoldfastError as error:
            return Failed(error.message)
        except Exception as error:
            log.debug("driver %s failed", name, exc_info=True)
            return Failed(f"the {name} driver failed: {type(error).__name__}: {error}")

    def _run(self, driver: str, assignment: Assignment, report: TaskReport) -> TaskOutcome:
        outcome: TaskOutcome | None = None
        try:
            outcome = self._run_in(driver, assignment, report, self._outputs_file())
            return outcome
        finally:
            # A command that succeeded has seen to that itself; a model's may have left something running.
            if driver != "shell" or not isinstance(outcome, Done):
                end_what_is_left(assignment)

    def _outputs_file(self) -> Path:
        """Where an attempt leaves its values; in one folder for all of the session."""
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="holdfast-", ignore_cleanup_errors=True)
            return Path(self._folder.name) / f"outputs-{next(self._numbers)}"

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _run_in(self, driver: str, given: Assignment, report: TaskReport, outputs: Path) -> TaskOutcome:
        if driver != MODEL_DRIVER:  # that one asks before each of its calls
            self._wait_for_turn((driver,), given.stop, report)
        if given.stop.requested:
            return TaskInterrupted(given.stop.reason or "stopped")
        names = {OUTPUTS: str(outputs), **_as_variables(given.inputs)}
        assignment = replace(given, environ={**given.environ, **names})
        self._check_claim()
        outcome = self._around.drivers(driver).run(assignment, report)
        if isinstance(outcome, Done) and assignment.task.until and not assignment.wraps_up:
            outcome = self._if_fulfilled(outcome, assignment, report)
        if isinstance(outcome, Done):
            report.outputs = _read_outputs(outputs)
        return outcome

    def _wait_for_turn(self, names: Sequence[str], stop: StopSignal, report: TaskReport) -> None:
        if self._around.limits is not None:
            self._around.limits.wait(names, stop, report.say)

    def _take_call(self, task_id: str, driver: str, model: str | None, usage: UsageMetadata) -> None:
        self._around.listener(self._workflow.id, ModelCall(task_id, driver, model, usage))
        if self._around.limits is not None:
            self._around.limits.charge((driver, model) if model else (driver,), usage.total_tokens)

    def _check_claim(self) -> None:
        """After a while without a word from us, as of a machine that slept, another may have taken over."""
        fault_point("task.starting")
        silent = self._around.clock() - self._workflow.updated_at.timestamp()
        if not 0 <= silent < BEAT_SECONDS:
            self._recorder.refresh()

    def _if_fulfilled(self, outcome: Done, assignment: Assignment, report: TaskReport) -> TaskOutcome:
        """Done, once the condition of the loop holds; what its command says is for the next round."""
        condition = replace(assignment, task=assignment.task.changed(run=assignment.task.until))
        checked = self._around.drivers("shell").run(condition, report)
        return outcome if isinstance(checked, Done) else _not_yet(checked)

    def _assignment(self, task: Task, driver: str, stop: StopSignal) -> Assignment:
        workflow, base = self._workflow, self._base
        if base is not None and self._context is None and driver != "shell":
            self._context = self._compiled(base)
        return Assignment(
            workflow_id=workflow.id,
            session_number=workflow.session_count,
            issue=self._originals.issue,
            task=self._originals.task(task, is_told=driver != "shell"),
            worktree=self._place.folder,
            attempt=task.attempts,
            context=self._context,
            message=self._originals.message,
            agent_session=_agent_session(self._agent_session),
            earlier=_earlier(base) if base else None,
            tests=self._tests,
            stop=stop,
            mark=attempt_mark(workflow, task),
            records=records_in(self._around.settings.home),
            inputs=self._inputs(task),
        )

    def _inputs(self, task: Task) -> dict[str, dict[str, str]]:
        """Of all tasks that it depends on, however far back."""
        found: dict[str, dict[str, str]] = {}
        left = list(task.depends_on)
        while left:
            needed = left.pop()
            if needed not in found:
                found[needed] = self._outputs.get(needed, {})
                left += self._plan[needed].depends_on
        lost = next((name for task_id in found if (name := self._originals.lost_values.get(task_id))), "")
        if lost:
            raise CannotDoError(
                f"{NOT_TO_BE_RUN}only a redacted copy of {lost} is available; run the plan again with "
                "`holdfast run`"
            )
        return {task_id: values for task_id, values in sorted(found.items()) if values}

    def _compiled(self, base: SessionSnapshot) -> str:
        from holdfast.capture.drift import find_drift
        from holdfast.resume.snapshots import ResumeContextCompiler
        from holdfast.sessions.undone import undone_before

        told = undone_before(self._workflow, base)
        drift = find_drift(base, self._place.folder).sentences
        here = encode_path(os.fsencode(self._place.folder))
        return ResumeContextCompiler().compile(
            base, self._workflow.issue, drift=(*told, *drift), worktree=here
        )

    def _take_usage(self, usage: UsageMetrics) -> None:
        """A window that fills up in mid-task asks for a pause at once."""
        self._around.listener(self._workflow.id, usage)
        policy = self._workflow.options.policy
        cause = pause_cause(policy, Situation(context_share=usage.context_utilization))
        if cause is not None and self._workflow.pause_request is None:
            self._request_pause(cause)

    def _take_agent_session(self, reported: AgentSessionReported) -> None:
        self._recorder.note(reported)
        self._agent_session = reported

    def _look(self, stop: StopSignal, task: Task, seconds: float) -> None:
        """From the watch's thread: whether the task in flight is still wanted."""
        if task.timeout is not None and seconds >= task.timeout:
            stop.request(_timed_out(task))
        if (cause := self._overdue()) is not None:
            self.forced = f"interrupted: {cause.reason}; it is pending again"
            stop.request(cause.reason)
        workflow = self._around.core.store.workflow(self._workflow.id)
        if self._recorder.is_over(workflow):
            stop.request(f"the workflow is {workflow.status}")
        elif self._around.quit.is_set():
            stop.request("Holdfast was told to stop now")
        elif workflow.pause_request is not None and _must_force(workflow, self._around.clock()):
            limit = _force_after(workflow)
            self.forced = f"the task did not end within {limit:g} s and was interrupted; it is pending again"
            stop.request("the pause timed out")


WRAP_UP_SECONDS = 120.0
_WRAP_UP_CALLS = 3


def _can_go_on(outcome: TaskOutcome) -> bool:
    return not isinstance(outcome, RateLimited) and (not isinstance(outcome, Exhausted) or outcome.has_room)


MODEL_DRIVER = "model"
OUTPUTS = "HOLDFAST_OUTPUTS"
_OUTPUT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII)
_MOST_OUTPUT = 64 << 10


def _as_variables(inputs: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """`HOLDFAST_INPUT_BUILD_VERSION` for the value `version` of the task `build`."""
    return {
        re.sub(r"\W", "_", f"HOLDFAST_INPUT_{task_id}_{name}", flags=re.ASCII).upper(): value
        for task_id, values in inputs.items()
        for name, value in values.items()
    }


def _read_outputs(path: Path) -> dict[str, str]:
    """Lines of `name=value`; the last one of a name counts."""
    size = path.stat().st_size if path.is_file() else 0
    if size > _MOST_OUTPUT:  # before it is read: it may be a log of gigabytes
        raise InvalidInputError(
            f"{OUTPUTS} has {size:,} bytes, more than {_MOST_OUTPUT:,}",
            hint="write long values to a file in the worktree and its name here",
        )
    data = path.read_bytes() if size else b""
    found: dict[str, str] = {}
    for number, line in enumerate(data.decode(errors="replace").replace("\0", "").splitlines(), start=1):
        if not line.strip():
            continue
        parts = _OUTPUT.fullmatch(line)
        if parts is None:
            raise InvalidInputError(f"line {number} of {OUTPUTS} is not NAME=VALUE")
        found[parts[1]] = parts[2]
    return found


def _not_yet(checked: TaskOutcome) -> TaskOutcome:
    return Failed(f"{NOT_YET}: {checked.reason}") if isinstance(checked, Failed) else checked


def _timed_out(task: Task) -> str:
    return f"timed out after {task.timeout:g} s"


def _judged(task: Task, stop: StopSignal, outcome: TaskOutcome) -> TaskOutcome:
    """Who is stopped because its own time is over has failed."""
    if task.timeout is None or stop.reason != _timed_out(task) or not isinstance(outcome, TaskInterrupted):
        return outcome
    return Failed(f"{stop.reason}{': ' if outcome.output else ''}{outcome.output}")


def _earlier(base: SessionSnapshot) -> EarlierSession:
    return EarlierSession(base.trigger, _agent_session(base.agent_session), base.usage.context_utilization)


def _agent_session(reported: AgentSessionReported | None) -> DriverSession | None:
    if reported is None:
        return None
    transcript = Path(reported.transcript) if reported.transcript else None
    return DriverSession(reported.agent_session_id, agent_called(reported.agent), transcript)


def _force_after(workflow: Workflow) -> float:
    request = workflow.pause_request
    asked = request.force_after if request else None
    return workflow.options.force_after if asked is None else asked


def _must_force(workflow: Workflow, now: float) -> bool:
    if workflow.pause_request is None:
        return False
    waited = now - workflow.pause_request.requested_at.timestamp()
    return must_force(workflow.options.policy, waited, _force_after(workflow))
