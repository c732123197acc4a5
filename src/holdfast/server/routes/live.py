"""`/ws/events`: replay from a number on, then live."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, WebSocket
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.websockets import WebSocketDisconnect

from holdfast.server.desk import AtDesk, Desk
from holdfast.server.feed import PAGE, Batch, FellBehindError
from holdfast.server.gate import SOCKET_PROTOCOL
from holdfast.server.models import BackfillExpiredMessage, LiveMessage, PingMessage, SlowMessage
from holdfast.server.paging import LARGEST_NUMBER

router = APIRouter()

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
    def __init__(self, websocket: WebSocket, desk: Desk, workflow_id: str | None) -> None:
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
