"""The shape of a flow: nodes, edges with conditions, `foreach`, flows inside flows.

`Flow` is the builder that people use; `compile` checks what was built and gives the
executor arrays to count in. A compiled flow has a fingerprint of its structure (not of
the functions in it): a run goes on only with a flow of the same structure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pydantic import TypeAdapter

from holdfast.base.errors import InvalidFlowError

if TYPE_CHECKING:
    from holdfast.flow.step import Step

NodeBody = Callable[["Step"], Any]
"""Returns the output, or an awaitable of it, or an asynchronous iterator of an agent's messages."""
Condition = Callable[[Any], object]
"""Sees the output of the node that the edge comes from."""
Items = Callable[["Step"], Iterable[Any]]
NodeKind = Literal["node", "foreach", "repeat", "subflow"]
NodeNames = str | Sequence[str]
F = TypeVar("F", bound=NodeBody)

NODES_AT_ONCE = 128
ITEMS_AT_ONCE = 8
_RESERVED = "/#"
_INSTEAD_OF_CYCLES = "use repeat, which ends after so many rounds, or foreach"


class Edge(NamedTuple):
    source: str
    target: str
    when: Condition | None


@dataclass(frozen=True)
class Node:
    name: str
    kind: NodeKind
    body: NodeBody | None = None
    flow: Flow | None = None
    """Runs in place of a body: once, or for each item."""
    over: str | Items = ""
    at_most: int = ITEMS_AT_ONCE
    """How many items of a `foreach` run at a time, or how many rounds of a `repeat` there are."""
    until: Condition | None = None
    expects: TypeAdapter[Any] | None = None
    """Of what it receives, where its step says so: `Step[int]`."""
    takes: NodeBody | None = None
    """Gives a flow inside its input, where that is not simply what the node receives."""


