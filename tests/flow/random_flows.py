"""Flows made of a seed: any shape, any kind of node, with failures; and a world that counts what they do.

A description is plain JSON, so that another process can build the same flow.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from holdfast.flow.graph import Flow, NodeBody
from holdfast.flow.step import Step

Description = dict[str, Any]


def describe(seed: int, size: int) -> Description:
    """A flow with `size` nodes, those in flows inside it and items of loops not counted."""
    return _described(random.Random(seed), f"flow{seed}", size, depth=0)


def _described(chance: random.Random, name: str, size: int, depth: int) -> Description:
    nodes: list[dict[str, Any]] = []
    reach = chance.choice((1, 3, 20, size))
    for number in range(size):
        earlier = range(max(0, number - reach), number)
        picked = chance.sample(earlier, min(len(earlier), chance.choice((0, 1, 1, 1, 2, 3))))
        nodes.append(_node(chance, f"n{number}", picked, depth))
    return {"name": name, "nodes": nodes}


def _node(chance: random.Random, name: str, before: list[int], depth: int) -> dict[str, Any]:
    kinds = ["plain", "plain", "coroutine", "coroutine", "agent", "loop", "agent loop"]
    if depth < 2:
        kinds += ["flow", "loop of flows"]
    kind = chance.choice(kinds)
    return {
        "name": name,
        "kind": kind,
        "after": [[f"n{other}", chance.choice((None, None, None, 0, 1))] for other in sorted(before)],
        "spins": chance.choice((0, 0, 1, 3)),
        "fails": chance.choice((0,) * 9 + (1,)),
        "items": chance.choice((0, 1, 3, 6)),
        "at_most": chance.choice((1, 2, 8)),
        "inner": _described(chance, f"{name}_inner", chance.randint(1, 4), depth + 1)
        if "flow" in kind
        else None,
    }


@dataclass
class World:
    """What flows do to the world: every start and end of a node, and the failures still to come."""

    ended: Counter[str] = field(default_factory=Counter[str])
    failed: set[str] = field(default_factory=set[str])
    fails: bool = True
    ticks: int = 0
    on_tick: Callable[[int], object] = lambda _: None

    def tick(self) -> None:
        """A moment at which somebody may pause, abort or kill."""
        self.ticks += 1
        self.on_tick(self.ticks)

    def attempt(self, step: Step, node: dict[str, Any]) -> None:
        self.tick()
        if self.fails and node["fails"] and step.node_id not in self.failed:
            self.failed.add(step.node_id)
            raise ValueError(f"{step.node_id} fails the first time")

    def end(self, step: Step) -> None:
        self.ended[step.node_id] += 1
        self.tick()

    def to_json(self) -> dict[str, Any]:
        return {"ended": self.ended, "failed": sorted(self.failed), "ticks": self.ticks}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> World:
        return cls(Counter(found["ended"]), set(found["failed"]))


def build(description: Description, world: World) -> Flow:
    flow = Flow(description["name"], at_most=16)
    for node in description["nodes"]:
        _add(flow, node, world)
    return flow


def _add(flow: Flow, node: dict[str, Any], world: World) -> None:
    kind, name = node["kind"], node["name"]
    inner = build(node["inner"], world) if node["inner"] else None
    if kind == "flow":
        assert inner is not None
        flow.subflow(inner, name=name)
    elif "loop" in kind:
        body: Any = inner or (_agent if kind == "agent loop" else _coroutine)(node, world)
        flow.foreach(body, name=name, over=_items(node), at_most=node["at_most"])
    else:
        makers = {"plain": _plain, "coroutine": _coroutine, "agent": _agent}
        flow.node(makers[kind](node, world), name=name)
    for source, rest in node["after"]:
        flow.edge(source, name, when=None if rest is None else _condition(rest))


def digest(*values: Any) -> int:
    return crc32(json.dumps(values, sort_keys=True).encode())


def _condition(rest: int) -> Callable[[Any], bool]:
    return lambda output: digest(output) % 3 != rest


def _items(node: dict[str, Any]) -> Callable[[Step], list[Any]]:
    return lambda step: [digest(step.received, number) % 1000 for number in range(node["items"])]


def _value(step: Step, node: dict[str, Any]) -> Any:
    """What comes out depends on everything that went in, and is of any kind that JSON has."""
    went_in = [step.item, step.index] if step.index >= 0 else [step.inputs, step.input]
    number = digest(node["name"], went_in)
    forms: list[Any] = [number, str(number), {"n": number}, [number, None], number / 7, True, None]
    return forms[number % len(forms)]


def _plain(node: dict[str, Any], world: World) -> NodeBody:
    def plain(step: Step) -> Any:
        world.attempt(step, node)
        value = _value(step, node)
        world.end(step)
        return value

    return plain


def _coroutine(node: dict[str, Any], world: World) -> NodeBody:
    async def coroutine(step: Step) -> Any:
        world.attempt(step, node)
        for _ in range(node["spins"]):
            await asyncio.sleep(0)
            world.tick()
        value = _value(step, node)
        world.end(step)
        return value

    return coroutine


def _agent(node: dict[str, Any], world: World) -> NodeBody:
    """Says three things, one after the other, and goes on after the last that it has said."""

    async def agent(step: Step) -> AsyncIterator[Any]:
        world.attempt(step, node)
        for number in range(len(step.partial), 3):
            await asyncio.sleep(0)
            world.tick()
            yield [_value(step, node), number]
        world.end(step)

    return agent
