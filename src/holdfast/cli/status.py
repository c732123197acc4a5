from __future__ import annotations

import time
from typing import Any

import click

from holdfast.cli import common
from holdfast.config import Settings
from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.workflow import Workflow


@click.command("status")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@common.json_option
def command(workflow_id: str | None, as_json: bool) -> None:
    """Where the work in this folder stands.

    \b
    Examples:
      holdfast status
      holdfast status wf_01k9… --json
    """
    current = common.settings()
    report = {
        "project": current.worktree,
        "workflow": _workflow(current, workflow_id),
        "winddown": _winddown(current),
        "usage": _usage(current),
    }
    if as_json:
        common.print_json(report)
    else:
        _print(report)


def _workflow(current: Settings, workflow_id: str | None) -> dict[str, Any] | None:
    from holdfast.model.workflow import ACTIVE

    with common.store_for(current) as store:
        if workflow_id is not None:
            return _described(store.workflow(workflow_id), store.snapshots(workflow_id))
        found = store.workflows(worktree=current.worktree, limit=50)
        chosen = next((flow for flow in found if flow.status in ACTIVE), found[0] if found else None)
        return _described(chosen, store.snapshots(chosen.id)) if chosen else None


def _described(workflow: Workflow, snapshots: Any) -> dict[str, Any]:
    latest = max(snapshots, key=lambda line: (line.created_at, line.session_number), default=None)
    return {
        **workflow.model_dump(mode="json"),
        "snapshots": len(snapshots),
        "latest_snapshot": latest.session_id if latest else None,
        "tasks_completed": latest.tasks_completed if latest else 0,
        "tasks_remaining": latest.tasks_remaining if latest else 0,
    }


def _winddown(current: Settings) -> dict[str, Any] | None:
    from holdfast.winddown import IncrementalPauseManager

    manager = IncrementalPauseManager(settings=current)
    summary = manager.get_pause_summary()
    return {**summary, "orphaned": manager.is_orphaned()} if summary else None


def _usage(current: Settings) -> list[dict[str, Any]]:
    from holdfast.capacity.tracker import tracked_sessions
    from holdfast.cli.usage import describe, tracker_for

    found: list[dict[str, Any]] = []
    for session_id in tracked_sessions(current.layout):
        try:
            found.append(describe(tracker_for(current, session_id)))
        except HoldfastError as error:
            found.append({"session_id": session_id, "error": error.message})
    return found


def _print(report: dict[str, Any]) -> None:
    click.echo(f"Project:   {report['project']}")
    workflow = report["workflow"]
    if workflow is None:
        click.echo("Workflow:  none yet")
    else:
        click.echo(f"Workflow:  {workflow['issue']['title']}  ({workflow['id']})")
        click.echo(f"Status:    {_status_line(workflow)}")
        if workflow["latest_snapshot"]:
            click.echo(f"Snapshot:  {workflow['latest_snapshot']}  (session {workflow['session_count']})")
        if workflow["tasks_completed"] or workflow["tasks_remaining"]:
            click.echo(
                f"Tasks:     {workflow['tasks_completed']} done, {workflow['tasks_remaining']} remaining"
            )
    winddown = report["winddown"]
    if winddown:
        click.echo(f"Wind-down: {winddown['session_id']}, {winddown['action_count']} actions")
        if winddown["orphaned"]:
            click.echo("           left behind by a process that is gone: holdfast winddown recover")
    for line in report["usage"]:
        shown = (
            line.get("error")
            or f"{line['percentage_used']:.1f} % of {line['context_window']:,} tokens, {line['level']}"
        )
        click.echo(f"Usage:     {line['session_id']}: {shown}")
    if workflow is None and winddown is None:
        click.echo("Start with: holdfast winddown start --percent 0.90")


def _status_line(workflow: dict[str, Any]) -> str:
    from datetime import datetime

    moment = workflow["paused_at"] or workflow["updated_at"]
    passed = time.time() - datetime.fromisoformat(moment).timestamp()
    reason = f": {workflow['pause_reason']}" if workflow["pause_reason"] else ""
    return f"{workflow['status']}, {common.ago(passed)}{reason}"
