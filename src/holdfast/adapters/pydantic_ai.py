# pyright: basic
"""pydantic-ai: usage, a pause between two model calls, and the handover in the next run's prompt.

    session = PausableSession("reviews", model="gpt-4o")
    ended = await run(agent, "Review every module", session)
    while ended.paused:
        ended = await run(agent, "Go on", session)

Requires `pip install 'holdfast[pydantic-ai]'`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.adapters import PausableSession, RunEnd
from holdfast.base.errors import require_installed
from holdfast.model.message import Message, TokenUsage, ToolCall, ToolResult

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse


async def run(agent: Agent[Any, Any], prompt: str, session: PausableSession, **options: Any) -> RunEnd:
    """Run the agent; where the window is full, stop before its next model call and save the session.

    Every tool that was called has answered by then. A session that was paused before gets its handover before
    `prompt`, unless `message_history` is among the options, which are those of `Agent.iter`.
    """
    require_installed("this adapter", "pydantic_ai")
    from pydantic_ai import Agent

    if not options.get("message_history"):
        handover = await asyncio.to_thread(session.new_window)
        prompt = f"{handover}\n\n{prompt}" if handover else prompt
    known = len(options.get("message_history") or ())
    async with agent.iter(prompt, **options) as steps:
        async for upcoming in steps:
            said = steps.all_messages()
            reported, known = said[known:], len(said)
            await asyncio.to_thread(_report, session, reported)
            if not Agent.is_model_request_node(upcoming) or not _has_answered(steps.new_messages()):
                continue
            if await asyncio.to_thread(session.should_pause):
                spoken = [*said, upcoming.request]  # with what its tools answered
                return RunEnd(paused=await asyncio.to_thread(_pause, session, spoken))
    result = steps.result
    return RunEnd(output=None if result is None else result.output)


def _has_answered(messages: Iterable[ModelMessage]) -> bool:
    """A window that is full at once shall not pause for ever without a step."""
    return any(message.kind == "response" for message in messages)


def _pause(session: PausableSession, spoken: Sequence[ModelMessage]) -> str:
    return session.pause(conversation(spoken), agent="pydantic-ai")


def _report(session: PausableSession, messages: Iterable[ModelMessage]) -> None:
    for message in messages:
        if message.kind == "response":
            session.used(_usage(message), message.provider_response_id)


def _usage(answer: ModelResponse) -> TokenUsage:
    used = answer.usage
    return TokenUsage(
        input_tokens=max(0, used.input_tokens - used.cache_read_tokens - used.cache_write_tokens),
        output_tokens=used.output_tokens,
        cache_read=used.cache_read_tokens,
        cache_write=used.cache_write_tokens,
        model=answer.model_name,
    )


def conversation(messages: Iterable[ModelMessage]) -> Iterator[Message]:
    """As the finders read it."""
    for index, message in enumerate(messages):
        parts: Sequence[Any] = message.parts
        kinds = ("text",) if message.kind == "response" else ("user-prompt",)
        yield Message(
            index,
            "assistant" if message.kind == "response" else "user",
            text="\n".join(_text(part.content) for part in parts if part.part_kind in kinds),
            tool_calls=tuple(
                ToolCall(part.tool_call_id, part.tool_name, part.args_as_dict())
                for part in parts
                if part.part_kind == "tool-call"
            ),
            tool_results=tuple(
                ToolResult(
                    part.tool_call_id,
                    _text(part.content),
                    "ok" if part.part_kind == "tool-return" else "error",
                )
                for part in parts
                if part.part_kind in ("tool-return", "retry-prompt")
            ),
        )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        pieces: Sequence[Any] = content
        return "\n".join(piece for piece in pieces if isinstance(piece, str))
    return str(content)
