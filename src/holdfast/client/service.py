"""`OrchestratorService` over HTTP, and what follows a session that runs on a server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from holdfast.base.errors import CannotDoError, IllegalTransitionError, StorageError
from holdfast.client.http import RemoteStore, connection_for
from holdfast.model.entry import Entry, UsageReported
from holdfast.model.task import Task, TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Workflow, WorkflowOptions
from holdfast.project.settings import Settings
from holdfast.sessions.stats import JournalStats
from holdfast.workflows.experience import DriverRecord
from holdfast.workflows.plan import TASK_KEYS, Plan
from holdfast.workflows.service import Resumed, WorkflowService, check_resumable
from holdfast.workflows.task_log import TaskOutput

_POLL_SECONDS = 0.2
_WAIT_SECONDS = 30.0

_journal_stats: TypeAdapter[JournalStats] = TypeAdapter(JournalStats)


class RemoteService(WorkflowService[RemoteStore]):
    """`claim` is taken where the embedded service takes one, and means nothing: workers run it there."""

    poll_seconds = _POLL_SECONDS

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._connection = connection_for(settings)
        self.store = RemoteStore(self._connection)

    def close(self) -> None:
        self._connection.close()

    # ── verbs ───────────────────────────────────────────────────────────────────────────────

    def start(self, plan: Plan, worktree: Path | None = None, *, claim: str | None = None) -> Workflow:  # noqa: ARG002
        folder = (worktree or self.settings.project).resolve()
        body = {"plan": _document(plan, self._options(plan)), "worktree": str(folder)}
        return Workflow.model_validate(self._connection.post("workflows", body=body))

    def _options(self, plan: Plan) -> WorkflowOptions:
        """Where the user here has set no limit, the server's settings decide."""
        here = self.settings
        return plan.options.pausing_at(here.exhaustion_at) if here.auto_pause_given else plan.options

    def pause_workflow(
        self,
        workflow_id: str,
        reason: str | None = None,
        *,
        force_after: float | None = None,
        wait: bool = True,
    ) -> str | None:
        answer = self._act(
            workflow_id,
            "pause",
            reason=reason,
            force_after=force_after,
            wait_seconds=_WAIT_SECONDS if wait else 0,
        )
        if answer["status"] == "paused" or not wait:
            return answer["snapshot_id"]
        return self._snapshot_of_pause(self.workflow(workflow_id), force_after)

    def resume_workflow(
        self,
        workflow_id: str,
        *,
        snapshot_id: str | None = None,
        message: str | None = None,
        strict: bool = False,
        claim: str | None = None,  # noqa: ARG002
        accept_commands: bool = False,
    ) -> Resumed:
        _refuse_to_accept(workflow_id, accept_commands)
        return self._resumed(
            workflow_id,
            self._act(workflow_id, "resume", snapshot_id=snapshot_id, message=message, strict=strict),
        )

    def _resumed(self, workflow_id: str, answer: Any) -> Resumed:
        used = answer["snapshot_id"]
        before = answer.get("taken_up_before")
        return Resumed(
            self.workflow(workflow_id),
            self.store.snapshot(used) if used else None,
            tuple(answer["drift"]),
            answer["drift_state"],
            is_handover=answer["status"] == "taken_up",
            taken_up_before=datetime.fromisoformat(before) if before else None,
        )

    def retry(
        self,
        workflow_id: str,
        task_id: str | None = None,
        *,
        message: str | None = None,
        claim: str | None = None,  # noqa: ARG002
    ) -> Resumed:
        return self._resumed(workflow_id, self._act(workflow_id, "retry", task_id=task_id, message=message))

    def skip(
        self,
        workflow_id: str,
        task_id: str,
        reason: str | None = None,
        *,
        claim: str | None = None,  # noqa: ARG002
    ) -> Workflow:
        self._act(workflow_id, "skip", task_id=task_id, reason=reason)
        return self.workflow(workflow_id)

    def fork(
        self,
        workflow_id: str,
        task_id: str | None = None,
        *,
        snapshot_id: str | None = None,
        worktree: Path | None = None,
        accept_commands: bool = False,
    ) -> Workflow:
        _refuse_to_accept(workflow_id, accept_commands)
        folder = str(worktree.resolve()) if worktree else None
        given = {"task_id": task_id, "snapshot_id": snapshot_id, "worktree": folder}
        return Workflow.model_validate(self._act(workflow_id, "fork", **given))

    def resumable(self, workflow_id: str) -> Workflow:
        """The workflow, if it can be resumed; what crashed the server pauses when it resumes it."""
        workflow = self.workflow(workflow_id)
        if not self.is_abandoned(workflow):
            check_resumable(workflow)
        return workflow

    def cancel(self, workflow_id: str, reason: str | None = None) -> Workflow:
        self._act(workflow_id, "cancel", reason=reason)
        return self.workflow(workflow_id)

    def approve(self, workflow_id: str, *, claim: str | None = None) -> Workflow:  # noqa: ARG002
        self._act(workflow_id, "approve")
        return self.workflow(workflow_id)

    def reject(self, workflow_id: str, reason: str | None = None) -> Workflow:
        self._act(workflow_id, "reject", reason=reason)
        return self.workflow(workflow_id)

    def recovered(self, workflow_id: str) -> Workflow:
        """As it is: what was left behind is seen to by the server, when it is resumed."""
        return self.workflow(workflow_id)

    def _act(self, workflow_id: str, verb: str, **given: Any) -> Any:
        body = {name: value for name, value in given.items() if value is not None}
        return self._connection.post("workflows", workflow_id, verb, body=body)

    # ── questions ───────────────────────────────────────────────────────────────────────────

    def tasks(self, workflow_id: str) -> TaskDAG:
        return TaskDAG.model_validate(
            {"tasks": self._connection.get("workflows", workflow_id, "tasks")["tasks"]}
        )

    def task_output(
        self, workflow_id: str, task_id: str, *, attempt: int | None = None, since: int = 0
    ) -> TaskOutput:
        asked = {"task_id": task_id, "since": since, **({"attempt": attempt} if attempt else {})}
        return TaskOutput(**self._connection.get("workflows", workflow_id, "output", **asked))

    def waiting_for_approval(self, workflow: Workflow) -> Task | None:
        waiting = self._progress(workflow.id)["waiting_for_approval"]
        return self.tasks(workflow.id).by_id[waiting] if waiting else None

    def is_abandoned(self, workflow: Workflow) -> bool:
        return self.store.is_abandoned(workflow.id)

    def has_workers(self) -> bool:
        return self._connection.get("health")["workers"] > 0

    def journal_stats(self) -> JournalStats:
        """Of the server's own project."""
        told = self._connection.get("stats")
        del told["project"]
        return _journal_stats.validate_python(told)

    def workflow_stats(self) -> tuple[Sequence[DriverRecord], dict[str, int]]:
        """How tasks went, by driver; and what ended sessions."""
        told = self._connection.get("stats", "workflows")
        return [DriverRecord(**one) for one in told["drivers"]], told["pauses"]

    def _progress(self, workflow_id: str) -> Any:
        return self._connection.get("workflows", workflow_id, "progress")


