from __future__ import annotations

import click

from holdfast.cli import common


@click.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Of all projects, not only this one.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="How many at most.")
@common.json_option
def command(everywhere: bool, limit: int, as_json: bool) -> None:
    """Show workflows, the most recently changed first.

    \b
    Examples:
      holdfast list
      holdfast list --all --json
    """
    current = common.settings()
    with common.store_for(current) as store:
        found = store.workflows(worktree=None if everywhere else current.worktree, limit=limit)
    if as_json:
        common.print_json([workflow.model_dump(mode="json") for workflow in found])
        return
    if not found:
        click.echo(
            "No workflows yet." if everywhere else "No workflows in this folder; `--all` shows all projects."
        )
        return
    common.print_table(
        ("WORKFLOW", "STATUS", "SESSIONS", "CHANGED (UTC)", "TITLE", "WORKTREE"),
        [
            (
                workflow.id,
                workflow.status,
                workflow.session_count,
                f"{workflow.updated_at:%Y-%m-%d %H:%M}",
                workflow.issue.title,
                workflow.worktree,
            )
            for workflow in found
        ],
    )
