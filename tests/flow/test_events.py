"""What a subscriber hears, in which order, and what becomes of a slow one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from flow.harness import play
from holdfast.base.errors import InvalidInputError, NodeFailedError
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step
from holdfast.model.flow import EventsDropped, FlowEvent, NodeCompleted, NodeEvent, NodeFailed


def three_ways() -> Flow:
    flow = Flow("events")
    flow.node(lambda step: 1, name="first")

    @flow.node(after="first")
    async def agent(step: Step) -> AsyncIterator[str]:
        yield "hello"

    flow.node(lambda step: 2, name="never", after="first", when=lambda output: False)
    return flow


def wide(count: int) -> Flow:
    flow = Flow("wide")
    for number in range(count):
        flow.node(lambda step: 1, name=f"n{number}")
    return flow


def line(event: FlowEvent) -> str:
    return f"{event.type} {event.node_id}" if isinstance(event, NodeEvent) else event.type


def test_every_event_comes_once_and_in_order() -> None:
    async def scene() -> None:
        hub = Hub()
        with hub.subscribe() as events:
            await hub.run(three_ways(), session_id="s1")
        heard = [event async for event in events]
        assert [line(event) for event in heard] == [
            "session:start",
            "node:started first",
            "node:completed first",
            "node:skipped never",
            "node:started agent",
            "node:message agent",
            "node:completed agent",
            "session:end",
        ]
        numbers = [event.seq for event in heard]
        assert numbers == sorted(set(numbers))
        assert {event.session_id for event in heard} == {"s1"}

    play(scene())


def test_events_are_frozen_and_carry_what_they_are_about() -> None:
    async def scene() -> None:
        hub = Hub()
        with hub.subscribe("node:completed") as events:
            await hub.run(three_ways())
        first, second = [event async for event in events]
        assert isinstance(first, NodeCompleted)
        assert isinstance(second, NodeCompleted)
        assert (first.output, second.output) == (1, ["hello"])
        with pytest.raises(AttributeError):
            first.seq = 0  # type: ignore[misc]

    play(scene())


@pytest.mark.parametrize(
    ("pattern", "count"),
    [("node:*", 6), ("session:*", 2), ("*", 8), ("node:skipped", 1), ("*:start*", 3), ("nothing", 0)],
)
def test_a_pattern_chooses(pattern: str, count: int) -> None:
    async def scene() -> None:
        hub = Hub()
        with hub.subscribe(pattern) as events:
            await hub.run(three_ways())
        assert len([event async for event in events]) == count

    play(scene())


def test_a_subscription_may_be_to_one_session() -> None:
    async def scene() -> None:
        hub = Hub()
        with hub.subscribe(session_id="s2") as events:
            await asyncio.gather(*(hub.run(wide(2), session_id=f"s{number}") for number in range(4)))
        assert {event.session_id async for event in events} == {"s2"}

    play(scene())


def test_events_can_be_followed_while_they_happen() -> None:
    async def scene() -> None:
        hub = Hub()
        heard: list[str] = []

        async def listen() -> None:
            with hub.subscribe("node:*") as events:
                ready.set()
                async for event in events:
                    heard.append(line(event))
                    if line(event) == "node:completed agent":
                        return

        ready = asyncio.Event()
        listener = asyncio.create_task(listen())
        await ready.wait()
        await hub.run(three_ways())
        await listener
        assert heard[-1] == "node:completed agent"

    play(scene())


def test_a_slow_subscriber_stalls_nobody_and_is_told_what_it_missed() -> None:
    async def scene() -> None:
        hub = Hub()
        with hub.subscribe("node:completed", limit=10) as slow, hub.subscribe("node:completed") as quick:
            await hub.run(wide(100))
            heard = [await anext(slow) for _ in range(11)]
            missed = heard[-1]
            assert isinstance(missed, EventsDropped)
            everything = [await anext(quick) for _ in range(100)]
            assert [event.seq for event in heard[:10]] == [event.seq for event in everything[:10]]
            assert (missed.count, missed.seq, missed.last_seq) == (90, everything[10].seq, everything[-1].seq)
            await hub.run(wide(3))
            again = [await anext(slow) for _ in range(3)]
            assert {type(event) for event in again} == {NodeCompleted}

    play(scene())


def test_the_gap_stands_where_it_was() -> None:
    async def scene() -> None:
        hub = Hub()
        with hub.subscribe("node:completed", limit=2) as events:
            await hub.run(wide(5))
            await anext(events)
            await anext(events)
            await hub.run(wide(1))
        kinds = [event.type async for event in events]
        assert kinds == ["events:dropped", "node:completed"]

    play(scene())


def test_failures_are_told() -> None:
    async def scene() -> None:
        flow = Flow("fails")
        flow.node(lambda step: 1 // 0, name="divide")
        hub = Hub()
        with hub.subscribe() as events, pytest.raises(NodeFailedError):
            await hub.run(flow)
        heard = [event async for event in events]
        assert [event.type for event in heard] == [
            "session:start",
            "node:started",
            "node:failed",
            "flow:paused",
        ]
        assert isinstance(heard[2], NodeFailed)
        assert "ZeroDivisionError" in heard[2].error

    play(scene())


def test_an_event_that_nobody_hears_is_counted() -> None:
    async def scene() -> None:
        heard: list[int] = []
        for listen in (True, False):
            hub = Hub()
            if listen:
                hub.subscribe()
            await hub.run(three_ways())
            with hub.subscribe("session:start") as events:
                await hub.run(three_ways())
                heard.append((await anext(events)).seq)
        assert heard[0] == heard[1]

    play(scene())


def test_a_subscription_holds_at_least_one() -> None:
    with pytest.raises(InvalidInputError):
        Hub().subscribe(limit=0)


def test_closing_the_hub_ends_every_subscription() -> None:
    async def scene() -> None:
        hub = Hub()
        events = hub.subscribe()
        await hub.aclose()
        assert [event async for event in events] == []

    play(scene())
