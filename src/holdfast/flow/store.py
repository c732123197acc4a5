"""What a hub needs of a store of runs. In memory: `flow.memory`; in a database: `holdfast.store.flows`.

Methods return `None`, or what they were asked for, where the work is done at once, and a
future where it is not: a node in memory costs no turn of the event loop.
"""

from __future__ import annotations

from asyncio import CancelledError, Future, wait
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any, Protocol

from holdfast.model.flow import Claimed, FlowSession, FlowStatus, Record, Runner, Settlement

Admit = Callable[[FlowSession], None]
"""Raises where the session may not be claimed. Called while nobody else can claim it."""


async def surely(pending: Future[Any]) -> bool:
    """Wait for the store whatever happens: it will do what it was asked to. True if we were cancelled."""
    cancelled = False
    while not pending.done():
        try:
            await wait([pending])
        except CancelledError:
            cancelled = True
    return cancelled


class FlowStore(Protocol):
    def pack(self, value: Any) -> tuple[Any, Any]:
        """A value as `append` takes it, and as it will come back: what later nodes are to see of it.

        Raises `InvalidInputError` for what cannot be stored.
        """
        ...

    def create(self, session: FlowSession) -> Future[None] | None:
        """A new session; `ConflictError` where its id is taken. Its input is packed."""
        ...

    def claim(
        self, session_id: str, runner: Runner, at: datetime, admit: Admit, message: str
    ) -> Future[Claimed] | Claimed:
        """Become the one who runs it, and add what the user said, in one change."""
        ...

    def append(self, session_id: str, claim: int, records: Sequence[Record]) -> Future[None] | None:
        """Add records with packed values; they last when this is done. Refuses who lost the claim."""
        ...

    def settle(
        self, session_id: str, claim: int, records: Sequence[Record], settlement: Settlement
    ) -> Future[None] | None:
        """Add the last records and give the session up, in one change."""
        ...

    def load(self, session_id: str) -> Future[Claimed] | Claimed:
        """As it is, without claiming it."""
        ...

    def sessions(
        self, statuses: Collection[FlowStatus] | None = None, limit: int = 100
    ) -> Future[list[FlowSession]] | list[FlowSession]:
        """Most recently changed first."""
        ...

    def forget(self, session_id: str) -> Future[None] | None:
        """Remove a session that nobody runs, with all its records."""
        ...

    def close(self) -> None: ...
