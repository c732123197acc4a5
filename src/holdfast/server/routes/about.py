"""The server itself: is it well, what does it serve, how is it set."""

from __future__ import annotations

from fastapi import APIRouter

from holdfast import __version__
from holdfast.model.git import encode_path
from holdfast.server.desk import AtDesk
from holdfast.server.models import Health, ProjectList, ProjectStats, SettingsView, WorkflowStats
from holdfast.server.problems import documented
from holdfast.sessions.stats import journal_stats
from holdfast.workflows.experience import Experience, pauses_by_trigger

router = APIRouter(prefix="/api", tags=["about"])


@router.get("/health", responses=documented())
def get_health(desk: AtDesk) -> Health:
    """Whether the database answers, and who is there to work."""
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
    """As the server was started with; without passwords and tokens."""
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
    """Folders that hold sessions of ours; the server's own among them."""
    return ProjectList(projects=tuple(encode_path(bytes(folder)) for folder in desk.projects()))


@router.get("/stats", responses=documented())
def get_stats(desk: AtDesk) -> ProjectStats:
    """What the recorded actions of the server's project tell."""
    return ProjectStats(project=desk.settings.worktree, **vars(journal_stats(desk.settings.layout)))


@router.get("/stats/workflows", responses=documented())
def get_workflow_stats(desk: AtDesk) -> WorkflowStats:
    """How long tasks take, how much of the window they need, and what ends sessions."""
    return WorkflowStats(drivers=Experience.of(desk.store).drivers, pauses=pauses_by_trigger(desk.store))
