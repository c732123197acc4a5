"""Runs one session of a workflow: task by task, from boundary to boundary.

    advance ─► a task is executed ─► boundary: ONE commit ─► go on, or why not
                                       │ the task's end, what it found,
                                       │ and the start of the next task
                                       └ or: pause, block, complete, fail

The store is the truth. The engine calls `advance` as a step, again and again; a step it
repeats after a crash opens the session anew from the store, sees which tasks are recorded
as completed and which one was cut off, and goes on there. A task is a step, but tasks of a
few milliseconds share one, and with several side by side a step lasts until all have ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Self

from holdfast.base.clock import to_datetime
from holdfast.base.errors import HoldfastError
from holdfast.model.entry import (
    Entry,
    FeedbackRecorded,
    PauseRequested,
    TaskFinished,
    TaskStarted,
    UsageReported,
    Warned,
    WorkflowResumed,
    WorkflowStatusChanged,
)
from holdfast.model.fold import PendingRetry, SessionFold
from holdfast.model.policy import PauseCause, PausePolicy, Situation, does_not_fit, pause_cause
from holdfast.model.statuses import is_not_yet
from holdfast.model.task import DONE, Task, failure_of
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import PauseRequest, Workflow
from holdfast.sessions.pause import RunningWork, keep_end, pause_running
from holdfast.sessions.transitions import Facts, settled_entries
from holdfast.store.protocol import Store
from holdfast.workflows.checkout import Checkout, OwnFolder, checkout_for
from holdfast.workflows.drivers.guarded import end_cut_off
from holdfast.workflows.drivers.prompts import feedback
from holdfast.workflows.drivers.protocol import (
    Done,
    Exhausted,
    Failed,
    RateLimited,
    TaskInterrupted,
    TaskOutcome,
)
from holdfast.workflows.experience import Experience
from holdfast.workflows.file_recorder import FileRecorder
from holdfast.workflows.originals import Originals
from holdfast.workflows.plan import driver_of
from holdfast.workflows.runner_context import Recorder, RunnerContext, RunOverError
from holdfast.workflows.task_runner import Ended, TaskRunner

log = logging.getLogger("holdfast.runner")

Verdict = Literal["go_on", "paused", "completed", "failed", "blocked", "over"]
GO_ON: Verdict = "go_on"

_SHORT_SECONDS = 0.2
_LOOK_SECONDS = 0.2
_LONGEST_DELAY = 3600.0


class LeftToOthersError(BaseException):
    """The process leaves at a boundary; the session waits for whoever takes it."""


class SessionRun:
    def __init__(self, workflow_id: str, run_id: str, surroundings: RunnerContext) -> None:
        self._workflow_id, self._run_id = workflow_id, run_id
        self._around = surroundings
        self._open: _OpenSession | None = None

    def __enter__(self) -> Self:
        self._around.active.add(self._run_id)
        return self

    def __exit__(self, *_: object) -> None:
        self._around.active.discard(self._run_id)
        if self._open is not None:
            self._open.close()

    def advance(self) -> Verdict:
        """To the next boundary."""
        try:
            if self._around.leaving.is_set() and self._open is None:
                raise LeftToOthersError
            if self._open is None:
                self._open = _OpenSession(self._workflow_id, self._run_id, self._around)
            return self._open.advance()
        except RunOverError as over:
            workflow = over.workflow
            if workflow.run_id == self._run_id and workflow.status == "in_progress":
                raise  # somebody else has the claim: this is a zombie, whose result must not count either
            if self._open is not None and workflow.run_id == self._run_id:
                self._open.end_trail()
            return "over"


class _OpenSession:
    """A session taken up: the state of its tasks, as recorded, and what runs now."""

    def __init__(self, workflow_id: str, run_id: str, around: RunnerContext) -> None:
        self._around = around
        self._recorder = Recorder.take(
            around.core, workflow_id, run_id, around.claim(), around.quit, takes_over=around.takes_over
        )
        workflow = self._recorder.workflow
        fold = around.core.fold(workflow)
        # Or the next attempt runs beside the last one.
        end_cut_off(workflow, fold.tasks().tasks, around.settings.home)
        self._tasks = {task.id: task for task in fold.tasks().tasks}
        self._running: dict[str, Task] = {}
        self._done_in_session = fold.done_in_session
        self._failed_in_session = set(fold.failed_in_session)
        self._retries = dict(fold.retries)
        self._ran_before = _attempts_of_all_sessions(around.core.store, workflow)
        self._started_at: datetime = fold.session_started or self._now()
        self._resets_at: datetime | None = None
        self._no_place: str | None = None
        self._originals = Originals(around.core.store.originals(workflow_id), workflow, fold)
        self._place = self._placed(fold)
        self._attempts = TaskRunner(
            around,
            self._recorder,
            fold,
            self._place,
            self._originals,
            request_pause=self._request_at_once,
            overdue=self._overdue,
        )
        self._trail = FileRecorder(self._recorded_folder(), workflow, around.clock)

    def close(self) -> None:
        self._attempts.close()
        self._trail.close()

    def end_trail(self) -> None:
        self._trail.end()

    def _recorded_folder(self) -> Path | None:
        """A clone's changes are commits already."""
        is_own = isinstance(self._place, OwnFolder) and self._no_place is None
        return self._place.folder if is_own and self._around.settings.record_files else None

    def _placed(self, fold: SessionFold) -> Checkout:
        try:
            workflow = self._workflow.changed(options=self._originals.options())
            return checkout_for(workflow, fold.work, self._around.settings)
        except HoldfastError as error:
            self._no_place = f"its repository cannot be used: {self._originals.hidden(error.message)}"
            return OwnFolder(self._around.settings.home / "worktrees" / "none")

    @property
    def _workflow(self) -> Workflow:
        return self._recorder.workflow

    @property
    def _worktree(self) -> Path:
        return self._place.folder

    def advance(self) -> Verdict:
        if not self._running:
            verdict = self._boundary([])
            if verdict != GO_ON:
                return verdict
        if not self._running:
            self._rest()
            return GO_ON
        if self._workflow.options.parallel == 1:
            return self._one_by_one()
        return self._side_by_side()

    def _one_by_one(self) -> Verdict:
        """A task; and further ones, as long as they are so short that noting each with the engine, too,
        would cost as much as they do."""
        began = time.monotonic()
        verdict: Verdict = GO_ON
        while verdict == GO_ON and self._running:
            (task,) = self._running.values()
            verdict = self._boundary([self._attempts.work(task)])
            if time.monotonic() - began > _SHORT_SECONDS:
                break
        return verdict

    def _side_by_side(self) -> Verdict:
        """Until none runs. On a pause those that run finish, and no other one starts."""
        with ThreadPoolExecutor(self._workflow.options.parallel, thread_name_prefix="task") as pool:
            futures: dict[str, Future[Ended]] = {}
            verdict: Verdict = GO_ON
            while self._running:
                for task in self._running.values():
                    if task.id not in futures:
                        futures[task.id] = pool.submit(self._attempts.work, task)
                done = wait(futures.values(), self._next_retry(), return_when=FIRST_COMPLETED).done
                ended = [future.result() for future in done]
                for one in ended:
                    del futures[one.task.id]
                verdict = self._boundary(ended)
            return verdict

    def _rest(self) -> None:
        """Until the first retry is due, or something else is wanted."""
        seen = self._workflow.revision
        while (left := self._next_retry()) and not self._around.leaving.is_set():
            if self._around.quit.wait(min(left, _LOOK_SECONDS)) or self._own_cause() is not None:
                return
            if self._recorder.refresh().revision != seen:
                return

    def _next_retry(self) -> float | None:
        """Seconds until a task that failed is due again; None where none waits for that."""
        waiting = [self._due_in(task) for task in self._tasks.values() if self._may_start(task)]
        return min((seconds for seconds in waiting if seconds > 0), default=None)

    # ── a boundary ──────────────────────────────────────────────────────────────────────────

    def _boundary(self, attempts: Sequence[Ended]) -> Verdict:
        ended = [self._judged(one) for one in attempts]
        entries = [entry for one in ended for entry in self._entries_of(one)]
        cause = next((cause for one in ended if (cause := self._cause_of(one)) is not None), None)
        for one in ended:
            self._note_end(one)
        seconds = sum(one.seconds for one in ended)
        again = any(isinstance(one.outcome, Done) and one.task.attempts > 1 for one in ended)
        self._trail.record([one.task for one in ended], self._running.values(), seconds, is_noted=again)
        entries += self._trail.warnings()
        while True:
            verdict = self._try_boundary(entries, cause)
            if verdict is not None:
                return verdict

    def _try_boundary(self, entries: list[Entry], cause: PauseCause | None) -> Verdict | None:
        """Decide by what is known now and commit that; None where somebody changed the workflow first."""
        if self._running:
            return self._while_others_run(entries, cause)
        reason = failure_of(self._tasks.values())
        if reason is not None and not self._goes_on():
            return self._fail(entries, reason)
        if all(task.status in DONE for task in self._tasks.values()):
            return self._ended("completed", [*entries, WorkflowStatusChanged(status="completed")])
        cause = cause or self._asked() or self._own_cause() or self._misfit()
        if cause is not None:
            return self._pause(entries, cause)
        if self._around.leaving.is_set():
            return self._leave(entries)
        return self._start(entries)

    def _while_others_run(self, entries: list[Entry], cause: PauseCause | None) -> Verdict | None:
        if cause is not None and self._asked() is None:
            return GO_ON if self._request(cause, *entries) else None
        wanted = self._asked() is None and self._own_cause() is None and not self._around.leaving.is_set()
        if wanted and not self._is_stopped_by_failure:
            return self._start(entries)
        return GO_ON if not entries or self._commit(*entries) else None

    @property
    def _is_stopped_by_failure(self) -> bool:
        """What failed in earlier sessions and was left alone does not count."""
        return bool(self._failed_in_session) and not self._workflow.options.keep_going

    def _goes_on(self) -> bool:
        """Whether something is left to do although a task has failed."""
        return not self._is_stopped_by_failure and any(map(self._may_start, self._tasks.values()))

    def _start(self, entries: list[Entry]) -> Verdict | None:
        """The next tasks, as many as may run side by side; or the one that somebody must approve first."""
        room = self._workflow.options.parallel - len(self._running)
        ready = [task for task in self._tasks.values() if self._is_ready(task)]
        waiting = next((task for task in ready if task.approval), None)
        chosen = [task for task in ready if not task.approval][:room]
        if waiting is not None and not chosen and not self._running:
            reason = f"task {waiting.id} is waiting for approval"
            blocked = WorkflowStatusChanged(status="blocked", reason=reason)
            return self._ended("blocked", [*entries, blocked])
        started = [task.changed(status="in_progress", attempts=self._next_attempt(task)) for task in chosen]
        starts = [TaskStarted(task_id=task.id, attempt=task.attempts) for task in started]
        if starts:
            self._trail.begin()
            entries = [*entries, *self._trail.warnings()]
        if (entries or starts) and not self._commit(*entries, *starts):
            return None
        for task in started:
            self._tasks[task.id] = self._running[task.id] = task
        return GO_ON

    def _next_attempt(self, task: Task) -> int:
        return max(task.attempts, self._ran_before.get(task.id, 0)) + 1

    def _is_ready(self, task: Task) -> bool:
        return self._may_start(task) and self._due_in(task) <= 0

    def _due_in(self, task: Task) -> float:
        retry = self._retries.get(task.id)
        return retry.at.timestamp() - self._around.clock() if retry else 0.0

    def _may_start(self, task: Task) -> bool:
        """Pending, or cut off by a crash; with all it needs done."""
        return (
            task.id not in self._running
            and task.status in ("pending", "in_progress")
            and all(self._tasks[needed].status in DONE for needed in task.depends_on)
        )

    def _asked(self) -> PauseCause | None:
        request = self._workflow.pause_request
        return (
            None
            if request is None
            else PauseCause(request.trigger, request.reason or "a pause was requested")
        )

    def _own_cause(self) -> PauseCause | None:
        if self._must_stop:
            return PauseCause("pause", "Holdfast was told to stop")
        if self._no_place is not None:
            return PauseCause("pause", self._no_place)
        if not self._worktree.is_dir():
            return PauseCause("pause", f"the worktree {self._workflow.worktree} is gone")
        return pause_cause(self._workflow.options.policy, self._situation())

    @property
    def _must_stop(self) -> bool:
        """A worker that must stop leaves its sessions to others; anybody else pauses them."""
        return self._around.quit.is_set() and not self._around.takes_over

    def _overdue(self) -> PauseCause | None:
        """Why the session's time is over."""
        policy = PausePolicy(timeout_seconds=self._workflow.options.timeout)
        return pause_cause(policy, Situation(seconds_running=self._seconds()))

    def _situation(self) -> Situation:
        return Situation(
            context_share=self._attempts.usage.metrics.context_utilization,
            tasks_done=self._done_in_session,
            seconds_running=self._seconds(),
        )

    def _misfit(self) -> PauseCause | None:
        """A next task that this session has no room for, judging by earlier ones."""
        now, options = self._situation(), self._workflow.options
        if now.tasks_done == 0 or (now.context_share is None and options.timeout is None):
            return None
        task = next((task for task in self._tasks.values() if self._is_ready(task)), None)
        if task is None:
            return None
        expected = Experience.of(self._around.core.store).expectation(driver_of(task, options))
        return does_not_fit(options.policy, now, task.id, expected)

    def _entries_of(self, ended: Ended) -> list[Entry]:
        outcome = ended.outcome
        finished = TaskFinished(
            task_id=ended.task.id,
            outcome=_OUTCOMES[type(outcome)],
            result=outcome.result if isinstance(outcome, Done) else outcome.reason,
            attempt=ended.task.attempts,
            seconds=round(ended.seconds, 3),
            driver=driver_of(ended.task, self._workflow.options),
            tokens=ended.report.tokens,
            context_share=ended.context_share,
            retry_at=ended.retry_at,
            outputs=ended.report.outputs or None,
        )
        entries: list[Entry] = [*ended.report.findings, finished]
        is_told = any(isinstance(found, FeedbackRecorded) for found in ended.report.findings)
        if ended.task.review and isinstance(outcome, Done) and not is_told:
            entries.append(feedback(ended.task, outcome.result or "", finished.driver or "", self._now()))
        if ended.committed is not None:
            entries.append(ended.committed)
        if ended.report.tokens is not None:
            entries.append(UsageReported(usage=self._metrics()))
        if isinstance(outcome, TaskInterrupted) and self._attempts.forced:
            entries.append(Warned(text=f"task {ended.task.id}: {self._attempts.forced}"))
        return entries

    def _judged(self, ended: Ended) -> Ended:
        """A command that failed because its folder was taken away under it did not fail."""
        if not isinstance(ended.outcome, Failed):
            return ended
        if not self._worktree.is_dir():
            return replace(ended, outcome=TaskInterrupted(f"the worktree {self._workflow.worktree} is gone"))
        return replace(ended, retry_at=self._retry_at(ended.task, is_loop=is_not_yet(ended.outcome.reason)))

    def _retry_at(self, task: Task, *, is_loop: bool) -> datetime | None:
        """When a task that failed just now is tried again by itself: each time it waits twice as long.
        The next round of a loop begins at once, and is none of its retries."""
        options, before = self._workflow.options, self._retries.get(task.id)
        failures, rounds = (before.failures, before.rounds) if before else (0, 0)
        if is_loop:
            return self._now() if rounds < task.rounds - 1 else None
        if failures >= (options.retries if task.retries is None else task.retries):
            return None
        delay = min(options.retry_delay * 2.0 ** min(failures, 60), _LONGEST_DELAY)
        return self._now() + timedelta(seconds=delay)

    def _note_end(self, ended: Ended) -> None:
        outcome = ended.outcome
        status = {"completed": "completed", "failed": "failed"}.get(_OUTCOMES[type(outcome)], "pending")
        result = outcome.result if isinstance(outcome, Done) else outcome.reason
        if ended.retry_at is not None:
            status, before = "pending", self._retries.get(ended.task.id)
            self._retries[ended.task.id] = PendingRetry.following(before, result, ended.retry_at)
        elif status == "failed":
            self._failed_in_session.add(ended.task.id)
        outputs = ended.report.outputs or None
        self._tasks[ended.task.id] = ended.task.changed(status=status, result=result, outputs=outputs)
        self._done_in_session += status == "completed"
        del self._running[ended.task.id]

    def _cause_of(self, ended: Ended) -> PauseCause | None:
        """A pause that the end of a task itself asks for."""
        outcome = ended.outcome
        if isinstance(outcome, Exhausted):
            return PauseCause("exhaustion", outcome.reason)
        if isinstance(outcome, RateLimited):
            self._resets_at = outcome.resets_at
            until = f" (until {outcome.resets_at:%Y-%m-%d %H:%M} UTC)" if outcome.resets_at else ""
            return PauseCause("exhaustion", f"{outcome.reason}{until}")
        if self._attempts.unkept is not None:
            return PauseCause("pause", self._attempts.unkept)
        if isinstance(outcome, TaskInterrupted) and self._must_stop:
            return PauseCause("pause", outcome.reason)
        return None

    # ── commits ─────────────────────────────────────────────────────────────────────────────

    def _commit(self, *entries: Entry) -> bool:
        return self._told(self._recorder.commit(*entries), entries)

    def _request_at_once(self, cause: PauseCause) -> None:
        """From a driver's thread: so that everybody sees the pause coming."""
        while self._workflow.pause_request is None and not self._request(cause):
            pass

    def _request(self, cause: PauseCause, *entries: Entry) -> bool:
        request = PauseRequest(trigger=cause.trigger, reason=cause.reason, requested_at=self._now())
        asked = PauseRequested(trigger=cause.trigger, reason=cause.reason)
        written = self._recorder.commit(*entries, asked, pause_request=request)
        return self._told(written, (*entries, asked))

    def _ended(self, status: Literal["completed", "blocked"], entries: list[Entry]) -> Verdict | None:
        entries = [*entries, *self._brought_home()]
        if not self._told(self._recorder.commit(*entries, to=status), entries):
            return None
        keep_end(self._around.core.store, self._workflow, self._worktree)
        return status

    def _brought_home(self) -> list[Entry]:
        self._trail.end()
        warning = self._originals.hidden(self._place.leave() or "")
        return [*self._trail.warnings(), *([Warned(text=warning)] if warning else [])]

    def _pause(self, entries: list[Entry], cause: PauseCause) -> Verdict | None:
        if cause.trigger == "exhaustion" and self._attempts.may_wrap_up:
            if not self._noted(entries, cause):  # safe before the agent is asked for anything
                return None
            entries[:] = self._wrapped_up()  # the caller comes again with this list: those are recorded
        if not self._noted([*entries, *self._brought_home()], cause):
            return None
        resume_at = self._resets_at if self._workflow.options.resume_on_reset else None
        self._settle(cause, resume_at)
        return "paused"

    def _noted(self, entries: list[Entry], cause: PauseCause) -> bool:
        if self._asked() is None:
            return self._request(cause, *entries)
        return not entries or self._commit(*entries)

    def _wrapped_up(self) -> list[Entry]:
        failure = self._attempts.wrap_up()
        told = [Warned(text=f"the agent wrote no handover: {failure}")] if failure else []
        return [UsageReported(usage=self._metrics()), *told]

    def _fail(self, entries: list[Entry], reason: str) -> Verdict | None:
        """As a pause, so that the failed task can be tried again from here."""
        entries = [*entries, *self._brought_home()]
        if entries and not self._commit(*entries):
            return None
        self._settle(PauseCause("failure", reason))
        return "failed"

    def _settle(self, cause: PauseCause, resume_at: datetime | None = None) -> None:
        facts = Facts(
            trigger=cause.trigger,
            reason=cause.reason,
            usage=self._metrics(),
            resume_at=resume_at,
            handover=self._attempts.handover,
        )
        work = RunningWork(self._around.core, lambda: self._workflow, self._recorder.apply)
        snapshot = pause_running(work, self._worktree, facts, self._around.clock())
        self._told(True, settled_entries(snapshot))
        if snapshot.agent_session is not None:  # else there is no talk to look at, and nothing to load for it
            from holdfast.sessions.enrich import enrich_later

            enrich_later(self._around.settings, snapshot, self._worktree)

    def _leave(self, entries: list[Entry]) -> Verdict | None:
        written = self._recorder.commit(
            *(entries or [Warned(text="its worker stopped; another worker can continue")]), claim=None
        )
        if written:
            raise LeftToOthersError
        return None

    def _told(self, written: bool, entries: Sequence[Entry]) -> bool:
        if written:
            for entry in entries:
                self._around.listener(self._workflow.id, entry)
        return written

    def _metrics(self) -> UsageMetrics:
        return self._attempts.usage.metrics.changed(session_duration_seconds=int(self._seconds()))

    def _seconds(self) -> float:
        return max(0.0, self._around.clock() - self._started_at.timestamp())

    def _now(self) -> datetime:
        return to_datetime(self._around.clock())


def _attempts_of_all_sessions(store: Store, workflow: Workflow) -> dict[str, int]:
    """How often tasks were started, if a session has gone on from an older snapshot, which does not know it:
    what an attempt left and printed is kept under its number."""
    if workflow.session_count < 3:
        return {}
    numbers = {line.id: line.session_number for line in store.snapshots(workflow.id)}
    resumed = [event.entry for event in store.events(workflow_id=workflow.id, types=("workflow_resumed",))]
    if all(
        numbers.get(one.snapshot_id or "", 0) == one.session_number - 1
        for one in resumed
        if isinstance(one, WorkflowResumed)
    ):
        return {}
    found: dict[str, int] = {}
    for event in store.events(workflow_id=workflow.id, types=("task_started",)):
        if isinstance(event.entry, TaskStarted):
            found[event.entry.task_id] = max(found.get(event.entry.task_id, 0), event.entry.attempt)
    return found


_OUTCOMES: dict[type[TaskOutcome], Literal["completed", "failed", "interrupted"]] = {
    Done: "completed",
    Failed: "failed",
    Exhausted: "interrupted",
    RateLimited: "interrupted",
    TaskInterrupted: "interrupted",
}
