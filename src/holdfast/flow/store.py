"""What a hub needs of a store of runs, and a store in memory. In a database: `holdfast.store.flows`."""

from __future__ import annotations

from asyncio import CancelledError, Future, wait
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from pydantic_core import from_json

from holdfast.model.flow import (
    ENDED,
    SAME_AS_STORED,
    Claimed,
    FlowSession,
    FlowStatus,
    Mail,
    MailKind,
    Record,
    Runner,
    Settlement,
    check_open,
    claimed_by,
    json_of,
    lost_claim,
    said_until_now,
    session_exists,
    session_not_found,
    settled,
    still_running,
)

Admit = Callable[[FlowSession, Sequence[Record]], None]
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

    def create(self, session: FlowSession, records: Sequence[Record] = ()) -> Future[None] | None:
        """A new session; `ConflictError` where its id is taken. Its input and its records are packed."""
        ...

    def claim(
        self, session_id: str, runner: Runner, at: datetime, admit: Admit, message: str | None
    ) -> Future[Claimed] | Claimed:
        """Become the one who runs it, and add what the user said, in one change."""
        ...

    def post(self, session_id: str, kind: MailKind, name: str, packed: Any) -> Future[None] | None:
        """Send something to a session that has not ended, whoever runs it."""
        ...

    def mail(self, since: Mapping[str, int]) -> Future[list[Mail]] | list[Mail]:
        """What these sessions were sent after the mail with that number, oldest first."""
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


# ── in memory ─────────────────────────────────────────────────────────────────────────────────────

# Runs kept in this process: the same values as in a database, nothing written, gone with the process.


@dataclass(slots=True)
class _Kept:
    session: FlowSession
    records: list[Record] = field(default_factory=list[Record])
    mail: list[Mail] = field(default_factory=list[Mail])

    def opened(self) -> Claimed:
        return Claimed(
            replace(self.session, input=from_json(self.session.input)),
            tuple(record._replace(value=from_json(record.value)) for record in self.records),
            tuple(self.mail_after(0)),
        )

    def mail_after(self, number: int) -> list[Mail]:
        return [mail._replace(value=from_json(mail.value)) for mail in self.mail[number:]]


class MemoryFlowStore:
    """Keeps every session that can go on, and the last `keep_ended` of those that cannot."""

    def __init__(self, keep_ended: int = 1000) -> None:
        self._sessions: dict[str, _Kept] = {}
        self._ended: dict[str, None] = {}
        self._keep_ended = keep_ended

    def pack(self, value: Any) -> tuple[Any, Any]:
        text = json_of(value)  # kept as text: whoever changes what it was given changes no record
        return text, value if type(value) in SAME_AS_STORED else from_json(text)

    def create(self, session: FlowSession, records: Sequence[Record] = ()) -> None:
        if session.id in self._sessions:
            raise session_exists(session.id)
        self._sessions[session.id] = _Kept(session, list(records))

    def claim(
        self, session_id: str, runner: Runner, at: datetime, admit: Admit, message: str | None
    ) -> Claimed:
        kept = self._found(session_id)
        admit(kept.session, kept.records)
        kept.session = claimed_by(kept.session, runner, at)
        said = said_until_now(kept.records, kept.mail_after(0), message)
        kept.records += [each._replace(value=self.pack(each.value)[0]) for each in said]
        return self.load(session_id)

    def post(self, session_id: str, kind: MailKind, name: str, packed: Any) -> None:
        kept = self._found(session_id)
        check_open(kept.session)
        kept.mail.append(Mail(session_id, len(kept.mail) + 1, kind, name, packed))

    def mail(self, since: Mapping[str, int]) -> list[Mail]:
        found = [(self._sessions[name], number) for name, number in since.items() if name in self._sessions]
        return [each for kept, number in found for each in kept.mail_after(number)]

    def append(self, session_id: str, claim: int, records: Sequence[Record]) -> None:
        kept = self._found(session_id)
        if kept.session.claim != claim:
            raise lost_claim(session_id)
        kept.records += records

    def settle(self, session_id: str, claim: int, records: Sequence[Record], settlement: Settlement) -> None:
        self.append(session_id, claim, records)
        kept = self._sessions[session_id]
        kept.session = settled(kept.session, settlement)
        if kept.session.status in ENDED:
            self._forget_old_ones(session_id)

    def load(self, session_id: str) -> Claimed:
        return self._found(session_id).opened()

    def sessions(self, statuses: Collection[FlowStatus] | None = None, limit: int = 100) -> list[FlowSession]:
        found = [
            kept.session
            for kept in self._sessions.values()
            if statuses is None or kept.session.status in statuses
        ]
        newest = sorted(found, key=lambda session: (session.updated_at, session.id), reverse=True)[:limit]
        return [replace(session, input=from_json(session.input)) for session in newest]

    def forget(self, session_id: str) -> None:
        if self._found(session_id).session.status == "running":
            raise still_running(session_id)
        del self._sessions[session_id]
        self._ended.pop(session_id, None)

    def close(self) -> None:
        """Nothing to close; there for the protocol."""

    def _found(self, session_id: str) -> _Kept:
        try:
            return self._sessions[session_id]
        except KeyError:
            raise session_not_found(session_id) from None

    def _forget_old_ones(self, session_id: str) -> None:
        self._ended[session_id] = None
        while len(self._ended) > self._keep_ended:
            oldest = next(iter(self._ended))
            del self._ended[oldest], self._sessions[oldest]
