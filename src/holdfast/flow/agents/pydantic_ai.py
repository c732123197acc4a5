"""A pydantic-ai agent as a node.

    flow.node(pydantic_ai_node(agent, lambda step: f"Review {step.received}"), name="review")

What it yields is the conversation, as JSON, in pieces that end where a pause may come: a
question, an answer with the results of the tools it called, the last answer. Stopped there, it
goes on with the whole conversation and the user's message; no tool is called twice.
Its output is the agent's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.flow.graph import NodeBody
from holdfast.flow.step import Step
from holdfast.journal.usage import ContextUsageTracker

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse


def pydantic_ai_node(
    agent: Agent[Any, Any],
    prompt: Callable[[Step], str],
    *,
    usage: ContextUsageTracker | None = None,
    **options: Any,
) -> NodeBody:
    """`usage` is told of every model call; `options` are those of `Agent.iter` (`deps`, `model`, …)."""

    async def node(step: Step) -> AsyncIterator[Any]:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        before = ModelMessagesTypeAdapter.validate_python([each for piece in step.partial for each in piece])
        words = step.messages if before else (prompt(step), *step.messages)
        known = len(before)
        async with agent.iter("\n\n".join(words), message_history=before or None, **options) as run:
            async for upcoming in run:
                messages = _settled(run.all_messages(), upcoming)
                if len(messages) <= known:
                    continue
                piece, known = messages[known:], len(messages)
                await _report(piece, usage)
                if run.result is not None:
                    step.answer(run.result.output)
                yield ModelMessagesTypeAdapter.dump_python(list(piece), mode="json")

    return node


def _settled(messages: Sequence[ModelMessage], upcoming: Any) -> Sequence[ModelMessage]:
    """The conversation up to where it can be continued later: never with a tool called but not answered."""
    from pydantic_ai import Agent

    if Agent.is_model_request_node(upcoming):
        return [*messages, upcoming.request]
    return messages if Agent.is_end_node(upcoming) else ()


async def _report(messages: Sequence[ModelMessage], usage: ContextUsageTracker | None) -> None:
    from pydantic_ai.messages import ModelResponse

    for message in messages:
        if usage is not None and isinstance(message, ModelResponse):
            await asyncio.to_thread(_tell, usage, message)  # it writes to the disk


def _tell(usage: ContextUsageTracker, answer: ModelResponse) -> None:
    """A call is sent the whole conversation, so what it used is what is in the window now."""
    used = answer.usage
    usage.update_usage(
        max(0, used.input_tokens - used.cache_read_tokens - used.cache_write_tokens),
        used.output_tokens,
        used.cache_read_tokens,
        used.cache_write_tokens,
        report="cumulative",
        report_id=answer.provider_response_id,
        model=answer.model_name,
    )
