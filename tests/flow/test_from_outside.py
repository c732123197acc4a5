"""What reaches a run from outside: signals, messages, stops; timers, forks and flows that gained nodes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from flow.harness import play
from holdfast.base.errors import (
    FlowChangedError,
    InvalidInputError,
    NodeFailedError,
    NotFoundError,
    SessionNotFoundError,
)
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step
from holdfast.flow.store import FlowStore, MemoryFlowStore
from holdfast.store.flows import SqlFlowStore
from holdfast.store.sql import SqlStore


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest) -> Iterator[FlowStore]:
    if request.param == "memory":
        yield MemoryFlowStore()
        return
    opened = SqlFlowStore(request.getfixturevalue("sqlite_store").database)
    yield opened
    opened.close()


def approval() -> Flow:
    flow = Flow("approval")

    @flow.node
    async def ask(step: Step) -> list[Any]:
        return [await step.wait_for("answer"), await step.wait_for("answer")]

    flow.node(lambda step: step.received[::-1], name="then", after="ask")
    return flow


async def until_running(hub: Hub, session_id: str) -> None:
    while session_id not in {each.id for each in await hub.sessions({"running"})}:
        await asyncio.sleep(0)


def test_signals_reach_a_run_of_another_hub_once_each_and_in_order(store: FlowStore) -> None:
    async def scene() -> None:
        runs = Hub(store=store, mail_every=0.01)
        sends = Hub(store=store)
        task = await runs.start(approval(), session_id="s1")
        await sends.send("s1", "other", "kept, since nobody waits for it")
        await sends.send("s1", "answer", {"yes": 1})
        await sends.send("s1", "answer", "two")
        assert (await task).outputs["then"] == ["two", {"yes": 1}]
        with pytest.raises(SessionNotFoundError, match="complete"):
            await sends.send("s1", "answer")
        with pytest.raises(SessionNotFoundError):
            await sends.send("nobody", "answer")

    play(scene())


def test_a_signal_waits_for_a_paused_run_and_one_that_came_is_not_asked_for_again(store: FlowStore) -> None:
    async def scene() -> None:
        first, second = Hub(store=store), Hub(approval(), store=store)
        task = asyncio.create_task(first.run(approval(), session_id="s1"))
        await until_running(first, "s1")
        await first.send("s1", "answer", 1)
        while not (await store_records(store)).get("ask#wait.1", {}).get("value"):
            await asyncio.sleep(0)
        first.pause("for the night")
        assert ((await task).status, (await first.state("s1")).node_id) == ("paused", "ask")
        await second.send("s1", "answer", 2)
        assert (await second.resume("s1", "go on")).outputs["ask"] == [1, 2]

    play(scene())


async def store_records(store: FlowStore) -> dict[str, Any]:
    loaded = store.load("s1")
    found = await loaded if isinstance(loaded, asyncio.Future) else loaded
    return {record.path: record.value for record in found.records if record.kind == "given"}


def test_a_timer_goes_on_from_where_it_began_whoever_runs_it(store: FlowStore) -> None:
    now = 1000.0
    flow = Flow("timer")

    @flow.node
    async def wait(step: Step) -> str:
        await step.sleep(3600)
        try:
            return await step.wait_for("never", timeout=60)
        except TimeoutError as error:
            return str(error)

    async def scene() -> None:
        nonlocal now
        hub = Hub(store=store, clock=lambda: now)
        task = asyncio.create_task(hub.run(flow, session_id="s1"))
        await until_running(hub, "s1")
        while "wait#wait.1" not in await store_records(store):
            await asyncio.sleep(0)
        hub.pause()
        assert (await task).status == "paused"
        now += 3600 + 59
        task = asyncio.create_task(Hub(flow, store=store, clock=lambda: now).resume("s1", "go on"))
        while "wait#wait.2" not in await store_records(store):
            await asyncio.sleep(0)
        other = Hub(flow, store=store)
        await other.stop("s1", resumable=True)
        assert (await task).status == "paused"
        now += 60 + 1
        done = await Hub(flow, store=store, clock=lambda: now).resume("s1", "go on")
        assert done.outputs == {"wait": "no signal 'never' came in time"}

    play(scene())


@pytest.mark.parametrize("seconds", [float("nan"), None, "1"])
def test_a_wait_for_no_number_of_seconds_is_an_error_and_not_for_ever(seconds: Any) -> None:
    flow = Flow("sleeper")

    @flow.node
    async def sleeps(step: Step) -> None:
        await step.sleep(seconds)

    with pytest.raises(NodeFailedError, match=r"nan is not a number|must be real number"):
        asyncio.run(asyncio.wait_for(Hub().run(flow), 30))


def test_a_run_of_another_hub_is_paused_and_aborted_by_its_id(store: FlowStore) -> None:
    async def scene() -> None:
        runs, asks = Hub(approval(), store=store, mail_every=0.01), Hub(store=store)
        task = asyncio.create_task(runs.run(approval(), session_id="s1"))
        await until_running(asks, "s1")
        await asks.stop("s1", resumable=True, reason="lunch")
        state = await task
        assert (state.status, state.reason) == ("paused", "lunch")
        await asks.stop("s1", resumable=True)  # it is
        task = asyncio.create_task(runs.resume("s1", "go on"))  # not stopped by what was asked before
        await until_running(asks, "s1")
        await asks.send("s1", "answer", 1)
        await asks.stop("s1", reason="enough")
        assert ((await task).status, (await asks.state("s1")).reason) == ("aborted", "enough")
        with pytest.raises(SessionNotFoundError):
            await asks.stop("s1")
        await runs.run(one_pause(), session_id="s2")
        await asks.stop("s2", reason="nobody runs it")
        assert (await runs.state("s2")).status == "aborted"

    play(scene())


def one_pause() -> Flow:
    flow = Flow("pauses")
    flow.node(lambda step: step.pause("a question"), name="ask")
    return flow


def test_what_is_said_to_a_run_reaches_the_next_agent_and_is_not_lost(store: FlowStore) -> None:
    flow = Flow("talk")

    @flow.node
    async def first(step: Step) -> AsyncIterator[Any]:
        if not step.partial:
            yield "working"
            await step.wait_for("go")
        yield list(step.messages)

    async def scene() -> None:
        hub, other = Hub(flow, store=store, mail_every=0.01), Hub(store=store)
        task = asyncio.create_task(hub.run(flow, session_id="s1"))
        await until_running(other, "s1")
        while not (await other.state("s1")).interrupted:
            await asyncio.sleep(0)
        await other.say("s1", "be brief")
        while not (await other.state("s1")).interrupted["first"].messages:
            await asyncio.sleep(0)
        await other.stop("s1", resumable=True)
        assert (await task).interrupted["first"].partial == ("working",)
        await other.say("s1", "and kind")
        done = await hub.resume("s1", "go on")
        assert done.outputs["first"] == ["working", ["be brief", "and kind", "go on"]]
        with pytest.raises(InvalidInputError, match="empty"):
            await other.say("s1", " ")

    play(scene())


PROGRAM = """
import asyncio, sys
from holdfast import Flow, Hub
from holdfast.store.flows import SqlFlowStore
flow = Flow("agent")

