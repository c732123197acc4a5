"""What a hub tells about its runs. Frozen and numbered: `seq` orders all events of one hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


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
