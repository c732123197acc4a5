"""Who may come in: every request passes here before anything looks at what it wants.

In this order: the Host must be one of ours (a name that an attacker points at this
machine is not), a browser must come from our own pages, the token must be right, the body
must be small and flat. Everything that leaves gets the headers that keep a browser from
doing more than the dashboard needs.

Cookies are neither set nor read: a browser sends those of this host to every port of it, and
whoever serves on another port can set them here.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.project.server_token import browser_token, same
from holdfast.server.models import RefusedError, refusal

MOST_BODY_BYTES = 16 << 20
"""As much as the largest plan."""
MOST_JSON_DEPTH = 64

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

SOCKET_PROTOCOL = "holdfast"
_SOCKET_TOKEN = "holdfast.token."  # noqa: S105 - what stands before it
"""A page cannot send headers with a WebSocket: it offers the token beside the protocol's name."""

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


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

    @property
    def browser_token(self) -> str:
        return browser_token(self.token, self.port)

    def knows(self, host: str) -> bool:
        name = _name_of(host)
        return name in self.names or (self.any_address and _is_address(name))


@dataclass
class Auth:
    api: ASGIApp
    pages: ASGIApp
    """The dashboard's files: they hold nothing private, so that a browser can show how to get in."""
    door: Credentials
    _tokens: tuple[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._tokens = (self.door.token, self.door.browser_token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.api(scope, receive, send)
            return
        is_private = _is_private(scope["path"])
        send = _with_headers(is_private, send)
        try:
            headers = Headers(scope=scope)
            self._check(scope, headers)
            if scope["type"] == "http":
                receive = await _small_body(headers, receive)
        except RefusedError as error:
            await _refuse(error, scope, receive, send)
            return
        await (self.api if is_private else self.pages)(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "")
        if len(headers.getlist("host")) != 1 or not self.door.knows(host):
            raise RefusedError(
                403,
                "foreign_host",
                "this host name is not allowed",
                "use the address that `holdfast serve` printed, or start it with --allow-host NAME",
            )
        if not _is_private(scope["path"]) and scope["type"] == "http":
            return
        self._check_origin(headers, host)
        if not self._may_pass(_given_token(scope, headers)):
            raise RefusedError(
                401,
                "unauthorised",
                "the token is missing or wrong",
                "open the link that `holdfast serve` printed, or send `Authorization: Bearer TOKEN`",
            )

    def _check_origin(self, headers: Headers, host: str) -> None:
        origin = headers.get("origin")
        own = (f"{self.door.scheme}://{host}".lower(), self.door.public_origin)
        if origin is not None and origin.lower() not in own:
            raise _foreign()
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise _foreign()

    def _may_pass(self, given: str) -> bool:
        return any(same(given, token) for token in self._tokens)


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


def _given_token(scope: Scope, headers: Headers) -> str:
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
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if is_private:
                headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending


# --- bodies


async def _small_body(headers: Headers, receive: Receive) -> Receive:
    """The body read whole, where it is small enough; handed on as one message."""
    announced = headers.get("content-length")
    if announced is not None and (not announced.isdecimal() or int(announced) > MOST_BODY_BYTES):
        raise _too_large()
    if announced in (None, "0") and "transfer-encoding" not in headers:
        return receive
    body = await _read(receive)
    if body:
        _check_json(headers.get("content-type", ""), body)
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


async def _read(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise RefusedError(400, "bad_request", "the request was aborted")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > MOST_BODY_BYTES:
            raise _too_large()
        if not message.get("more_body"):
            return b"".join(pieces)


def _too_large() -> RefusedError:
    return RefusedError(413, "too_large", f"the body must not exceed {MOST_BODY_BYTES >> 20} MB")


def _check_json(content_type: str, body: bytes) -> None:
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise RefusedError(
            415, "unsupported_media_type", "the body must be JSON", "send Content-Type: application/json"
        )
    if body.count(b"[") + body.count(b"{") > MOST_JSON_DEPTH and _depth(body) > MOST_JSON_DEPTH:
        raise RefusedError(
            422, "invalid_input", f"JSON must not be nested more than {MOST_JSON_DEPTH} levels deep"
        )
    if _SURROGATE in body.lower() and _has_half_a_character(body):
        raise RefusedError(422, "invalid_input", "the body contains a lone surrogate")


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


_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def _depth(body: bytes) -> int:
    depth = deepest = 0
    for found in _BRACKETS.finditer(body):
        sign = found[0]
        if sign in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in b"]}":
            depth -= 1
    return deepest


# --- refusing


async def _refuse(error: RefusedError, scope: Scope, receive: Receive, send: Send) -> None:
    response = refusal(error)
    if scope["type"] == "http":
        if error.status == 413:
            await _drain(receive)
        await response(scope, receive, send)
        return
    await receive()  # websocket.connect
    if "websocket.http.response" in scope.get("extensions", {}):
        await response(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": error.detail.code})


async def _drain(receive: Receive, most: int = 8 * MOST_BODY_BYTES) -> None:
    """Let a sender finish and forget what it says: else it sees a broken pipe and not the answer."""
    taken = 0
    while taken < most:
        message = await receive()
        taken += len(message.get("body", b""))
        if message["type"] != "http.request" or not message.get("more_body"):
            return
