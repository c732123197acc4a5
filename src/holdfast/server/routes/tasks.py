"""One task of a workflow: its attempts, what it prints, what it changed in files, what its agent said."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from holdfast.base.errors import HoldfastError, NotFoundError
from holdfast.base.redact import redact
from holdfast.hooks.turns import named_files
from holdfast.model.entry import (
    AgentSessionReported,
    Event,
    TaskFinished,
    TaskStarted,
    UsageReported,
    WorkCommitted,
    WorkflowPaused,
    WorkflowResumed,
)
from holdfast.model.message import Message, ToolCall, ToolResult
from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.project.formats import agent_called
from holdfast.server.app_state import AppState, AtDesk
from holdfast.server.models import (
    Conversation,
    ConversationCall,
    ConversationMessage,
    ConversationResult,
    EvidenceMessages,
    RecordedChange,
    TaskAttempt,
    TaskConversation,
    TaskDetail,
    TaskList,
)
from holdfast.server.problems import documented
from holdfast.server.routes.sessions import entry_of
from holdfast.sessions.contexts import find_transcript
from holdfast.transcripts import open_transcript
from holdfast.undo.ledger import Transaction
from holdfast.undo.state import LedgerEntry
from holdfast.undo.transactions import SideCar
from holdfast.workflows.drivers.model import history_file
from holdfast.workflows.file_recorder import is_of_task
from holdfast.workflows.plan import driver_of
from holdfast.workflows.task_log import TaskOutput

router = APIRouter(prefix="/api/workflows/{workflow_id}", tags=["tasks"])

TaskId = Annotated[str, Query(min_length=1, max_length=10_000, description="The task's id in the plan")]
EvidenceNumber = Annotated[int, Field(ge=0, le=1_000_000_000)]
Attempt = Annotated[int | None, Query(ge=1, le=1_000_000, description="Default: the last one")]


@router.get("/tasks", responses=documented(404, 422))
def get_tasks(workflow_id: str, desk: AtDesk) -> TaskList:
    """The whole task graph with current statuses."""
    _, newest = desk.store.event_range()
    workflow = desk.store.workflow(workflow_id)
    return TaskList(workflow_id=workflow_id, tasks=desk.standing(workflow).tasks.tasks, seq=newest)


@router.get("/output", responses=documented(404, 422))
def get_output(
    workflow_id: str,
    desk: AtDesk,
    task_id: TaskId,
    attempt: Attempt = None,
    since: Annotated[int, Query(ge=0, description="`next` of the previous answer")] = 0,
) -> TaskOutput:
    """What a task has printed so far, as far as it ran on the server's machine."""
    return desk.service.task_output(workflow_id, task_id, attempt=attempt, since=since)


@router.get("/task", responses=documented(404, 422))
def get_task(workflow_id: str, desk: AtDesk, task_id: TaskId) -> TaskDetail:
    """A task with its attempts and what it changed in files; the tasks that wait for it."""
    _, newest = desk.store.event_range()
    workflow = desk.store.workflow(workflow_id)
    tasks = desk.standing(workflow).tasks
    task = _task(desk, workflow, task_id)
    waiting = desk.service.waiting_for_approval(workflow)
    changes, unknown = changes_of(desk, workflow, lambda entry: is_of_task(entry, task))
    return TaskDetail(
        workflow_id=workflow_id,
        task=task,
        driver=driver_of(task, workflow.options),
        worktree=workflow.worktree,
        is_waiting=waiting is not None and waiting.id == task_id,
        needed_by=tuple(one.id for one in tasks.tasks if task_id in one.depends_on),
        attempts=_attempts(desk, workflow_id, task_id),
        changes=changes,
        changes_unknown=unknown,
        seq=newest,
    )


def _task(desk: AppState, workflow: Workflow, task_id: str) -> Task:
    task = desk.standing(workflow).tasks.by_id.get(task_id)
    if task is None:
        raise NotFoundError(
            f"no such task: {task_id}", hint=f"`/api/workflows/{workflow.id}/tasks` lists them"
        )
    return task


# ── attempts ──────────────────────────────────────────────────────────────────────────────────────

_OF_ATTEMPTS = (
    "agent_session_reported",
    "task_finished",
    "task_started",
    "usage_reported",
    "work_committed",
    "workflow_paused",
    "workflow_resumed",
)


@dataclass
class _Attempt:
    number: int
    session: int
    began: datetime
    cost_before: float
    is_alone: bool = True
    """Whether no other task ran meanwhile: only then is the session's cost its own."""
    cost_after: float | None = None
    ended: datetime | None = None
    finished: TaskFinished | None = None
    commits: list[str] = field(default_factory=list[str])
    agents: dict[str, TaskConversation] = field(default_factory=dict[str, TaskConversation])

    @property
    def told(self) -> TaskAttempt:
        end = self.finished
        is_cut_off = self.ended is not None and end is None
        return TaskAttempt(
            number=self.number,
            session_number=self.session,
            started_at=self.began,
            ended_at=self.ended,
            outcome="interrupted" if is_cut_off else end.outcome if end else None,
            result=end.result if end else None,
            seconds=end.seconds if end else None,
            tokens=end.tokens if end else None,
            context_share=end.context_share if end else None,
            cost_usd=self._cost(),
            retry_at=end.retry_at if end else None,
            commits=tuple(self.commits),
            conversations=tuple(self.agents.values()),
        )

    def _cost(self) -> float | None:
        if self.cost_after is None or not self.is_alone:
            return None
        return max(0.0, self.cost_after - self.cost_before)


