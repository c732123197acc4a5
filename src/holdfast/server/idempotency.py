"""Writes that may be sent twice: with an `Idempotency-Key` a request is carried out just once.

As the IETF's draft has it. A key is written down before the request is carried out, and its answer before it
is sent, in a file of their own: neither a kill nor a restart makes a second run of it. Where the server ended
between the two, nobody can tell whether it was carried out, and that is what the next one is told.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import Message, Receive, Scope, Send

from holdfast.base.clock import Clock, system_clock
from holdfast.base.durable import private_folder
from holdfast.base.errors import DamagedDataError, HoldfastError, StorageError, code_of, http_status
from holdfast.base.process import ProcessIdentity, identify, is_alive, machine
from holdfast.server.auth import LINKS_PATH, LOGIN_PATH
from holdfast.server.problems import ErrorDetail, RefusedError, answer, refusal

log = logging.getLogger("holdfast.server")

HEADER = "Idempotency-Key"
KEY = r"^[!-~]{1,255}$"
REPEATED = "idempotent-replayed"
KEPT_SECONDS = 24 * 3600.0

WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_NEVER = frozenset({LOGIN_PATH, LINKS_PATH})
"""Their answers are secrets, which are not kept."""
_NOT_KEPT = frozenset({503})
"""Nothing was done, and the same request may be sent again."""

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, request TEXT NOT NULL, began REAL NOT NULL, owner TEXT NOT NULL,
    status INTEGER, headers TEXT, body BLOB
);
CREATE INDEX IF NOT EXISTS answers_began ON answers (began);
"""


@dataclass(frozen=True)
class KeptAnswer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class KeptAnswers:
    """Of each key: which request it came with, who carries that out, and what the answer was."""

    def __init__(self, home: Path, clock: Clock = system_clock) -> None:
        self._path = home / "idempotency.db"
        self._clock = clock
        self._owner = json.dumps({"machine": machine(), "process": identify(os.getpid())})

    def begin(self, key: str, request: str) -> KeptAnswer | None:
        """None: carry it out, and say `finish` or `forget`."""
        with self._database() as database:
            database.execute("DELETE FROM answers WHERE began < ?", (self._clock() - KEPT_SECONDS,))
            known = database.execute(
                "SELECT request, owner, status, headers, body FROM answers WHERE key = ?", (key,)
            ).fetchone()
            if known is None:
                database.execute(
                    "INSERT INTO answers (key, request, began, owner) VALUES (?, ?, ?, ?)",
                    (key, request, self._clock(), self._owner),
                )
                return None
        return _answer_of(*known, wanted=request)

    def finish(self, key: str, answer: KeptAnswer) -> None:
        with self._database() as database:
            database.execute(
                "UPDATE answers SET status = ?, headers = ?, body = ? WHERE key = ?",
                (answer.status, json.dumps(answer.headers), answer.body, key),
            )

    def forget(self, key: str) -> None:
        with self._database() as database:
            database.execute("DELETE FROM answers WHERE key = ?", (key,))

    @contextmanager
    def _database(self) -> Generator[sqlite3.Connection]:
        """One transaction, synced when it ends. No write-ahead log: Python's own SQLite may lose one."""
        try:
            private_folder(self._path.parent)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            database = sqlite3.connect(self._path, timeout=30, isolation_level=None)
            try:
                database.execute("PRAGMA synchronous = FULL")
                database.executescript(_TABLES)
                database.execute("BEGIN IMMEDIATE")
                yield database
                database.execute("COMMIT")
            finally:
                database.close()
        except (sqlite3.DatabaseError, OSError) as error:
            kind = (
                StorageError if isinstance(error, (sqlite3.OperationalError, OSError)) else DamagedDataError
            )
            raise kind(
                f"cannot use {self._path}: {error}", hint="move it away, or send no Idempotency-Key"
            ) from None


def _answer_of(
    request: str, owner: str, status: int | None, headers: str | None, body: bytes | None, *, wanted: str
) -> KeptAnswer:
    if request != wanted:
        raise RefusedError(
            422,
            "idempotency_key_reused",
            "this Idempotency-Key was sent with another request",
            "use a new key for each request",
        )
    if status is not None:
        return KeptAnswer(
            status, tuple((name, value) for name, value in json.loads(headers or "[]")), body or b""
        )
    if _is_at_work(json.loads(owner)):
        raise RefusedError(
            409,
            "idempotency_in_progress",
            "the request with this key is being carried out",
            "try again later",
        )
    raise RefusedError(
        409,
        "idempotency_unknown",
        "the server ended while it carried out the request with this key: it may be done or not",
        "look whether it is done; if not, send it with a new key",
    )


