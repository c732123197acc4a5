"""A run of a flow: its states, what is recorded of it, what they add up to, and the events it sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple, TypedDict, cast

from pydantic import AwareDatetime, ConfigDict, Field
from pydantic_core import PydanticSerializationError, to_json

from holdfast.base.errors import (
    ConflictError,
    IllegalTransitionError,
    InvalidInputError,
    NewerSchemaError,
    SessionAlreadyRunningError,
    SessionNotFoundError,
)
from holdfast.base.process import ProcessIdentity
from holdfast.model.base import Value

FlowStatus = Literal["idle", "running", "paused", "complete", "aborted"]

FLOW_TRANSITIONS: Mapping[FlowStatus, frozenset[FlowStatus]] = {
    "idle": frozenset({"running"}),
    "running": frozenset(
        {"running", "paused", "complete", "aborted"}
    ),  # running: taken over from a dead runner
    "paused": frozenset({"running", "aborted"}),
    "complete": frozenset(),
    "aborted": frozenset(),
}

ENDED: frozenset[FlowStatus] = frozenset({"complete", "aborted"})

RECORD_VERSION = 2
"""Of the records below; a run written by a newer version is refused, not guessed at.

1  as below, without what is sent to a run; of conditional edges only those that were taken
2  mail; conditional edges that were not taken, too, so that edges added later are known
"""

RecordKind = Literal["completed", "given", "interrupted", "handed", "message"]


class Record(NamedTuple):
    """One line of a run. Only ever added; `seq` counts within the run.

    completed    the node's output; `taken`: targets of its conditional edges that were taken, and after a `#`
                 those of edges that were not
    given        what a `foreach` goes through or a flow inside starts from, where that was computed; or,
                 after `#wait.`, what a node waits or has waited for
    interrupted  a node in its middle: what it said since the last such record, the provider's session, how
                 many of the messages that wait for it it has heard (or whether it has heard all)
    handed       the waiting messages went to this node
    message      somebody said something, on resume or in a mail whose number is the path
    """

    seq: int
    kind: RecordKind
    path: str
    value: Any
    taken: tuple[str, ...] | None = None


MailKind = Literal["signal", "message", "pause", "abort"]
WAIT = "#wait."
"""Between a node's path and the number of a wait in it."""


class Mail(NamedTuple):
    """Sent to a run by anybody. It is kept; what the run has taken of it is in its records."""

    session_id: str
    number: int
    """Counts within the run."""
    kind: MailKind
    name: str
    value: Any


class Runner(TypedDict):
    """Who runs a session. `token` tells apart two hubs of one process."""

    host: str
    process: ProcessIdentity
    token: str


class Interrupted(Value):
    """A node that was stopped in its middle, as it finds itself when it goes on."""

    partial: tuple[Any, ...] = Field(default=(), description="All messages it has yielded")
    provider_session: str | None = Field(default=None, description="The provider's id of the conversation")
    messages: tuple[str, ...] = Field(default=(), description="User messages not yet delivered to it")


class SessionState(Value):
    """Where a run stands."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    session_id: str
    flow: str
    status: FlowStatus
    parent_id: str | None = None
    created_at: AwareDatetime
    node_id: str | None = Field(default=None, description="Path of the node where it continues")
    input: Any = None
    outputs: dict[str, Any] = Field(default_factory=dict, description="Outputs of completed nodes, by name")
    message_queue: tuple[str, ...] = Field(default=(), description="Messages not yet consumed by a node")
    paused_at: AwareDatetime | None = None
    reason: str | None = None
    interrupted: dict[str, Interrupted] = Field(default_factory=dict[str, Interrupted])


@dataclass(frozen=True)
class FlowSession:
    """The head of a run; everything that grows is in its records."""

    id: str
    flow: str
    fingerprint: str
    status: FlowStatus
    created_at: datetime
    updated_at: datetime
    input: Any = None
    parent_id: str | None = None
    node_id: str | None = None
    paused_at: datetime | None = None
    reason: str | None = None
    claim: int = 1
    """Counts runners. Who writes names theirs, and a runner that was replaced is refused."""
    runner: Runner | None = None
    record_version: int = RECORD_VERSION

    def check_version(self) -> None:
        if self.record_version > RECORD_VERSION:
            raise NewerSchemaError(
                f"session {self.id} was recorded by a newer holdfast (version {self.record_version}; "
                f"this one supports {RECORD_VERSION})"
            )


class Settlement(NamedTuple):
    """How a runner leaves a session: with this status, and no longer its own."""

    status: FlowStatus
    at: datetime
    node_id: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Claimed:
    """A session that is ours to run, with all its records."""

    session: FlowSession
    records: tuple[Record, ...]
    mail: tuple[Mail, ...] = ()


class Completed(NamedTuple):
    value: Any
    taken: tuple[str, ...] | None


@dataclass
class Progress:
    """What the records of a run add up to."""

    completed: dict[str, Completed] = field(default_factory=dict[str, Completed])
    given: dict[str, Any] = field(default_factory=dict[str, Any])
    interrupted: dict[str, Interrupted] = field(default_factory=dict[str, Interrupted])
    queue: list[str] = field(default_factory=list[str])
    taken_mail: set[int] = field(default_factory=set[int])
    seq: int = 0

    @property
    def outputs(self) -> dict[str, Any]:
        """Of the flow's own nodes; what is inside of them is theirs."""
        return {path: done.value for path, done in self.completed.items() if is_top_level(path)}


