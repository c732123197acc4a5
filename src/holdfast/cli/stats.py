from __future__ import annotations

import click

from holdfast.cli import common
from holdfast.stats import JournalStats, journal_stats


@click.command("stats")
@common.json_option
def command(as_json: bool) -> None:
    """What the recorded actions tell: by type, by tool, time to exhaustion.

    \b
    Examples:
      holdfast stats
      holdfast stats --json
    """
    stats = journal_stats(common.settings().layout)
    if as_json:
        common.print_json(vars(stats))
    elif not stats.journals:
        click.echo("No actions were recorded in this project yet.")
    else:
        _print(stats)


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
        shown = common.duration(left) if left is not None else "not growing, or too early to say"
        click.echo(f"Time to exhaustion:   {shown}  ({stats.active_session})")
