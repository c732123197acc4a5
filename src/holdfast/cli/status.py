"""`status`, `threads` and `list`: where the work stands."""

from __future__ import annotations

import shlex
import time
from typing import Any

import click

from holdfast.base.errors import HoldfastError
from holdfast.base.text import counted
from holdfast.cli import common
from holdfast.model.statuses import NEVER_RUN_AGAIN
from holdfast.project.settings import Settings

TYPE_CHECKING = False

if TYPE_CHECKING:
    from holdfast.client.http import RemoteStore
    from holdfast.model.workflow import Workflow
    from holdfast.sessions.threads import Thread
    from holdfast.store.sql import SqlStore


_LAST_LINES = 5


@click.command("status")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@common.json_option
def status_command(workflow_id: str | None, as_json: bool) -> None:
    """Show the status of the work in this folder.

    \b
    Examples:
      holdfast status
      holdfast status wf_01k9… --json
    """
    report = status_report(common.settings(), workflow_id)
    if as_json:
        common.print_json(report)
    else:
        _print(report)


def status_report(current: Settings, workflow_id: str | None) -> dict[str, Any]:
    return {
        "project": current.worktree,
        "workflow": _workflow(current, workflow_id),
        "winddown": _winddown(current),
        "usage": _usage(current),
    }


def _workflow(current: Settings, workflow_id: str | None) -> dict[str, Any] | None:
    from holdfast.sessions.standing import read_standing

    return common.answered(
        current,
        lambda reader: read_standing(reader, current.worktree, workflow_id),
        lambda store: stored_standing(store, current.worktree, workflow_id),
    )


def stored_standing(
    store: SqlStore | RemoteStore, worktree: str, workflow_id: str | None
) -> dict[str, Any] | None:
    """The same of any store."""
    from holdfast.sessions.standing import chosen

    if workflow_id is not None:
        return _described(store, store.workflow(workflow_id))
    workflow = chosen(store.workflows(worktree=worktree, limit=50), lambda flow: flow.status)
    return _described(store, workflow) if workflow else None


def _described(store: SqlStore | RemoteStore, workflow: Workflow) -> dict[str, Any]:
    """As it stands now, not as it stood at the last pause."""
    from holdfast.sessions.standing import described
    from holdfast.sessions.transitions import Core

    snapshots = store.snapshots(workflow.id)
    latest = max(snapshots, key=lambda line: (line.created_at, line.session_number), default=None)
    fold = Core(store).fold(workflow)
    return described(
        workflow.model_dump(mode="json"),
        fold.tasks().tasks,
        snapshots=len(snapshots),
        latest_snapshot=latest.session_id if latest else None,
        current_task_id=fold.current_task_id,
        context_utilization=fold.usage.context_utilization,
        abandoned=_is_abandoned(store, workflow),
    )


def _is_abandoned(store: SqlStore | RemoteStore, workflow: Workflow) -> bool:
    if workflow.claim is None:
        return False
    from holdfast.model.statuses import is_gone
    from holdfast.store.sql import SqlStore

    if not isinstance(store, SqlStore):
        return store.is_abandoned(workflow.id)
    return is_gone(workflow.claim, store.leases.all())


def _winddown(current: Settings) -> dict[str, Any] | None:
    if not current.layout.journal.exists():
        return None
    from holdfast.sessions.winddown import IncrementalPauseManager

    manager = IncrementalPauseManager(settings=current)
    summary = manager.get_pause_summary()
    return {**summary, "orphaned": manager.is_orphaned()} if summary else None


def _usage(current: Settings) -> list[dict[str, Any]]:
    if not any(current.layout.state.glob("usage-*.json")):  # then nothing need be loaded for it
        return []
    from holdfast.cli.stats import describe, tracker_for
    from holdfast.journal.usage import tracked_sessions

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
        _print_workflow(workflow)
    winddown = report["winddown"]
    if winddown:
        click.echo(f"Wind-down: {winddown['session_id']}, {counted(winddown['action_count'], 'action')}")
        if winddown["orphaned"]:
            click.echo("           abandoned by a dead process: holdfast winddown recover")
    for line in report["usage"]:
        shown = (
            line.get("error")
            or f"{line['percentage_used']:.1f} % of {line['context_window']:,} tokens, {line['level']}"
        )
        click.echo(f"Usage:     {line['session_id']}: {shown}")
    if workflow is None and winddown is None:
        click.echo(f"Start with: {common.FIRST_STEP}")


def _print_workflow(workflow: dict[str, Any]) -> None:
    click.echo(f"Workflow:  {workflow['issue']['title']}  ({workflow['id']})")
    click.echo(f"Status:    {_status_line(workflow)}")
    if workflow["latest_snapshot"]:
        click.echo(f"Snapshot:  {workflow['latest_snapshot']}  (session {workflow['session_count']})")
    if workflow["tasks_completed"] or workflow["tasks_remaining"]:
        click.echo(f"Tasks:     {workflow['tasks_completed']} done, {workflow['tasks_remaining']} remaining")
    context = _context(workflow)
    if context:
        click.echo(f"Context:   {context}")
    for task in workflow["failed_tasks"]:
        _print_failed(task)
    if workflow["current_task_id"]:
        click.echo(f"Running:   {workflow['current_task_id']}")
    if workflow["status"] == "failed":
        _print_ways_on(workflow)
    if workflow["abandoned"]:
        click.echo(f"           it does not seem to be running: holdfast resume {workflow['id']}")


