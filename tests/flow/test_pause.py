"""Pausing, aborting and resuming as a user of the hub sees it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from flow.harness import play
from holdfast.base.errors import (
    FlowChangedError,
    InvalidInputError,
    NotFoundError,
    SessionAlreadyRunningError,
    SessionNotFoundError,
)
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.flow.step import FlowAborted, FlowPaused, Step
from holdfast.flow.store import MemoryFlowStore
from holdfast.model.flow import FLOW_TRANSITIONS, Runner
from holdfast.testing import FixedClock


class Gate:
    """A node that says it has begun, and waits until it is let through."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def __call__(self, _step: Step) -> str:
        self.reached.set()
        await self.open.wait()
        return "through"


def two_steps(gate: Gate) -> Flow:
    flow = Flow("two")
    flow.node(gate, name="first")
    flow.node(lambda step: f"after {step.received}", name="second", after="first")
    return flow


async def at_the_gate(
    hub: Hub, gate: Gate, flow: Flow | None = None, session_id: str = "s1"
) -> asyncio.Task[Any]:
    task = asyncio.create_task(hub.run(flow or two_steps(gate), {"n": 1}, session_id=session_id))
    await gate.reached.wait()
    return task


class TestStatus:
    def test_a_life_in_statuses(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            assert hub.status == "idle"
            task = await at_the_gate(hub, gate)
            assert (hub.status, hub.status_of("s1")) == ("running", "running")
            hub.pause("lunch")
            assert (hub.status, hub.status_of("s1")) == ("paused", "paused")
            gate.open.set()
            state = await task
            assert (state.status, state.node_id, state.reason) == ("paused", "second", "lunch")
            assert state.outputs == {"first": "through"}
            assert state.paused_at is not None
            done = await hub.resume("s1", "go on")
            assert (done.status, done.outputs["second"], done.input) == (
                "complete",
                "after through",
                {"n": 1},
            )
            assert hub.status == "complete"

        play(scene())

    def test_every_status_has_its_row_in_the_table(self) -> None:
        assert set(FLOW_TRANSITIONS) == {"idle", "running", "paused", "complete", "aborted"}
        assert set().union(*FLOW_TRANSITIONS.values()) <= set(FLOW_TRANSITIONS)

    def test_pausing_twice_changes_nothing(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            task = await at_the_gate(hub, gate)
            with hub.subscribe("flow:*") as events:
                hub.pause("first")
                hub.abort(resumable=True, reason="second")
            gate.open.set()
            assert (await task).reason == "first"
            assert [event.type async for event in events] == ["flow:paused"]

        play(scene())

    def test_an_abort_cancels_what_runs_and_is_for_good(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            task = await at_the_gate(hub, gate)
            with hub.subscribe("session:*") as events:
                hub.abort(reason="enough")
            state = await task
            assert (state.status, state.reason, state.outputs) == ("aborted", "enough", {})
            assert hub.status == "aborted"
            assert [(event.type, event.reason) async for event in events] == [("session:abort", "enough")]  # type: ignore[attr-defined]
            with pytest.raises(SessionNotFoundError, match="aborted"):
                await hub.resume("s1", "please")

        play(scene())

    @pytest.mark.parametrize("settled", [True, False], ids=["at rest", "still finishing a step"])
    def test_an_abort_after_a_pause_clears_it(self, settled: bool) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            task = await at_the_gate(hub, gate)
            hub.pause()
            if settled:
                gate.open.set()
                await task
            hub.abort(reason="enough")
            if not settled:
                assert (await task).status == "aborted"
            assert hub.status == "aborted"
            assert (await hub.state("s1")).status == "aborted"
            with pytest.raises(SessionNotFoundError):
                await hub.resume("s1", "go on")

        play(scene())

    def test_nothing_to_stop_is_no_error_but_an_unknown_session_is(self) -> None:
        async def scene() -> None:
            hub = Hub()
            hub.pause()
            hub.abort()
            assert hub.status == "idle"
            with pytest.raises(SessionNotFoundError, match="s9"):
                hub.pause(session_id="s9")

        play(scene())

    def test_a_pause_in_the_last_step_is_a_pause(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            flow = Flow("one")
            flow.node(gate, name="only")
            task = await at_the_gate(hub, gate, flow)
            hub.pause()
            gate.open.set()
            state = await task
            assert (state.status, state.outputs) == ("paused", {"only": "through"})
            assert (await hub.resume("s1", "go on")).status == "complete"

        play(scene())

    def test_one_session_is_paused_and_the_other_goes_on(self) -> None:
        async def scene() -> None:
            hub, one, other = Hub(), Gate(), Gate()
            first = await at_the_gate(hub, one, session_id="s1")
            second = await at_the_gate(hub, other, session_id="s2")
            hub.pause(session_id="s1")
            one.open.set()
            other.open.set()
            assert ((await first).status, (await second).status) == ("paused", "complete")
            assert hub.status == "paused"

        play(scene())

    def test_a_parent_takes_its_children_along(self) -> None:
        async def scene() -> None:
            hub, outer, inner, other = Hub(), Gate(), Gate(), Gate()
            parent = await at_the_gate(hub, outer, session_id="parent")
            child = asyncio.create_task(hub.run(two_steps(inner), session_id="child", parent_id="parent"))
            await inner.reached.wait()
            stranger = await at_the_gate(hub, other, session_id="stranger")
            hub.pause(session_id="parent")
            for gate in (outer, inner, other):
                gate.open.set()
            states = await asyncio.gather(parent, child, stranger)
            assert [state.status for state in states] == ["paused", "paused", "complete"]
            assert states[1].parent_id == "parent"

        play(scene())


class TestSignal:
    def test_the_hub_shows_the_signal_of_a_session_and_only_that(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(clock=FixedClock()), Gate()
            task = await at_the_gate(hub, gate)
            signal = hub.get_abort_signal()
            assert signal is hub.get_abort_signal("s1") is hub.context("s1").abort_controller.signal
            assert not signal.aborted
            assert not hasattr(signal, "abort")
            waiting = asyncio.create_task(signal.wait())
            await asyncio.sleep(0)
            hub.pause("lunch")
            await waiting
            assert (signal.aborted, signal.resumable, signal.reason) == (True, True, "lunch")
            with pytest.raises(FlowPaused, match="lunch"):
                signal.check()
            hub.abort(reason="enough")
            assert (signal.aborted, signal.resumable, signal.reason) == (True, False, "enough")
            with pytest.raises(FlowAborted, match="enough"):
                signal.check()
            await task

        play(scene())

    def test_a_node_finds_the_signal_of_its_own_session(self) -> None:
        async def scene() -> None:
            hub = Hub()
            found: dict[str, Any] = {}

            async def look(step: Step) -> None:
                await asyncio.sleep(0)
                found[step.session_id] = hub.get_abort_signal()
                assert step.signal is hub.get_abort_signal() is hub.get_abort_signal(step.session_id)

            flow = Flow("look")
            flow.node(look)
            await asyncio.gather(*(hub.run(flow, session_id=f"s{number}") for number in range(3)))
            assert len(set(map(id, found.values()))) == 3

        play(scene())

    def test_the_signal_of_the_whole_hub_fires_when_everything_is_stopped(self) -> None:
        async def scene() -> None:
            hub = Hub()
            signal = hub.get_abort_signal()
            gates = [Gate(), Gate()]
            tasks = [await at_the_gate(hub, gate, session_id=f"s{n}") for n, gate in enumerate(gates)]
            assert hub.get_abort_signal() is signal
            hub.abort()
            assert signal.aborted
            await asyncio.gather(*tasks)

        play(scene())

    def test_after_a_resume_the_signal_is_fresh(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            task = await at_the_gate(hub, gate)
            before = hub.get_abort_signal("s1")
            hub.pause()
            gate.open.set()
            await task
            gate.open.clear()
            flags: list[bool] = []
            with hub.subscribe("node:started") as events:
                resumed = asyncio.create_task(hub.resume("s1", "go on"))
                await anext(aiter(events))
                flags = [
                    before.aborted,
                    before is hub.get_abort_signal("s1") if hub.status == "running" else False,
                ]
            await resumed
            assert flags == [True, False]

        play(scene())


class TestUnwinding:
    def test_a_node_that_catches_every_exception_cannot_swallow_a_pause(self) -> None:
        async def scene() -> None:
            hub = Hub()
            caught: list[Exception] = []

            def stubborn(step: Step) -> str:
                try:
                    if not step.messages:
                        hub.pause("now")
                    step.check()
                except Exception as error:  # noqa: BLE001 - that is the point
                    caught.append(error)
                return "done"

            flow = Flow("stubborn")
            flow.node(stubborn)
            state = await hub.run(flow, session_id="s1")
            assert (state.status, state.node_id, state.outputs, caught) == ("paused", "stubborn", {}, [])
            assert (await hub.resume("s1", "go on")).outputs == {"stubborn": "done"}

        play(scene())

    def test_a_node_asks_and_gets_its_answer(self) -> None:
        async def scene() -> None:
            def approve(step: Step) -> str:
                if not step.messages:
                    step.pause("May I deploy?")
                return step.messages[-1]

            flow = Flow("approval")
            flow.node(approve)
            hub = Hub()
            state = await hub.run(flow)
            assert (state.status, state.reason) == ("paused", "May I deploy?")
            assert (await hub.resume(state.session_id, "yes")).outputs == {"approve": "yes"}

        play(scene())

    @pytest.mark.parametrize(("raised", "status"), [(FlowPaused, "paused"), (FlowAborted, "aborted")])
    def test_a_node_that_unwinds_by_itself_stops_the_run(
        self, raised: type[BaseException], status: str
    ) -> None:
        async def scene() -> None:
            async def node(step: Step) -> None:
                raise raised("because")

            flow = Flow("unwinds")
            flow.node(node)
            state = await Hub().run(flow)
            assert (state.status, state.reason) == (status, "because")

        play(scene())

    def test_siblings_finish_their_step_and_later_nodes_stay_unstarted(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            started: list[str] = []

            def note(step: Step) -> None:
                started.append(step.node_id)

            flow = Flow("wide")
            for number in range(5):
                flow.node(gate, name=f"side{number}")
                flow.node(note, name=f"later{number}", after=f"side{number}")
            task = await at_the_gate(hub, gate, flow)
            hub.pause()
            gate.open.set()
            state = await task
            assert sorted(state.outputs) == [f"side{number}" for number in range(5)]
            assert started == []
            await hub.resume("s1", "go on")
            assert sorted(started) == [f"later{number}" for number in range(5)]

        play(scene())


class TestCancellation:
    def test_cancellation_from_outside_wins_and_the_session_can_go_on(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            flow = Flow("cancelled")
            flow.node(lambda step: "first", name="first")
            flow.node(gate, name="second", after="first")
            task = await at_the_gate(hub, gate, flow)
            hub.pause("ours")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            state = await hub.state("s1")
            assert (state.status, state.reason, state.outputs) == ("paused", "cancelled", {"first": "first"})
            gate.open.set()
            assert (await hub.resume("s1", "go on")).outputs == {"first": "first", "second": "through"}

        play(scene())

    def test_a_timeout_around_a_run_works(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await hub.run(two_steps(gate), session_id="s1")
            assert hub.status_of("s1") == "paused"

        play(scene())

    def test_a_node_that_takes_its_time_to_be_cancelled_is_waited_for(self) -> None:
        async def scene() -> None:
            hub = Hub()
            begun, ended = asyncio.Event(), False

            async def slow(step: Step) -> None:
                nonlocal ended
                try:
                    begun.set()
                    await asyncio.Event().wait()
                finally:
                    for _ in range(5):
                        await asyncio.sleep(0)
                    ended = True

            flow = Flow("slow")
            flow.node(slow)
            task = asyncio.create_task(hub.run(flow, session_id="s1"))
            await begun.wait()
            task.cancel()
            await asyncio.wait([task])
            assert (task.cancelled(), ended) == (True, True)

        play(scene())

    def test_an_agent_that_is_cancelled_keeps_what_it_said(self) -> None:
        async def scene() -> None:
            hub = Hub()
            said = asyncio.Event()

            async def agent(step: Step) -> AsyncIterator[str]:
                if not step.partial:
                    yield "half"
                    said.set()
                    await asyncio.Event().wait()
                yield "whole"

            flow = Flow("agent")
            flow.node(agent)
            task = asyncio.create_task(hub.run(flow, session_id="s1"))
            await said.wait()
            task.cancel()
            await asyncio.wait([task])
            assert (await hub.resume("s1", "go on")).outputs == {"agent": ["half", "whole"]}

        play(scene())


class TestResume:
    @pytest.mark.parametrize("message", ["", "  \n"])
    def test_it_needs_a_message(self, message: str) -> None:
        with pytest.raises(InvalidInputError, match="message"):
            play(Hub().resume("s1", message))

    def test_what_is_not_there_is_not_found(self) -> None:
        with pytest.raises(SessionNotFoundError, match="s1"):
            play(Hub().resume("s1", "go on"))

    def test_what_runs_is_not_resumed(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            task = await at_the_gate(hub, gate)
            with pytest.raises(SessionAlreadyRunningError, match="s1"):
                await hub.resume("s1", "go on")
            gate.open.set()
            assert (await task).status == "complete"

        play(scene())

    def test_of_two_at_once_one_goes_on(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            task = await at_the_gate(hub, gate)
            hub.pause()
            twice = [asyncio.create_task(hub.resume("s1", f"number {number}")) for number in range(2)]
            await asyncio.sleep(0)
            gate.open.set()
            outcomes = await asyncio.gather(*twice, return_exceptions=True)
            assert sorted(type(outcome).__name__ for outcome in outcomes) == [
                "SessionAlreadyRunningError",
                "SessionState",
            ]
            assert (await task).status == "paused"

        play(scene())

    def test_a_flow_that_looks_different_now_is_refused(self) -> None:
        async def scene() -> None:
            store, gate = MemoryFlowStore(), Gate()
            hub = Hub(store=store)
            task = await at_the_gate(hub, gate)
            hub.pause()
            gate.open.set()
            await task
            changed = Flow("two")
            changed.node(lambda step: 3, name="another")
            with pytest.raises(FlowChangedError, match="'two'") as raised:
                await Hub(changed, store=store).resume("s1", "go on")
            assert "original flow" in str(raised.value.hint)
            with pytest.raises(NotFoundError, match="'two'") as unknown:
                await Hub(store=store).resume("s1", "go on")
            assert "register" in str(unknown.value.hint)
            assert (await hub.resume("s1", "go on")).status == "complete"

        play(scene())

    @pytest.mark.parametrize("takeover", [False, True])
    def test_a_runner_on_another_machine_is_only_taken_over_when_somebody_says_so(
        self, takeover: bool
    ) -> None:
        async def scene() -> None:
            store, gate = MemoryFlowStore(), Gate()
            there = Hub(store=store)
            task = await at_the_gate(there, gate)
            far: Runner = {"host": "far/away", "process": {"pid": 1, "started": None}, "token": "x"}
            claimed = store.claim("s1", far, there._now(), lambda *_: None, "elsewhere")
            assert claimed.session.claim == 2
            here = Hub(two_steps(gate), store=store)
            gate.open.set()
            if not takeover:
                with pytest.raises(SessionAlreadyRunningError, match="far/away") as raised:
                    await here.resume("s1", "go on")
                assert "takeover=True" in str(raised.value.hint)
            else:
                assert (await here.resume("s1", "go on", takeover=True)).status == "complete"
            with pytest.raises(SessionAlreadyRunningError, match="taken over"):
                await task

        play(scene())

    def test_the_message_reaches_the_agent_that_was_stopped_and_the_event(self) -> None:
        async def scene() -> None:
            hub = Hub()

            async def agent(step: Step) -> AsyncIterator[Any]:
                if step.resumed is None:
                    step.provider_session = "conversation-1"
                    yield "thinking"
                    hub.pause()
                    yield "more"
                    raise AssertionError("it was to stop between these two")
                yield [step.provider_session, list(step.messages), list(step.partial)]

            flow = Flow("agent")
            flow.node(agent)
            state = await hub.run(flow, session_id="s1")
            assert (state.status, state.node_id) == ("paused", "agent")
            assert state.interrupted["agent"].partial == ("thinking", "more")
            assert state.interrupted["agent"].provider_session == "conversation-1"
            with hub.subscribe("flow:resumed") as events:
                done = await hub.resume("s1", "look at the tests")
            assert [event.messages async for event in events] == [("look at the tests",)]  # type: ignore[attr-defined]
            assert done.outputs["agent"] == [
                "thinking",
                "more",
                ["conversation-1", ["look at the tests"], ["thinking", "more"]],
            ]

        play(scene())

    def test_a_message_that_no_agent_has_heard_waits_for_the_next_one(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            flow = Flow("later")
            flow.node(gate, name="first")

            async def agent(step: Step) -> AsyncIterator[Any]:
                yield list(step.messages)

            flow.node(agent, after="first")
            flow.node(agent, name="another", after="agent")
            task = await at_the_gate(hub, gate, flow)
            hub.pause()
            gate.open.set()
            await task
            done = await hub.resume("s1", "be brief")
            assert (done.outputs["agent"], done.outputs["another"]) == ([["be brief"]], [[]])
            assert done.message_queue == ()

        play(scene())

    def test_a_session_can_be_forgotten_once_it_rests(self) -> None:
        async def scene() -> None:
            hub, gate = Hub(), Gate()
            task = await at_the_gate(hub, gate)
            with pytest.raises(SessionAlreadyRunningError):
                await hub.forget("s1")
            hub.pause()
            gate.open.set()
            await task
            await hub.forget("s1")
            with pytest.raises(SessionNotFoundError):
                await hub.resume("s1", "go on")

        play(scene())


def test_closing_a_hub_pauses_what_runs() -> None:
    async def scene() -> None:
        gate = Gate()
        async with Hub() as hub:
            task = await at_the_gate(hub, gate)
            asyncio.get_running_loop().call_soon(gate.open.set)
        assert (await task).status == "paused"

    play(scene())


def test_memory_keeps_only_so_many_of_those_that_ended() -> None:
    async def scene() -> None:
        flow = Flow("short")
        flow.node(lambda step: 1, name="one")
        store = MemoryFlowStore(keep_ended=3)
        hub = Hub(store=store)
        for number in range(10):
            await hub.run(flow, session_id=f"s{number}")
        assert {session.id for session in store.sessions()} == {"s7", "s8", "s9"}

    play(scene())
