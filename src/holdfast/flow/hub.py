"""The hub runs flows, and is the one place that pauses, aborts and resumes them."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import FrameType
from typing import Any, Self, TypeVar, cast

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.errors import (
    CannotDoError,
    FlowChangedError,
    InvalidInputError,
    NotFoundError,
    SessionAlreadyRunningError,
    SessionNotFoundError,
)
from holdfast.base.ids import new_id as make_id
from holdfast.base.process import ProcessIdentity, identify, is_alive, machine
from holdfast.base.redact import redact
from holdfast.flow.executor import Bus, Run, Subscription
from holdfast.flow.graph import CompiledFlow, Flow
from holdfast.flow.step import AbortController, AbortSignal
from holdfast.flow.store import FlowStore, MemoryFlowStore, surely
from holdfast.model.flow import (
    RECORD_VERSION,
    WAIT,
    Claimed,
    FlowPausedEvent,
    FlowResumed,
    FlowSession,
    FlowStatus,
    Mail,
    MailKind,
    Progress,
    Record,
    Runner,
    SessionAborted,
    SessionEnded,
    SessionStarted,
    SessionState,
    Settlement,
    check_open,
    has_mail,
    progress,
    session_not_found,
    settled,
    state_of,
)

# ── sessions ──────────────────────────────────────────────────────────────────────────────────────

# A session as its hub holds it, and who may take one over.


@dataclass(frozen=True)
class SessionContext:
    """One stretch of a run, from its start or resume to where it stops. The hub owns the controller."""

    session_id: str
    parent_id: str | None
    created_at: datetime
    abort_controller: AbortController = field(default_factory=AbortController, repr=False)


@dataclass(eq=False)
class HeldSession:
    """What a hub knows of a session that it runs, or that was paused under it."""

    context: SessionContext
    graph: CompiledFlow
    under_way: asyncio.Future[None]
    """Done when the run has come to rest. A paused session may still have nodes finishing their step."""
    status: FlowStatus = "running"
    claim: int = 1
    run: Run | None = None
    mail_read: int = 0
    """The number of the last mail that it was given."""
    resuming: bool = False
    has_children: bool = False


def admit(session: FlowSession, runner: Runner, *, takeover: bool) -> None:
    """Raise unless this runner may have the session."""
    check_open(session)
    holder = session.runner
    if session.status != "running" or holder is None or takeover or holder["token"] == runner["token"]:
        return
    if holder["host"] != runner["host"]:
        raise SessionAlreadyRunningError(
            f"session {session.id} is running in process {holder['process']['pid']} on {holder['host']}",
            hint="if that process is gone: resume(…, takeover=True)",
        )
    if is_alive(holder["process"]):
        raise SessionAlreadyRunningError(
            f"session {session.id} is running in process {holder['process']['pid']}",
            hint="pause it there, wait for it to end, or take it over: resume(…, takeover=True)",
        )


# ── the hub ───────────────────────────────────────────────────────────────────────────────────────

# The hub runs flows, and is the one place that pauses, aborts and resumes them.
#
# It owns the contexts of its sessions; others get to see signals and events. A session
# that was paused can be resumed by any hub on the same store that knows the flow: this
# one, or one in another process. Call a hub from the thread of its event loop.

log = logging.getLogger("holdfast.flow")

T = TypeVar("T")

MAIL_EVERY = 0.25
"""Seconds between two looks at what other processes sent to the sessions that run here."""

_current: ContextVar[SessionContext | None] = ContextVar("holdfast_session", default=None)


class Hub:
    """`flows` are those that sessions of other processes may be resumed with."""

    def __init__(
        self,
        *flows: Flow,
        store: FlowStore | None = None,
        clock: Clock = system_clock,
        mail_every: float = MAIL_EVERY,
    ) -> None:
        self.store: FlowStore = store or MemoryFlowStore()
        self._clock = clock
        self._bus = Bus(clock)
        self._flows: dict[str, CompiledFlow] = {}
        self._sessions: dict[str, HeldSession] = {}
        self._running: dict[str, HeldSession] = {}
        """Of those: a pause looks at no others."""
        self._last_ended: FlowStatus = "idle"
        self._everything = AbortController()
        self._unwatched: set[asyncio.Future[Any]] = set()
        self._mail_every = mail_every
        self._next_look: asyncio.TimerHandle | None = None
        self._token = make_id("hub", clock())
        self._host = machine()
        self._me: ProcessIdentity = {"pid": 0, "started": None}
        for flow in flows:
            self.register(flow)

    def register(self, flow: Flow) -> None:
        """Know this flow, so that its sessions can be resumed here. `run` does so by itself."""
        self._flows[flow.name] = flow.compile()

    # Running.

    async def run(
        self,
        flow: Flow,
        input: Any = None,  # noqa: A002 - what everybody calls it
        *,
        session_id: str | None = None,
        parent_id: str | None = None,
    ) -> SessionState:
        """Run a flow to its end, or to where it is paused or aborted: see `status` of what comes back.

        A node that fails raises `NodeFailedError`; the session is paused then, and `resume` tries again.
        """
        held, session, cancelled = await self._created(flow, input, session_id, parent_id)
        return await self._go(held, session, Progress(), cancelled=cancelled)

    async def start(
        self,
        flow: Flow,
        input: Any = None,  # noqa: A002 - as above
        *,
        session_id: str | None = None,
        parent_id: str | None = None,
    ) -> asyncio.Task[SessionState]:
        """As `run`, but returns once the session is stored and can be reached; await the task for its end."""
        held, session, cancelled = await self._created(flow, input, session_id, parent_id)
        return asyncio.create_task(self._go(held, session, Progress(), cancelled=cancelled))

    async def _created(
        self, flow: Flow, given: Any, session_id: str | None, parent_id: str | None
    ) -> tuple[HeldSession, FlowSession, bool]:
        """In the store and in our books; whether we were cancelled meanwhile."""
        self.register(flow)
        graph = self._flows[flow.name]
        packed, seen = self.store.pack(given)
        now = self._now()
        session = FlowSession(
            id=session_id or make_id("flow", self._clock()),
            flow=graph.name,
            fingerprint=graph.fingerprint,
            status="running",
            created_at=now,
            updated_at=now,
            input=packed,
            parent_id=parent_id,
            runner=self._runner(),
        )
        if session.id in self._sessions:
            raise _running_here(session.id)
        held = self._hold(session, graph)
        try:
            _, cancelled = await _surely_done(self.store.create(session))
        except BaseException:
            self._let_go(held, "idle")
            held.under_way.set_result(None)
            raise
        self._bus.tell(SessionStarted, session.id, flow=graph.name)
        return held, replace(session, input=seen), cancelled

    async def resume(self, session_id: str, message: str, *, takeover: bool = False) -> SessionState:
        """Go on with a paused session, or one whose process was killed. `message` is for its agents.

        `takeover` takes it even from a runner of another machine, which cannot be asked whether it lives.
        """
        if not message.strip():
            raise InvalidInputError(
                "resume requires a message", hint='pass what the agent should know, or just "go on"'
            )
        before = self._sessions.get(session_id)
        if before is not None:
            await self._come_to_rest(before)
        claimed, cancelled = await self._claim(session_id, message, takeover, before)
        session, found = claimed.session, progress(claimed.records)
        graph = self._flows[session.flow]
        if before is not None:
            self._let_go(before, "idle")
        held = self._hold(session, graph)
        heard = {said: None for node in found.interrupted.values() for said in node.messages}
        self._bus.tell(FlowResumed, session_id, messages=(*heard, *found.queue))
        return await self._go(held, session, found, cancelled=cancelled, mail=claimed.mail)

    async def fork(self, session_id: str, node_id: str, *, new_id: str | None = None) -> SessionState:
        """A copy of a session, paused before this node: it and all after it run again there.

        What other nodes put out is kept; those that were stopped in their middle start afresh.
        """
        source = await _done(self.store.load(session_id))
        graph = self._check_flow(source.session, source.records)
        if not graph.has_place(node_id):
            raise NotFoundError(
                f"flow {graph.name!r} has no node {node_id!r}", hint=f"its nodes are {', '.join(graph.names)}"
            )
        now = self._now()
        session = replace(
            source.session,
            id=new_id or make_id("flow", self._clock()),
            status="paused",
            input=self.store.pack(source.session.input)[0],
            parent_id=None,
            created_at=now,
            updated_at=now,
            paused_at=now,
            node_id=node_id,
            reason=f"forked from {session_id} at {node_id}",
            claim=1,
            runner=None,
        )
        kept = [
            record._replace(seq=seq, value=self.store.pack(record.value)[0])
            for seq, record in enumerate(_kept(source.records, graph, node_id), start=1)
        ]
        await _surely_done(self.store.create(session, kept))
        return await self.state(session.id)

    async def _come_to_rest(self, held: HeldSession) -> None:
        """A session that is paused may have nodes finishing their step; one resume waits for them."""
        if held.status == "running" or held.resuming:
            raise _running_here(held.context.session_id)
        held.resuming = True
        try:
            await asyncio.wait([held.under_way])
        except BaseException:
            held.resuming = False
            raise

    async def _claim(
        self, session_id: str, message: str, takeover: bool, before: HeldSession | None
    ) -> tuple[Claimed, bool]:
        runner = self._runner()

        def check(session: FlowSession, records: Sequence[Record]) -> None:
            admit(session, runner, takeover=takeover)
            self._check_flow(session, records)

        try:
            return await _surely_done(self.store.claim(session_id, runner, self._now(), check, message))
        except SessionNotFoundError:
            if before is not None:  # another process has brought it to its end, or forgotten it
                self._let_go(before, "idle")
            raise
        finally:
            if before is not None:
                before.resuming = False

    def _check_flow(self, session: FlowSession, records: Sequence[Record]) -> CompiledFlow:
        """The flow may have gained nodes since, as long as all that is on record has its place in it."""
        graph = self._flows.get(session.flow)
        if graph is None:
            raise NotFoundError(
                f"session {session.id} is a run of flow {session.flow!r}, which this hub does not know",
                hint="register the flow with the hub: Hub(flow, …) or hub.register(flow)",
            )
        if graph.fingerprint == session.fingerprint:
            return graph
        if session.record_version < RECORD_VERSION:
            raise FlowChangedError(
                f"flow {session.flow!r} does not match the one session {session.id} "
                "ran: nodes or edges differ"
            )
        for record in records:
            if record.kind != "message" and not graph.has_place(record.path.partition(WAIT)[0]):
                raise FlowChangedError(
                    f"flow {session.flow!r} has no place for {record.path!r}, which session {session.id} ran"
                )
        return graph

    async def _go(
        self,
        held: HeldSession,
        session: FlowSession,
        found: Progress,
        *,
        cancelled: bool,
        mail: Sequence[Mail] = (),
    ) -> SessionState:
        held.claim = session.claim
        context = held.context
        signal = context.abort_controller.signal

        def request_stop(resumable: bool, reason: str | None) -> None:
            self._stop(held, resumable=resumable, reason=reason)

        run = Run(held.graph, session, found, self.store, signal, self._bus, request_stop, self._clock)
        run.cancelled = cancelled
        held.run = run
        run.take_mail(mail)
        held.mail_read = len(mail)
        self._look_for_mail()
        token = _current.set(context)
        try:
            await run.to_the_end()
            settlement = self._settlement(run, signal)
            await self._settle(run, held, settlement)
        except BaseException:
            self._let_go(held, "idle")  # the store refused it: what is stored counts
            raise
        finally:
            _current.reset(token)
            held.under_way.set_result(None)
        if run.cancelled:
            raise asyncio.CancelledError
        if run.failures and settlement.status == "paused":
            raise run.failure() from run.failures[0].error
        state = state_of(settled(session, settlement), run.progress)
        return state.model_copy(update={"outputs": run.outputs})

    def _settlement(self, run: Run, signal: AbortSignal) -> Settlement:
        now = self._now()
        if signal.aborted and not signal.resumable:
            return Settlement("aborted", now, None, signal.reason)
        if run.cancelled:
            return Settlement("paused", now, run.node_id, "cancelled")
        if run.failures:
            return Settlement("paused", now, run.node_id, redact(run.failure().message)[0])
        if signal.aborted:
            return Settlement("paused", now, run.node_id, signal.reason)
        return Settlement("complete", now)

    async def _settle(self, run: Run, held: HeldSession, settlement: Settlement) -> None:
        """Write how it ended; told to the store even if we are cancelled meanwhile."""
        session_id = held.context.session_id
        pending = self.store.settle(session_id, held.claim, run.unrecorded, settlement)
        if pending is not None:
            run.cancelled |= await surely(pending)
            pending.result()
        signal = held.context.abort_controller.signal
        if settlement.status == "paused":
            if signal.aborted and not signal.resumable:  # aborted while that was written
                self._settle_aborted(held, signal.reason)
            elif held.status == "running":  # a failure or a cancellation: nobody has told yet
                self._hold_paused(held, settlement.reason)
        elif settlement.status == "complete":
            self._let_go(held, "complete")
            self._bus.tell(SessionEnded, session_id)

    # From outside: a session of any process on the same store.

    async def send(self, session_id: str, name: str, *values: Any) -> None:
        """A signal for the next node that waits for this name, one for each value; kept until then."""
        for value in values or (None,):
            await self._post(session_id, "signal", name, value)

    async def say(self, session_id: str, message: str) -> None:
        """A message for the next agent that starts, or goes on after a pause."""
        if not message.strip():
            raise InvalidInputError("the message is empty", hint="say what the agent should know")
        await self._post(session_id, "message", "", message)

    async def stop(self, session_id: str, *, resumable: bool = False, reason: str | None = None) -> None:
        """Abort a session, or with `resumable` pause it. One that another process runs is asked to stop."""
        held = self._running.get(session_id)
        if held is not None:
            self._stop_with_children(held, resumable, reason)
            return
        found = await _done(self.store.load(session_id))
        check_open(found.session)
        if resumable and found.session.status == "paused":
            return
        runner = self._runner()
        try:
            claimed, _ = await _surely_done(
                self.store.claim(
                    session_id,
                    runner,
                    self._now(),
                    lambda session, _: admit(session, runner, takeover=False),
                    None,
                )
            )
        except SessionAlreadyRunningError:
            await self._post(session_id, "pause" if resumable else "abort", "", reason)
            return
        end = Settlement("paused" if resumable else "aborted", self._now(), None, reason)
        await _surely_done(self.store.settle(session_id, claimed.session.claim, (), end))
        if (rested := self._sessions.get(session_id)) is not None and not resumable:
            self._let_go(rested, "aborted")
            self._bus.tell(SessionAborted, session_id, reason=reason)

    async def _post(self, session_id: str, kind: MailKind, name: str, value: Any) -> None:
        await _surely_done(self.store.post(session_id, kind, name, self.store.pack(value)[0]))
        self._look_for_mail(at_once=True)

    def _look_for_mail(self, *, at_once: bool = False) -> None:
        if self._next_look is not None:
            if not at_once:
                return
            self._next_look.cancel()
        loop = asyncio.get_running_loop()
        self._next_look = loop.call_later(0 if at_once else self._mail_every, self._ask_for_mail)

    def _ask_for_mail(self) -> None:
        self._next_look = None
        since = {name: held.mail_read for name, held in self._running.items() if held.run is not None}
        if not since:
            return
        found = self.store.mail(since)
        if isinstance(found, asyncio.Future):
            found.add_done_callback(self._mail_came)
        else:
            self._deliver(found)

    def _mail_came(self, pending: asyncio.Future[list[Mail]]) -> None:
        if pending.cancelled():
            return
        if (error := pending.exception()) is not None:
            log.warning("could not look for messages: %s", error)
        self._deliver([] if error else pending.result())

    def _deliver(self, mail: Sequence[Mail]) -> None:
        for each in mail:
            held = self._running.get(each.session_id)
            if held is None or held.run is None or each.number <= held.mail_read:
                continue
            held.mail_read = each.number
            if each.kind in ("pause", "abort"):
                self._stop_with_children(held, each.kind == "pause", each.value)
            else:
                held.run.take_mail([each])
        if self._running:
            self._look_for_mail()

    # Stopping.

    def pause(self, reason: str | None = None, *, session_id: str | None = None) -> None:
        """Stop at the next boundary, to be resumed: one session, or all that run here."""
        self.abort(True, reason, session_id=session_id)

    def abort(
        self, resumable: bool = False, reason: str | None = None, *, session_id: str | None = None
    ) -> None:
        """Stop one session or all of this hub; for good, unless `resumable`."""
        if session_id is not None:
            self._stop_with_children(self._find(session_id), resumable, reason)
            return
        for held in tuple((self._running if resumable else self._sessions).values()):
            self._stop(held, resumable=resumable, reason=reason)
        self._everything.abort(resumable=resumable, reason=reason)

    def _stop_with_children(self, held: HeldSession, resumable: bool, reason: str | None) -> None:
        self._stop(held, resumable=resumable, reason=reason)
        for other in tuple(self._sessions.values()) if held.has_children else ():
            if other.context.parent_id == held.context.session_id:
                self._stop_with_children(other, resumable, reason)

    def _stop(self, held: HeldSession, *, resumable: bool, reason: str | None) -> None:
        session_id = held.context.session_id
        if resumable and held.status != "running":
            return
        held.context.abort_controller.abort(resumable=resumable, reason=reason)
        if resumable:
            self._hold_paused(held, reason)
            return
        self._let_go(held, "aborted")
        self._bus.tell(SessionAborted, session_id, reason=reason)
        if held.under_way.done():
            self._settle_aborted(held, reason)
        else:
            self._watch(held.under_way)

    def _settle_aborted(self, held: HeldSession, reason: str | None) -> None:
        """Of a session that no run is there to settle; `aclose` waits for it."""
        aborted = Settlement("aborted", self._now(), None, reason)
        pending = self.store.settle(held.context.session_id, held.claim, (), aborted)
        if pending is not None:
            self._watch(pending)

    def _watch(self, pending: asyncio.Future[Any]) -> None:
        self._unwatched.add(pending)
        pending.add_done_callback(self._note_end)

    def _note_end(self, pending: asyncio.Future[Any]) -> None:
        self._unwatched.discard(pending)
        if not pending.cancelled() and (error := pending.exception()) is not None:
            log.warning("could not record an abort: %s", error)

    # Looking.

    @property
    def status(self) -> FlowStatus:
        """Running if a session is, else paused if one is; else how the last one ended."""
        if self._running:
            return "running"
        return "paused" if self._sessions else self._last_ended

    def status_of(self, session_id: str) -> FlowStatus:
        return self._find(session_id).status

    def context(self, session_id: str) -> SessionContext:
        return self._find(session_id).context

    def get_abort_signal(self, session_id: str | None = None) -> AbortSignal:
        """Of this session. Without an id: of the one whose node asks, of the only one, or of the hub."""
        if session_id is not None:
            return self._find(session_id).context.abort_controller.signal
        current = _current.get()
        if current is not None and current.session_id in self._sessions:
            return current.abort_controller.signal
        if len(self._sessions) == 1:
            (held,) = self._sessions.values()
            return held.context.abort_controller.signal
        return self._everything.signal

    def subscribe(
        self, pattern: str = "*", *, session_id: str | None = None, limit: int = 1000
    ) -> Subscription:
        """Events from now on whose type fits, such as `node:*`; at most `limit` wait to be read."""
        return self._bus.subscribe(pattern, session_id, limit)

    async def state(self, session_id: str) -> SessionState:
        """Where a session stands, as it is stored."""
        found = await _done(self.store.load(session_id))
        return state_of(found.session, progress(found.records))

    async def sessions(
        self, statuses: Collection[FlowStatus] | None = None, limit: int = 100
    ) -> list[FlowSession]:
        """What the store holds, most recently changed first."""
        return await _done(self.store.sessions(statuses, limit))

    async def forget(self, session_id: str) -> None:
        """Remove a session that does not run from the store."""
        held = self._sessions.get(session_id)
        if held is not None and held.status == "running":
            raise _running_here(session_id)
        await _done(self.store.forget(session_id))
        if held is not None:
            self._let_go(held, "idle")

    async def aclose(self) -> None:
        """Pause what runs, wait until it has come to rest, and end all subscriptions."""
        self.pause("the hub was closed")
        if self._next_look is not None:
            self._next_look.cancel()
        resting = [held.under_way for held in self._sessions.values()]
        if waiting := [*resting, *self._unwatched]:
            await asyncio.wait(waiting)
        self._bus.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # The books: every change of what is held goes through these.

    def _hold(self, session: FlowSession, graph: CompiledFlow) -> HeldSession:
        context = SessionContext(session.id, session.parent_id, session.created_at)
        under_way: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        held = HeldSession(context, graph, under_way, claim=session.claim)
        self._sessions[session.id] = self._running[session.id] = held
        if self._everything.signal.aborted:
            self._everything = AbortController()
        if session.parent_id in self._sessions:
            self._sessions[session.parent_id].has_children = True
        return held

    def _hold_paused(self, held: HeldSession, reason: str | None) -> None:
        held.status = "paused"
        self._running.pop(held.context.session_id, None)
        self._bus.tell(FlowPausedEvent, held.context.session_id, reason=reason)

    def _let_go(self, held: HeldSession, status: FlowStatus) -> None:
        """It has ended, or is about to be held anew (`idle`)."""
        if self._sessions.get(held.context.session_id) is held:
            del self._sessions[held.context.session_id]
            self._running.pop(held.context.session_id, None)
        held.status = status
        if status != "idle":
            self._last_ended = status

    def _find(self, session_id: str) -> HeldSession:
        try:
            return self._sessions[session_id]
        except KeyError:
            raise session_not_found(session_id) from None

    def _runner(self) -> Runner:
        if self._me["pid"] != os.getpid():  # the first time, and after a fork
            self._me = identify(os.getpid())
        return {"host": self._host, "process": self._me, "token": self._token}

    def _now(self) -> datetime:
        return to_datetime(self._clock())


def _kept(records: Sequence[Record], graph: CompiledFlow, node_id: str) -> list[Record]:
    """What stays on record where this node is run again: outputs and what was computed for others."""
    void, around = graph.redone_from(node_id)
    below = tuple(f"{path}{sign}" for path in void for sign in "/#")
    return [
        record._replace(value={"value": record.value["value"]}) if has_mail(record) else record
        for record in records
        if record.kind in ("completed", "given")
        and not (record.kind == "completed" and record.path in around)
        and record.path not in void
        and not record.path.startswith(below)
    ]


def _running_here(session_id: str) -> SessionAlreadyRunningError:
    return SessionAlreadyRunningError(f"session {session_id} is running in this hub", hint="pause it first")


async def _surely_done(result: asyncio.Future[T] | T) -> tuple[T, bool]:
    """What the store did, and whether we were cancelled meanwhile: it is done all the same."""
    if not isinstance(result, asyncio.Future):
        return result, False
    pending = cast("asyncio.Future[T]", result)
    cancelled = await surely(pending)
    return pending.result(), cancelled


async def _done(result: asyncio.Future[T] | T) -> T:
    if isinstance(result, asyncio.Future):
        return await cast("asyncio.Future[T]", result)
    return result


# ── at a terminal ──────────────────────────────────────────────────────────────────────────────────

# Ctrl-C for people who run flows there: once pauses, twice aborts, three times is Python's own.


@contextmanager
def pause_on_interrupt(
    hub: Hub, *, tell: Callable[[str], object] | None = None, reason: str = "Ctrl-C"
) -> Generator[None]:
    """Within this, Ctrl-C pauses all sessions of the hub, and a second one aborts them.

    `tell` is given a line for the person at the terminal. A third Ctrl-C raises
    KeyboardInterrupt right where the program is, should a node not let go.
    """
    if threading.current_thread() is not threading.main_thread():
        raise CannotDoError(
            "Ctrl-C is delivered to the main thread, but this is another thread",
            hint="run the hub's event loop in the main thread",
        )
    loop = asyncio.get_running_loop()
    pressed = 0

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed += 1
        if pressed > 2:
            signal.default_int_handler(number, frame)
        # On the loop's own time: here we may be in the midst of anything.
        loop.call_soon_threadsafe(_pause if pressed == 1 else _abort, hub, reason, tell)

    before: Any = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _pause(hub: Hub, reason: str, tell: Callable[[str], object] | None) -> None:
    if tell is not None:
        tell("pausing after the current step; Ctrl-C again aborts")
    hub.pause(reason)


def _abort(hub: Hub, reason: str, tell: Callable[[str], object] | None) -> None:
    if tell is not None:
        tell("aborting")
    hub.abort(reason=f"{reason} twice")
