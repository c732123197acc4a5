"""Graphs being gone through: which edges are decided, which nodes are next, what came out so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from holdfast.base.errors import InvalidInputError

if TYPE_CHECKING:
    from holdfast.flow.graph import CompiledFlow
    from holdfast.flow.step import Step


class Frame:
    """One graph being gone through: the flow itself, or a flow inside it. Counts edges down to zero."""

    __slots__ = ("cut", "graph", "input", "left", "live", "outputs", "owner", "pending", "prefix")

    def __init__(self, graph: CompiledFlow, given: Any, prefix: str = "", owner: Step | None = None) -> None:
        self.graph = graph
        self.input = given
        self.prefix = prefix
        self.owner = owner
        """The step that ends when this frame does."""
        self.outputs: dict[str, Any] = {}
        self.pending = [len(before) for before in graph.sources]
        self.live = bytearray(len(graph.nodes))
        """Whether an edge to the node was taken."""
        self.left = len(graph.nodes)
        self.cut: set[tuple[int, int]] = set()
        """Edges from completed nodes that were not taken."""

    def follow(self, number: int, taken: tuple[str, ...] | None) -> tuple[list[int], list[int]]:
        """A node is complete: which nodes are ready now, and which are skipped since nothing leads there."""
        graph, pending, live = self.graph, self.pending, self.live
        ready: list[int] = []
        skipped: list[int] = []
        passed_on = 0
        for target, when in graph.out[number]:
            if when is None or (taken is not None and graph.names[target] in taken):
                live[target] = 1
            else:
                self.cut.add((number, target))
            pending[target] -= 1
            if pending[target] == 0:
                (ready if live[target] else skipped).append(target)
        while passed_on < len(skipped):
            for target, _ in graph.out[skipped[passed_on]]:
                pending[target] -= 1
                if pending[target] == 0:
                    (ready if live[target] else skipped).append(target)
            passed_on += 1
        self.left -= 1 + len(skipped)
        return ready, skipped

    def output(self) -> Any:
        """Of its last node; where it has several, of each that ran."""
        ends = [self.graph.names[number] for number in self.graph.ends]
        if len(ends) == 1:
            return self.outputs.get(ends[0])
        return {name: self.outputs[name] for name in ends if name in self.outputs}


class Loop:
    """A `foreach` under way."""

    __slots__ = ("items", "left", "next", "outputs")

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.outputs: list[Any] = [None] * len(items)
        self.next = 0
        self.left = len(items)


def items_of(found: Any) -> list[Any]:
    """What a `foreach` goes through; a text or a dict is hardly meant."""
    if isinstance(found, str | bytes | dict) or not hasattr(cast("object", found), "__iter__"):
        raise InvalidInputError(
            f"a foreach goes through a list, not {type(cast('object', found)).__name__}",
            hint="let the node that it goes over return a list",
        )
    return list(cast("Iterable[Any]", found))


NO_LOOP = Loop([])
"""Of steps that go through nothing."""