class Flow:
    """Nodes and the edges between them; `docs/flow.md` shows how to build one.

    Nodes without an incoming edge start the flow, unless `start` names others. `at_most`
    nodes of a run are under way at a time.
    """

    def __init__(self, name: str, *, start: NodeNames | None = None, at_most: int = NODES_AT_ONCE) -> None:
        if not name:
            raise InvalidFlowError("a flow needs a name", hint='for example Flow("review")')
        _check_limit(name, at_most)
        self.name = name
        self.at_most = at_most
        self._start = None if start is None else _names(start)
        self._nodes: dict[str, Node] = {}
        self._edges: dict[tuple[str, str], Edge] = {}
        self._compiled: CompiledFlow | None = None

    @overload
    def node(
        self, body: F, /, *, name: str | None = None, after: NodeNames = (), when: Condition | None = None
    ) -> F: ...
    @overload
    def node(
        self,
        body: None = None,
        /,
        *,
        name: str | None = None,
        after: NodeNames = (),
        when: Condition | None = None,
    ) -> Callable[[F], F]: ...
    def node(
        self,
        body: Any = None,
        /,
        *,
        name: str | None = None,
        after: NodeNames = (),
        when: Condition | None = None,
    ) -> Any:
        """Add a node: as a decorator or called with a function. `when` is on every edge of `after`."""
        if body is None:
            return partial(self.node, name=name, after=after, when=when)
        self._add(Node(_name_of(body, name), "node", body=body, expects=_expected(body)), after, when)
        return body

    def foreach(
        self,
        body: NodeBody | Flow | None = None,
        /,
        *,
        over: str | Items,
        name: str | None = None,
        after: NodeNames = (),
        when: Condition | None = None,
        at_most: int = ITEMS_AT_ONCE,
    ) -> Any:
        """Add a node that runs `body` (a function or a flow) for each item; its output is the list of theirs.

        `over` names the node whose output is gone through, or computes the items when the turn has come.
        """
        if body is None:
            return partial(self.foreach, over=over, name=name, after=after, when=when, at_most=at_most)
        called = _name_of(body, name)
        _check_limit(called, at_most)
        before = _names(after)
        if isinstance(over, str) and over not in before:
            before = (*before, over)
        inner = body if isinstance(body, Flow) else None
        node = Node(
            called,
            "foreach",
            body=None if isinstance(body, Flow) else body,
            flow=inner,
            over=over,
            at_most=at_most,
        )
        self._add(node, before, when)
        return body

    def repeat(
        self,
        body: NodeBody | Flow | None = None,
        /,
        *,
        until: Condition,
        at_most: int,
        name: str | None = None,
        after: NodeNames = (),
        when: Condition | None = None,
    ) -> Any:
        """Add a node that runs `body` (a function or a flow) until its output is right; that is its own.

        A round's `item` is the output of the round before, at first what the node receives. It fails after
        `at_most` rounds; a resume then allows as many again.
        """
        if body is None:
            return partial(self.repeat, until=until, at_most=at_most, name=name, after=after, when=when)
        called = _name_of(body, name)
        _check_limit(called, at_most)
        inner = body if isinstance(body, Flow) else None
        given = None if isinstance(body, Flow) else body
        self._add(Node(called, "repeat", given, inner, at_most=at_most, until=until), after, when)
        return body

    def subflow(
        self,
        flow: Flow,
        *,
        name: str | None = None,
        after: NodeNames = (),
        when: Condition | None = None,
        takes: NodeBody | None = None,
    ) -> Flow:
        """Add a flow as a node. Its output is that of its last node, or of its last nodes by name."""
        self._add(Node(name or flow.name, "subflow", flow=flow, takes=takes), after, when)
        return flow

    def edge(self, source: str, target: str, *, when: Condition | None = None) -> None:
        """`target` comes after `source`; with `when`, only if that says so of `source`'s output."""
        self._check_open()
        if (source, target) in self._edges:
            raise InvalidFlowError(
                f"flow {self.name!r} has two edges from {source!r} to {target!r}",
                hint="use one edge that combines both conditions",
            )
        self._edges[source, target] = Edge(source, target, when)

    def compile(self) -> CompiledFlow:
        """Check the flow and make it runnable; from then on it cannot be changed."""
        compiled = self._compiled
        if compiled is None:
            for flow in _innermost_first(self):
                compiled = flow._compiled = flow._compiled or flow._compile()
        return cast("CompiledFlow", compiled)

    def _add(self, node: Node, after: NodeNames, when: Condition | None) -> None:
        self._check_open()
        if not node.name or any(sign in node.name for sign in _RESERVED):
            raise InvalidFlowError(
                f"a node cannot be called {node.name!r}",
                hint="use a name without / and #, which separate path segments",
            )
        if node.name in self._nodes:
            raise InvalidFlowError(
                f"flow {self.name!r} has two nodes called {node.name!r}", hint="give one of them a name=…"
            )
        self._nodes[node.name] = node
        for source in _names(after):
            self.edge(source, node.name, when=when)

    def _check_open(self) -> None:
        if self._compiled is not None:
            raise InvalidFlowError(
                f"flow {self.name!r} is in use and cannot be changed", hint="build it before its first run"
            )

    def _compile(self) -> CompiledFlow:
        if not self._nodes:
            raise InvalidFlowError(f"flow {self.name!r} has no nodes", hint="add one with flow.node")
        self._check_names()
        index = {name: number for number, name in enumerate(self._nodes)}
        out: list[list[tuple[int, Condition | None]]] = [[] for _ in index]
        sources: list[list[int]] = [[] for _ in index]
        for source, target, when in self._edges.values():
            out[index[source]].append((index[target], when))
            sources[index[target]].append(index[source])
        self._check_cycles(sources)
        roots = tuple(number for number, before in enumerate(sources) if not before)
        if self._start is not None:
            self._check_reachable(tuple(index[name] for name in self._start), out)
        nodes = tuple(self._nodes.values())
        return CompiledFlow(
            name=self.name,
            at_most=self.at_most,
            fingerprint=self._fingerprint(),
            nodes=nodes,
            names=tuple(self._nodes),
            out=tuple(map(tuple, out)),
            sources=tuple(map(tuple, sources)),
            decides=tuple(any(when for _, when in edges) for edges in out),
            roots=roots,
            ends=tuple(number for number, edges in enumerate(out) if not edges),
            over=tuple(
                index[node.over] if isinstance(node.over, str) and node.over else -1 for node in nodes
            ),
            inner=tuple(node.flow.compile() if node.flow else None for node in nodes),
            number=index,
        )

    def _check_names(self) -> None:
        mentioned = [name for edge in self._edges.values() for name in edge[:2]] + list(self._start or ())
        for name in mentioned:
            if name not in self._nodes:
                raise InvalidFlowError(
                    f"flow {self.name!r} has no node {name!r}, though an edge or its start names it",
                    hint=f"its nodes are {_listed(self._nodes)}",
                )

    def _check_cycles(self, sources: Sequence[Sequence[int]]) -> None:
        try:
            TopologicalSorter(dict(enumerate(sources))).prepare()
        except CycleError as error:
            names = list(self._nodes)
            circle = " → ".join(names[number] for number in cast("list[int]", error.args[1]))
            raise InvalidFlowError(
                f"flow {self.name!r} contains a cycle: {circle}",
                hint=_INSTEAD_OF_CYCLES,
            ) from None

    def _check_reachable(self, start: Sequence[int], out: Sequence[Sequence[tuple[int, Any]]]) -> None:
        seen, left = set(start), list(start)
        while left:
            for target, _ in out[left.pop()]:
                if target not in seen:
                    seen.add(target)
                    left.append(target)
        if lost := [name for number, name in enumerate(self._nodes) if number not in seen]:
            raise InvalidFlowError(
                f"flow {self.name!r} never reaches {_listed(lost)}",
                hint="add an edge that leads there, or name it in start=…",
            )

    def _fingerprint(self) -> str:
        """Of names, kinds and edges, whatever order they were written in."""
        nodes = sorted(
            [
                node.name,
                node.kind,
                node.over if isinstance(node.over, str) else "computed",
                node.flow.compile().fingerprint if node.flow else "",
            ]
            for node in self._nodes.values()
        )
        edges = sorted([edge.source, edge.target, edge.when is not None] for edge in self._edges.values())
        text = json.dumps([self.name, nodes, edges], ensure_ascii=True, separators=(",", ":"))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True)
