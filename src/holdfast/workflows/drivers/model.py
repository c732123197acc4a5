"""Any model that pydantic-ai reaches, with tools for files and commands in the worktree."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.durable import read_file, replace_file, storage_errors
from holdfast.base.errors import CannotDoError, InvalidInputError, require_installed
from holdfast.base.ids import new_id
from holdfast.base.text import clipped
from holdfast.findings.model_call import (
    ModelChoice,
    failure_text,
    is_context_overflow,
    opened,
    refuse_if_forbidden,
)
from holdfast.journal.usage import characters_for
from holdfast.journal.windows import context_window
from holdfast.model.task import Task
from holdfast.model.usage import UsageMetadata
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Settings
from holdfast.workflows.drivers.cli_agent import conversation_for, safe_words
from holdfast.workflows.drivers.model_tools import MOST_CHARACTERS, WorktreeTools
from holdfast.workflows.drivers.prompts import REVIEW_SCHEMA, feedback, is_review, prompt_for
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

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model


# ── the conversation ──────────────────────────────────────────────────────────────────────────────

# The conversation with a model, kept in a file beside the work so that the next task talks on in it.

_FOLDER = "model-sessions"


@dataclass(frozen=True)
class ModelHistory:
    session: DriverSession
    path: Path
    messages: list[ModelMessage]

    @classmethod
    def opened(cls, session: DriverSession | None, worktree: Path, clock: Clock) -> tuple[ModelHistory, bool]:
        """The conversation of that session, or a new one; and whether it is that one."""
        if session and session.transcript and (messages := _read(session.transcript)):
            return cls(session, session.transcript, messages), True
        name = new_id("model", clock())
        path = ProjectLayout(worktree).ensure_scratch(_FOLDER) / f"{name}.json"
        return cls(DriverSession(name, "model", path), path, []), False

    def write(self, messages: list[ModelMessage], response: ModelResponse | None = None) -> None:
        """As far as it got; `response` is the newest answer, where the messages do not have it yet."""
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        whole = messages if response is None or response in messages else [*messages, response]
        with storage_errors(f"write {self.path}"):
            replace_file(self.path, ModelMessagesTypeAdapter.dump_json(whole))


def history_file(layout: ProjectLayout, session_id: str) -> Path:
    """Of a conversation in this folder, whatever a record says of where it is."""
    return layout.state / _FOLDER / f"{Path(session_id).name}.json"


def _read(path: Path) -> list[ModelMessage]:
    """Up to the last answer whose tools have all come back: one cut off can be answered by nobody."""
    from pydantic import ValidationError
    from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse

    try:
        messages = ModelMessagesTypeAdapter.validate_json(read_file(path))
    except (OSError, ValidationError):
        return []
    while messages and isinstance(messages[-1], ModelResponse) and messages[-1].tool_calls:
        messages.pop()
    return messages


# ── the driver ────────────────────────────────────────────────────────────────────────────────────

# Any model that pydantic-ai reaches, with tools for files and commands in the worktree.
#
# Which one is a setting: `agent_model` (`model` where that is not set), a pydantic-ai name
# or the name of one on the OpenAI-compatible server at `agent_model_url`. The tasks of one
# session talk on in one conversation, which is kept in a file beside the work and written
# after every call: that is the window that fills up.
#
# pydantic-ai comes with `holdfast[models]` and takes about a second to import, so
# everything of it is imported where it is used.

MOST_TRIES = 5
"""Of one call, where the server is busy or out of reach."""
FIRST_WAIT = 1.0
"""Seconds before the second try; twice as long before each further one, and a random bit more."""
LONGEST_WAIT = 60.0
"""A server that asks for more patience than this gets a pause instead."""

_MOST_CALLS = 200
_LONGEST_ANSWER = 8_192
_NEARLY = 0.98
_RESULT_CHARACTERS = 4_000
_INSTRUCTIONS = """\
You work on a software project, in its folder, through the tools you have. File names are relative to that \
folder. Do the task you are given, check that it works, and then say in a few sentences what you did. Nobody \
can answer questions meanwhile: where something is unclear, take the simplest reading and say so."""


class ModelDriver:
    name = "model"

    def __init__(self, settings: Settings, clock: Clock = system_clock) -> None:
        self._settings = settings
        self._clock = clock

    def check(self, task: Task) -> None:
        if not (task.prompt or task.run or "").strip():
            raise InvalidInputError(
                f"task {task.id!r} has no prompt", hint='tell the model what to do: prompt: "Review it"'
            )
        if self._choice is None:
            raise CannotDoError(
                "no model is set for the driver `model`",
                hint='set agent_model in your config file, e.g. agent_model = "openai:gpt-4o"',
            )
        require_installed("the driver `model`", "pydantic_ai")

    def run(self, assignment: Assignment, report: Report) -> TaskOutcome:
        self.check(assignment.task)
        if assignment.stop.requested:
            return TaskInterrupted(assignment.stop.reason or "stopped")
        try:
            return asyncio.run(self._work(assignment, report))
        except asyncio.CancelledError:
            return TaskInterrupted(assignment.stop.reason or "stopped")

    @property
    def _choice(self) -> ModelChoice | None:
        settings = self._settings
        if settings.agent_model:
            return ModelChoice(settings.agent_model, settings.agent_model_url)
        return ModelChoice(settings.model, settings.model_url) if settings.model else None

    async def _work(self, assignment: Assignment, report: Report) -> TaskOutcome:
        assignment.stop.on_request(_canceller())
        choice = self._choice or ModelChoice("")
        window = self._settings.context_window or context_window(choice.name.rpartition(":")[2])
        try:
            async with opened(choice) as model:
                refuse_if_forbidden(model)
                patient = _patient(model, choice.name, report)
                return await _Worker(assignment, report, patient, window, self._settings, self._clock).work()
        except Exception as error:  # noqa: BLE001 - providers raise what they like; the task ends here
            return self._outcome_of(error, choice)

    def _outcome_of(self, error: Exception, choice: ModelChoice) -> TaskOutcome:
        from pydantic_ai import exceptions as known

        if isinstance(error, _WindowFullError) or is_context_overflow(error):
            return Exhausted(f"model {choice.name}: the context window is full")
        if isinstance(error, known.ModelQuotaExceededError | _passing()):
            wait = getattr(error, "retry_after", None)
            resets_at = to_datetime(self._clock()) + timedelta(seconds=wait) if wait else None
            return RateLimited(failure_text(error, choice.name, choice.api_key), resets_at)
        if isinstance(error, known.UsageLimitExceeded):
            return Failed(f"model {choice.name}: {_MOST_CALLS} calls without finishing the task")
        if isinstance(error, known.UnexpectedModelBehavior) and not isinstance(
            error, known.ContentFilterError
        ):
            return Failed(f"model {choice.name}: {safe_words(str(error))}")
        return Failed(failure_text(error, choice.name, choice.api_key))


class _WindowFullError(Exception):
    """The model stopped in mid-answer since there was no room left."""


@dataclass(frozen=True)
class _Worker:
    """One task, with the model at hand."""

    assignment: Assignment
    report: Report
    model: Model
    window: int
    settings: Settings
    clock: Clock

    async def work(self) -> TaskOutcome:
        task = self.assignment.task
        conversation = conversation_for(self.assignment, ModelDriver.name)
        history, is_known = ModelHistory.opened(conversation.session, self.assignment.worktree, self.clock)
        if self.assignment.wraps_up and not is_known:
            return Failed("its conversation is not at hand")
        self.report.agent_session(history.session)
        prompt = prompt_for(
            self.assignment,
            is_begun=conversation.is_begun and is_known,
            goes_on=conversation.goes_on and is_known,
        )
        answer = await self._conversed(prompt, history)
        text = answer if isinstance(answer, str) else _in_words(answer)
        if is_review(task) and not self.assignment.wraps_up:
            at = to_datetime(self.clock())
            self.report.found(feedback(task, text, self.model.model_name, at, answer))
        return Done(clipped(text.strip(), _RESULT_CHARACTERS) or None)

    async def _conversed(self, prompt: str, history: ModelHistory) -> object:
        from pydantic_ai import UsageLimits

        agent = self._agent()
        async with agent.iter(
            prompt,
            message_history=history.messages,
            usage_limits=UsageLimits(request_limit=_MOST_CALLS),
            infer_name=False,
        ) as run:
            async for node in run:
                if agent.is_call_tools_node(node):
                    history.write(run.all_messages(), node.model_response)
                    self._told(node.model_response)
                    if self.assignment.wraps_up:
                        return node.model_response.text or ""  # whatever tools it calls
            history.write(run.all_messages())
            result = run.result
        return result.output if result else ""

    def _agent(self) -> Agent[None, Any]:
        from pydantic_ai import Agent, StructuredDict, Tool

        wraps_up = self.assignment.wraps_up
        most = min(MOST_CHARACTERS, characters_for(self.window) // 8)
        tools = WorktreeTools(self.assignment, self.report, self.settings.command_time_limit, most)
        review = StructuredDict(REVIEW_SCHEMA, name="review", description="The verdict of the review")
        return Agent(
            self.model,
            output_type=[review, str] if is_review(self.assignment.task) and not wraps_up else str,
            instructions=_INSTRUCTIONS,
            # One after the other: they work on the same files.
            tools=[Tool(tool, sequential=True) for tool in tools.all],
            model_settings={"max_tokens": min(_LONGEST_ANSWER, self.window // 4) // (4 if wraps_up else 1)},
            retries=3,
            name="holdfast",
        )

    def _told(self, response: ModelResponse) -> None:
        usage = UsageMetadata.from_pydantic_ai_usage(response.usage, self.window)
        calls = len(response.tool_calls)
        self.report.usage(usage, tool_calls=calls, cost_usd=_cost(response))
        if response.text:
            self.report.say(clipped(" ".join(response.text.split()), 200))
        if response.finish_reason == "length" and usage.total_tokens >= self.window * _NEARLY:
            raise _WindowFullError


def _canceller() -> Callable[[], None]:
    """Cancels the task that calls this, from any thread; nothing once its loop is closed."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def cancel() -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: task.cancel() if task else None)

    return cancel


