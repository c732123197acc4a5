"""`stats` and `usage`: what was recorded, and how full context windows are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from holdfast.base.errors import DamagedDataError
from holdfast.cli import common
from holdfast.journal.usage import ContextUsageTracker, tracked_sessions
from holdfast.project.settings import Settings

TYPE_CHECKING = False

if TYPE_CHECKING:
    from holdfast.client.http import RemoteStore
    from holdfast.sessions.stats import JournalStats
    from holdfast.store.sql import SqlStore
    from holdfast.workflows.experience import DriverRecord


_MOST_WORKFLOWS = 10


@click.command("stats")
@click.option("--workflows", is_flag=True, help="Show statistics of the tasks of all workflows instead.")
@common.json_option
def stats_command(workflows: bool, as_json: bool) -> None:
    """Summarise the recorded actions by type and tool, with the time to exhaustion.

    \b
    Examples:
      holdfast stats
      holdfast stats --workflows --json
    """
    if workflows:
        _workflows(as_json)
        return
    stats = _of_journals(common.settings())
    if as_json:
        common.print_json(vars(stats))
    elif not stats.journals:
        click.echo("No actions recorded in this project yet.")
        drivers, pauses = _of_workflows(common.settings())
        if drivers:
            click.echo("Tasks of all workflows:")
            _print_tasks(drivers, pauses)
    else:
        _print(stats)


def _of_journals(current: Settings) -> JournalStats:
    if current.server is None:
        from holdfast.sessions.stats import journal_stats

        return journal_stats(current.layout)
    from holdfast.client.service import RemoteService

    with RemoteService(current) as service:
        return service.journal_stats()


def _of_workflows(current: Settings) -> tuple[Sequence[DriverRecord], dict[str, int]]:
    if current.server is not None:
        from holdfast.client.service import RemoteService

        with RemoteService(current) as service:
            return service.workflow_stats()
    from holdfast.sessions.pause import open_store
    from holdfast.workflows.experience import Experience, pauses_by_trigger

    with open_store(current) as store:
        return Experience.of(store).drivers, pauses_by_trigger(store)


def _workflows(as_json: bool) -> None:
    """How long tasks take, how much of the window they need, and what ends sessions."""
    from dataclasses import asdict

    drivers, pauses = _of_workflows(common.settings())
    if as_json:
        common.print_json({"drivers": [asdict(one) for one in drivers], "pauses": pauses})
        return
    if not drivers:
        click.echo("No workflow task has finished yet.")
        return
    _print_tasks(drivers, pauses)


def _print_tasks(drivers: Sequence[DriverRecord], pauses: dict[str, int]) -> None:
    common.print_table(
        (
            "DRIVER",
            "TASKS",
            "FAILED",
            "SECONDS (MEDIAN)",
            "80% WITHIN",
            "WINDOW (MEDIAN)",
            "80% WITHIN",
        ),
        [
            (
                one.driver,
                one.tasks,
                one.failed,
                f"{one.seconds_median:.1f}",
                f"{one.seconds_high:.1f}",
                None if one.share_median is None else f"{one.share_median:.0%}",
                None if one.share_high is None else f"{one.share_high:.0%}",
            )
            for one in drivers
        ],
    )
    if pauses:
        click.echo()
        common.print_table(("PAUSED BY", "SESSIONS"), list(pauses.items()))


def _print(stats: JournalStats) -> None:
    click.echo(f"{stats.actions} actions in {stats.journals} wind-downs")
    if stats.skipped_lines:
        click.echo(f"{stats.skipped_lines} damaged lines skipped")
    click.echo()
    common.print_table(("TYPE", "ACTIONS"), stats.by_type.most_common())
    if stats.by_tool:
        click.echo()
        common.print_table(("TOOL", "CALLS"), stats.by_tool.most_common())
    click.echo()
    if stats.context_per_action is not None:
        click.echo(f"Context per action:   {stats.context_per_action:.2%}")
    if stats.mean_duration_seconds is not None:
        click.echo(f"Mean wind-down:       {common.duration(stats.mean_duration_seconds)}")
    if stats.active_session is not None:
        left = stats.seconds_to_exhaustion
        shown = common.duration(left) if left is not None else "unknown (not growing, or too few actions)"
        click.echo(f"Time to exhaustion:   {shown}  ({stats.active_session})")


# ── usage ─────────────────────────────────────────────────────────────────────────────────────────


@click.command("usage")
@click.option(
    "--session", "session_id", metavar="ID", help="One agent session. Default: all in this project."
)
@common.json_option
def usage_command(session_id: str | None, as_json: bool) -> None:
    """Show how full the context window is, by agent session and workflow.

    \b
    Examples:
      holdfast usage
      holdfast usage --session 266b3f40-6f1d-491c-aeca-825cbb3fcbc5 --json
    """
    current = common.settings()
    if session_id is not None:
        _show([describe(tracker_for(current, session_id))], as_json)
        return
    states: list[dict[str, Any]] = []
    damaged: DamagedDataError | None = None
    for found in list(tracked_sessions(current.layout)):
        try:
            states.append(describe(tracker_for(current, found)))
        except DamagedDataError as error:
            damaged = error
    _show([*states, *_of_recent_workflows(current)], as_json)
    if damaged is not None:  # the others are shown first, then this one is told
        raise damaged


def _of_recent_workflows(current: Settings) -> list[dict[str, Any]]:
    """The newest session of each workflow in this folder whose tasks asked a model."""
    found = common.answered(
        current,
        lambda reader: [
            (workflow, [entry["usage"] for entry in reader.entries(workflow["id"], 0) if "usage" in entry])
            for workflow in reader.workflows(current.worktree, _MOST_WORKFLOWS)
        ],
        lambda store: [
            (workflow.model_dump(mode="json"), _reported(store, workflow.id))
            for workflow in store.workflows(worktree=current.worktree, limit=_MOST_WORKFLOWS)
        ],
    )
    return [_described_usage(workflow, usages[-1], current) for workflow, usages in found if usages]


def _reported(store: SqlStore | RemoteStore, workflow_id: str) -> list[dict[str, Any]]:
    events = store.events(workflow_id=workflow_id, types=["usage_reported"])
    return [event.entry.model_dump(mode="json")["usage"] for event in events]


def _described_usage(workflow: dict[str, Any], usage: dict[str, Any], current: Settings) -> dict[str, Any]:
    share = usage["context_utilization"]
    return {
        "session_id": workflow["id"],
        "percentage_used": None if share is None else round(share * 100, 2),
        "level": None if share is None else current.levels.at(share).label,
        "total_tokens": usage["tokens_used"],
        "context_window": None,
        "reports": usage["llm_calls"],
        "cost_usd": usage["cost_usd"],
        "model": None,
        "last_updated": workflow["updated_at"],
        "complete": True,
    }


def tracker_for(current: Settings, session_id: str) -> ContextUsageTracker:
    return ContextUsageTracker(
        current.project, session_id=session_id, context_window=current.context_window, levels=current.levels
    )


def describe(tracker: ContextUsageTracker) -> dict[str, Any]:
    state = tracker.get_current_state()
    return {
        "session_id": state.session_id,
        "percentage_used": round(state.percentage_used, 2),
        "level": tracker.levels.at(state.share).label,
        "total_tokens": state.total_tokens,
        "context_window": state.context_window,
        "input_tokens": state.input_tokens,
        "output_tokens": state.output_tokens,
        "cache_read": state.cache_read,
        "cache_write": state.cache_write,
        "reports": state.reports,
        "model": state.model,
        "last_updated": state.last_updated,
        "complete": state.is_complete,
        "set_aside": state.set_aside,
    }


def _used(state: dict[str, Any]) -> str | None:
    if state["percentage_used"] is None:
        return None
    return f"{'' if state['complete'] else 'at least '}{state['percentage_used']:.1f} %"


def _show(states: list[dict[str, Any]], as_json: bool) -> None:
    common.tell_table(
        as_json,
        states,
        f"No usage reported in this project yet. Start with: {common.FIRST_STEP}",
        ("SESSION", "USED", "LEVEL", "TOKENS", "WINDOW", "REPORTS", "MODEL"),
        lambda state: (
            state["session_id"],
            _used(state),
            state["level"],
            f"{state['total_tokens']:,}",
            None if state["context_window"] is None else f"{state['context_window']:,}",
            state["reports"],
            state["model"],
        ),
    )
