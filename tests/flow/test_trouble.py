"""A store that fails in the middle of a run: an error in words, no task left, and the run can go on later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from flow.harness import play
from holdfast.base.errors import (
    InvalidInputError,
    NodeFailedError,
    SessionNotFoundError,
    StorageError,
)
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step
from holdfast.flow.store import MemoryFlowStore
from holdfast.model.flow import Claimed, FlowSession, Record, Settlement
from holdfast.store.flows import SqlFlowStore
from holdfast.store.sql import SqlStore


class FullDisk(MemoryFlowStore):
    """Takes so many writes, and no more until there is room again."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def create(self, session: FlowSession, records: Sequence[Record] = ()) -> None:
        self._write()
        super().create(session, records)

    def append(self, session_id: str, claim: int, records: Sequence[Record]) -> None:
        self._write()
        super().append(session_id, claim, records)

    def settle(self, session_id: str, claim: int, records: Sequence[Record], settlement: Settlement) -> None:
        self._write()
        super().settle(session_id, claim, records, settlement)

    def _write(self) -> None:
        self.room -= 1
        if self.room < 0:
            raise StorageError("no space left on device")


def flow_of(ran: list[str]) -> Flow:
    async def node(step: Step) -> str:
        await asyncio.sleep(0)
        ran.append(step.node_id)
        return step.node_id

    async def slow(step: Step) -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    flow = Flow("trouble")
    for number in range(5):
        flow.node(node, name=f"n{number}", after=f"n{number - 1}" if number else ())
    flow.node(slow)
    return flow


@pytest.mark.parametrize("room", range(8))  # the flow below needs eight writes
def test_whenever_the_disk_is_full_the_run_stops_with_the_error_and_can_go_on(room: int) -> None:
    ran: list[str] = []

    async def scene() -> None:
        store = FullDisk(room)
        hub = Hub(flow_of(ran), store=store)
        with pytest.raises(StorageError, match="no space"):
            await hub.run(flow_of(ran), session_id="s1")
        assert hub.status == "idle"
        assert len(asyncio.all_tasks()) == 1
        store.room = 1000
        known = {session.id: session.status for session in await hub.sessions()}
        if "s1" not in known:
            await hub.run(flow_of(ran), session_id="s1")
        else:
            await hub.resume("s1", "there is room again")
        state = await hub.state("s1")
        assert (state.status, state.outputs["n4"]) == ("complete", "n4")

    play(scene())
    assert len(ran) <= 6, "at most the node whose record was refused ran again"


def test_what_cannot_be_stored_fails_its_node_and_tells_how(sqlite_store: SqlStore) -> None:
    async def scene() -> None:
        flow = Flow("odd")
        flow.node(lambda step: object(), name="odd")
        store = SqlFlowStore(sqlite_store.database)
        hub = Hub(store=store)
        with pytest.raises(NodeFailedError, match=r"'odd'.*cannot be stored") as raised:
            await hub.run(flow, session_id="s1")
        assert "JSON" in str(raised.value.hint)
        with pytest.raises(InvalidInputError, match="cannot be stored"):
            await hub.run(flow, object())
        store.close()

    play(scene())


def test_nodes_see_in_a_database_what_they_would_see_after_a_resume(sqlite_store: SqlStore) -> None:
    async def scene() -> None:
        seen: list[Any] = []
        flow = Flow("json")
        flow.node(lambda step: {"pair": (1, 2), "3": "three"}, name="give")
        flow.node(lambda step: seen.append(step.received), name="take", after="give")
        store = SqlFlowStore(sqlite_store.database)
        await Hub(store=store).run(flow, (1, 2))
        store.close()
        assert seen == [{"pair": [1, 2], "3": "three"}]

    play(scene())


def test_a_flow_goes_on_where_another_process_ended_it_meanwhile() -> None:
    async def scene() -> None:
        flow = Flow("shared")
        flow.node(lambda step: step.messages or step.pause(), name="ask")
        store = MemoryFlowStore()
        one, other = Hub(store=store), Hub(flow, store=store)
        state = await one.run(flow)
        await other.resume(state.session_id, "done elsewhere")
        assert one.status == "paused"
        with pytest.raises(SessionNotFoundError, match="it is complete"):
            await one.resume(state.session_id, "and here")
        assert one.status == "idle"

    play(scene())


class SlowStore(MemoryFlowStore):
    """Takes a few turns of the loop to begin a session or to claim one."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    def create(self, *words: Any) -> asyncio.Future[None]:  # type: ignore[override]
        return self._later(lambda: super(SlowStore, self).create(*words))

    def claim(self, *words: Any) -> asyncio.Future[Claimed]:  # type: ignore[override]
        return self._later(lambda: super(SlowStore, self).claim(*words))

    def _later(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self.asked.set()

        def work_now() -> None:
            done.set_result(work())

        loop.call_soon(loop.call_soon, work_now)
        return done


def stops_once() -> Flow:
    started: list[Step] = []

    def node(step: Step) -> str:
        started.append(step)
        return step.pause("once") if len(started) == 1 else "done"

    flow = Flow("stops")
    flow.node(node)
    return flow


@pytest.mark.parametrize("verb", ["run", "resume"])
def test_a_run_that_is_cancelled_before_it_has_begun_is_left_paused(verb: str) -> None:
    async def scene() -> None:
        store: Any = SlowStore()
        hub, flow = Hub(store=store), stops_once()
        if verb == "resume":
            await hub.run(flow, session_id="s1")
            store.asked.clear()
        begun = hub.run(flow, session_id="s1") if verb == "run" else hub.resume("s1", "so")
        task = asyncio.create_task(begun)
        await store.asked.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert (await hub.state("s1")).status == "paused"
        while (state := await hub.resume("s1", "go on")).status == "paused":
            pass
        assert state.outputs == {"node": "done"}

    play(scene())


def test_a_session_that_is_paused_before_it_has_begun_is_run_once() -> None:
    async def scene() -> None:
        store: Any = SlowStore()
        hub = Hub(store=store)
        task = asyncio.create_task(hub.run(stops_once(), session_id="s1"))
        await store.asked.wait()
        hub.pause("wait")
        assert (await hub.resume("s1", "go on")).reason == "once"
        assert (await task).reason == "wait"
        assert (await hub.resume("s1", "go on")).outputs == {"node": "done"}

    play(scene())


def test_closing_a_hub_waits_for_what_was_aborted() -> None:
    async def scene() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def slow(step: Step) -> None:
            try:
                begun.set()
                await asyncio.Event().wait()
            finally:
                for _ in range(5):
                    await asyncio.sleep(0)
                ended.set()

        flow = Flow("slow")
        flow.node(slow)
        hub = Hub()
        task = asyncio.create_task(hub.run(flow))
        await begun.wait()
        hub.abort()
        await hub.aclose()
        assert ended.is_set()
        assert (await task).status == "aborted"

    play(scene())
