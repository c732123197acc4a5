from __future__ import annotations

import contextlib
from typing import Any

import click

from holdfast.base.errors import NotFoundError
from holdfast.cli import common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.service import RemoteStore
    from holdfast.store.reader import QuickReader
    from holdfast.store.sql import SqlStore


@click.group("snapshot")
def command() -> None:
    """List, show, compare and delete snapshots.

    SNAPSHOT is an id, the beginning of one, a session name (session-20260106-120000),
    or `latest`.

    \b
    Examples:
      holdfast snapshot list
      holdfast snapshot show latest
      holdfast snapshot diff session-20260106-120000 latest
    """


@command.command("list")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@click.option("--all", "everywhere", is_flag=True, help="Include all projects.")
@common.json_option
def list_snapshots(workflow_id: str | None, everywhere: bool, as_json: bool) -> None:
    """List snapshots, oldest first."""
    current = common.settings()
    worktree = None if everywhere else current.worktree
    lines = common.answered(
        current,
        lambda reader: read_lines(reader, worktree, workflow_id),
        lambda store: stored_lines(store, worktree, workflow_id),
    )
    lines.sort(key=lambda line: (line["created_at"], line["session_number"], line["id"]))
    common.tell_table(
        as_json,
        lines,
        f"No snapshots yet. Start with: {common.FIRST_STEP}",
        ("SNAPSHOT", "SESSION", "#", "TRIGGER", "PAUSED (UTC)", "TASKS", "REASON"),
        lambda line: (
            line["id"],
            line["session_id"],
            line["session_number"],
            line["trigger"],
            f"{line['created_at']:%Y-%m-%d %H:%M:%S}",
            f"{line['tasks_completed']}/{line['tasks_completed'] + line['tasks_remaining']}",
            line["pause_reason"],
        ),
    )


def read_lines(reader: QuickReader, worktree: str | None, workflow_id: str | None) -> list[dict[str, Any]]:
    if workflow_id is not None:
        flows = [reader.workflow(workflow_id)]
    else:
        flows = reader.workflows(worktree, limit=1000)
    return [line for flow in flows for line in reader.snapshots(flow["id"])]


def stored_lines(
    store: SqlStore | RemoteStore, worktree: str | None, workflow_id: str | None
) -> list[dict[str, Any]]:
    """The same of any store."""
    if workflow_id is not None:
        flows = [store.workflow(workflow_id)]
    else:
        flows = store.workflows(worktree=worktree, limit=1000)
    return [vars(line) for flow in flows for line in store.snapshots(flow.id)]


@command.command()
@click.argument("snapshot")
@common.json_option
def show(snapshot: str, as_json: bool) -> None:
    """Show a snapshot as a page, or in full as JSON."""
    from holdfast.store.documents import markdown, session_document

    current = common.settings()
    with common.store_for(current) as store:
        found = store.snapshot(common.find_snapshot(store, current, snapshot).id)
        workflow = store.workflow(found.workflow_id)
    if as_json:
        common.print_json(session_document(found, workflow))
    else:
        click.echo(markdown(found, workflow), nl=False)


@command.command()
@click.argument("before")
@click.argument("after")
@common.json_option
def diff(before: str, after: str, as_json: bool) -> None:
    """Show what changed from one snapshot to another."""
    from holdfast.model import snapshot as model

    current = common.settings()
    with common.store_for(current) as store:
        first, second = (
            store.snapshot(common.find_snapshot(store, current, name).id) for name in (before, after)
        )
    changes = model.diff(first, second)
    if as_json:
        common.print_json(changes.model_dump(mode="json"))
    elif changes.is_empty:
        click.echo("No difference.")
    else:
        _print_diff(changes)


def _print_diff(changes: Any) -> None:
    click.echo(f"{changes.before} -> {changes.after}")
    for step in changes.facts:
        click.echo(f"  {step.what}: {_shown(step.before)} -> {_shown(step.after)}")
    for task in changes.tasks:
        click.echo(f"  task {task.id}: {_shown(task.before)} -> {_shown(task.after)}")
    for item in changes.decisions_added:
        click.echo(f"  + decision: {item.description}")
    for item in changes.errors_added:
        click.echo(f"  + error: {item.error_type}: {item.error_message}")
    for item in changes.errors_resolved:
        click.echo(f"  ✓ resolved: {item.error_type}: {item.error_message}")
    for sign, paths in (
        ("+", changes.files_added),
        ("-", changes.files_removed),
        ("~", changes.files_changed),
    ):
        for path in paths:
            click.echo(f"  {sign} file: {path}")


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1%}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"  # pyright: ignore[reportUnknownArgumentType]
    return "none" if value is None else str(value)


@command.command()
@click.argument("snapshot")
@common.yes_option
@common.json_option
def delete(snapshot: str, yes: bool, as_json: bool) -> None:
    """Delete a snapshot, with its files if they are in this project."""
    from holdfast.model.workflow import Workflow
    from holdfast.sessions.transitions import Core
    from holdfast.store.session_files import SessionFiles
    from holdfast.store.sql import SqlStore

    current = common.settings()
    with common.store_for(current) as store:
        line = common.find_snapshot(store, current, snapshot)
        if not yes and common.is_interactive():
            click.confirm(f"Delete {line.session_id} ({line.id}) and its journal?", abort=True, err=True)
        if not isinstance(store, SqlStore):
            store.delete_snapshot(line)  # and the server its files
        else:
            workflow: Workflow = store.workflow(line.workflow_id)
            # Files first: should the database fail now, the next attempt still finds what to delete.
            if workflow.worktree == current.worktree and current.layout.sessions.is_dir():
                SessionFiles(current.layout.sessions).delete(line.session_id)
            with contextlib.suppress(NotFoundError):  # somebody else was faster; gone is what was asked for
                Core(store).delete_snapshot(line.id)
    common.tell(as_json, {"deleted": line.id, "session_id": line.session_id}, f"Deleted: {line.session_id}")