def is_top_level(path: str) -> bool:
    return "/" not in path and "#" not in path


def has_mail(record: Record) -> bool:
    """Whether it says what a node that waited was sent."""
    return WAIT in record.path and "number" in record.value


def progress(records: Iterable[Record]) -> Progress:
    """The fold over a run's records, in their order."""
    found = Progress()
    for record in records:
        take_in(found, record)
    return found


def take_in(found: Progress, record: Record) -> None:
    _STEPS[record.kind](found, record)
    found.seq = record.seq


def _completed(found: Progress, record: Record) -> None:
    found.completed[record.path] = Completed(record.value, record.taken)
    found.interrupted.pop(record.path, None)


def _given(found: Progress, record: Record) -> None:
    found.given[record.path] = record.value
    if has_mail(record):
        found.taken_mail.add(record.value["number"])


def _interrupted(found: Progress, record: Record) -> None:
    """It has heard what it was told before it started; what it says comes on top of what it had said."""
    before = found.interrupted.get(record.path, Interrupted())
    heard = record.value["heard"]
    stand = {
        "partial": before.partial + tuple(record.value["partial"]),
        "provider_session": record.value["provider_session"] or before.provider_session,
        "messages": () if heard is True else before.messages[heard:],
    }
    found.interrupted[record.path] = before.model_copy(update=stand)


def _handed(found: Progress, record: Record) -> None:
    before = found.interrupted.get(record.path, Interrupted())
    found.interrupted[record.path] = before.changed(messages=(*before.messages, *found.queue))
    found.queue.clear()


def _message(found: Progress, record: Record) -> None:
    """To every node that was interrupted; where there is none, to the next agent that starts."""
    if record.path:
        found.taken_mail.add(int(record.path))
    if not found.interrupted:
        found.queue.append(record.value)
    for path, node in found.interrupted.items():
        found.interrupted[path] = node.changed(messages=(*node.messages, record.value))


_STEPS = {
    "completed": _completed,
    "given": _given,
    "interrupted": _interrupted,
    "handed": _handed,
    "message": _message,
}


def state_of(session: FlowSession, found: Progress) -> SessionState:
    return SessionState(
        session_id=session.id,
        flow=session.flow,
        status=session.status,
        parent_id=session.parent_id,
        created_at=session.created_at,
        node_id=session.node_id,
        input=session.input,
        outputs=found.outputs,
        message_queue=tuple(found.queue),
        paused_at=session.paused_at,
        reason=session.reason,
        interrupted=found.interrupted,
    )


def check_transition(session_id: str, now: FlowStatus, then: FlowStatus) -> None:
    if then not in FLOW_TRANSITIONS[now]:
        allowed = ", ".join(sorted(FLOW_TRANSITIONS[now])) or "none: it has ended"
        raise IllegalTransitionError(
            f"session {session_id} is {now} and cannot become {then} (allowed: {allowed})",
            hint="start a new run",
        )


# What every store does and says alike.


def check_open(session: FlowSession) -> None:
    session.check_version()
    if session.status in ENDED:
        raise SessionNotFoundError(
            f"session {session.id} is not paused: it is {session.status}", hint="start a new run"
        )


def said_until_now(
    records: Sequence[Record], mail: Iterable[Mail], message: str | None
) -> tuple[Record, ...]:
    """Records of what was said to a run while nobody ran it, and on resume."""
    heard = {record.path for record in records if record.kind == "message"}
    waiting = [(str(each.number), each.value) for each in mail if each.kind == "message"]
    new = [(number, said) for number, said in waiting if number not in heard]
    new += [] if message is None else [("", message)]
    last = records[-1].seq if records else 0
    return tuple(Record(last + count, "message", path, said) for count, (path, said) in enumerate(new, 1))


def claimed_by(session: FlowSession, runner: Runner, at: datetime) -> FlowSession:
    check_transition(session.id, session.status, "running")
    return replace(
        session,
        status="running",
        claim=session.claim + 1,
        runner=runner,
        updated_at=at,
        paused_at=None,
        reason=None,
        node_id=None,
    )


