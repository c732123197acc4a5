from __future__ import annotations

import signal

import click

from holdfast.cli import common
from holdfast.cli.interrupts import answering


@click.command("worker")
@click.option(
    "--concurrency", type=click.IntRange(1), default=4, show_default=True, help="Sessions at a time."
)
@click.option("--lease", type=click.FloatRange(0.5), default=5.0, show_default=True,
              help="Seconds of silence after which others take over.")  # fmt: skip
@click.option("--until-idle", is_flag=True, help="End when there is nothing left to do.")
def command(concurrency: int, lease: float, until_idle: bool) -> None:
    """Run queued workflows, and take over from workers that have died.

    Start as many as you like, on as many machines as reach the database. Ctrl-C leaves at the next
    task boundary; others go on from there.

    \b
    Examples:
      holdfast worker
      HOLDFAST_DB=postgresql://user@host/holdfast holdfast worker --concurrency 8
    """
    from holdfast.workflows.worker import Worker

    worker = Worker(common.settings(), concurrency=concurrency, lease_seconds=lease)

    def stop() -> None:
        click.echo("Leaving at the next task boundary; once more leaves now.", err=True)
        worker.stop()

    with answering({signal.SIGINT: stop, signal.SIGTERM: stop}):
        if not until_idle:
            click.echo("Waiting for work; Ctrl-C ends this worker.", err=True)
        worker.run(until_idle=until_idle)
