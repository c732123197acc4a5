"""What a node gets to see, and how far a graph has come: which edges are decided, what came out."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, cast

from pydantic import ValidationError
from typing_extensions import TypeVar

from holdfast.base.errors import InvalidInputError
from holdfast.model.base import invalid
from holdfast.model.flow import Interrupted

if TYPE_CHECKING:
    from holdfast.flow.graph import CompiledFlow, Node


# ── frames ────────────────────────────────────────────────────────────────────────────────────────

# Graphs being gone through: which edges are decided, which nodes are next, what came out so far.


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
    """A `foreach` or a `repeat` under way."""

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
            f"foreach requires a list, not {type(cast('object', found)).__name__}",
            hint="return a list from the node it iterates over",
        )
    return list(cast("Iterable[Any]", found))


NO_LOOP = Loop([])
"""Of steps that go through nothing."""


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────

# What a node gets to see: its input, what came before it, and the way to be stopped.

# ── stopping ──────────────────────────────────────────────────────────────────────────────────────

# The way a run is told to stop: the hub holds the controller, everybody else sees the signal.
#
# A pause and an abort unwind as `BaseException`, so that a node which catches
# `Exception` cannot swallow them. A pause may still turn into an abort, never the other way.


class FlowInterrupt(BaseException):
    """The run is to stop here."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "")
        self.reason = reason


class FlowPaused(FlowInterrupt):
    """Stop; somebody will resume."""


class FlowAborted(FlowInterrupt):
    """Stop for good."""


class AbortSignal:
    """What a node may look at."""

    __slots__ = ("_listeners", "aborted", "reason", "resumable")

    def __init__(self) -> None:
        self.aborted = False
        self.resumable = False
        self.reason: str | None = None
        self._listeners: list[Callable[[], object]] = []

    def check(self) -> None:
        """Unwind if the run is to stop."""
        if self.aborted:
            raise FlowPaused(self.reason) if self.resumable else FlowAborted(self.reason)

    def add_listener(self, listener: Callable[[], object]) -> None:
        """Called when the signal fires, and once more should a pause turn into an abort."""
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[], object]) -> None:
        self._listeners.remove(listener)

    async def wait(self) -> None:
        """Until the signal fires."""
        if self.aborted:
            return
        fired = asyncio.get_running_loop().create_future()

        def fire() -> None:
            if not fired.done():
                fired.set_result(None)

        self.add_listener(fire)
        try:
            await fired
        finally:
            self.remove_listener(fire)


class AbortController:
    __slots__ = ("signal",)

    def __init__(self) -> None:
        self.signal = AbortSignal()

    def abort(self, *, resumable: bool = False, reason: str | None = None) -> bool:
        """Fire. False where that changes nothing: paused twice, or aborted before."""
        signal = self.signal
        if signal.aborted and (resumable or not signal.resumable):
            return False
        signal.aborted = True
        signal.resumable = resumable
        signal.reason = reason
        for listener in tuple(signal._listeners):  # pyright: ignore[reportPrivateUsage]
            listener()
        return True


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────

# What a node gets to see: its input, what came before it, and the way to be stopped.

_UNSET: Any = object()
_NOT_RESUMED = Interrupted()


class RunningSession(Protocol):
    """What a step needs to know of the run it belongs to."""

    session_id: str
    signal: AbortSignal

    def interrupted(self, path: str) -> Interrupted | None: ...
    def note_provider_session(self, step: Step) -> None: ...
    def request_pause(self, reason: str | None) -> None: ...
    async def wait_for(self, step: Step, number: int, name: str | None, seconds: float | None) -> Any: ...


Received = TypeVar("Received", default=Any)