def _passing() -> Any:
    """Errors that time heals."""
    from pydantic_ai import exceptions as known

    return (
        known.ModelRateLimitError
        | known.ModelOverloadedError
        | known.ModelUnavailableError
        | known.ModelServerError
        | known.ModelTimeoutError
        | known.ModelConnectionError
        | known.ModelRequestTimeout
    )


def _patient(model: Model, name: str, report: Report) -> Model:
    from pydantic_ai.models.wrapper import WrapperModel

    class Patient(WrapperModel):
        """Tries a call again while the server is busy, for as long as it asks to wait."""

        async def request(self, *args: Any, **kwargs: Any) -> ModelResponse:
            for attempt in range(1, MOST_TRIES):
                await _turn(report, name)
                try:
                    return await self.wrapped.request(*args, **kwargs)
                except Exception as error:
                    wait = _wait_after(error, attempt)
                    if wait is None:
                        raise
                    why = failure_text(error, self.model_name)
                    report.say(f"{why}; retrying in {wait:.1f} s ({attempt} of {MOST_TRIES - 1})")
                    await asyncio.sleep(wait)
            await _turn(report, name)
            return await self.wrapped.request(*args, **kwargs)

    return Patient(model)


async def _turn(report: Report, name: str) -> None:
    """In a thread that knows nothing of the step we are in: what waits for limits is no part of it."""
    await asyncio.get_running_loop().run_in_executor(None, report.turn, name)


def _wait_after(error: Exception, attempt: int) -> float | None:
    """Seconds until another try is worth it; None where none is."""
    if is_context_overflow(error) or not isinstance(error, _passing()):
        return None
    asked = getattr(error, "retry_after", None)
    if asked is not None:
        return float(asked) if asked <= LONGEST_WAIT else None
    return min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1)) * (1 + random.random() / 4)  # noqa: S311 - spreads load


def _cost(response: ModelResponse) -> float | None:
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # a model without a price list
        return None


def _in_words(review: object) -> str:
    fields = cast("dict[str, Any]", review) if isinstance(review, dict) else {}
    verdict = "approved" if fields.get("approved") is True else "changes requested"
    comments = [f"- {comment}" for comment in fields.get("comments") or ()]
    return "\n".join((f"Verdict: {verdict}", f"Severity: {fields.get('severity')}", *comments))
