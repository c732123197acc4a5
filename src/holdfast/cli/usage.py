from __future__ import annotations

from typing import Any

import click

from holdfast.base.errors import DamagedDataError
from holdfast.cli import common
from holdfast.journal.usage import ContextUsageTracker, tracked_sessions
from holdfast.project.settings import Settings


@click.command("usage")
@click.option("--session", "session_id", metavar="ID", help="One agent session; else all of this project.")
@common.json_option
def command(session_id: str | None, as_json: bool) -> None:
    """How full the context window is, by agent session.

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
    _show(states, as_json)
    if damaged is not None:  # the others are shown first, then this one is told
        raise damaged


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


def _show(states: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        common.print_json(states)
        return
    if not states:
        click.echo("No usage was reported in this project yet.")
        return
    common.print_table(
        ("SESSION", "USED", "LEVEL", "TOKENS", "WINDOW", "REPORTS", "MODEL"),
        [
            (
                state["session_id"],
                f"{'' if state['complete'] else 'at least '}{state['percentage_used']:.1f} %",
                state["level"],
                f"{state['total_tokens']:,}",
                f"{state['context_window']:,}",
                state["reports"],
                state["model"],
            )
            for state in states
        ],
    )