@flow.node
async def agent(step):
    for number in range(len(step.partial), 3):
        yield f"{number} by another process, told {list(step.messages)}"
    print(await step.wait_for("go on"), flush=True)
    await asyncio.Event().wait()

asyncio.run(Hub(flow, store=SqlFlowStore(sys.argv[1])).run(flow, session_id="s1"))
"""


def test_a_kill_keeps_what_an_agent_has_said_and_what_it_was_sent(sqlite_store: SqlStore) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, sqlite_store.database], stdout=subprocess.PIPE, text=True
    )
    flow = Flow("agent")

    @flow.node
    async def agent(step: Step) -> AsyncIterator[str]:
        yield f"{len(step.partial)}, {await step.wait_for('go on')}, {list(step.messages)}"

    async def scene() -> None:
        store = SqlFlowStore(sqlite_store.database)
        hub = Hub(flow, store=store)
        while not await hub.sessions():
            await asyncio.sleep(0.01)
        await hub.send("s1", "go on", "sent")
        assert process.stdout is not None
        assert await asyncio.to_thread(process.stdout.readline) == "sent\n"
        process.kill()
        process.wait()
        said = tuple(f"{number} by another process, told []" for number in range(3))
        assert (await hub.state("s1")).interrupted["agent"].partial == said
        done = await hub.resume("s1", "go on")
        assert done.outputs == {"agent": [*said, "3, sent, ['go on']"]}
        store.close()

    try:
        play(scene())
    finally:
        process.kill()
        process.communicate()


def stages(*names: str) -> Flow:
    """A chain with a pause at its end."""
    flow = Flow("stages")
    for name, before in zip(names, [(), *names], strict=False):
        flow.node(lambda step: f"{step.node_id} ran", name=name, after=before)
    flow.node(lambda step: step.messages or step.pause("?"), name="ask", after=names[-1])
    return flow


def test_a_flow_may_gain_nodes_and_edges_but_not_lose_what_ran(store: FlowStore) -> None:
    async def scene() -> None:
        assert (await Hub(store=store).run(stages("one", "two"), session_id="s1")).status == "paused"
        grown = stages("one", "two")
        asked: list[str] = []

        def when(output: str) -> bool:
            asked.append(output)
            return output == "two ran"

        grown.node(lambda step: "new", name="between", after="one")
        grown.node(lambda step: f"after {step.received}", name="taken", after="two", when=when)
        grown.node(lambda step: "not", name="cut", after="two", when=lambda output: not when(output))
        grown.node(lambda step: step.pause("again") if not step.messages else 1, name="last", after="taken")
        hub = Hub(grown, store=store)
        paused = await hub.resume("s1", "go on")
        assert (paused.status, paused.node_id) == ("paused", "last")
        done = await Hub(grown, store=store).resume("s1", "yes")
        assert done.outputs == {
            "one": "one ran",
            "two": "two ran",
            "between": "new",
            "taken": "after two ran",
            "ask": ["go on"],
            "last": 1,
        }
        assert asked == ["two ran"] * 2, "each new condition was asked once"
        await Hub(store=store).run(stages("one", "two"), session_id="s2")
        with pytest.raises(FlowChangedError, match="no place for 'two'"):
            await Hub(stages("one", "renamed"), store=store).resume("s2", "go on")

    play(scene())


def test_a_run_is_forked_from_any_node_and_the_original_stays(store: FlowStore) -> None:
    ran: list[str] = []
    inner = Flow("inner")
    inner.node(lambda step: ran.append(step.node_id) or step.input, name="a")
    inner.node(lambda step: ran.append(step.node_id) or step.received * 10, name="b", after="a")
    flow = Flow("forked")
    flow.node(lambda step: ran.append("start") or [1, 2], name="start")
    flow.foreach(inner, over="start", name="each", at_most=1)
    flow.node(lambda step: ran.append("sum") or sum(step.received), name="sum", after="each")
    flow.node(lambda step: ran.append("apart") or 0, name="apart")

    async def scene() -> None:
        hub = Hub(flow, store=store)
        original = await hub.run(flow, session_id="s1")
        expected = {
            "each#1/b": ["each#1/b", "sum"],
            "each#0": ["each#0/a", "each#0/b", "sum"],
            "start": ["start", *(f"each#{item}/{name}" for item in (0, 1) for name in "ab"), "sum"],
            "sum": ["sum"],
            "apart": ["apart"],
        }
        for node, again in expected.items():
            ran.clear()
            fork = await hub.fork("s1", node, new_id=f"from {node}")
            assert (fork.status, fork.reason) == ("paused", f"forked from s1 at {node}")
            done = await hub.resume(fork.session_id, "go on")
            assert (done.outputs, ran) == (original.outputs, again)
        assert (await hub.state("s1")).outputs == original.outputs
        with pytest.raises(NotFoundError, match="no node 'each/x'") as raised:
            await hub.fork("s1", "each/x")
        assert "start, each, sum" in str(raised.value.hint)

    play(scene())
