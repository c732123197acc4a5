"""The application: routes, errors and the gate, put together."""

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
from starlette.concurrency import run_in_threadpool
from starlette.types import Lifespan

from holdfast import __version__
from holdfast.base.errors import HoldfastError
from holdfast.project.settings import Settings
from holdfast.server import problems
from holdfast.server.desk import Desk, Workers
from holdfast.server.document import document
from holdfast.server.feed import EventFeed
from holdfast.server.gate import Door, Gate
from holdfast.server.routes import about, actions, events, live, retrieval, sessions, snapshots, workflows
from holdfast.server.routes.dashboard import FILES, dashboard_router
from holdfast.sessions.reindex import take_in_waiting
from holdfast.workflows.service import OrchestratorService

log = logging.getLogger("holdfast.server")

_THREADS = 12
"""Fewer than the connections a database is given, so that no request waits for one in vain."""
_LOOK_FOR_WORK_SECONDS = 2.0

_ROUTERS = (workflows, actions, snapshots, retrieval, events, sessions, about, live)


def create_app(
    settings: Settings,
    door: Door,
    *,
    home: Path | None = None,
    environ: Mapping[str, str] | None = None,
    starts_workers: bool = True,
    files: Path = FILES,
) -> Gate:
    """An ASGI application. `home` and `environ`: where agents keep their sessions."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        service = await run_in_threadpool(OrchestratorService, settings)
        with contextlib.closing(service), Workers(service, starts_any=starts_workers) as workers:
            desk = app.state.desk = Desk(
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
    return Gate(create_api(lifespan), pages, door)


def create_api(lifespan: Lifespan[FastAPI] | None = None) -> FastAPI:
    """The routes alone, as the document describes them."""
    api = _application(lifespan)
    for module in _ROUTERS:
        api.include_router(module.router)

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


async def _look_for_work(desk: Desk) -> None:
    """What others queued, and what is due, gets a worker too."""
    while True:
        try:
            await run_in_threadpool(desk.workers.ensure)
        except HoldfastError as error:
            log.warning("work that waits cannot be looked for: %s", error.message)
        await asyncio.sleep(_LOOK_FOR_WORK_SECONDS)
