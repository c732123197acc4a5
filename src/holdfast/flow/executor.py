"""One run of a flow, from where it stands to where it stops."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextvars import copy_context
from fnmatch import translate
from time import perf_counter
from types import CoroutineType
from typing import Any, NamedTuple, Self, cast

from holdfast.base.clock import Clock
from holdfast.base.errors import HoldfastError, InvalidInputError, NodeFailedError
from holdfast.flow.graph import CompiledFlow, Condition, Items
from holdfast.flow.step import AbortSignal, FlowInterrupt, FlowPaused, Frame, Loop, Step, items_of
from holdfast.flow.store import FlowStore, surely
from holdfast.model.flow import (
    WAIT,
    EventsDropped,
    FlowEvent,
    FlowSession,
    Interrupted,
    Mail,
    NodeCompleted,
    NodeEvent,
    NodeFailed,
    NodeInterrupted,
    NodeMessage,
    NodeSkipped,
    NodeStarted,
    Progress,
    Record,
    RecordKind,
    take_in,
)

# ── failures ──────────────────────────────────────────────────────────────────────────────────────

# Nodes that failed, in words.


class NodeFailure(NamedTuple):
    node_id: str
    error: BaseException


def node_failed(session_id: str, failures: Sequence[NodeFailure]) -> NodeFailedError:
    first = failures[0]
    others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    return NodeFailedError(
        f"node {first.node_id!r} of session {session_id} failed{others}: {told(first.error)}",
        hint=first.error.hint if isinstance(first.error, HoldfastError) else None,
    )


def told(error: BaseException) -> str:
    """An error in one line: ours as they are, others with their kind."""
    if isinstance(error, HoldfastError):
        return error.message
    return f"{type(error).__name__}: {error}".rstrip(": ")


# ── the run ───────────────────────────────────────────────────────────────────────────────────────

# One run of a flow, from where it stands to where it stops.
#
# Edges are counted down; a node whose edges are all decided is ready if one of them was
# taken, and skipped otherwise. Nothing recurses: neither with the length of a chain nor
# with the depth of flows in flows. A plain function runs right here; a coroutine and an agent
# become tasks. What has finished is recorded, many nodes in one write if they finished
# together, and only then do the nodes after it start.
#
# On resume the same walk is made, and nodes that are on record are completed from there.
#
# paused    running nodes finish their step, agents stop after their next message
# aborted   running nodes are cancelled
# failed    as paused; the failed node runs again on resume
# cancelled from outside: running nodes are cancelled, what is complete is recorded,
# and the cancellation goes on

_TURN_SECONDS = 0.002
"""How long plain functions run one after the other before what they did is recorded and others get a turn."""


_MORE_ROUNDS = "resume the session to allow as many rounds again"


class _Finished(NamedTuple):
    step: Step
    value: Any
    taken: tuple[str, ...] | None
    undecided: bool


class Run:
    """Runs once. Afterwards `failures`, `cancelled` and `node_id` say how it went."""

    def __init__(
        self,
        graph: CompiledFlow,
        session: FlowSession,
        progress: Progress,
        store: FlowStore,
        signal: AbortSignal,
        bus: Bus,
        request_stop: Callable[[bool, str | None], None],
        clock: Clock,
    ) -> None:
        self.session_id = session.id
        self.signal = signal
        self._clock = clock
        self._has_changed = session.fingerprint != graph.fingerprint
        """Nodes or edges were added since it was started."""
        self._signals: dict[int, Mail] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self.failures: list[NodeFailure] = []
        self.cancelled = False
        self.unrecorded: list[Record] = []
        """Records that no commit has carried yet; whoever settles the session adds them."""
        self._claim = session.claim
        self._progress = progress
        self._recorded = progress.completed
        self._store = store
        self._bus = bus
        self._request_stop = request_stop
        self._root = Frame(graph, session.input)
        self._loop = asyncio.get_running_loop()
        self._ready: deque[Step] = deque()
        self._on_record: deque[Step] = deque()
        self._running: dict[asyncio.Task[Any], Step] = {}
        self._finished: list[_Finished] = []
        self._waker: asyncio.Future[None] | None = None
        self._awaiting_record: list[asyncio.Future[None]] = []
        self._turn_ends = 0.0

    # What the hub and the steps ask.

    @property
    def outputs(self) -> dict[str, Any]:
        return self._root.outputs

    @property
    def is_complete(self) -> bool:
        return self._root.left == 0

    @property
    def progress(self) -> Progress:
        return self._progress

    @property
    def node_id(self) -> str | None:
        """Where it goes on."""
        if self.failures:
            return self.failures[0].node_id
        return next(iter(self._progress.interrupted), self._ready[0].node_id if self._ready else None)

    def interrupted(self, path: str) -> Interrupted | None:
        return self._progress.interrupted.get(path)

    def note_provider_session(self, step: Step) -> None:
        """Right away, so that even after a crash the agent can go on with its conversation."""
        self._note_stand(step, [])
        self._wake()

    def take_mail(self, mail: Iterable[Mail]) -> None:
        """Messages go on record at once, signals when a node waits for them."""
        for each in mail:
            if each.number in self._progress.taken_mail:
                continue
            if each.kind == "message":
                self._note("message", str(each.number), each.value)
            elif each.kind == "signal":
                self._signals[each.number] = each
        _fire(self._waiting)
        self._wake()

    async def wait_for(self, step: Step, number: int, name: str | None, seconds: float | None) -> Any:
        """What a signal of that name brought, once in the life of a session; None: for a time alone."""
        key = f"{step.node_id}{WAIT}{number}"
        stand = self._progress.given.get(key)
        if stand is None:
            stand = {"until": None if seconds is None else self._clock() + seconds}
            await self._kept(key, stand)
        if "until" in stand:
            found = await self._arrival(name, stand["until"])
            stand = {} if found is None else {"number": found.number, "value": found.value}
            await self._kept(key, stand)
        if name is not None and not stand:
            raise TimeoutError(f"no signal {name!r} came in time")
        return stand.get("value")

    async def _kept(self, key: str, stand: dict[str, Any]) -> None:
        self._note("given", key, stand)
        await self._until_recorded()

    async def _arrival(self, name: str | None, until: float | None) -> Mail | None:
        while True:
            for number, mail in self._signals.items():
                if mail.name == name:
                    return self._signals.pop(number)
            self.signal.check()
            left = None if until is None else until - self._clock()
            if left is not None and left <= 0:
                return None
            await self._something(left)

    async def _something(self, seconds: float | None) -> None:
        """Until mail comes, the run is to stop, or this time has passed."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(waiter)
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            self._waiting.discard(waiter)

    def request_pause(self, reason: str | None) -> None:
        self._request_stop(True, reason)

    def failure(self) -> NodeFailedError:
        return node_failed(self.session_id, self.failures)

    # The walk.

    async def to_the_end(self) -> None:
        self.signal.add_listener(self._stop_waiting)
        try:
            self._turn_ends = perf_counter() + _TURN_SECONDS
            self._open(self._root)
            while not await self._turn_taken():
                pass
        except BaseException:
            await self._drop_everything()
            raise
        finally:
            self.signal.remove_listener(self._stop_waiting)

    async def _turn_taken(self) -> bool:
        """One round of starting, recording or waiting; true when there is nothing left to do."""
        try:
            self._start_ready()
            if self._finished:
                await self._commit()
            elif self.unrecorded and self._running:
                await self._append()
            elif self._running:
                await self._wait()
            elif not self._ready or self._is_stopping:
                return True
            if perf_counter() >= self._turn_ends:
                await asyncio.sleep(0)
                self._turn_ends = perf_counter() + _TURN_SECONDS
        except asyncio.CancelledError:
            self._cancel_from_outside()
        return False

    @property
    def _is_stopping(self) -> bool:
        return self.signal.aborted or bool(self.failures) or self.cancelled

    def _start_ready(self) -> None:
        ready, running, at_most = self._ready, self._running, self._root.graph.at_most
        self._replay()
        while ready and len(running) < at_most and not self._is_stopping:
            self._start(ready.popleft())
            self._replay()
            if self._finished and perf_counter() >= self._turn_ends:
                return

    def _start(self, step: Step) -> None:
        self._tell(NodeStarted, step)
        node = step.node
        if node.body is not None and (node.kind == "node" or step.index >= 0):
            self._call(step, node.body)
        elif node.kind == "foreach" and step.index < 0:
            self._open_loop(step)
        elif node.kind == "repeat" and step.index < 0:
            step.loop = Loop([step.received])
            self._enqueue_item(step)
        else:
            self._open_inside(step)

    def _call(self, step: Step, body: Callable[[Step], Any]) -> None:
        try:
            result = copy_context().run(body, step)
        except Exception as error:  # noqa: BLE001 - whatever a node raises is its failure
            self._fail(step, error)
        except FlowInterrupt as interrupt:
            self._stopped(step, interrupt)
        else:
            if type(result) is CoroutineType:
                self._spawn(step, cast("Coroutine[Any, Any, Any]", result))
            elif hasattr(result, "__aiter__"):
                self._spawn(step, self._listen(step, result))
            elif inspect.isawaitable(result):
                self._spawn(step, _awaited(result))
            else:
                self._finish(step, result)

    def _spawn(self, step: Step, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = self._loop.create_task(coroutine)
        self._running[task] = step
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[Any]) -> None:
        step = self._running.pop(task)
        self._wake()
        if task.cancelled():
            if self.cancelled:
                self._stopped(step)
            elif not self._is_aborted:
                self._fail(step, asyncio.CancelledError("it was cancelled"))
            return
        error = task.exception()
        if error is None:
            self._finish(step, task.result())
        elif isinstance(error, FlowInterrupt):
            self._stopped(step, error)
        else:
            self._fail(step, error)

    async def _listen(self, step: Step, stream: AsyncIterator[Any]) -> Any:
        """An agent: what it says is in the store before it says more, and there it can be stopped."""
        if self._progress.queue:
            self._note("handed", step.node_id, None)
            step.look_again()
        try:
            async for message in stream:
                said = self._store.pack(message)[1]
                step.said.append(said)
                self._note_stand(step, [said], heard=step.hear())
                await self._until_recorded()
                self._tell(NodeMessage, step, message=message)
                if not step.has_answered:
                    self.signal.check()
        finally:
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()
        return step.agent_output()

    # Nodes that hold others.

    def _open(self, frame: Frame) -> None:
        for number in frame.graph.roots:
            self._enqueue(Step(self, frame, number))

    def _open_inside(self, step: Step) -> None:
        inner = cast("CompiledFlow", step.frame.graph.inner[step.number])
        try:
            given = self._given(step)
        except Exception as error:  # noqa: BLE001 - the user's function says what goes in
            self._fail(step, error)
            return
        self._open(Frame(inner, given, prefix=f"{step.node_id}/", owner=step))

    def _given(self, step: Step) -> Any:
        if step.index >= 0:
            return step.item
        takes = step.node.takes
        return step.received if takes is None else self._computed(step, lambda: takes(step))

    def _open_loop(self, step: Step) -> None:
        node, over = step.node, step.frame.graph.over[step.number]
        try:
            if over >= 0:
                items = items_of(step.frame.outputs.get(step.frame.graph.names[over]))
            else:
                compute = cast("Items", node.over)
                items = self._computed(step, lambda: items_of(compute(step)))
        except Exception as error:  # noqa: BLE001 - the user's function says what the items are
            self._fail(step, error)
            return
        step.loop = Loop(items)
        if not items:
            self._finish(step, [])
        for _ in range(min(node.at_most, len(items))):
            self._enqueue_item(step)

    def _computed(self, step: Step, compute: Callable[[], Any]) -> Any:
        """Once in the life of a session; kept, since a second time it might come out otherwise."""
        path = step.node_id
        if path in self._progress.given:
            return self._progress.given[path]
        packed, given = self._store.pack(compute())
        self._note("given", path, given, packed)
        return given

    def _enqueue_item(self, owner: Step) -> None:
        loop = owner.loop
        if loop.next < len(loop.items):
            self._enqueue(Step(self, owner.frame, owner.number, loop, loop.next))
            loop.next += 1

    def _enqueue(self, step: Step) -> None:
        if self._recorded and step.node_id in self._recorded:
            self._on_record.append(step)
        else:
            self._ready.append(step)

    # How a step ends.

    def _finish(self, step: Step, value: Any) -> None:
        try:
            packed, seen = self._store.pack(value)
        except InvalidInputError as error:
            self._fail(step, error)
            return
        taken, undecided = None, False
        if conditions := self._conditions(step):
            taken = self._decide(step, seen, conditions)
            undecided = taken is None
        self._record(step, packed, taken)
        self._finished.append(_Finished(step, seen, taken, undecided))

    def _record(self, step: Step, packed: Any, taken: tuple[str, ...] | None) -> None:
        self._progress.seq += 1
        self.unrecorded.append(Record(self._progress.seq, "completed", step.node_id, packed, taken))

    def _conditions(self, step: Step) -> list[tuple[str, Condition]]:
        """What is asked of its output: by the edges that leave it, or by the loop whether it was the last."""
        graph = step.frame.graph
        if step.index >= 0:
            until = step.node.until
            return [] if until is None else [("until", until)]
        if not graph.decides[step.number]:
            return []
        return [(graph.names[target], when) for target, when in graph.out[step.number] if when is not None]

    def _decide(
        self, step: Step, output: Any, conditions: list[tuple[str, Condition]], known: tuple[str, ...] = ()
    ) -> tuple[str, ...] | None:
        """Those that hold, with a `#` those that do not; None where one failed. The `known` are not asked."""
        taken = list(known)
        for name, when in conditions:
            if name in known or f"#{name}" in known:
                continue
            try:
                taken.append(name if when(output) else f"#{name}")
            except Exception as error:  # noqa: BLE001 - the user's condition
                edge = f"{step.node_id} → {name}"
                self._fail(step, NodeFailedError(f"the condition on the edge {edge} failed: {told(error)}"))
                return None
        return tuple(taken)

    async def _commit(self) -> None:
        finished, self._finished = self._finished, []
        await self._append()
        for each in finished:
            self._tell(NodeCompleted, each.step, output=each.value)
            if self._progress.interrupted:
                self._progress.interrupted.pop(each.step.node_id, None)
            if not each.undecided:
                self._complete(each.step, each.value, each.taken)

    async def _append(self) -> None:
        records, self.unrecorded = self.unrecorded, []
        waiting, self._awaiting_record = self._awaiting_record, []
        pending = self._store.append(self.session_id, self._claim, records)
        if pending is not None:
            if await surely(pending):
                self._cancel_from_outside()
            pending.result()
        _fire(waiting)

    def _until_recorded(self) -> asyncio.Future[None]:
        """Done when all that is noted by now is in the store."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._awaiting_record.append(waiter)
        self._wake()
        return waiter

    def _replay(self) -> None:
        """Complete what is on record, and what becomes ready by that and is on record, too."""
        while self._on_record:
            step = self._on_record.popleft()
            value, taken = self._recorded[step.node_id]
            conditions = self._conditions(step)
            if conditions and (taken is None or self._has_changed):
                # One failed the last time, or the edge was not there.
                known = () if taken is None else taken
                taken = self._decide(step, value, conditions, known)
                if taken is None:
                    continue
                if taken != known:
                    self._record(step, self._store.pack(value)[0], taken)
            self._complete(step, value, taken)

    def _complete(self, step: Step, value: Any, taken: tuple[str, ...] | None) -> None:
        if step.index >= 0:
            if step.node.kind == "repeat":
                self._complete_round(step, value, is_last="until" in (taken or ()))
            else:
                self._complete_item(step, value)
            return
        frame = step.frame
        frame.outputs[frame.graph.names[step.number]] = value
        self._follow_edges(frame, step.number, taken)

    def _complete_item(self, step: Step, value: Any) -> None:
        loop = step.loop
        loop.outputs[step.index] = value
        loop.left -= 1
        owner = Step(self, step.frame, step.number, loop)
        if loop.left == 0:
            self._finish(owner, loop.outputs)
        else:
            self._enqueue_item(owner)

    def _complete_round(self, step: Step, value: Any, *, is_last: bool) -> None:
        node, loop = step.node, step.loop
        owner = Step(self, step.frame, step.number, loop)
        allowed = self._progress.given.get(owner.node_id, node.at_most)
        if is_last:
            self._finish(owner, value)
        elif len(loop.items) >= allowed:
            self._note("given", owner.node_id, allowed + node.at_most)
            rounds = f"{len(loop.items)} rounds"
            self._fail(owner, NodeFailedError(f"not done after {rounds}", hint=_MORE_ROUNDS))
        else:
            loop.items.append(value)
            self._enqueue_item(owner)

    def _follow_edges(self, frame: Frame, number: int, taken: tuple[str, ...] | None) -> None:
        ready, skipped = frame.follow(number, taken)
        for target in skipped:
            self._tell(NodeSkipped, Step(self, frame, target))
        for target in ready:
            self._enqueue(Step(self, frame, target))
        if frame.left == 0 and frame.owner is not None:
            self._finish(frame.owner, frame.output())

    def _fail(self, step: Step, error: BaseException) -> None:
        self.failures.append(NodeFailure(step.node_id, error))
        self._tell(NodeFailed, step, error=told(error))

    def _stopped(self, step: Step, interrupt: FlowInterrupt | None = None) -> None:
        """It unwound in its middle. Where nobody had asked for that, it asks for it itself."""
        if interrupt is not None and not self.signal.aborted:
            self._request_stop(isinstance(interrupt, FlowPaused), interrupt.reason)
        self._note_stand(step, [], heard=step.hear())
        self._tell(NodeInterrupted, step)

    def _note_stand(self, step: Step, said: list[Any], heard: int = 0) -> None:
        stand = {"partial": said, "provider_session": step.provider_session, "heard": heard}
        self._note("interrupted", step.node_id, stand)

    def _note(self, kind: RecordKind, path: str, value: Any, packed: Any = None) -> None:
        """A record that is not an output; it goes with the next commit."""
        record = Record(self._progress.seq + 1, kind, path, value)
        take_in(self._progress, record)
        packed = self._store.pack(value)[0] if packed is None else packed
        self.unrecorded.append(record._replace(value=packed))

    # Stopping.

    @property
    def _is_aborted(self) -> bool:
        return self.signal.aborted and not self.signal.resumable

    def _stop_waiting(self) -> None:
        _fire(self._waiting)
        if self._is_aborted:
            self._cancel_running()

    def _cancel_from_outside(self) -> None:
        self.cancelled = True
        self._cancel_running()

    def _cancel_running(self) -> None:
        for task in self._running:
            task.cancel()

    async def _drop_everything(self) -> None:
        """Something else went wrong (the store, a KeyboardInterrupt): leave no task behind."""
        self._cancel_running()
        while self._running:
            try:
                await asyncio.wait(self._running)
            except asyncio.CancelledError:
                self._cancel_from_outside()

    async def _wait(self) -> None:
        self._waker = self._loop.create_future()
        try:
            await self._waker
        finally:
            self._waker = None

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def _tell(self, event: type[NodeEvent], step: Step, **details: Any) -> None:
        if self._bus.is_heard:
            self._bus.tell(event, self.session_id, node_id=step.node_id, **details)
        else:
            self._bus.count()


def _fire(waiting: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiting:
        if not waiter.done():
            waiter.set_result(None)


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


# ── events ─────────────────────────────────────────────────────────────────────────────────────────

# To whoever listens. A slow listener loses events and is told so; nobody waits for it.


class Bus:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seq = 0
        self._subscriptions: dict[Subscription, None] = {}

    @property
    def is_heard(self) -> bool:
        return bool(self._subscriptions)

    def count(self) -> None:
        """An event that nobody hears has a number all the same: numbers are those of the hub."""
        self._seq += 1

    def tell(self, event: type[FlowEvent], session_id: str, **details: Any) -> None:
        self._seq += 1
        if self._subscriptions:
            told = event(self._seq, session_id, self._clock(), **details)
            for subscription in tuple(self._subscriptions):
                subscription.offer(told)

    def subscribe(self, pattern: str, session_id: str | None, limit: int) -> Subscription:
        if limit < 1:
            raise InvalidInputError(
                f"a subscription must hold at least one event, not {limit}", hint="limit=1000"
            )
        return Subscription(pattern, session_id, limit, self._subscriptions)

    def close(self) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.close()


class Subscription:
    """Events whose type fits a pattern such as `node:*`, in order.

        with hub.subscribe("node:*") as events:
            async for event in events: ...

    Holds `limit` events that were not read yet. What comes while it is full is dropped, and
    in its place stands one `EventsDropped`. Listening begins right away and ends with `close`.
    """

    def __init__(
        self, pattern: str, session_id: str | None, limit: int, listeners: dict[Subscription, None]
    ) -> None:
        self._fits: Callable[[str], object] = re.compile(translate(pattern)).match
        self._wanted: dict[str, bool] = {}
        self._session_id = session_id
        self._limit = limit
        self._events: deque[FlowEvent] = deque()
        self._missed: EventsDropped | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._listeners = listeners
        self._closed = False
        listeners[self] = None

    def offer(self, event: FlowEvent) -> None:
        if not self._wants(event):
            return
        if len(self._events) >= self._limit:
            self._miss(event)
            return
        if self._missed is not None:
            self._events.append(self._missed)
            self._missed = None
        self._events.append(event)
        self._wake()

    def close(self) -> None:
        """No more events; those it holds can still be read."""
        self._closed = True
        self._listeners.pop(self, None)
        self._wake()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FlowEvent:
        while True:
            if self._events:
                return self._events.popleft()
            if self._missed is not None:
                missed, self._missed = self._missed, None
                return missed
            if self._closed:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def _wants(self, event: FlowEvent) -> bool:
        if self._session_id is not None and event.session_id != self._session_id:
            return False
        wanted = self._wanted.get(event.type)
        if wanted is None:
            wanted = self._wanted[event.type] = self._fits(event.type) is not None
        return wanted

    def _miss(self, event: FlowEvent) -> None:
        before = self._missed
        self._missed = EventsDropped(
            before.seq if before else event.seq,
            event.session_id,
            before.at if before else event.at,
            (before.count if before else 0) + 1,
            event.seq,
        )

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
