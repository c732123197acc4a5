"""The same programs in memory, on SQLite and on PostgreSQL: the same values, the same errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from flow.harness import play
from holdfast.base.errors import HoldfastError
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step
from holdfast.flow.store import FlowStore, MemoryFlowStore
from holdfast.store.flows import SqlFlowStore
from holdfast.store.sql import SqlStore
from soak import repeated

PROGRAMS = 200


class Model(BaseModel):
    name: str
    inner: dict[str, int]


@dataclass
class Data:
    pair: tuple[int, str]


def _nested(depth: int) -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value]
    return value


def _itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


# Made anew each time: a store that kept the object itself would give it away by what others do to it.
VALUES: list[Callable[[], Any]] = [
    *(
        lambda value=value: value
        for value in (None, True, 0, -1, 2**70, 1.5, -0.0, 1e308, "", "text", "ü ✓ 🦀")
    ),
    *(
        lambda value=value: value
        for value in ("\x00", "a\x00b", "\ud800", "\u2028", float("inf"), float("nan"))
    ),
    *(
        list,
        dict,
        lambda: [[], {}, [None]],
        lambda: {"": 1, "a.b": {"#": [1]}},
        lambda: (1, (2,)),
    ),
    *(lambda: {1: "key"}, lambda: {None: 1}, lambda: {(1, 2): 3}, lambda: {1, 2}, lambda: frozenset("a")),
    *(lambda: b"bytes", lambda: bytearray(b"x"), lambda: [b"inside"], lambda: {"a": {"b": {1}}}, object),
    *(
        lambda: datetime(2026, 1, 6, tzinfo=UTC),
        lambda: date(2026, 1, 6),
        lambda: UUID(int=7),
        lambda: Decimal("1.10"),
    ),
    *(
        lambda: Model(name="m", inner={"a": 1}),
        lambda: Data((1, "b")),
        lambda: 1j,
        lambda: range(3),
        lambda: print,
    ),
    *(
        lambda: _nested(50),
        lambda: _nested(5_000),
        _itself,
        lambda: (each for each in "ab"),
        lambda: Exception("x"),
    ),
]


def program(seed: int) -> tuple[Flow, Any]:
    """A chain with branches, each node an odd value or a change of what it received; and its input."""
    chance = random.Random(seed)
    flow = Flow(f"program-{seed}")
    for number in range(chance.randint(1, 6)):
        before = chance.sample(range(number), min(number, chance.choice((0, 1, 1, 2))))
        flow.node(_body(chance), name=f"n{number}", after=[f"n{each}" for each in before])
    if chance.random() < 0.3:
        flow.foreach(_body(chance), name="each", over=_items(chance), at_most=chance.choice((1, 3)))
    return flow, chance.choice(VALUES)()


def _items(chance: random.Random) -> Callable[[Step], Any]:
    make = [chance.choice(VALUES) for _ in range(3)]
    return lambda step: [one() for one in make]


def _body(chance: random.Random) -> Callable[[Step], Any]:
    make, kind = chance.choice(VALUES), chance.choice(("value", "value", "received", "change", "fail"))

    def changed(step: Step) -> Any:
        found = step.received
        if isinstance(found, list):
            found.append("changed by a later node")
        return [type(found).__name__, found]

    def failing(step: Step) -> Any:
        raise ValueError(f"odd: {make()!r}"[:80]) if chance_of_object(make) else ValueError("odd")

    bodies: dict[str, Callable[[Step], Any]] = {
        "value": lambda step: make(),
        "received": lambda step: {"type": type(step.received).__name__, "it": step.received},
        "change": changed,
        "fail": failing,
    }
    return bodies[kind]


def chance_of_object(make: Callable[[], Any]) -> bool:
    """Whether it says the same of itself each time."""
    return " at 0x" not in repr(make())


async def outcome(store: FlowStore, seed: int) -> list[Any]:
    """What came out, what is stored of it, and what a second try says."""
    flow, given = program(seed)
    hub = Hub(flow, store=store)
    told: list[Any] = []
    for attempt in range(2):
        try:
            run = hub.resume("s", "go on") if attempt else hub.run(flow, given, session_id="s")
            told.append((await run).outputs)
        except HoldfastError as error:
            told.append([type(error).__name__, error.message.split(" at 0x")[0], error.hint])
    try:
        state = await hub.state("s")
        told.append(
            [state.status, state.outputs, state.input, state.reason and state.reason.split(" at 0x")[0]]
        )
        if state.status != "running":
            await hub.forget("s")
    except HoldfastError as error:
        told.append(error.message)
    return told


def in_one_order(value: Any) -> Any:
    """Outputs stand in the order in which their nodes ended, and of nodes side by side any may be first."""
    if isinstance(value, dict):
        return {key: in_one_order(value[key]) for key in sorted(value, key=repr)}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [in_one_order(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def test_flow_programs_come_out_the_same_in_every_store(
    sqlite_store: SqlStore, postgres_store: SqlStore
) -> None:
    seeds = random.sample(range(10_000), repeated(PROGRAMS))

    async def scene(store: FlowStore) -> list[str]:
        try:
            return [repr(in_one_order(await outcome(store, seed))) for seed in seeds]
        finally:
            store.close()

    expected = play(scene(MemoryFlowStore()))
    for database in (sqlite_store.database, postgres_store.database):
        for seed, ours, theirs in zip(seeds, expected, play(scene(SqlFlowStore(database))), strict=True):
            assert theirs == ours, f"program {seed} on {database.partition(':')[0]}"