def _is_at_work(owner: dict[str, Any]) -> bool:
    """One of another machine that shares this folder cannot be asked: it may still be at it."""
    process: ProcessIdentity = owner["process"]
    return owner["machine"] != machine() or is_alive(process)


# ── in front of the routes ────────────────────────────────────────────────────────────────────────


@dataclass
class Idempotent:
    """In front of the routes; whoever has no rights does not come this far."""

    api: Starlette
    answers: KeptAnswers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in WRITES or scope["path"] in _NEVER:
            await self.api(scope, receive, send)
            return
        given = Headers(scope=scope).getlist(HEADER)
        if not given or not self._is_an_operation(scope):
            await self.api(scope, receive, send)
            return
        try:
            name = _key_of(given)
            body = await _whole(receive)
            key = _digest(name, Headers(scope=scope).get("authorization", ""))
            known = await run_in_threadpool(self.answers.begin, key, _fingerprint(scope, body))
        except RefusedError as error:
            await refusal(error)(scope, receive, send)
            return
        except HoldfastError as error:
            detail = ErrorDetail(code=code_of(type(error)), message=error.message, hint=error.hint)
            await answer(http_status(error), detail)(scope, receive, send)
            return
        if known is not None:
            await _repeat(known, send)
            return
        await self.api(scope, _once(body, receive), self._keeping(key, send))

    def _is_an_operation(self, scope: Scope) -> bool:
        """What is none is refused as that, and not for the use of its key."""
        return any(route.matches(scope)[0] is Match.FULL for route in self.api.routes)

    def _keeping(self, key: str, send: Send) -> Send:
        """Keeps the answer before the last of it is sent."""
        seen = KeptAnswer(0, (), b"")

        async def sending(message: Message) -> None:
            nonlocal seen
            if message["type"] == "http.response.start":
                headers = [
                    (name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]
                ]
                seen = KeptAnswer(message["status"], tuple(headers), b"")
            elif message["type"] == "http.response.body":
                seen = replace(seen, body=seen.body + message.get("body", b""))
                if not message.get("more_body"):
                    await run_in_threadpool(self._keep, key, seen)
            await send(message)

        return sending

    def _keep(self, key: str, kept: KeptAnswer) -> None:
        try:
            if kept.status in _NOT_KEPT:
                self.answers.forget(key)
            else:
                self.answers.finish(key, kept)
        except HoldfastError as error:
            # It is done, and who asked is told so; who asks again is told that nobody can tell.
            log.warning("the answer to a request with an Idempotency-Key is not kept: %s", error.message)


def _key_of(given: list[str]) -> str:
    """The draft has a string in quotes; one without them is as clear."""
    key = given[0].strip()
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if len(given) > 1 or not re.fullmatch(KEY, key):
        raise RefusedError(
            400,
            "idempotency_key_invalid",
            "an Idempotency-Key has 1 to 255 visible ASCII characters",
            "send a UUID",
        )
    return key


def _digest(*parts: str) -> str:
    """Of a key together with the token: everybody has keys of their own, and no token is kept."""
    return sha256("\0".join(parts).encode()).hexdigest()


def _fingerprint(scope: Scope, body: bytes) -> str:
    line = f"{scope['method']} {scope['path']}?{scope['query_string'].decode('latin-1')}\n"
    return sha256(line.encode() + body).hexdigest()


async def _whole(receive: Receive) -> bytes:
    """It was read and measured before."""
    pieces: list[bytes] = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return b"".join(pieces)


def _once(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


async def _repeat(known: KeptAnswer, send: Send) -> None:
    headers = [*known.headers, (REPEATED, "true")]
    await send(
        {
            "type": "http.response.start",
            "status": known.status,
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        }
    )
    await send({"type": "http.response.body", "body": known.body})


# ── in the document ───────────────────────────────────────────────────────────────────────────────


def describe(paths: dict[str, Any]) -> None:
    """The header, and what it may be refused for, at each write that takes it."""
    parameter = {
        "name": HEADER,
        "in": "header",
        "required": False,
        "description": "Carry the request out once; the same key and request repeat its answer for 24 hours",
        "schema": {"type": "string", "pattern": KEY, "title": HEADER},
    }
    for path, methods in paths.items():
        for method, operation in methods.items():
            if method.upper() in WRITES and path not in _NEVER:
                operation.setdefault("parameters", []).append(parameter)
                for status in ("409", "422"):
                    operation["responses"].setdefault(status, dict(_REFUSED))


_REFUSED = {
    "description": "the Idempotency-Key was sent with another request, or its request is being carried out",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}},
}
