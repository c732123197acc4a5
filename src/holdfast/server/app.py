"""The application: routes, errors and authorisation, put together, and the OpenAPI document."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.types import Lifespan

from holdfast import __version__
from holdfast.base.errors import HoldfastError
from holdfast.project.settings import Settings
from holdfast.server import problems
from holdfast.server.app_state import AppState, Workers
from holdfast.server.auth import Auth, Credentials
from holdfast.server.feed import EventFeed
from holdfast.server.models import SocketMessage
from holdfast.server.routes import (
    about,
    actions,
    events,
    sessions,
    snapshots,
    workflows,
)
from holdfast.server.routes.about import FILES, dashboard_router
from holdfast.sessions.reindex import take_in_waiting
from holdfast.workflows.service import OrchestratorService

# ── the OpenAPI document ──────────────────────────────────────────────────────────────────────────

_ABOUT = """Workflows, snapshots and events of Holdfast.

Every call needs the token: `Authorization: Bearer …`. Cookies are not read.
Every error has the shape `ErrorResponse`. `/ws/events?since=N` is a WebSocket. It sends `SocketMessage`s:
first the events numbered above N, then live events.
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
        app.openapi_schema = found
    return app.openapi_schema


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

_ROUTERS = (
    workflows.router,
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
    return Auth(create_api(lifespan), pages, door)


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
    problems.install(app)
    return app


async def _look_for_work(desk: AppState) -> None:
    """What others queued, and what is due, gets a worker too."""
    while True:
        try:
            await run_in_threadpool(desk.workers.ensure)
        except HoldfastError as error:
            log.warning("cannot look for queued work: %s", error.message)
        await asyncio.sleep(_LOOK_FOR_WORK_SECONDS)