class CompiledFlow:
    """Nodes by number, in the order they were added; every field with a line for each."""

    name: str
    at_most: int
    fingerprint: str
    nodes: tuple[Node, ...]
    names: tuple[str, ...]
    out: tuple[tuple[tuple[int, Condition | None], ...], ...]
    sources: tuple[tuple[int, ...], ...]
    decides: tuple[bool, ...]
    """Whether an edge that leaves the node has a condition."""
    roots: tuple[int, ...]
    ends: tuple[int, ...]
    over: tuple[int, ...]
    """The node whose output a `foreach` goes through, or -1."""
    inner: tuple[CompiledFlow | None, ...]
    number: Mapping[str, int]

    def has_place(self, path: str) -> bool:
        """Whether there is a node that what is on record under this path can belong to."""
        graph: CompiledFlow | None = self
        for name, item in _segments(path):
            if graph is None or name not in graph.number:
                return False
            number = graph.number[name]
            if item and graph.nodes[number].kind not in ("foreach", "repeat"):
                return False
            graph = graph.inner[number]
        return True

    def redone_from(self, path: str) -> tuple[tuple[str, ...], frozenset[str]]:
        """If this node runs again: paths that are void with all below them, and those that are void alone."""
        graph, prefix = self, ""
        void: list[str] = []
        around: set[str] = set()
        for name, item in _segments(path):
            number = graph.number[name]
            void += [prefix + graph.names[each] for each in graph.after(number)]
            own = f"{prefix}{name}#{item}" if item else prefix + name
            around |= {prefix + name, own}
            if graph.nodes[number].kind == "repeat":  # later rounds come from earlier ones
                return (*void, prefix + name), frozenset(around)
            prefix = f"{own}/"
            graph = graph.inner[number] or graph
        return (*void, path), frozenset(around)

    def after(self, number: int) -> set[int]:
        """All nodes that come after this one."""
        found: set[int] = set()
        left = [number]
        while left:
            new = {target for target, _ in self.out[left.pop()]} - found
            found |= new
            left += new
        return found


def _segments(path: str) -> list[tuple[str, str]]:
    """Names with the number of the item or none, from the outside in."""
    parts = [segment.partition("#") for segment in path.split("/")]
    return [(name, item) for name, _, item in parts]


def _innermost_first(outer: Flow) -> list[Flow]:
    """Every flow after those inside it; without recursion, however deep they are nested."""
    found: dict[Flow, None] = {}
    above: dict[Flow, None] = {}
    stack = [(outer, False)]
    while stack:
        flow, inner_done = stack.pop()
        if inner_done:
            del above[flow]
            found[flow] = None
        elif flow in above:
            raise InvalidFlowError(
                f"flow {flow.name!r} contains itself",
                hint=_INSTEAD_OF_CYCLES,
            )
        elif flow not in found:
            above[flow] = None
            stack.append((flow, True))
            stack += [(node.flow, False) for node in flow._nodes.values() if node.flow]  # pyright: ignore[reportPrivateUsage]
    return list(found)


def _names(names: NodeNames) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _name_of(body: Any, name: str | None) -> str:
    found = name or (body.name if isinstance(body, Flow) else getattr(body, "__name__", ""))
    if not found or found == "<lambda>":
        raise InvalidFlowError("a node made from a lambda or an object needs a name", hint="name=…")
    return found


def _expected(body: Any) -> TypeAdapter[Any] | None:
    """What `step: Step[…]` says that the node receives."""
    from holdfast.flow.step import Step

    try:
        hints = get_type_hints(body)
    except (NameError, TypeError):  # names that are there for type checkers alone, or not a function
        return None
    found = [hint for name, hint in hints.items() if name != "return" and get_origin(hint) is Step]
    wanted = get_args(found[0])[0] if found else Any
    return None if wanted is Any or isinstance(wanted, TypeVar) else TypeAdapter(wanted)


def _check_limit(name: str, at_most: int) -> None:
    if at_most < 1:
        raise InvalidFlowError(
            f"{name!r} may run at most {at_most} at a time", hint="at_most must be 1 or more"
        )


def _listed(names: Iterable[str], most: int = 10) -> str:
    found = list(names)
    return ", ".join(map(repr, found[:most])) + (
        f" and {len(found) - most} more" if len(found) > most else ""
    )
