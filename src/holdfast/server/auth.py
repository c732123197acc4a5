"""Who may come in: every request passes here before anything looks at what it wants.

In this order: the Host must be one of ours (a name that an attacker points at this
machine is not), a browser must come from our own pages, the token must be right, the body
must be small and flat. Everything that leaves gets the headers that keep a browser from
doing more than the dashboard needs.

Cookies are neither set nor read: a browser sends those of this host to every port of it, and
whoever serves on another port can set them here.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from holdfast.base.clock import Clock, system_clock
from holdfast.base.errors import DamagedDataError
from holdfast.project.server_token import BROWSER, ScopedToken, matching_token, same
from holdfast.server.problems import RefusedError, refusal

MOST_BODY_BYTES = 16 << 20
"""As much as the largest plan."""
MOST_JSON_DEPTH = 64

_MOST_OTHER_BYTES = 4 << 10
"""Of a login, which anybody can send, and of a question, which needs no body at all."""
LOGIN_PATH = "/api/login"
LINKS_PATH = "/api/links"
LINK_SECONDS = 15 * 60
NEW_LINK = "run `holdfast serve --link` where the server runs, and open the link it prints"
TOKEN_ENDED = 4001
"""Closes a WebSocket whose token was revoked or has expired."""

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

SOCKET_PROTOCOL = "holdfast"
_SOCKET_TOKEN = "holdfast.token."  # noqa: S105 - what stands before it
"""A page cannot send headers with a WebSocket: it offers the token beside the protocol's name."""

_HEADERS = {
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_OF_PAGES = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "x-frame-options": "DENY",
}
_OF_OTHERS = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'"}
"""For data, scripts and styles, which load nothing: a dozen come with each page."""


@dataclass(frozen=True)
class Credentials:
    """How a server may be reached."""

    token: str
    names: frozenset[str] = LOOPBACK_NAMES
    """Hosts it answers to."""
    any_address: bool = False
    """Whether a bare IP address will do as well: nobody else's name can be made to point here then."""
    secure: bool = False
    port: int = 0
    public_origin: str | None = None
    """Where browsers see it, behind a proxy that ends TLS."""

    @property
    def scheme(self) -> str:
        return "https" if self.secure else "http"

    def link(self, origin: str, code: str) -> str:
        """What follows the `#` stays in the browser: it is in no request line, log or Referer."""
        return f"{self.public_origin or origin}/#code={code}"

    def knows(self, host: str) -> bool:
        name = _name_of(host)
        return name in self.names or (self.any_address and _is_address(name))


class OneTimeCodes:
    """Of the links: each lets one browser in, once, for a while. In memory: a restart ends them."""

    def __init__(self, clock: Clock = system_clock) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._expiries: dict[str, float] = {}
        self._used: dict[str, float] = {}

    def new(self) -> tuple[str, float]:
        """A code, and when it expires."""
        code = secrets.token_urlsafe(32)
        with self._lock:
            now = self.clock()
            for codes in (self._expiries, self._used):
                for old in [one for one, end in codes.items() if end <= now]:
                    del codes[old]
            self._expiries[code] = expires = now + LINK_SECONDS
        return code, expires

    def use(self, code: str) -> None:
        """Of several at once one succeeds."""
        with self._lock:
            expires = self._expiries.pop(code, None)
            if expires is not None:
                self._used[code] = expires
            was_used = expires is None and code in self._used
        if was_used:
            raise RefusedError(410, "link_used", "this link was already used; it works once", NEW_LINK)
        if expires is None or expires <= self.clock():
            raise RefusedError(
                410, "link_expired", "this link has expired or is not of this server", NEW_LINK
            )


@dataclass(frozen=True)
class Access:
    """What the token of a request allows."""

    may_write: bool
    is_owner: bool = False
    can_end: bool = True
    """By its time, by being revoked, by logging out."""