def _print_failed(task: dict[str, Any]) -> None:
    first, *output = (task["reason"] or "no reason given").splitlines()
    click.echo(f"Failed:    {task['id']} (attempt {task['attempt']}): {common.in_a_line(first)}")
    for line in output[-_LAST_LINES:]:
        click.echo(f"             {common.in_a_line(line)}")


def _print_ways_on(workflow: dict[str, Any]) -> None:
    click.echo(f"           try again: holdfast retry --workflow {workflow['id']}")
    for task in workflow["failed_tasks"][:1]:
        named = f"{shlex.quote(task['id'])} --workflow {workflow['id']}"
        click.echo(f"           or without it: holdfast skip {named}")


def _context(workflow: dict[str, Any]) -> str:
    """How full the window is; of work that can go on, also where it pauses."""
    share = workflow["context_utilization"]
    known = [] if share is None else [f"{share:.0%} of the window"]
    if workflow["tasks_remaining"] and workflow["status"] not in NEVER_RUN_AGAIN:
        known.append(f"pauses at {workflow['options']['exhaustion_at']:.0%}")
    return ", ".join(known)


def _status_line(workflow: dict[str, Any]) -> str:
    from datetime import datetime

    moment = workflow["paused_at"] or workflow["updated_at"]
    passed = time.time() - datetime.fromisoformat(moment).timestamp()
    told_below = workflow["status"] == "failed" and workflow["failed_tasks"]
    reason = f": {workflow['pause_reason']}" if workflow["pause_reason"] and not told_below else ""
    return f"{workflow['status']}, {common.ago(passed)}{reason}"


# ── threads ───────────────────────────────────────────────────────────────────────────────────────


def _nothing_recorded(current: Settings) -> str:
    """A plan that has not paused yet has left nothing to go on from."""
    with common.store_for(current) as store:
        flows = store.workflows(worktree=current.worktree, statuses=frozenset({"in_progress", "blocked"}))
    if flows:
        return f"No pause recorded in this folder yet; {flows[0].id} is at work here: holdfast status"
    return f"No work recorded in this folder yet. Start with: {common.FIRST_STEP}"


@click.command("threads")
@click.option("--all", "everything", is_flag=True, help="Include finished work.")
@click.option("--done", "closed", metavar="THREAD", help="Close a thread: nothing is left to do.")
@common.json_option
def threads_command(everything: bool, closed: str | None, as_json: bool) -> None:
    """List the open pieces of work in this folder.

    Sessions that worked on the same thing are one thread: the same conversation, plan, files on a branch, or
    a handover that was taken up. `holdfast resume THREAD` prints the handover of one.

    \b
    Examples:
      holdfast threads
      holdfast threads --all --json
      holdfast threads --done session-20260106-120000
    """
    from holdfast.sessions.threads import threads_in

    current = common.settings()
    with common.store_for(current) as store:
        found = threads_in(store, current.worktree)
    if closed is not None:
        _close(current, found, closed, as_json=as_json)
        return
    shown = [one for one in found if everything or one.is_open]
    common.tell_table(
        as_json,
        [one.model_dump(mode="json") for one in shown],
        "No open work in this folder." if found else _nothing_recorded(current),
        ("THREAD", "BRANCH", "STATUS", "CHANGED (UTC)", "TITLE", "STATE"),
        lambda one: (
            one["id"],
            one["branch"],
            one["status"],
            one["updated_at"][:16].replace("T", " "),
            one["title"],
            one["state"],
        ),
    )


def _close(current: Settings, found: list[Thread], name: str, *, as_json: bool) -> None:
    from holdfast.base.errors import InvalidInputError
    from holdfast.sessions.enrich import add_to_snapshot
    from holdfast.sessions.threads import find_thread, thread_not_found

    thread = find_thread(found, name)
    if thread is None:
        raise thread_not_found(name)
    if thread.issue:
        raise InvalidInputError(
            f"{thread.id} has a plan: it is closed by ending its workflow",
            hint=f"`holdfast cancel {thread.id}` ends it",
        )
    if current.server is not None:
        raise InvalidInputError("--done works on a local database only", hint="run it without --server")
    add_to_snapshot(current, thread.snapshot_id, {"closed": True})
    common.tell(as_json, {"closed": thread.id}, f"✓ Closed {thread.id}: {thread.title}")


# ── list ──────────────────────────────────────────────────────────────────────────────────────────


@click.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Include all projects.")
@click.option(
    "--limit", type=click.IntRange(1), default=100, show_default=True, help="Maximum number to show."
)
@common.json_option
def list_command(everywhere: bool, limit: int, as_json: bool) -> None:
    """List workflows, most recently changed first.

    \b
    Examples:
      holdfast list
      holdfast list --all --json
    """
    current = common.settings()
    worktree = None if everywhere else current.worktree
    found = common.answered(
        current,
        lambda reader: reader.workflows(worktree, limit),
        lambda store: [
            workflow.model_dump(mode="json") for workflow in store.workflows(worktree=worktree, limit=limit)
        ],
    )
    common.tell_table(
        as_json,
        found,
        "No workflows yet."
        if everywhere
        else "No workflows in this folder. Use `--all` to include all projects.",
        ("WORKFLOW", "STATUS", "SESSIONS", "CHANGED (UTC)", "TITLE", "WORKTREE"),
        lambda workflow: (
            workflow["id"],
            workflow["status"],
            workflow["session_count"],
            workflow["updated_at"][:16].replace("T", " "),
            workflow["issue"]["title"],
            workflow["worktree"],
        ),
    )
