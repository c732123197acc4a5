"""A pydantic-ai agent as a node: paused between two tool batches, resumed with the whole conversation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from flow.harness import play
from holdfast.flow.agents.pydantic_ai import pydantic_ai_node
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.journal.usage import ContextUsageTracker
from holdfast.store.flows import SqlFlowStore
from holdfast.store.sql import SqlStore


class Scripted:
    """A model that calls the tool twice and then answers; it remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[ModelMessage]] = []

    def __call__(self, messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        self.asked.append(list(messages))
        looked = [part for part in parts(messages) if isinstance(part, ToolReturnPart)]
        usage = RequestUsage(input_tokens=1000 * len(self.asked), cache_read_tokens=300, output_tokens=10)
        if len(looked) < 2:
            return ModelResponse(
                [ToolCallPart("look", {"at": len(looked)})], usage=usage, model_name="scripted"
            )
        return ModelResponse([TextPart(f"seen {len(looked)}")], usage=usage)


def parts(messages: Sequence[ModelMessage]) -> list[object]:
    return [part for message in messages for part in message.parts]


def prompts(messages: Sequence[ModelMessage]) -> list[object]:
    return [part.content for part in parts(messages) if isinstance(part, UserPromptPart)]


class Bench:
    def __init__(self) -> None:
        self.model = Scripted()
        self.looks: list[int] = []
        self.hub: Hub | None = None
        self.pause_at: int | None = None
        self.agent = Agent(FunctionModel(self.model, model_name="scripted"))
        self.agent.tool_plain(self.look)

    def look(self, at: int) -> str:
        """Look at something."""
        self.looks.append(at)
        if at == self.pause_at and self.hub is not None:
            self.hub.pause("in the midst of a tool")
        return f"a view of {at}"

    def flow(self, tracker: ContextUsageTracker | None = None) -> Flow:
        flow = Flow("pydantic-ai")
        node = pydantic_ai_node(self.agent, lambda step: f"Look at {step.input}", usage=tracker)
        flow.node(node, name="agent")
        return flow


def test_its_output_is_the_agents_own_and_usage_goes_to_the_tracker(tmp_path: Path) -> None:
    bench = Bench()
    tracker = ContextUsageTracker(tmp_path, session_id="a", context_window=10_000)
    state = play(Hub().run(bench.flow(tracker), "the sea"))
    assert state.outputs == {"agent": "seen 2"}
    assert prompts(bench.model.asked[-1]) == ["Look at the sea"]
    used = tracker.get_current_state()
    assert (used.reports, used.model) == (3, "scripted")
    assert (used.input_tokens, used.cache_read, used.output_tokens) == (2700, 300, 10)


@pytest.mark.parametrize("pause_at", [0, 1])
@pytest.mark.parametrize("durable", [False, True])
def test_paused_at_a_tool_it_goes_on_with_all_it_knew_and_what_the_user_said(
    pause_at: int, durable: bool, sqlite_store: SqlStore
) -> None:
    bench = Bench()
    bench.pause_at = pause_at

    async def scene() -> None:
        store = SqlFlowStore(sqlite_store.database) if durable else None
        bench.hub = Hub(store=store)
        paused = await bench.hub.run(bench.flow(), "the sea", session_id="s1")
        assert (paused.status, paused.node_id) == ("paused", "agent")
        other = Hub(bench.flow(), store=store) if durable else bench.hub
        bench.hub = None
        done = await other.resume("s1", "and the sky")
        assert done.outputs == {"agent": "seen 2"}
        if store is not None:
            store.close()

    play(scene())
    assert bench.looks == [0, 1], "no tool was called twice"
    last = bench.model.asked[-1]
    assert prompts(last) == ["Look at the sea", "and the sky"]
    assert isinstance(last[-1], ModelRequest)


def test_importing_the_adapter_loads_nothing_heavy() -> None:
    import subprocess
    import sys

    program = "import sys, holdfast.flow.agents.pydantic_ai; print('pydantic_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