@dataclass
class Auth:
    api: ASGIApp
    pages: ASGIApp
    """The dashboard's files: they hold nothing private, so that a browser can show how to get in."""
    door: Credentials
    home: Path
    """Where the tokens are that the owner gave away."""
    codes: OneTimeCodes
    login_seconds: ClassVar[float] = 20.0
    """For the whole body of a login: nobody keeps a connection without a token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.api(scope, receive, send)
            return
        is_private = _is_private(scope["path"])
        send = _with_headers(is_private, send)
        try:
            headers = Headers(scope=scope)
            access = self._check(scope, headers)
            if scope["type"] == "http":
                async with asyncio.timeout(None if access else self.login_seconds):
                    receive = await _small_body(headers, receive, _most_bytes(access, scope["method"]))
            elif access and access.can_end:
                send = self._while_valid(given_token(scope, headers), send)
        except TimeoutError:
            await _refuse(_too_slow(), scope, receive, send)
            return
        except RefusedError as error:
            await _refuse(error, scope, receive, send)
            return
        await (self.api if is_private else self.pages)(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> Access | None:
        """None for what is open to all: the dashboard's files, and the exchange of a link's code."""
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self.door.knows(host):
            raise RefusedError(
                403,
                "foreign_host",
                "this host name is not allowed",
                "use the address that `holdfast serve` printed, or start it with --allow-host NAME",
            )
        if not _is_private(scope["path"]) and scope["type"] == "http":
            return None
        self._check_origin(headers, host)
        if scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", LOGIN_PATH):
            return None
        access = self._access(given_token(scope, headers))
        if scope["type"] == "http":
            _check_allowed(access, scope["method"], scope["path"])
        return access

    def _check_origin(self, headers: Headers, host: str) -> None:
        origin = headers.get("origin")
        own = (f"{self.door.scheme}://{host}".lower(), self.door.public_origin)
        if origin is not None and origin.lower() not in own:
            raise _foreign()
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise _foreign()

    def _access(self, given: str) -> Access:
        if same(given, self.door.token):
            return Access(may_write=True, is_owner=True, can_end=False)
        try:
            found = matching_token(self.home, given) if given else None
        except DamagedDataError as error:
            raise RefusedError(401, "unauthorised", error.message, error.hint) from None
        if found is None or found.port not in (None, self.door.port):
            raise RefusedError(
                401,
                "unauthorised",
                "the token is missing or wrong",
                "open the link that `holdfast serve` printed (`holdfast serve --link` prints a new one), "
                "or send `Authorization: Bearer TOKEN`",
            )
        if found.expires <= self.codes.clock():
            raise RefusedError(
                401,
                "unauthorised",
                f"the token {found.name} has expired",
                _anew(found),
            )
        return Access(may_write=found.scope != "read", is_owner=found.scope == BROWSER)

    def _while_valid(self, given: str, send: Send) -> Send:
        """A WebSocket stays open for days: its token is looked at again before each message."""

        async def sending(message: Message) -> None:
            if message["type"] == "websocket.send":
                try:
                    self._access(given)
                except RefusedError as error:
                    reason = error.detail.message[:100]
                    await send({"type": "websocket.close", "code": TOKEN_ENDED, "reason": reason})
                    raise WebSocketDisconnect(TOKEN_ENDED, reason) from None
            await send(message)

        return sending


def _anew(expired: ScopedToken) -> str:
    if expired.scope == BROWSER:
        return NEW_LINK
    return f"run `holdfast token revoke {expired.name}`, then `holdfast token create {expired.name}`"


def _check_allowed(access: Access, method: str, path: str) -> None:
    if method not in ("GET", "HEAD") and not access.may_write:
        raise RefusedError(
            403,
            "read_only",
            "this token may only read",
            "use a token made with `holdfast token create NAME --scope write`",
        )
    if path == LINKS_PATH and not access.is_owner:
        raise RefusedError(
            403,
            "owner_only",
            "a link gives the rights of the owner; this token has fewer",
            NEW_LINK,
        )


def _most_bytes(access: Access | None, method: str) -> int:
    return MOST_BODY_BYTES if access and method not in ("GET", "HEAD") else _MOST_OTHER_BYTES


def is_loopback(host: str) -> bool:
    name = host.strip("[]").lower()
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)


def _foreign() -> RefusedError:
    return RefusedError(
        403, "foreign_origin", "cross-site request rejected", "use the dashboard this server serves"
    )


def _is_private(path: str) -> bool:
    return path.startswith(("/api/", "/ws/")) or path in ("/api", "/ws")


def _name_of(host: str) -> str:
    """`[::1]:8421` is `::1`; what is no host at all is nobody's name."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return ""
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return ""
    return (parts.hostname or "").rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def given_token(scope: Scope, headers: Headers) -> str:
    """The one that came with the request; empty where none did."""
    authorization = headers.get("authorization")
    if authorization is None:
        return _token_among(scope.get("subprotocols", ()))
    kind, _, given = authorization.partition(" ")
    return given.strip() if kind.lower() == "bearer" else ""


