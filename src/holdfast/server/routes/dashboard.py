"""The dashboard's files. Its page takes the token from the printed link and keeps it."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse, HTMLResponse, Response

FILES = Path(__file__).parents[1] / "static"
"""Where the built dashboard stands in the package."""

_FOREVER = "public, max-age=31536000, immutable"

_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Holdfast</title></head>
<body><h1>Holdfast is running</h1>
<p>The dashboard was not built into this copy. In a clone, <code>make dashboard</code> builds it; the API is
under <code>/api</code>, described by <code>/api/openapi.json</code>.</p></body></html>
"""


def is_built(files: Path = FILES) -> bool:
    return (files / "index.html").is_file()


def dashboard_router(files: Path = FILES) -> APIRouter:
    router = APIRouter()

    @router.get("/{path:path}")
    async def page(path: str) -> Response:
        """A file of the dashboard; for every address of its own, its one page."""
        if not is_built(files):
            return HTMLResponse(_NOT_BUILT, headers={"cache-control": "no-store"})
        found = _file(files, path)
        if found is None:
            return FileResponse(files / "index.html", headers={"cache-control": "no-cache"})
        cached = _FOREVER if path.startswith("assets/") else "no-cache"
        return FileResponse(found, headers={"cache-control": cached})

    return router


def _file(files: Path, path: str) -> Path | None:
    """Only what stands in the folder, whatever the address tries."""
    if not path or "\0" in path:
        return None
    found = (files / path).resolve()
    return found if found.is_relative_to(files.resolve()) and found.is_file() else None
