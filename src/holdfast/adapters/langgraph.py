# pyright: basic
"""LangGraph: a pause at the end of a superstep, with the checkpointer; and its threads, imported.

    session = PausableSession("book", model="gpt-4o")
    ended = run(graph, {"messages": [("user", "Write it")]}, session)
    if ended.paused:
        ended = run(graph, None, session)  # from the checkpoint, in this process or another

The session's id is LangGraph's `thread_id`. Requires `pip install 'holdfast[langgraph]'`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from holdfast.adapters import PausableSession, RunEnd
from holdfast.base.errors import CannotDoError, require_installed
from holdfast.model.message import Message, TokenUsage, ToolCall, ToolResult

if TYPE_CHECKING:
    from pathlib import Path

    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

_LONGEST_VALUE = 10_000


def run(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    given: Any,
    session: PausableSession,
    config: Mapping[str, Any] | None = None,
) -> RunEnd:
    """Run the graph; where the window is full, stop at the end of the superstep and save the session.

    `given` is what the graph's `invoke` takes; None goes on from the checkpoint, and no step is done again. A
    graph that interrupts itself ends without output and without a pause: answer it as ever.
    """
    require_installed("this adapter", "langgraph")
    from langchain_core.callbacks import BaseCallbackHandler
    from langgraph.errors import GraphDrained
    from langgraph.runtime import RunControl

    if graph.checkpointer in {None, False}:
        raise CannotDoError(
            "the graph has no checkpointer to go on from",
            hint="compile it with one: builder.compile(checkpointer=SqliteSaver(…))",
        )
    control = RunControl()

    class Watcher(BaseCallbackHandler):
        """Told of each node's end before the superstep ends, which a stream of updates is not."""

        raise_error = run_inline = True

        def on_chain_end(self, outputs: Any, *, parent_run_id: Any = None, **_: Any) -> None:
            if parent_run_id is not None:  # the graph's own output holds every message there was
                _report(session, outputs)
                if session.should_pause():
                    control.request_drain("the context window is full")

    threaded = _with_thread(config, session.session_id, Watcher())
    try:
        graph.invoke(given, threaded, durability="sync", control=control)
    except GraphDrained:
        return RunEnd(paused=_pause(graph, session, threaded))
    state = graph.get_state(threaded)
    return RunEnd(output=None if state.next else state.values)


def import_threads(checkpointer: BaseCheckpointSaver[Any], project: Path | str | None = None) -> list[str]:
    """Save the newest state of each of its threads as a session here; returns their names.

    A thread that was imported at the same checkpoint before is left out.
    """
    newest: dict[str, Any] = {}
    for saved in checkpointer.list(None):
        place = saved.config.get("configurable", {})
        if not place.get("checkpoint_ns"):
            before = newest.get(place["thread_id"])
            if before is None or saved.checkpoint["id"] > before.checkpoint["id"]:  # they sort by time
                newest[place["thread_id"]] = saved
    return [
        name
        for thread, saved in newest.items()
        if (name := _imported(PausableSession(thread, project), saved)) is not None
    ]


def _imported(session: PausableSession, saved: Any) -> str | None:
    reason = f"imported from LangGraph at checkpoint {saved.checkpoint['id']}"
    if session.last_reason() == reason:
        return None
    spoken = conversation(saved.checkpoint["channel_values"])
    return session.pause(spoken, agent="langgraph", reason=reason, is_cut_short=False)


def _with_thread(config: Mapping[str, Any] | None, thread: str, watcher: Any) -> Any:
    from langchain_core.runnables import ensure_config
    from langchain_core.runnables.config import merge_configs

    ours: Any = {"configurable": {"thread_id": thread}, "callbacks": [watcher]}
    return merge_configs(ensure_config(cast("Any", config)), ours)


def _pause(graph: CompiledStateGraph[Any, Any, Any, Any], session: PausableSession, config: Any) -> str:
    state = graph.get_state(config)
    checkpoint = state.config.get("configurable", {})["checkpoint_id"]
    reason = f"paused before {', '.join(state.next)}; LangGraph goes on from checkpoint {checkpoint}"
    return session.pause(conversation(state.values), agent="langgraph", reason=reason)


def _report(session: PausableSession, update: Any) -> None:
    """Of a step the last model call tells how full the window is."""
    for message in _messages_in(update):
        used = getattr(message, "usage_metadata", None)
        if used:
            details = used.get("input_token_details") or {}
            read, written = details.get("cache_read", 0), details.get("cache_creation", 0)
            metadata = message.response_metadata or {}
            tokens = TokenUsage(
                input_tokens=max(0, used["input_tokens"] - read - written),
                output_tokens=used["output_tokens"],
                cache_read=read,
                cache_write=written,
                model=metadata.get("model_name") or metadata.get("model"),
            )
            session.used(tokens, message.id)


def _messages_in(update: Any) -> Iterator[Any]:
    """Of `{node: {channel: value}}`, whatever the channel is called."""
    if isinstance(update, Mapping):
        for value in cast("Mapping[str, Any]", update).values():
            yield from _messages_in(value)
    elif isinstance(update, list | tuple):
        for value in cast("Sequence[Any]", update):
            yield from _messages_in(value)
    elif hasattr(update, "usage_metadata"):
        yield update


def conversation(values: Any) -> Iterable[Message]:
    """The messages of a graph's state; of a graph without any, its values as one note."""
    known = cast("Mapping[str, Any]", values) if isinstance(values, Mapping) else {}
    spoken = known.get("messages")
    if isinstance(spoken, list) and spoken:
        return [_message(index, one) for index, one in enumerate(cast("list[Any]", spoken))]
    told = json.dumps(values, default=str, ensure_ascii=False)[:_LONGEST_VALUE]
    return [Message(0, "assistant", text=f"The graph's state: {told}")]


def _message(index: int, one: Any) -> Message:
    text = one.text if isinstance(one.text, str) else one.text()  # a method in older versions
    if one.type == "tool":
        outcome = "error" if getattr(one, "status", "") == "error" else "ok"
        return Message(index, "user", tool_results=(ToolResult(one.tool_call_id, text, outcome),))
    if one.type == "ai":
        calls = tuple(ToolCall(call["id"] or "", call["name"], call["args"]) for call in one.tool_calls)
        return Message(index, "assistant", text=text, tool_calls=calls)
    return Message(index, "system" if one.type == "system" else "user", text=text)
