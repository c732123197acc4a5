"""Any flow, paused anywhere, any number of times: the same outputs, and no node completed twice."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flow.harness import play, run_or_resume
from flow.random_flows import Description, World, build, describe
from holdfast.flow.hub import Hub
from holdfast.flow.memory import MemoryFlowStore
from holdfast.flow.store import FlowStore
from holdfast.store.flows import SqlFlowStore

SOAK = int(os.environ.get("HOLDFAST_SOAK", "1"))
INPUT = {"topic": "tides", "depth": [1, 2.5, None]}

descriptions = st.builds(
    describe, st.integers(0, 2**32), st.one_of(st.integers(1, 12), st.integers(1, 60), st.integers(1, 200))
)
pauses = st.lists(st.integers(1, 40), max_size=25)


def undisturbed(description: Description) -> dict[str, Any]:
    async def scene() -> dict[str, Any]:
        hub = Hub()
        state = await hub.run(build(description, World(fails=False)), INPUT)
        assert state.status == "complete"
        return state.outputs

    return play(scene())


async def disturbed(
    description: Description, store: FlowStore, pauses: list[int], *, new_hub_each_time: bool
) -> tuple[dict[str, Any], World]:
    """Pause after so many ticks, and again after so many more, …; failures are resumed, too."""
    world = World()
    left = list(pauses)
    hub, flow = Hub(store=store), build(description, world)
    hub.register(flow)
    while True:
        due = world.ticks + left.pop(0) if left else None
        world.on_tick = lambda tick, due=due, hub=hub: hub.pause("by the test") if tick == due else None
        state = await run_or_resume(hub, flow, "the-session", INPUT)
        if state.status == "complete":
            return state.outputs, world
        assert state.status == "paused"
        if new_hub_each_time:
            hub, flow = Hub(store=store), build(description, world)
            hub.register(flow)


@given(description=descriptions, pauses=pauses, new_hub=st.booleans())
@settings(max_examples=60 * SOAK)
def test_paused_anywhere_any_number_of_times_in_memory(
    description: Description, pauses: list[int], new_hub: bool
) -> None:
    outputs, world = play(disturbed(description, MemoryFlowStore(), pauses, new_hub_each_time=new_hub))
    assert outputs == undisturbed(description)
    assert set(world.ended.values()) <= {1}


@given(description=descriptions, pauses=pauses)
@settings(max_examples=15 * SOAK, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_paused_anywhere_any_number_of_times_in_a_database(
    empty_sqlite_file: Path, description: Description, pauses: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "flows.db"
        shutil.copy(empty_sqlite_file, database)
        store = SqlFlowStore(str(database))
        try:
            outputs, world = play(disturbed(description, store, pauses, new_hub_each_time=True))
        finally:
            store.close()
    assert outputs == undisturbed(description)
    assert set(world.ended.values()) <= {1}
