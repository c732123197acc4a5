"""Claude Code itself as a node of a flow: paused in mid-stream, its own session goes on."""

from __future__ import annotations

import asyncio

from agents.claude_code import ClaudeCode
from agents.fakes.turns import say
from agents.workshop import PROGRAMS
from holdfast.flow.agents.claude_code import claude_code_node
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.model.flow import NodeMessage, SessionState


def flow_of(claude: ClaudeCode) -> Flow:
    flow = Flow("claude")
    node = claude_code_node(
        lambda step: f"Find {step.input}",
        command=(str(PROGRAMS / "claude"),),
        options=claude.headless[4:],
        cwd=claude.workshop.project,
        env={**claude.workshop.environ, **claude.environ},
    )
    flow.node(node, name="find")
    return flow


def test_it_answers(claude: ClaudeCode) -> None:
    claude.model.then(claude.shell("echo 4711"), say("It is 4711."))
    state = asyncio.run(Hub().run(flow_of(claude), "the number"))
    assert state.outputs == {"find": "It is 4711."}
    assert "Find the number" in claude.model.main[0].text


def test_paused_in_mid_stream_its_own_session_goes_on_with_what_the_user_said(claude: ClaudeCode) -> None:
    claude.model.then(claude.shell("echo 4711; sleep 0.2"), say("I was not stopped."))

    async def scene() -> tuple[SessionState, SessionState]:
        hub, flow = Hub(), flow_of(claude)
        with hub.subscribe("node:message") as events:
            task = asyncio.create_task(hub.run(flow, "the number", session_id="s1"))
            async for event in events:
                assert isinstance(event, NodeMessage)
                if event.message["type"] == "assistant":
                    hub.pause("lunch")
                    break
            paused = await task
        claude.model.then(say("It is 4711, and I heard you."))
        return paused, await hub.resume("s1", "and be brief")

    paused, done = asyncio.run(scene())
    assert paused.status == "paused"
    assert paused.interrupted["find"].provider_session
    assert done.status == "complete"
    last = claude.model.main[-1]
    assert "and be brief" in last.text
    assert "Find the number" in last.text
