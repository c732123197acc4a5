"""Hundreds of flows on one loop, paused and resumed at once: nothing lost, nothing twice, no task left."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest

from flow.harness import play
from holdfast.flow.graph import Flow, NodeBody
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step
from holdfast.flow.store import FlowStore, MemoryFlowStore
from holdfast.store.flows import SqlFlowStore
from soak import QUICK

FLOWS = 300 if QUICK else 1000
NODES = 5
PAUSES = (17 * FLOWS // 10, 29 * FLOWS // 10, 41 * FLOWS // 10)
"""After so many nodes of all flows, everything is paused."""


class Work:
    """Five nodes that add up, and count who ran."""

    def __init__(self) -> None:
        self.ran: Counter[str] = Counter()
        self.hub: Hub | None = None
        self.flow = Flow("many")
        for number in range(1, NODES + 1):
            self.flow.node(
                self._adds(number), name=f"n{number}", after=f"n{number - 1}" if number > 1 else ()
            )

    def _adds(self, number: int) -> NodeBody:
        async def node(step: Step) -> int:
            for _ in range(3):
                await asyncio.sleep(0)
            self.ran[f"{step.session_id}/{step.node_id}"] += 1
            if len(self.ran) in PAUSES and self.hub is not None:
                self.hub.pause("everybody")
            return (step.received or 0) + number

        return node


@pytest.fixture(params=["memory", "sqlite"])
def flows(request: pytest.FixtureRequest) -> Iterator[FlowStore]:
    if request.param == "memory":
        yield MemoryFlowStore()
        return
    store = SqlFlowStore(request.getfixturevalue("sqlite_store").database)
    yield store
    store.close()


def test_hundreds_of_flows_are_paused_and_resumed_at_once(flows: FlowStore) -> None:
    work = Work()

    async def scene() -> None:
        work.hub = hub = Hub(store=flows)
        names = [f"s{number}" for number in range(FLOWS)]
        states = await asyncio.gather(*(hub.run(work.flow, session_id=name) for name in names))
        rounds = 0
        while left := [state.session_id for state in states if state.status == "paused"]:
            rounds += 1
            states = await asyncio.gather(*(hub.resume(name, "go on") for name in left))
        # Who is resumed while the others are paused again goes on until the next pause.
        assert 0 < rounds <= len(PAUSES)
        assert hub.status == "complete"
        for name in names:
            state = await hub.state(name)
            assert (state.status, state.outputs["n5"]) == ("complete", 15)

    play(scene())
    assert len(work.ran) == FLOWS * NODES
    assert set(work.ran.values()) == {1}
