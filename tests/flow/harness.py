"""What the tests of flows share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from holdfast.base.errors import NodeFailedError
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.model.flow import SessionState

T = TypeVar("T")


def play(scene: Coroutine[Any, Any, T]) -> T:
    """Run a test's coroutine; no task may be left when it is over."""

    async def watched() -> T:
        result = await scene
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a task was left behind"
        return result

    return asyncio.run(watched())


async def run_or_resume(hub: Hub, flow: Flow, session_id: str, input: Any = None) -> SessionState:  # noqa: A002
    """On from wherever it stands; a failed node leaves the session paused."""
    try:
        known = {session.id: session.status for session in await hub.sessions(limit=10_000)}
        if session_id not in known:
            return await hub.run(flow, input, session_id=session_id)
        if known[session_id] != "complete":
            return await hub.resume(session_id, "go on")
    except NodeFailedError:
        pass
    return await hub.state(session_id)
