from __future__ import annotations

from collections.abc import Sequence

import click

from holdfast.cli import common
from holdfast.project.settings import Settings
from holdfast.sessions.stats import JournalStats, journal_stats

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.workflows.experience import DriverRecord


@click.command("stats")
@click.option("--workflows", is_flag=True, help="What the tasks of all workflows tell instead.")
@common.json_option
def command(workflows: bool, as_json: bool) -> None:
    """What the recorded actions tell: by type, by tool, time to exhaustion.

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
        click.echo("No actions were recorded in this project yet.")
    else:
        _print(stats)


def _of_journals(current: Settings) -> JournalStats:
    if current.server is None:
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
        click.echo("No task of a workflow has ended yet.")
        return
    common.print_table(
        (
            "DRIVER",
            "TASKS",
            "FAILED",
            "SECONDS (MEDIAN)",
            "4 OF 5 WITHIN",
            "WINDOW (MEDIAN)",
            "4 OF 5 WITHIN",
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
        shown = common.duration(left) if left is not None else "not growing, or too early to say"
        click.echo(f"Time to exhaustion:   {shown}  ({stats.active_session})")
