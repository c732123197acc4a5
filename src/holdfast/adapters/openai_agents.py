# pyright: basic, reportMissingImports=false
# The SDK is not in the environment of the checks.
"""OpenAI Agents SDK: a session backend in the project's folder, a pause between model calls, the handover.

    session = HoldfastSession("support", model="gpt-4o")
    ended = await run(agent, "Answer every ticket", session)
    while ended.paused:
        ended = await run(agent, "Go on", session)  # a new window, with the handover

`Runner.run(agent, text, session=session)` works as well, without pauses. The conversation is kept as it is,
private to you, in `.holdfast/state/openai-agents/`. Requires `pip install 'holdfast[openai-agents]'`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from holdfast.adapters import PausableSession, RunEnd
from holdfast.base.durable import lock_file, read_file, replace_file, storage_errors
from holdfast.base.errors import DamagedDataError, MissingExtraError
from holdfast.base.ids import file_name_for
from holdfast.model.message import Message, TokenUsage, ToolCall, ToolResult

if TYPE_CHECKING:
    from agents import Agent

Item = dict[str, Any]


class HoldfastSession(PausableSession):
    """What the SDK calls a session: it keeps the items of a conversation. Any number of processes may."""

    session_settings: Any = None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        items = await asyncio.to_thread(self._read)
        return items if limit is None else items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[Any]) -> None:
        await asyncio.to_thread(self._change, lambda known: [*known, *items])

    async def pop_item(self) -> Any:
        popped: list[Item] = []

        def without_last(known: list[Item]) -> list[Item]:
            popped.extend(known[-1:])
            return known[:-1]

        await asyncio.to_thread(self._change, without_last)
        return popped[0] if popped else None

    async def clear_session(self) -> None:
        await asyncio.to_thread(self._change, lambda _: [])

    @property
    def _file(self) -> Path:
        folder = self.settings.layout.ensure_scratch("openai-agents")
        return folder / f"{file_name_for(self.session_id)}.json"

    def _read(self) -> list[Item]:
        try:
            items: Any = json.loads(read_file(self._file))
        except FileNotFoundError:
            return []
        except ValueError as error:
            raise DamagedDataError(f"the conversation {self._file} is damaged: {error}") from error
        return items

    def _change(self, changed: Any) -> None:
        file = self._file
        with storage_errors("record the conversation"), lock_file(file.with_suffix(".lock")):
            replace_file(file, json.dumps(changed(self._read()), ensure_ascii=False).encode())


class _PauseNow(Exception):  # noqa: N818 - a signal, caught by `run`
    pass


async def run(agent: Agent[Any], prompt: str, session: HoldfastSession, **options: Any) -> RunEnd:
    """Run the agent; where the window is full, stop before its next model call and save the session.

    After a pause the conversation begins anew, with the handover in front of `prompt`. `options` are those of
    `Runner.run`, but for `hooks`.
    """
    try:
        from agents import RunHooks, Runner
    except ImportError:
        raise MissingExtraError("this adapter", "agents") from None

    class PausingHooks(RunHooks):
        def __init__(self) -> None:
            self.calls = 0
            self.sent: list[Any] = []

        async def on_llm_start(self, _context: Any, _agent: Any, _prompt: Any, input_items: Any) -> None:
            self.sent = list(input_items)
            if self.calls and await asyncio.to_thread(session.should_pause):
                raise _PauseNow

        async def on_llm_end(self, _context: Any, agent: Any, response: Any) -> None:
            self.calls += 1
            model = getattr(agent.model, "model", agent.model)
            used = _usage(response.usage, model if isinstance(model, str) else None)
            await asyncio.to_thread(session.used, used, response.response_id)

    hooks = PausingHooks()
    handover = await asyncio.to_thread(session.new_window)
    if handover:
        await session.clear_session()
        prompt = f"{handover}\n\n{prompt}"
    try:
        result = await Runner.run(agent, prompt, session=cast("Any", session), hooks=hooks, **options)
    except _PauseNow:
        items = [_plain(item) for item in hooks.sent]
        name = await asyncio.to_thread(session.pause, conversation(items), agent="openai-agents")
        return RunEnd(paused=name)
    return RunEnd(output=result.final_output)


def _usage(used: Any, model: str | None) -> TokenUsage:
    cached = getattr(used.input_tokens_details, "cached_tokens", 0) or 0
    return TokenUsage(max(0, used.input_tokens - cached), used.output_tokens, cached, 0, model)


def _plain(item: Any) -> Item:
    return item if isinstance(item, dict) else item.model_dump(mode="json")


def conversation(items: Iterable[Item]) -> Iterator[Message]:
    """Items of the Responses API, as the finders read them."""
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "message":
            role = item.get("role", "user")
            yield Message(
                index, role if role in ("user", "assistant") else "system", text=_text(item.get("content"))
            )
        elif kind == "function_call":
            call = ToolCall(str(item.get("call_id")), str(item.get("name")), _arguments(item))
            yield Message(index, "assistant", tool_calls=(call,))
        elif kind == "function_call_output":
            result = ToolResult(str(item.get("call_id")), _text(item.get("output")), "unknown")
            yield Message(index, "user", tool_results=(result,))


def _arguments(item: Item) -> dict[str, Any]:
    try:
        known: Any = json.loads(item.get("arguments") or "{}")
    except ValueError:
        known = None
    return cast("dict[str, Any]", known) if isinstance(known, dict) else {"arguments": item.get("arguments")}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        pieces = (piece.get("text") for piece in cast("list[Any]", content) if isinstance(piece, dict))
        return "\n".join(piece for piece in pieces if isinstance(piece, str))
    return "" if content is None else str(content)
