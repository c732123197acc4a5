"""Events as they happen: one reader of the store for any number of listeners.

The reader asks for what is new a few times a second, while anybody listens. What it finds
becomes one batch of ready-made JSON, kept for a while; every listener takes batches at
its own pace from its own position. A listener costs nothing but its sends, and one that
falls behind what is kept is told so: it holds nobody up, and nothing is kept for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from holdfast.base.errors import HoldfastError
from holdfast.model.entry import Event
from holdfast.store.protocol import Store

log = logging.getLogger("holdfast.server")

PAGE = 2_000
"""Events read at a time."""
KEPT_EVENTS = 20_000
KEPT_BYTES = 32 << 20
QUICK_SECONDS = 0.04
SECONDS_A_LISTENER = 0.0005
"""Many listeners get fewer and larger batches: a send costs more than what is in it."""
IDLE_SECONDS = 0.1
TROUBLE_SECONDS = 1.0
REPLAYS_AT_A_TIME = 4


@dataclass(frozen=True)
class Batch:
    """Events next to each other in the one order of all."""

    first: int
    last: int
    parts: tuple[tuple[int, str, str], ...]
    """Number, workflow and JSON of each."""
    text: str
    """All of them, as one message."""

    @classmethod
    def of(cls, events: Sequence[Event]) -> Batch:
        parts = tuple((event.seq, event.workflow_id, event.model_dump_json()) for event in events)
        return cls(events[0].seq, events[-1].seq, parts, message_of(part for *_, part in parts))

    def after(self, position: int, workflow_id: str | None) -> str | None:
        """The message for somebody who has seen that much and wants no more than that."""
        if workflow_id is None and position < self.first:
            return self.text
        found = [
            part
            for seq, owner, part in self.parts
            if seq > position and (workflow_id is None or owner == workflow_id)
        ]
        return message_of(found) if found else None


def message_of(parts: Iterable[str]) -> str:
    return f'{{"type":"events","events":[{",".join(parts)}]}}'


class FellBehindError(Exception):
    """What a listener would need next is not kept any more."""


class EventFeed:
    """Made and used in one event loop; `run` is its reader."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: deque[Batch] = deque()
        self._events = self._bytes = 0
        self._floor = self._newest = 0
        self._news = asyncio.Event()
        self._nudged = asyncio.Event()
        self._listeners = 0
        self._catching_up = asyncio.Lock()
        self._is_fresh = False
        self.replays = asyncio.Semaphore(REPLAYS_AT_A_TIME)
        """Taken by who reads the past from the store, so that the present is not kept waiting."""

    @property
    def listeners(self) -> int:
        return self._listeners

    @property
    def newest(self) -> int:
        """The last event read; right while somebody listens."""
        return self._newest

    @property
    def floor(self) -> int:
        """Who has seen this event, or a later one, can be served from what is kept."""
        return self._floor

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """While inside, the reader reads and `next` tells of everything since entering."""
        self._listeners += 1
        try:
            await self._start_afresh()
            yield
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._is_fresh = False

    async def _start_afresh(self) -> None:
        """After a time when nobody listened and nothing was read: from the newest event on."""
        async with self._catching_up:
            if not self._is_fresh:
                _, newest = await run_in_threadpool(self._store.event_range)
                self._kept.clear()
                self._events = self._bytes = 0
                self._floor = self._newest = newest
                self._is_fresh = True
                self._nudged.set()

    def nudge(self) -> None:
        """Something was changed from here: look now rather than in a moment."""
        self._nudged.set()

    async def next(self, position: int) -> Batch:
        """The batch that follows a position, when there is one; `FellBehindError` where it is gone."""
        while True:
            if position < self._floor:
                raise FellBehindError
            if position < self._newest:
                return self._kept[bisect_right(self._kept, position, key=lambda batch: batch.last)]
            await self._news.wait()

    async def run(self) -> None:
        while True:
            self._nudged.clear()
            seconds: float | None = IDLE_SECONDS
            if self._listeners and self._is_fresh:
                try:
                    seconds = await self._look()
                except HoldfastError as error:
                    log.warning("events cannot be read: %s", error.message)
                    seconds = TROUBLE_SECONDS
            elif not self._listeners:
                seconds = None  # until somebody comes
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nudged.wait(), seconds)

    async def _look(self) -> float:
        since = self._newest
        found = await run_in_threadpool(self._store.events, since=since, limit=PAGE)
        if found and since == self._newest:
            self._publish(Batch.of(found))
        pace = QUICK_SECONDS + self._listeners * SECONDS_A_LISTENER
        return 0 if len(found) == PAGE else pace

    def _publish(self, batch: Batch) -> None:
        self._kept.append(batch)
        self._newest = batch.last
        self._events += len(batch.parts)
        self._bytes += len(batch.text)
        while len(self._kept) > 1 and (self._events > KEPT_EVENTS or self._bytes > KEPT_BYTES):
            gone = self._kept.popleft()
            self._floor = gone.last
            self._events -= len(gone.parts)
            self._bytes -= len(gone.text)
        # Everybody who waits gets this one's event; who comes now waits for the next.
        news, self._news = self._news, asyncio.Event()
        news.set()