def _attempts(desk: AppState, workflow_id: str, task_id: str) -> tuple[TaskAttempt, ...]:
    events = desk.store.events(workflow_id=workflow_id, types=_OF_ATTEMPTS)
    return tuple(one.told for one in _attempts_in(events, task_id))


def _attempts_in(events: Sequence[Event], task_id: str) -> list[_Attempt]:
    reader = _AttemptReader(task_id)
    for event in events:
        reader.read(event)
    return reader.found


class _AttemptReader:
    def __init__(self, task_id: str) -> None:
        self.found: list[_Attempt] = []
        self._task_id = task_id
        self._session, self._cost = 1, 0.0
        self._running: set[str] = set()
        self._reported: _Attempt | None = None
        """Whose usage is reported next: what an attempt used is told behind its end."""

    def read(self, event: Event) -> None:
        entry = event.entry
        if isinstance(entry, WorkflowResumed):
            self._session, self._cost = entry.session_number, 0.0
        elif isinstance(entry, WorkflowPaused):
            self._running.clear()
            self._cut_off(event.at)
            self._reported = None
        elif isinstance(entry, TaskStarted):
            self._start(entry, event.at)
        elif isinstance(entry, TaskFinished):
            self._running.discard(entry.task_id)
        elif isinstance(entry, UsageReported) and entry.usage.cost_usd is not None:
            self._cost = entry.usage.cost_usd
            if self._reported is not None:
                self._reported.cost_after = self._cost
        if self.found and getattr(entry, "task_id", None) == self._task_id:
            self._add(self.found[-1], event)

    def _start(self, entry: TaskStarted, at: datetime) -> None:
        if entry.task_id == self._task_id:
            self._cut_off(at)
            is_alone = not self._running - {self._task_id}
            self._reported = _Attempt(entry.attempt, self._session, at, self._cost, is_alone)
            self.found.append(self._reported)
        elif self.found and self.found[-1].ended is None:
            self.found[-1].is_alone = False
        else:
            self._reported = None
        self._running.add(entry.task_id)

    def _cut_off(self, at: datetime) -> None:
        if self.found and self.found[-1].ended is None:
            self.found[-1].ended = at

    def _add(self, last: _Attempt, event: Event) -> None:
        entry = event.entry
        if isinstance(entry, TaskFinished):
            last.ended, last.finished = event.at, entry
        elif isinstance(entry, WorkCommitted):
            last.commits.append(entry.commit)
        elif isinstance(entry, AgentSessionReported):
            last.agents[entry.agent_session_id] = TaskConversation(
                agent=agent_called(entry.agent), session_id=entry.agent_session_id
            )


# ── what it changed in files ──────────────────────────────────────────────────────────────────────


def changes_of(
    desk: AppState, workflow: Workflow, is_asked_for: Callable[[LedgerEntry], bool]
) -> tuple[tuple[RecordedChange, ...], str | None]:
    """What its tasks changed, the newest first; and why that cannot be told, where it is so."""
    if workflow.options.repository is not None:
        return (), "it works in a clone of its own; its commits hold what it changed"
    folder = desk.layout_of(workflow).root
    if not folder.is_dir():
        return (), "its folder is not on the server's machine"
    try:
        with SideCar(folder, named_files=lambda: named_files(folder)) as sidecar:
            transactions = sidecar.family(workflow.id)
    except HoldfastError as error:
        return (), error.message
    found = [
        _change(entry, transaction)
        for transaction in transactions
        for entry in transaction.entries
        if entry.kind == "change" and is_asked_for(entry)
    ]
    return tuple(reversed(found)), None


def _change(entry: LedgerEntry, transaction: Transaction) -> RecordedChange:
    undoing = [
        one.id
        for one in transaction.entries
        if entry.id in one.undoes and transaction.standing.get(one.id) and one.kind in ("undo", "rollback")
    ]
    return RecordedChange(
        transaction_id=transaction.id,
        change=entry_of(entry, transaction),
        undone_by=undoing[-1] if undoing else None,
    )


# ── what its agent said ───────────────────────────────────────────────────────────────────────────

_LONGEST_TEXT = 20_000