class Step(Generic[Received]):
    """A node, or one item of a `foreach`, when its turn has come. `Step[int]` receives a number."""

    __slots__ = (
        *("_answer", "_found", "_heard", "_path", "_provider_session", "_run", "_waits"),
        *("frame", "index", "loop", "number", "said"),
    )

    def __init__(
        self, run: RunningSession, frame: Frame, number: int, loop: Loop = NO_LOOP, index: int = -1
    ) -> None:
        self._run = run
        self.frame = frame
        self.number = number
        self.loop = loop
        """For a `foreach`: its items, once it is open. For an item: those it is one of."""
        self.index = index
        """The item's place in its `foreach`; -1 in other nodes."""
        self._path: str | None = None
        self._provider_session: str | None = None
        self.said: list[Any] = []
        """Messages that the agent has yielded since it was started or resumed."""
        self._answer: Any = _UNSET
        self._found: Any = _UNSET
        self._heard = False
        self._waits = 0

    @property
    def node(self) -> Node:
        return self.frame.graph.nodes[self.number]

    @property
    def node_id(self) -> str:
        """The node's path: `review`, `each#3`, `outer/inner`."""
        if self._path is None:
            path = self.frame.prefix + self.frame.graph.names[self.number]
            self._path = path if self.index < 0 else f"{path}#{self.index}"
        return self._path

    @property
    def session_id(self) -> str:
        return self._run.session_id

    @property
    def signal(self) -> AbortSignal:
        return self._run.signal

    @property
    def input(self) -> Any:
        """What the flow was started with; inside a flow inside, what that one was given."""
        return self.frame.input

    @property
    def item(self) -> Any:
        if self.index < 0:
            raise AttributeError("item is only available in the body of a foreach")
        return self.loop.items[self.index]

    @property
    def outputs(self) -> Mapping[str, Any]:
        """Of all nodes completed so far. Only those that this node comes after are sure to be there."""
        return MappingProxyType(self.frame.outputs)

    @property
    def inputs(self) -> dict[str, Any]:
        """Outputs of the nodes right before this one, without those that were skipped or led elsewhere."""
        frame = self.frame
        names, cut, outputs = frame.graph.names, frame.cut, frame.outputs
        before = [
            names[number]
            for number in frame.graph.sources[self.number]
            if not cut or (number, self.number) not in cut
        ]
        return {name: outputs[name] for name in before if name in outputs}

    @property
    def received(self) -> Received:
        """The flow's input at a start, the output of the one node before, or the outputs by name."""
        expects = self.node.expects
        if expects is None:
            return self._came
        try:
            return expects.validate_python(self._came)
        except ValidationError as error:
            raise invalid(f"node {self.node_id!r} received something else", error) from None

    @property
    def _came(self) -> Any:
        before = self.frame.graph.sources[self.number]
        if not before:
            return self.frame.input
        if len(before) == 1:
            return self.frame.outputs[self.frame.graph.names[before[0]]]
        return self.inputs

    @property
    def resumed(self) -> Interrupted | None:
        """What this node left behind when it was stopped in its middle; None where it starts afresh."""
        if self._found is _UNSET:
            self._found = self._run.interrupted(self.node_id)
        return self._found

    def look_again(self) -> None:
        """It was handed messages before it began."""
        self._found = _UNSET

    def hear(self) -> int:
        """How many messages it has taken note of since this was last asked: those it was started with."""
        heard, self._heard = 0 if self._heard else len(self.messages), True
        return heard

    @property
    def messages(self) -> tuple[str, ...]:
        """What the user said to this node since it was stopped."""
        return (self.resumed or _NOT_RESUMED).messages

    @property
    def partial(self) -> tuple[Any, ...]:
        """What an agent had said before it was stopped."""
        return (self.resumed or _NOT_RESUMED).partial

    @property
    def provider_session(self) -> str | None:
        """What the agent's provider calls the conversation; kept for the next resume, or after a crash."""
        return self._provider_session or (self.resumed or _NOT_RESUMED).provider_session

    @provider_session.setter
    def provider_session(self, name: str) -> None:
        if name != self.provider_session:
            self._provider_session = name
            self._run.note_provider_session(self)

    def answer(self, output: Any) -> None:
        """The output of an agent, in place of the list of its messages. After it, no pause comes between."""
        self._answer = output

    @property
    def has_answered(self) -> bool:
        return self._answer is not _UNSET

    def check(self) -> None:
        """Unwind here if the run is to stop: a boundary inside a long node."""
        self._run.signal.check()

    async def wait_for(self, name: str, *, timeout: float | None = None) -> Any:
        """What `hub.send` brought for this name, from any process; `TimeoutError` after so many seconds.

        A node that starts again gets what it got before: it must wait for the same things in the same order.
        """
        return await self._wait(name, None if timeout is None else _seconds(timeout))

    async def sleep(self, seconds: float) -> None:
        """Until so long after the node first got here: neither a pause nor a kill begins it anew."""
        await self._wait(None, _seconds(seconds))

    async def _wait(self, name: str | None, seconds: float | None) -> Any:
        self._waits += 1
        return await self._run.wait_for(self, self._waits, name, seconds)

    def pause(self, reason: str | None = None) -> NoReturn:
        """Stop the run here. On resume the node starts again, with the answer in `messages`."""
        self._run.request_pause(reason)
        self._run.signal.check()
        raise FlowPaused(reason)

    def agent_output(self) -> Any:
        return self._answer if self.has_answered else [*self.partial, *self.said]


def _seconds(given: float) -> float:
    """A wait for "not a number" of seconds, or for None, would never end."""
    if math.isnan(given):
        raise ValueError("nan is not a number of seconds")
    return given
