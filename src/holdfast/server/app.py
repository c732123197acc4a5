"""The application (routes, errors and authorisation, put together), its OpenAPI document, and the process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import anyio.to_thread
import h11
import uvicorn
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import Lifespan
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from holdfast import __version__
from holdfast.base.errors import CannotDoError, HeldElsewhereError, HoldfastError, InvalidInputError
from holdfast.project.server_token import made_token
from holdfast.project.settings import Settings
from holdfast.server import idempotency
from holdfast.server.app_state import AppState, Workers
from holdfast.server.auth import LOOPBACK_NAMES, Auth, Credentials, OneTimeCodes, is_loopback
from holdfast.server.feed import EventFeed
from holdfast.server.models import SocketMessage
from holdfast.server.problems import PROBLEM, install_error_handlers
from holdfast.server.routes import (
    about,
    actions,
    events,
    sessions,
    snapshots,
    tasks,
    work,
    workflows,
)
from holdfast.server.routes.about import FILES, dashboard_router
from holdfast.sessions.reindex import take_in_waiting
from holdfast.workflows.service import OrchestratorService

TYPE_CHECKING = False
if TYPE_CHECKING:
    from uvicorn._types import ASGISendEvent

# ── the OpenAPI document ──────────────────────────────────────────────────────────────────────────

_ABOUT = """Workflows, snapshots and events of Holdfast.

Every call but `/api/login` needs a token: `Authorization: Bearer …`. Cookies are not read.
A write with an `Idempotency-Key` is carried out once: for a day, the same request with the same key
gets the same answer.
Every error is a problem (RFC 9457) of the shape `ErrorResponse`.
`/ws/events?since=N` is a WebSocket. It sends `SocketMessage`s: first the events numbered above N,
then live events.
"""


def document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        found = get_openapi(
            title="Holdfast",
            version=__version__,
            description=_ABOUT,
            routes=app.routes,
            tags=app.openapi_tags,
        )
        components = found["components"]
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
        _add_socket_messages(components["schemas"])
        idempotency.describe(found["paths"])
        _name_problems(found["paths"])
        app.openapi_schema = found
    return app.openapi_schema


def _name_problems(paths: dict[str, Any]) -> None:
    """The framework knows one media type for all that a route answers."""
    for methods in paths.values():
        for operation in methods.values():
            for status, told in operation["responses"].items():
                if status >= "400":
                    told["content"] = {PROBLEM: told["content"]["application/json"]}


def _add_socket_messages(schemas: dict[str, Any]) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(SocketMessage)
    made = adapter.json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
    for name, schema in made.pop("$defs").items():
        schemas.setdefault(name, schema)
    schemas["SocketMessage"] = made


def rendered() -> str:
    """As it is kept beside the dashboard, whose types are made from it."""
    import json

    return json.dumps(document(create_api()), indent=2, ensure_ascii=False, sort_keys=True) + "\n"


# ── the application ───────────────────────────────────────────────────────────────────────────────

log = logging.getLogger("holdfast.server")

_THREADS = 12
"""Fewer than the connections a database is given, so that no request waits for one in vain."""
_LOOK_FOR_WORK_SECONDS = 2.0
_LEAST_COMPRESSED = 400
"""Bytes of an answer: a smaller one hardly gets smaller. The dashboard's files come compressed."""

_ROUTERS = (
    work.router,
    workflows.router,
    tasks.router,
    actions.router,
    snapshots.router,
    snapshots.retrieval_router,
    events.router,
    sessions.router,
    sessions.threads_router,
    sessions.transactions_router,
    about.router,
)


def create_app(
    settings: Settings,
    door: Credentials,
    *,
    home: Path | None = None,
    environ: Mapping[str, str] | None = None,
    starts_workers: bool = True,
    files: Path = FILES,
) -> Auth:
    """An ASGI application. `home` and `environ`: where agents keep their sessions."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        service = await run_in_threadpool(OrchestratorService, settings)
        with contextlib.closing(service), Workers(service, starts_any=starts_workers) as workers:
            desk = app.state.desk = AppState(
                settings,
                service,
                EventFeed(service.store),
                home=home or Path.home(),
                environ=os.environ if environ is None else environ,
                workers=workers,
            )
            await run_in_threadpool(take_in_waiting, service.store, settings)
            background = [asyncio.create_task(desk.feed.run()), asyncio.create_task(_look_for_work(desk))]
            try:
                yield
            finally:
                for task in background:
                    task.cancel()
                await asyncio.gather(*background, return_exceptions=True)

    pages = _application()
    pages.include_router(dashboard_router(files))
    api = create_api(lifespan)
    codes = api.state.codes = OneTimeCodes()
    api.state.door = door
    once = idempotency.Idempotent(api, idempotency.KeptAnswers(settings.home))
    sent = GZipMiddleware(once, minimum_size=_LEAST_COMPRESSED, compresslevel=5)
    return Auth(sent, pages, door, settings.home, codes)


def create_api(lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    """The routes alone, as the document describes them."""
    api = _application(lifespan)
    for router in _ROUTERS:
        api.include_router(router)

    async def openapi() -> dict[str, Any]:
        return document(api)

    api.add_api_route("/api/openapi.json", openapi, include_in_schema=False)
    return api


def _application(lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    app = FastAPI(
        title="Holdfast",
        version=__version__,
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    install_error_handlers(app)
    return app


async def _look_for_work(desk: AppState) -> None:
    """What others queued, and what is due, gets a worker too."""
    while True:
        try:
            await run_in_threadpool(desk.workers.ensure)
        except HoldfastError as error:
            log.warning("cannot look for queued work: %s", error.message)
        await asyncio.sleep(_LOOK_FOR_WORK_SECONDS)


# ── the process ───────────────────────────────────────────────────────────────────────────────────

# A server as a process: where it listens, whom it lets in, how it stops.

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
    """Where it can be reached, and the link that lets one browser in."""

    url: str
    link: str


def serve(settings: Settings, options: Options, announce: Callable[[Address], None]) -> None:
    """Until it is told to stop; `announce` is called when requests are answered."""
    _check(options)
    OrchestratorService(settings).close()  # a database that cannot be used is told of as any command does
    token = made_token(settings.home)
    listener = _listen(options)
    port = listener.getsockname()[1]
    door = _door(options, token, port)
    name = f"[{options.host}]" if ":" in options.host else options.host
    url = door.public_origin or f"{door.scheme}://{name}:{port}"
    app = create_app(settings, door, starts_workers=options.starts_workers)
    address = Address(url, door.link(url, app.codes.new()[0]))
    config = uvicorn.Config(
        app,
        http=HttpConnection,
        ws=SocketConnection,
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
    """Ends when it brings no request, or half of one: uvicorn waits for the rest for ever.

    Of very many such connections the oldest end at once, or there would be no file left for the next one.
    """

    request_seconds = 20.0
    """For a request's head; between two pieces of its body."""
    most_waiting = 256
    _waiting: ClassVar[dict[HttpConnection, None]] = {}
    """Those that owe a request, or the rest of one; the oldest first."""
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
        self._waiting[self] = None
        if len(self._waiting) > self.most_waiting:
            oldest = next(iter(self._waiting))
            oldest._cancel_deadline()
            oldest.transport.close()

    def _cancel_deadline(self) -> None:
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class SocketConnection(WebSocketsSansIOProtocol):
    """An answer in place of the handshake ends it, too: uvicorn calls that an error, on the terminal."""

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True


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
