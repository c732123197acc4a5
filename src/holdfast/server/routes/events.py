"""What happened, in the one order of all changes: asked for, and live over `/ws/events`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query, WebSocket
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocketDisconnect

from holdfast.journal.usage import seconds_until_full
from holdfast.model.entry import Event, UsageReported, WorkflowResumed
from holdfast.server.app_state import AppState, AtDesk
from holdfast.server.auth import SOCKET_PROTOCOL
from holdfast.server.feed import PAGE, Batch, FellBehindError
from holdfast.server.models import (
    LARGEST_NUMBER,
    BackfillExpiredMessage,
    EventPage,
    LiveMessage,
    PingMessage,
    Since,
    SlowMessage,
    UsageHistory,
    UsageSample,
)
from holdfast.server.problems import documented
from holdfast.store.protocol import Store

router = APIRouter(tags=["events"])

EventLimit = Annotated[int, Query(ge=1, le=2_000, description="Maximum number of results")]
_FORECAST_SAMPLES = 200


@router.get("/api/events", responses=documented(422))
def list_events(desk: AtDesk, since: Since = 0, limit: EventLimit = 500) -> EventPage:
    """Events of all workflows; `/ws/events` streams the same events live."""
    return _page(desk, None, since, limit)


@router.get("/api/workflows/{workflow_id}/events", responses=documented(404, 422))
def list_workflow_events(
    workflow_id: str, desk: AtDesk, since: Since = 0, limit: EventLimit = 500
) -> EventPage:
    desk.store.workflow(workflow_id)
    return _page(desk, workflow_id, since, limit)


def _page(desk: AppState, workflow_id: str | None, since: int, limit: int) -> EventPage:
    oldest, newest = desk.store.event_range()
    found = desk.store.events(workflow_id=workflow_id, since=since, limit=limit + 1)
    page = tuple(found[:limit])
    more = len(found) > limit
    return EventPage(events=page, next_since=page[-1].seq if more else None, oldest=oldest, newest=newest)


@router.get("/api/workflows/{workflow_id}/usage", responses=documented(404, 422))
def get_usage(workflow_id: str, desk: AtDesk) -> UsageHistory:
    """How the context window filled, session by session, and when it will be full at this rate."""
    workflow = desk.store.workflow(workflow_id)
    events = desk.store.events(workflow_id=workflow_id, types=["usage_reported", "workflow_resumed"])
    samples = tuple(_samples(events))
    latest = [one for one in samples if one.session_number == workflow.session_count]
    filling = [
        (one.at.timestamp(), one.context_utilization)
        for one in latest[-_FORECAST_SAMPLES:]
        if one.context_utilization is not None
    ]
    limit = workflow.options.exhaustion_at
    return UsageHistory(
        workflow_id=workflow_id,
        samples=samples,
        exhaustion_at=limit,
        seconds_until_pause=seconds_until_full(filling, full=limit),
        seconds_until_full=seconds_until_full(filling),
    )


def cost_so_far(store: Store, workflow_id: str) -> float | None:
    """Of all its sessions; each reports the sum of its own."""
    events = store.events(workflow_id=workflow_id, types=["usage_reported", "workflow_resumed"])
    last = {one.session_number: one.cost_usd for one in _samples(events) if one.cost_usd is not None}
    return sum(last.values()) if last else None


def _samples(events: Sequence[Event]) -> list[UsageSample]:
    found: list[UsageSample] = []
    session = 1
    for event in events:
        if isinstance(event.entry, WorkflowResumed):
            session = event.entry.session_number
        elif isinstance(event.entry, UsageReported):
            usage = event.entry.usage
            found.append(
                UsageSample(
                    at=event.at,
                    seq=event.seq,
                    session_number=session,
                    context_utilization=usage.context_utilization,
                    tokens_used=usage.tokens_used,
                    cost_usd=usage.cost_usd,
                )
            )
    return found


# ── live events ───────────────────────────────────────────────────────────────────────────────────

# `/ws/events`: replay from a number on, then live.


PING_SECONDS = 15.0
TOO_SLOW = 4008


@router.websocket("/ws/events")
async def follow_events(
    websocket: WebSocket,
    desk: AtDesk,
    since: Annotated[int | None, Query(ge=0, le=LARGEST_NUMBER)] = None,
    workflow_id: Annotated[str | None, Query(max_length=200)] = None,
) -> None:
    offered: list[str] = websocket.scope["subprotocols"]
    await websocket.accept(SOCKET_PROTOCOL if SOCKET_PROTOCOL in offered else None)
    listener = _Listener(websocket, desk, workflow_id)
    tasks = {asyncio.create_task(listener.run(since)), asyncio.create_task(_until_gone(websocket))}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    except WebSocketDisconnect:
        pass  # as they like
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until_gone(websocket: WebSocket) -> None:
    """Whatever a client says is not for us; that it left is."""
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass


class _Listener:
    def __init__(self, websocket: WebSocket, desk: AppState, workflow_id: str | None) -> None:
        self._websocket, self._workflow_id = websocket, workflow_id
        self._store, self._feed = desk.store, desk.feed

    async def run(self, since: int | None) -> None:
        async with self._feed.listening():
            position = self._feed.newest if since is None else await self._replay(since)
            await self._say(LiveMessage(seq=position))
            try:
                while True:
                    position = await self._follow(position)
            except FellBehindError:
                await self._say(SlowMessage(seq=position, newest=self._feed.newest))
                await self._websocket.close(TOO_SLOW, "too slow: connect again")

    async def _follow(self, position: int) -> int:
        try:
            async with asyncio.timeout(PING_SECONDS):
                batch = await self._feed.next(position)
        except TimeoutError:
            await self._say(PingMessage(seq=self._feed.newest))
            return position
        await self._send(batch, position)
        return batch.last

    async def _replay(self, since: int) -> int:
        """From the store, up to where what the feed keeps begins; the position reached."""
        async with self._feed.replays:
            position = await self._start(since)
            while True:
                seen = self._feed.newest  # whatever has a lower number can be read by now
                page = await run_in_threadpool(
                    self._store.events, workflow_id=self._workflow_id, since=position, limit=PAGE
                )
                if page:
                    await self._send(Batch.of(page), position)
                    position = page[-1].seq
                if len(page) < PAGE:
                    position = max(position, seen)
                    if position >= self._feed.floor:
                        return position

    async def _start(self, since: int) -> int:
        oldest, newest = await run_in_threadpool(self._store.event_range)
        if oldest - 1 <= since <= newest:
            return since
        await self._say(BackfillExpiredMessage(since=since, oldest=oldest, newest=newest))
        return newest if since > newest else oldest - 1

    async def _send(self, batch: Batch, position: int) -> None:
        text = batch.after(position, self._workflow_id)
        if text is not None:
            await self._websocket.send_text(text)

    async def _say(self, message: BaseModel) -> None:
        await self._websocket.send_text(message.model_dump_json())
