"""Processes of the server benchmark: `store N FILE`, `serve|anew|memory FILE`; each prints JSON.

A server prints where it listens and ends with its stdin.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

TOKEN = "token-of-the-benchmark-0123456789abcdefghij"  # noqa: S105
_START = datetime(2026, 1, 6, 12, tzinfo=UTC)


def fill(number: int, database: str) -> None:
    """A database with so many workflows: most have ended, as in life."""
    import sqlalchemy as sa

    from holdfast.model.workflow import Issue, Workflow
    from holdfast.store.sql import SqlStore, _workflow_row  # pyright: ignore[reportPrivateUsage]
    from holdfast.store.tables import workflows

    SqlStore(database).close()
    engine = sa.create_engine(f"sqlite:///{database}")
    with engine.begin() as connection:
        for start in range(0, number, 5_000):
            rows = [
                _workflow_row(
                    Workflow(
                        id=f"wf_{index:026d}",
                        issue=Issue(id=f"ISSUE-{index}", title=f"Piece of work number {index}"),
                        worktree=f"/srv/project-{index}",
                        status="paused" if index % 10 == 0 else "completed",
                        created_at=_START + timedelta(seconds=index),
                        updated_at=_START + timedelta(seconds=index),
                    )
                )
                for index in range(start, min(number, start + 5_000))
            ]
            connection.execute(workflows.insert(), rows)
    engine.dispose()
    print(json.dumps({"workflows": number}))


def serve(database: str, *, anew: bool = False) -> None:
    """`anew`: every answer from the database, as when somebody writes all the time."""
    from holdfast.project.settings import load_settings
    from holdfast.server.app import create_app
    from holdfast.server.auth import Credentials
    from holdfast.store.sql import SqlStore

    if anew:
        SqlStore.change_mark = lambda _: None  # type: ignore[method-assign]
    project = Path(database).parent
    settings = replace(load_settings(cwd=project), project=project, db=database)
    _run(create_app(settings, Credentials(TOKEN), home=project, environ={}, starts_workers=False))


def memory(kept: str) -> None:
    """The peer: a FastAPI endpoint that returns the same bytes from memory."""
    from fastapi import FastAPI, Response

    answers: dict[str, str] = json.loads(Path(kept).read_text(encoding="utf-8"))
    app = FastAPI(openapi_url=None)
    workflow, page = answers["workflow"].encode(), answers["page"].encode()

    @app.get("/api/workflows/{workflow_id}")
    async def one(workflow_id: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        return Response(workflow, media_type="application/json", headers={"x-for": workflow_id})

    @app.get("/api/workflows")
    async def many(limit: int = 50) -> Response:  # pyright: ignore[reportUnusedFunction]
        return Response(page, media_type="application/json", headers={"x-for": str(limit)})

    _run(app)


def _run(app: object) -> None:
    import uvicorn

    from holdfast.server.app import listening_socket

    listener = listening_socket("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(
            app,  # pyright: ignore[reportArgumentType]
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            ws_per_message_deflate=False,
        )
    )

    def end_with_stdin() -> None:
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end_with_stdin, daemon=True).start()
    print(json.dumps({"port": listener.getsockname()[1], "pid": os.getpid()}), flush=True)
    server.run(sockets=[listener])


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "store":
        fill(int(arguments[0]), arguments[1])
    elif what == "memory":
        memory(arguments[0])
    else:
        serve(arguments[0], anew=what == "anew")
