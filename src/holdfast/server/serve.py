"""A server as a process: where it listens, whom it lets in, how it stops."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.base.errors import CannotDoError, HeldElsewhereError, InvalidInputError
from holdfast.project.server_token import made_token
from holdfast.project.settings import Settings
from holdfast.server.app import create_app
from holdfast.server.auth import LOOPBACK_NAMES, Credentials, is_loopback

DEFAULT_PORT = 8421
_BACKLOG = 2048
_STOP_SECONDS = 5
_MOST_SAID = 64 << 10
"""Bytes a client may send in a WebSocket message; we listen to none of it."""
_MOST_HEADER_BYTES = 1 << 20
"""Room for all the cookies that a browser keeps for one host: other programs' come along, on any port."""


@dataclass(frozen=True)
class Options:
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    tls_cert: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False
    allow_hosts: tuple[str, ...] = ()
    public_url: str | None = None
    starts_workers: bool = True

    @property
    def is_secure(self) -> bool:
        return self.tls_cert is not None


@dataclass(frozen=True)
class Address:
    """Where it can be reached, and the link that lets a browser in."""

    url: str
    browser_token: str

    @property
    def link(self) -> str:
        """What follows the `#` stays in the browser: it is in no request, log or Referer."""
        return f"{self.url}/#token={self.browser_token}"


def serve(settings: Settings, options: Options, announce: Callable[[Address], None]) -> None:
    """Until it is told to stop; `announce` is called when requests are answered."""
    _check(options)
    token = made_token(settings.home)
    listener = _listen(options)
    port = listener.getsockname()[1]
    door = _door(options, token, port)
    name = f"[{options.host}]" if ":" in options.host else options.host
    address = Address(door.public_origin or f"{door.scheme}://{name}:{port}", door.browser_token)
    app = create_app(settings, door, starts_workers=options.starts_workers)
    config = uvicorn.Config(
        app,
        http=HttpConnection,
        h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws_max_size=_MOST_SAID,
        ws_per_message_deflate=False,
        timeout_graceful_shutdown=_STOP_SECONDS,
        ssl_certfile=options.tls_cert,
        ssl_keyfile=options.tls_key,
    )
    server = _Server(config, lambda: announce(address))
    # uvicorn ends gracefully on these and then raises them again: ending was what was asked for.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _nothing)
    with listener:
        server.run(sockets=[listener])
    if not server.started:
        raise CannotDoError("the server failed to start", hint="see the messages above")


def _nothing(_number: int, _frame: object) -> None:
    pass


class HttpConnection(H11Protocol):
    """Ends when it brings no request, or half of one: uvicorn waits for the rest for ever."""

    request_seconds = 20.0
    """For a request's head; between two pieces of its body."""
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._cancel_deadline()
        is_unfinished = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if is_unfinished and self._deadline is None and self.transport.get_protocol() is self:
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Its headers may be 8 kB long, which the cookies of other programs can exceed."""
        self.headers = [(name, value) for name, value in self.headers if name != b"cookie"]
        super().handle_websocket_upgrade(event)

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.request_seconds, self.transport.close)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()


def _check(options: Options) -> None:
    if (options.tls_cert is None) != (options.tls_key is None):
        raise InvalidInputError("TLS needs both files", hint="give --tls-cert and --tls-key")
    for path in (options.tls_cert, options.tls_key):
        if path is not None and not path.is_file():
            raise InvalidInputError(f"no such file: {path}")
    if not is_loopback(options.host) and not options.is_secure and not options.insecure:
        raise InvalidInputError(
            f"{options.host} can be reached from other machines, and the token would be sent unencrypted",
            hint="give --tls-cert and --tls-key, or --insecure if the network itself is secure",
        )


_DEFAULT_PORTS = {"http": 80, "https": 443}


def origin_of(url: str, *, insecure: bool = False) -> str:
    """As a browser names it; raises where the URL is more than that."""
    try:
        parts = urlsplit(url.lower())
        port = parts.port
    except ValueError as error:
        raise _not_public(url, str(error)) from None
    rest = (parts.path.strip("/"), parts.query, parts.fragment, parts.username)
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or any(rest):
        raise _not_public(url, "a scheme, a host and at most a port are expected")
    if parts.scheme == "http" and not is_loopback(parts.hostname) and not insecure:
        raise _not_public(url, "the token would be sent unencrypted")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{name}{shown}"


def _not_public(url: str, reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"invalid --public-url {url}: {reason}", hint="give it as https://holdfast.example.org"
    )


def _door(options: Options, token: str, port: int) -> Credentials:
    names = {name.lower() for name in (*LOOPBACK_NAMES, options.host, *options.allow_hosts)}
    public = origin_of(options.public_url, insecure=options.insecure) if options.public_url else None
    if public:
        names.add(urlsplit(public).hostname or "")
    return Credentials(
        token=token,
        names=frozenset(names),
        any_address=not is_loopback(options.host),
        secure=options.is_secure,
        port=port,
        public_origin=public,
    )


def _listen(options: Options) -> socket.socket:
    try:
        return listening_socket(options.host, options.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise HeldElsewhereError(
                f"port {options.port} is already in use", hint="stop the other server, or pass --port N"
            ) from None
        raise CannotDoError(
            f"cannot listen on {options.host} port {options.port}: {error.strerror or error}",
            hint="use another --host or --port",
        ) from None


def listening_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio would not switch off Nagle's delay: 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
