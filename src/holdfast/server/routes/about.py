"""The server itself: is it well, what does it serve, how is it set."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, HTMLResponse, Response

from holdfast import __version__
from holdfast.base.clock import to_datetime
from holdfast.base.errors import CannotDoError, NotFoundError
from holdfast.model.git import encode_path
from holdfast.project.server_token import (
    BROWSER,
    create_browser_token,
    matching_token,
    revoke_scoped_token,
)
from holdfast.server.app_state import AtDesk
from holdfast.server.auth import LINKS_PATH, LOGIN_PATH, Credentials, OneTimeCodes, given_token
from holdfast.server.models import (
    BrowserToken,
    Health,
    LoggedOut,
    NewLink,
    ProjectList,
    ProjectStats,
    SettingsView,
    UseLink,
    WorkflowStats,
)
from holdfast.server.problems import WITH_BODY, documented
from holdfast.sessions.standing import journal_stats
from holdfast.workflows.experience import MOST_TASKS, Experience, pauses_by_trigger

router = APIRouter(prefix="/api", tags=["about"])


@router.post(
    LOGIN_PATH.removeprefix("/api"),
    responses=documented(410, *WITH_BODY),
    openapi_extra={"security": []},
)
def use_link(body: UseLink, request: Request, desk: AtDesk) -> BrowserToken:
    """Exchange a link's code for a token of this browser's own. Needs no token; works once."""
    codes: OneTimeCodes = request.app.state.codes
    door: Credentials = request.app.state.door
    codes.use(body.code)
    return BrowserToken(token=create_browser_token(desk.settings.home, door.port))


@router.post("/logout", responses=documented(409))
def log_out(request: Request, desk: AtDesk) -> LoggedOut:
    """End the token of the browser that asks, at once and for good; those of other browsers stay valid."""
    found = matching_token(desk.settings.home, given_token(request.scope, request.headers))
    if found is None or found.scope != BROWSER:
        raise CannotDoError(
            "only a browser can be logged out", hint="`holdfast token revoke NAME` ends another token"
        )
    revoke_scoped_token(desk.settings.home, found.name)
    return LoggedOut(name=found.name)


@router.post(LINKS_PATH.removeprefix("/api"), status_code=201, responses=documented())
def create_link(request: Request) -> NewLink:
    """A new link for another browser. Only with the owner's token."""
    codes: OneTimeCodes = request.app.state.codes
    door: Credentials = request.app.state.door
    code, expires = codes.new()
    return NewLink(
        link=door.link(f"{door.scheme}://{request.headers['host']}", code), expires_at=to_datetime(expires)
    )


@router.get("/health", responses=documented())
def get_health(desk: AtDesk) -> Health:
    """Whether the database responds, and which workers are active."""
    _, newest = desk.store.event_range()
    return Health(
        status="ok",
        version=__version__,
        database=desk.store.shown,
        workers=len(desk.workers.present()),
        seq=newest,
        listeners=desk.feed.listeners,
    )


@router.get("/settings", responses=documented())
def get_settings(desk: AtDesk) -> SettingsView:
    """The settings the server was started with, without passwords and tokens."""
    current = desk.settings
    return SettingsView(
        project=current.worktree,
        home=str(current.home),
        db=desk.store.shown,
        levels=current.levels,
        context_window=current.context_window,
        compress_after_days=current.compress_after_days,
        model=current.model,
        model_url=current.model_url,
        model_time_limit=current.model_time_limit,
        on_exhaustion=current.on_exhaustion,
        version=__version__,
    )


@router.get("/projects", responses=documented())
def list_projects(desk: AtDesk) -> ProjectList:
    """Folders that contain Holdfast sessions, including the server's own."""
    return ProjectList(projects=tuple(encode_path(bytes(folder)) for folder in desk.projects()))


@router.get("/stats", responses=documented())
def get_stats(desk: AtDesk) -> ProjectStats:
    """Statistics of the recorded actions of the server's project."""
    return ProjectStats(project=desk.settings.worktree, **vars(journal_stats(desk.settings.layout)))


@router.get("/stats/workflows", responses=documented())
def get_workflow_stats(desk: AtDesk) -> WorkflowStats:
    """How long tasks take, how much of the context window they need, and what ends sessions."""
    return WorkflowStats(
        newest=MOST_TASKS,
        drivers=Experience.of(desk.store).drivers,
        pauses=pauses_by_trigger(desk.store),
    )


# ── the dashboard's files ─────────────────────────────────────────────────────────────────────────

# The dashboard's files. Its page takes the token from the printed link and keeps it.

FILES = Path(__file__).parents[1] / "static"
"""Where the built dashboard stands in the package."""

_FOREVER = "public, max-age=31536000, immutable"

_NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Holdfast</title></head>
<body><h1>Holdfast is running</h1>
<p>The dashboard is not included in this build. In a clone, run <code>make dashboard</code>; the API is
under <code>/api</code>, described by <code>/api/openapi.json</code>.</p></body></html>
"""


def is_built(files: Path = FILES) -> bool:
    return (files / "index.html").is_file()


def dashboard_router(files: Path = FILES) -> APIRouter:
    pages = APIRouter()

    @pages.get("/{path:path}")
    async def page(path: str, request: Request) -> Response:
        """A file of the dashboard; for every address of its own, its one page."""
        if not is_built(files):
            return HTMLResponse(_NOT_BUILT, headers={"cache-control": "no-store"})
        found = _file(files, path)
        if found is None and _is_of_a_file(path):
            raise NotFoundError("the dashboard has no such file", hint="reload the page")
        cached = _FOREVER if found and path.startswith("assets/") else "no-cache"
        accepted = request.headers.get("accept-encoding", "")
        return _sent(found or files / "index.html", accepted, {"cache-control": cached})

    return pages


def _is_of_a_file(path: str) -> bool:
    """A script that is missing must not arrive as a page: after an update the old ones are asked for."""
    if _is_of_a_task(path):
        return False
    return path.startswith("assets/") or mimetypes.guess_type(path)[0] is not None


def _is_of_a_task(path: str) -> bool:
    """Whose id may be `setup.py`, or step to another folder."""
    place, _, rest = path.partition("/")
    return place == "workflows" and rest.partition("/")[2].startswith("tasks/")


_ENCODINGS = {"br": ".br", "gzip": ".gz"}
"""Made by the build beside each file; the smallest first."""


def _sent(file: Path, accepted: str, headers: dict[str, str]) -> FileResponse:
    taken = {one.partition(";")[0].strip() for one in accepted.lower().split(",") if not _is_refused(one)}
    headers = {**headers, "vary": "accept-encoding"}
    for encoding, ending in _ENCODINGS.items():
        compressed = file.with_name(file.name + ending)
        if encoding in taken and compressed.is_file():
            headers["content-encoding"] = encoding
            return FileResponse(compressed, headers=headers, media_type=mimetypes.guess_type(file)[0])
    return FileResponse(file, headers=headers)


def _is_refused(encoding: str) -> bool:
    """`gzip;q=0` is how a client says that it cannot read it."""
    weight = encoding.partition("q=")[2].strip()
    return weight != "" and not weight.strip("0.")


def _file(files: Path, path: str) -> Path | None:
    """Only what stands in the folder, whatever the address tries."""
    if not path or "\0" in path or _is_of_a_task(path):
        return None
    found = (files / path).resolve()
    return found if found.is_relative_to(files.resolve()) and found.is_file() else None
