"""The OpenAPI document: what FastAPI knows, and what it cannot know."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from holdfast import __version__
from holdfast.server.models import SocketMessage

_ABOUT = """Workflows, snapshots and events of Holdfast.

Every call needs the token: `Authorization: Bearer …`. Cookies are not read.
Every error has the shape `ErrorResponse`. `/ws/events?since=N` is a WebSocket: it sends `SocketMessage`s,
replays what has a number above N, then goes on live.
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

    from holdfast.server.app import create_api

    return json.dumps(document(create_api()), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
