"""A session as its hub holds it, and who may take one over."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from holdfast.base.errors import SessionAlreadyRunningError, SessionNotFoundError
from holdfast.base.process import is_alive
from holdfast.flow.graph import CompiledFlow
from holdfast.flow.signal import AbortController
from holdfast.model.flow import ENDED, FlowSession, FlowStatus, Runner


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
    resuming: bool = False
    has_children: bool = False


def admit(session: FlowSession, runner: Runner, *, takeover: bool) -> None:
    """Raise unless this runner may have the session."""
    session.check_version()
    if session.status in ENDED:
        raise SessionNotFoundError(
            f"there is no paused session {session.id}: it is {session.status}", hint="start a new run"
        )
    holder = session.runner
    if session.status != "running" or holder is None or takeover or holder["token"] == runner["token"]:
        return
    if holder["host"] != runner["host"]:
        raise SessionAlreadyRunningError(
            f"session {session.id} is run by process {holder['process']['pid']} on {holder['host']}",
            hint="if that one is gone for good: resume(…, takeover=True)",
        )
    if is_alive(holder["process"]):
        raise SessionAlreadyRunningError(
            f"session {session.id} is run by process {holder['process']['pid']}",
            hint="pause it there, wait until it has ended, or take it from there: resume(…, takeover=True)",
        )
