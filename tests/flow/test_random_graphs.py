"""Any flow, paused anywhere, any number of times: the same outputs, and no node completed twice."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flow.harness import play, run_or_resume
from flow.random_flows import Description, World, build, describe
from holdfast.flow.hub import Hub
from holdfast.flow.store import FlowStore, MemoryFlowStore
from holdfast.store.flows import SqlFlowStore
from holdfast.store.sql import SqlStore
from soak import repeated

Stops = list[tuple[int, str]]
INPUT = {"topic": "tides", "depth": [1, 2.5, None]}

descriptions = st.builds(
    describe, st.integers(0, 2**32), st.one_of(st.integers(1, 12), st.integers(1, 60), st.integers(1, 200))
)
stops = st.lists(st.tuples(st.integers(1, 40), st.sampled_from(["pause", "pause", "cancel"])), max_size=25)
"""After so many ticks: the hub pauses, or somebody cancels the task that runs the flow."""


def undisturbed(description: Description) -> dict[str, Any]:
    async def scene() -> dict[str, Any]:
        hub = Hub()
        state = await hub.run(build(description, World(fails=False)), INPUT)
        assert state.status == "complete"
        return state.outputs

    return play(scene())


async def disturbed(
    description: Description, store: FlowStore, stops: Stops, *, new_hub_each_time: bool
) -> tuple[dict[str, Any], World]:
    """Stopped after so many ticks, and again after so many more, …; failures are resumed, too."""
    world = World()
    left = list(stops)
    hub, flow = Hub(store=store), build(description, world)
    hub.register(flow)
    while True:
        task = asyncio.create_task(run_or_resume(hub, flow, "the-session", INPUT))
        world.on_tick = _stop_at(world.ticks, *left.pop(0), hub, task) if left else lambda tick: None
        try:
            state = await task
        except asyncio.CancelledError:
            state = await hub.state("the-session")
        if state.status == "complete":
            return state.outputs, world
        assert state.status == "paused"
        if new_hub_each_time:
            hub, flow = Hub(store=store), build(description, world)
            hub.register(flow)


def _stop_at(now: int, ticks: int, how: str, hub: Hub, task: asyncio.Task[Any]) -> Callable[[int], object]:
    stop = task.cancel if how == "cancel" else hub.pause
    return lambda tick: stop("by the test") if tick == now + ticks else None


@given(description=descriptions, stops=stops, new_hub=st.booleans())
@settings(max_examples=repeated(60))
def test_paused_anywhere_any_number_of_times_in_memory(
    description: Description, stops: Stops, new_hub: bool
) -> None:
    outputs, world = play(disturbed(description, MemoryFlowStore(), stops, new_hub_each_time=new_hub))
    assert outputs == undisturbed(description)
    assert set(world.ended.values()) <= {1}


@given(description=descriptions, stops=stops)
@settings(
    max_examples=repeated(15),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_paused_anywhere_any_number_of_times_in_a_database(
    empty_sqlite_file: Path, description: Description, stops: Stops
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "flows.db"
        shutil.copy(empty_sqlite_file, database)
        store = SqlFlowStore(str(database))
        try:
            outputs, world = play(disturbed(description, store, stops, new_hub_each_time=True))
        finally:
            store.close()
    assert outputs == undisturbed(description)
    assert set(world.ended.values()) <= {1}


@given(seed=st.integers(0, 2**32), stops=stops)
@settings(
    max_examples=repeated(4, least=2),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_paused_anywhere_on_postgresql(postgres_store: SqlStore, seed: int, stops: Stops) -> None:
    description = describe(seed, 30)

    async def scene() -> tuple[dict[str, Any], World]:
        store = SqlFlowStore(postgres_store.database)
        try:
            found = await disturbed(description, store, stops, new_hub_each_time=True)
            await store.forget("the-session")
        finally:
            store.close()
        return found

    outputs, world = play(scene())
    assert outputs == undisturbed(description)
    assert set(world.ended.values()) <= {1}