def _token_among(protocols: Sequence[str]) -> str:
    offered = (one.removeprefix(_SOCKET_TOKEN) for one in protocols if one.startswith(_SOCKET_TOKEN))
    return next(offered, "")


def _with_headers(is_private: bool, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            message.setdefault("headers", [])
            headers = MutableHeaders(scope=message)
            # What was not modified takes these in place of those it was stored with.
            is_page = headers.get("content-type", "").startswith("text/html") or message["status"] == 304
            for name, value in (_HEADERS | (_OF_PAGES if is_page else _OF_OTHERS)).items():
                headers.setdefault(name, value)
            if is_private:
                headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending


# --- bodies


async def _small_body(headers: Headers, receive: Receive, most: int) -> Receive:
    """The body read whole, where it is small enough; handed on as one message."""
    announced = headers.get("content-length")
    if announced is not None and (not announced.isdecimal() or int(announced) > most):
        raise _too_large(most)
    if announced in (None, "0") and "transfer-encoding" not in headers:
        return receive
    body = await _read(receive, most)
    if body:
        _check_json(headers.get("content-type", ""), body)
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


async def _read(receive: Receive, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise RefusedError(400, "bad_request", "the request was aborted", "send it again")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > most:
            raise _too_large(most)
        if not message.get("more_body"):
            return b"".join(pieces)


def _too_large(most: int) -> RefusedError:
    told = f"{most >> 20} MB" if most >> 20 else f"{most >> 10} kB"
    return RefusedError(
        413, "too_large", f"the body must not exceed {told}", "send less; see /api/openapi.json"
    )


def _too_slow() -> RefusedError:
    return RefusedError(400, "bad_request", "the body took too long to arrive", "send it again")


def _check_json(content_type: str, body: bytes) -> None:
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise RefusedError(
            415, "unsupported_media_type", "the body must be JSON", "send Content-Type: application/json"
        )
    if body.count(b"[") + body.count(b"{") > MOST_JSON_DEPTH and _depth(body) > MOST_JSON_DEPTH:
        raise RefusedError(
            422,
            "invalid_input",
            f"JSON must not be nested more than {MOST_JSON_DEPTH} levels deep",
            "see /api/openapi.json",
        )
    if _SURROGATE in body.lower() and _has_half_a_character(body):
        raise RefusedError(422, "invalid_input", "the body contains a lone surrogate", "send valid Unicode")


_SURROGATE = b"\\ud"


def _has_half_a_character(body: bytes) -> bool:
    """JSON can spell what no text can hold; nothing behind us could write it down."""
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False  # no JSON at all: that is said elsewhere
    return False


_BRACKETS = re.compile(rb'"(?:[^"\\]+|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
"""A string without an end is one to the end: looked for again from each of its quotes, it takes for ever."""


def _depth(body: bytes) -> int:
    depth = deepest = 0
    for found in _BRACKETS.finditer(body):
        sign = found[0]
        if sign in b"[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > MOST_JSON_DEPTH:
                break
        elif sign in b"]}":
            depth -= 1
    return deepest


# --- refusing


async def _refuse(error: RefusedError, scope: Scope, receive: Receive, send: Send) -> None:
    response = refusal(error)
    if scope["type"] == "http":
        await response(scope, receive, _ahead_of_the_body(receive, send) if error.status == 413 else send)
        return
    await receive()  # websocket.connect
    if "websocket.http.response" in scope.get("extensions", {}):
        await response(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": error.detail.code})


def _ahead_of_the_body(receive: Receive, send: Send) -> Send:
    """The answer goes out whole at once, and ends when the sender has finished."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.body":
            await send({**message, "more_body": True})
            await _drain(receive)
            message = {"type": "http.response.body"}
        await send(message)

    return sending


async def _drain(receive: Receive, most: int = 8 * MOST_BODY_BYTES) -> None:
    """Let a sender finish and forget what it says: else it sees a broken pipe and not the answer."""
    taken = 0
    while taken < most:
        message = await receive()
        taken += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return
