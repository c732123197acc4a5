"""Events to whoever listens. A slow listener loses events and is told so; nobody waits for it."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from fnmatch import translate
from typing import Any, Self

from holdfast.base.clock import Clock
from holdfast.base.errors import InvalidInputError
from holdfast.model.flow import EventsDropped, FlowEvent


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