@router.get("/conversation", responses=documented(404, 422))
def get_conversation(
    workflow_id: str,
    desk: AtDesk,
    task_id: TaskId,
    attempt: Attempt = None,
    before: Annotated[int | None, Query(ge=0, description="`first` of the page after this one")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="Maximum number of messages")] = 100,
) -> Conversation:
    """What a task's agent and its tools said, the newest messages, in order; without secrets.

    As far as the agent's own record is on the server's machine. A conversation that goes on over several
    tasks is shown from the start of this attempt to its end.
    """
    workflow = desk.store.workflow(workflow_id)
    _task(desk, workflow, task_id)
    attempts = [one for one in _attempts(desk, workflow_id, task_id) if one.conversations]
    found = next((one for one in reversed(attempts) if attempt in (None, one.number)), None)
    if found is None:
        raise NotFoundError(
            f"no conversation of task {task_id} is recorded", hint="commands of a shell have none"
        )
    spoken = found.conversations[-1]
    messages = _messages(desk, workflow, spoken)
    within = (one for one in messages if _is_within(one, found.started_at, found.ended_at))
    return page_of(spoken, within, before, limit)


@router.get("/evidence", responses=documented(404, 422))
def get_evidence(
    workflow_id: str,
    desk: AtDesk,
    source: Annotated[str, Query(min_length=1, max_length=1_000, description="As the finding names it")],
    message: Annotated[
        list[EvidenceNumber], Query(min_length=1, max_length=50, description="As it cites them")
    ],
) -> EvidenceMessages:
    """The messages that a decision or an error of this workflow cites; without secrets.

    As far as the agent's own record is on the server's machine.
    """
    workflow = desk.store.workflow(workflow_id)
    reports = desk.store.events(workflow_id=workflow_id, types=("agent_session_reported",))
    agents = {
        event.entry.agent_session_id: agent_called(event.entry.agent)
        for event in reports
        if isinstance(event.entry, AgentSessionReported)
    }
    spoken = TaskConversation(agent=agents.get(source, ""), session_id=source)
    wanted = frozenset(message)
    cited = [one for one in _messages(desk, workflow, spoken) if one.index in wanted]
    return EvidenceMessages(source=source, messages=tuple(_told(one.index, one) for one in cited))


def _messages(desk: AppState, workflow: Workflow, spoken: TaskConversation) -> Iterator[Message]:
    folder = desk.layout_of(workflow).root
    if "\0" in spoken.session_id:  # as anybody may have written in an imported session
        raise NotFoundError("the agent's own record is not on this machine")
    if spoken.agent == "model":
        path = history_file(desk.layout_of(workflow), spoken.session_id)
        return open_transcript(path, "model")[1]
    record = find_transcript(spoken.session_id, folder, desk.home, desk.environ)
    return open_transcript(record.path, record.agent, record.session_id)[1]


def _is_within(message: Message, begin: datetime, end: datetime | None) -> bool:
    """Of what has no time nobody can tell: it is shown."""
    try:
        at = datetime.fromisoformat(message.at or "")
    except ValueError:
        return True
    if at.tzinfo is None:
        return True
    # An agent's clock counts whole seconds here and there.
    slack = 1.0
    return at.timestamp() >= begin.timestamp() - slack and (
        end is None or at.timestamp() <= end.timestamp() + slack
    )


def page_of(
    spoken: TaskConversation, messages: Iterable[Message], before: int | None, limit: int
) -> Conversation:
    page: deque[tuple[int, Message]] = deque(maxlen=limit)
    total = 0
    for message in messages:
        if not (message.text or message.thinking or message.tool_calls or message.tool_results):
            continue
        if before is None or total < before:
            page.append((total, message))
        total += 1
    return Conversation(
        agent=spoken.agent,
        session_id=spoken.session_id,
        messages=tuple(_told(number, message) for number, message in page),
        first=page[0][0] if page else 0,
        total=total,
    )


def _told(number: int, message: Message) -> ConversationMessage:
    return ConversationMessage(
        number=number,
        role=message.role,
        at=message.at,
        text=_clean(message.text),
        thinking=_clean(message.thinking),
        is_injected=message.injected,
        is_compaction=message.compaction,
        subagent=message.subagent,
        calls=tuple(map(_call, message.tool_calls)),
        results=tuple(map(_result, message.tool_results)),
    )


def _call(call: ToolCall) -> ConversationCall:
    return ConversationCall(id=call.id, tool=call.name, arguments=_clean(_arguments(call.arguments)))


def _arguments(given: dict[str, Any]) -> str:
    """A command as it was run; anything else as JSON."""
    command = given.get("command")
    if isinstance(command, str) and len(given) <= 2:
        return command
    return json.dumps(given, ensure_ascii=False, indent=2)


def _result(result: ToolResult) -> ConversationResult:
    return ConversationResult(call_id=result.call_id, text=_clean(result.text), outcome=result.outcome)


_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def _clean(text: str) -> str:
    clean = _HALF_CHARACTER.sub("\ufffd", redact(text)[0])
    left = len(clean) - _LONGEST_TEXT
    return clean if left <= 0 else f"{clean[:_LONGEST_TEXT]}\n[… {left} characters left out]"