def _refuse_to_accept(workflow_id: str, accept_commands: bool) -> None:
    if accept_commands:
        raise CannotDoError(
            "commands that came from elsewhere are confirmed on the server's own machine",
            hint=f"run `holdfast resume {workflow_id} --accept-commands` there",
        )


def _document(plan: Plan, options: WorkflowOptions) -> dict[str, Any]:
    return {
        "issue": plan.issue.model_dump(),
        "tasks": [task.model_dump(mode="json", include=set(TASK_KEYS)) for task in plan.tasks.tasks],
        "constraints": list(plan.constraints),
        **options.model_dump(exclude_none=True, exclude_unset=True),
    }


class There:
    """What `Here` is for this process: a session that a server's worker runs, followed to its end."""

    claim = None

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.quit = threading.Event()
        """Set it to cut off what runs."""
        self.resting = threading.Event()
        self._listener: Callable[[str, Entry | UsageMetrics | str], None] | None = None

    def __enter__(self) -> Self:
        self.service = RemoteService(self._settings)
        return self

    def __exit__(self, *_: object) -> None:
        self.service.close()

    def listen(self, listener: Callable[[str, Entry | UsageMetrics | str], None]) -> None:
        self._listener = listener

    def run(self, workflow: Workflow) -> Workflow:
        """Until it rests; a server that is away for a while is waited for."""
        since, cut_off = 0, False
        while True:
            try:
                if self.quit.is_set() and not cut_off:
                    cut_off = True
                    self.service.pause_workflow(workflow.id, force_after=0, wait=False)
                now = self.service.workflow(workflow.id)
                since = self._tell(workflow.id, since)
            except StorageError:
                if self.quit.is_set():
                    raise
            except IllegalTransitionError:
                continue  # it ended in the moment it was to be cut off
            else:
                if now.status != "in_progress":
                    return now
            time.sleep(_POLL_SECONDS)

    def _tell(self, workflow_id: str, since: int) -> int:
        if self._listener is None:
            return since
        for event in self.service.events(workflow_id, since):
            since = event.seq
            entry = event.entry
            self._listener(workflow_id, entry.usage if isinstance(entry, UsageReported) else entry)
        return since
