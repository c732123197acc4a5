"""What a node costs beside LangGraph's, and whether that stays so with many nodes and sessions."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from measure import Figure, Timing, alone, compared, scratch_folder
from peers.langgraph_graph import Peer, in_memory, layered, on_sqlite

from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step
from holdfast.store.flows import SqlFlowStore

TOPIC = "flow"
MEMORY_BAR = 0.3
DURABLE_BAR = 0.7
BOOKKEEPING_BAR = 1.0
"""Milliseconds, at the 99th percentile, with 1,000 paused sessions."""
LINEAR_BAR = 1.5
"""What a node may cost in a flow of 100,000, as a multiple of one in a flow of 1,000."""

_SHAPES = {"chain of 100": (100, 1), "20 times 8 side by side": (20, 8)}
_PAUSED_SESSIONS = 1000

Run = Callable[[], Awaitable[object]]


async def _nothing(_step: Step) -> int:
    return 1


def _same_graph(layers: int, width: int) -> Flow:
    """As `layered` in the peer: layers of nodes side by side, a joint after each."""
    flow = Flow(f"bench-{layers}x{width}")
    before: str | tuple[str, ...] = ()
    for layer in range(layers):
        names = [f"n{layer}_{number}" for number in range(width)]
        for name in names:
            flow.node(_nothing, name=name, after=before)
        if width > 1:
            before = f"join{layer}"
            flow.node(_nothing, name=before, after=names)
        else:
            (before,) = names
    flow.compile()
    return flow


def run(quick: bool) -> list[Figure]:
    with scratch_folder() as folder:
        return asyncio.run(_everything(folder, quick))


async def _everything(folder: Path, quick: bool) -> list[Figure]:
    figures: list[Figure] = []
    for shape, (layers, width) in _SHAPES.items():
        figures += await _beside_langgraph(folder, shape, layers, width, 5 if quick else 25)
    figures += await _bookkeeping(200 if quick else 2000)
    figures += await _linear(folder, 1 if quick else 3)
    return figures


async def _beside_langgraph(
    folder: Path, shape: str, layers: int, width: int, repetitions: int
) -> list[Figure]:
    nodes = layers * (width + (width > 1))
    graph, flow = layered(layers, width), _same_graph(layers, width)
    async with AsyncExitStack() as stack:
        saver = await stack.enter_async_context(on_sqlite(folder / f"peer{width}.db"))
        store = SqlFlowStore(str(folder / f"flows{width}.db"))
        stack.callback(store.close)
        ours, durable = Hub(), Hub(store=store)
        peer, durable_peer = Peer(graph, in_memory(), nodes), Peer(graph, saver, nodes)
        subjects: dict[str, Run] = {
            f"LangGraph, in memory, {shape}": peer.run,
            f"a node in memory, {shape}": lambda: ours.run(flow),
            f"LangGraph, SQLite, {shape}": durable_peer.run,
            f"LangGraph, SQLite, waiting for each, {shape}": lambda: durable_peer.run("sync"),
            f"a node on SQLite, {shape}": lambda: durable.run(flow),
        }
        memory_peer, memory, sqlite_peer, sync_peer, sqlite = await _interleaved(subjects, repetitions, nodes)
    return [
        alone(TOPIC, memory_peer),
        compared(TOPIC, memory, memory_peer, MEMORY_BAR),
        alone(TOPIC, sqlite_peer),
        alone(TOPIC, sync_peer),
        compared(TOPIC, sqlite, sqlite_peer, DURABLE_BAR),
    ]


async def _interleaved(subjects: dict[str, Run], repetitions: int, nodes: int) -> list[Timing]:
    """Milliseconds a node, the subjects in turn; the first round warms up."""
    timings = {name: Timing(name) for name in subjects}
    gc.collect()
    gc.freeze()
    for number in range(-1, repetitions):
        for name, subject in subjects.items():
            begin = time.perf_counter_ns()
            await subject()
            if number >= 0:
                timings[name].times.append((time.perf_counter_ns() - begin) / 1e6 / nodes)
    return list(timings.values())


async def _bookkeeping(repetitions: int) -> list[Figure]:
    """What `pause` takes, and what `resume` takes until the node goes on, beside 1,000 paused sessions.

    Processor time: both only do books in memory, and a busy machine is not their doing.
    """
    hub = Hub()
    flow = Flow("waits")
    going_on: asyncio.Queue[int] = asyncio.Queue()

    async def waits(step: Step) -> None:
        going_on.put_nowait(time.thread_time_ns())
        await step.signal.wait()
        step.check()

    flow.node(waits)
    names = [f"s{number}" for number in range(_PAUSED_SESSIONS)]
    runs = [asyncio.create_task(hub.run(flow, session_id=name)) for name in names]
    for _ in names:
        await going_on.get()
    hub.pause("all")
    await asyncio.gather(*runs)
    pause, resume = Timing("pause"), Timing("resume")
    gc.collect()
    gc.freeze()
    for number in range(repetitions):
        name = names[number % _PAUSED_SESSIONS]
        begin = time.thread_time_ns()
        task = asyncio.create_task(hub.resume(name, "go on"))
        resume.times.append((await going_on.get() - begin) / 1e6)
        begin = time.thread_time_ns()
        hub.pause("again", session_id=name)
        pause.times.append((time.thread_time_ns() - begin) / 1e6)
        await task
    return [
        Figure(TOPIC, f"p99 of {timing.name}, beside 1,000 paused sessions", timing.p99, bar=BOOKKEEPING_BAR)
        for timing in (pause, resume)
    ]


async def _linear(folder: Path, repetitions: int) -> list[Figure]:
    """A node in flows of a thousand, ten thousand and a hundred thousand, in processor time."""
    figures: list[Figure] = []
    store = SqlFlowStore(str(folder / "linear.db"))
    for kind, hub in (("in memory", Hub()), ("on SQLite", Hub(store=store))):
        base: Timing | None = None
        for count in (1_000, 10_000, 100_000):
            timing = Timing(f"a node {kind}, in a flow of {count:,}")
            flow = _same_graph(count // 100, 99)
            for _ in range(repetitions * {1_000: 10, 10_000: 3, 100_000: 1}[count]):
                timing.times.append(await _per_node(hub, flow, count))
            figures.append(
                alone(TOPIC, timing) if base is None else compared(TOPIC, timing, base, LINEAR_BAR)
            )
            base = base or timing
    store.close()
    return figures


async def _per_node(hub: Hub, flow: Flow, count: int) -> float:
    gc.collect()
    gc.freeze()
    begin = time.process_time_ns()
    state = await hub.run(flow)
    elapsed = (time.process_time_ns() - begin) / 1e6 / count
    await hub.forget(state.session_id)
    return elapsed