def settled(session: FlowSession, settlement: Settlement) -> FlowSession:
    check_transition(session.id, session.status, settlement.status)
    return replace(
        session,
        status=settlement.status,
        runner=None,
        updated_at=settlement.at,
        paused_at=settlement.at if settlement.status == "paused" else None,
        reason=settlement.reason,
        node_id=settlement.node_id,
    )


def session_not_found(session_id: str) -> SessionNotFoundError:
    return SessionNotFoundError(f"no such session: {session_id}", hint="`hub.sessions()` lists them")


def session_exists(session_id: str) -> ConflictError:
    return ConflictError(f"session {session_id} already exists", hint="omit session_id to get a new one")


def lost_claim(session_id: str) -> SessionAlreadyRunningError:
    return SessionAlreadyRunningError(
        f"session {session_id} was taken over by another process; this one has stopped",
        hint="nothing is lost: the other process continues from the last completed node",
    )


def still_running(session_id: str) -> SessionAlreadyRunningError:
    return SessionAlreadyRunningError(f"session {session_id} is running", hint="pause or abort it first")


# ── events ────────────────────────────────────────────────────────────────────────────────────────

# What a hub tells about its runs. Frozen and numbered: `seq` orders all events of one hub.


@dataclass(frozen=True, slots=True)
class FlowEvent:
    type: ClassVar[str]

    seq: int
    session_id: str
    at: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class SessionStarted(FlowEvent):
    type: ClassVar[str] = "session:start"
    flow: str


@dataclass(frozen=True, slots=True)
class SessionEnded(FlowEvent):
    """All nodes are done."""

    type: ClassVar[str] = "session:end"


@dataclass(frozen=True, slots=True)
class SessionAborted(FlowEvent):
    type: ClassVar[str] = "session:abort"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FlowPausedEvent(FlowEvent):
    type: ClassVar[str] = "flow:paused"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class FlowResumed(FlowEvent):
    type: ClassVar[str] = "flow:resumed"
    messages: tuple[str, ...] = ()
    """What was injected: said on this resume, or before and not heard by any node yet."""


@dataclass(frozen=True, slots=True)
class NodeEvent(FlowEvent):
    node_id: str


@dataclass(frozen=True, slots=True)
class NodeStarted(NodeEvent):
    type: ClassVar[str] = "node:started"


@dataclass(frozen=True, slots=True)
class NodeCompleted(NodeEvent):
    """Its output is in the store."""

    type: ClassVar[str] = "node:completed"
    output: Any = None


@dataclass(frozen=True, slots=True)
class NodeSkipped(NodeEvent):
    """No edge that leads to it was taken."""

    type: ClassVar[str] = "node:skipped"


@dataclass(frozen=True, slots=True)
class NodeInterrupted(NodeEvent):
    """Stopped in its middle; it goes on at the next resume."""

    type: ClassVar[str] = "node:interrupted"


@dataclass(frozen=True, slots=True)
class NodeFailed(NodeEvent):
    type: ClassVar[str] = "node:failed"
    error: str = ""


@dataclass(frozen=True, slots=True)
class NodeMessage(NodeEvent):
    """A streaming agent said something."""

    type: ClassVar[str] = "node:message"
    message: Any = None


@dataclass(frozen=True, slots=True)
class EventsDropped(FlowEvent):
    """This subscriber was too slow: so many events that it asked for are missing here."""

    type: ClassVar[str] = "events:dropped"
    count: int
    last_seq: int


# ── values ────────────────────────────────────────────────────────────────────────────────────────

SAME_AS_STORED = (str, int, bool, type(None))
"""Values that come back as they were: no need to read them back to know."""


def json_of(value: Any) -> str:
    """What every store keeps of a value; `InvalidInputError` where it would come back as something else."""
    try:
        _refuse_changed(value)
        return to_json(value, inf_nan_mode="constants", bytes_mode="utf8").decode()
    except RecursionError:
        raise _cannot_be_stored("it is nested too deeply, or contains itself") from None
    except (PydanticSerializationError, ValueError) as error:
        raise _cannot_be_stored(next(iter(str(error).splitlines()), type(error).__name__)) from error


def _refuse_changed(value: Any) -> None:
    """JSON has names for keys alone, no sets and no bytes."""
    if isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            if not isinstance(key, str):
                raise _cannot_be_stored(f"{key!r} is a key and not text")
            _refuse_changed(item)
    elif isinstance(value, list | tuple):
        for item in cast("list[Any]", value):
            _refuse_changed(item)
    elif isinstance(value, set | frozenset | bytes | bytearray):
        raise _cannot_be_stored("sets and bytes are not types of JSON")


def _cannot_be_stored(why: str) -> InvalidInputError:
    return InvalidInputError(
        f"this cannot be stored: {why}",
        hint="return only JSON values: dict, list, str, numbers, true, false, null",
    )
