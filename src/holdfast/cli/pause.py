from __future__ import annotations

import click

from holdfast.cli import common


@click.command("pause")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@click.option("--reason", "-r", help="Why, for whoever resumes it.")
@click.option("--force-after", type=click.FloatRange(0), help="Cut the task off after so many seconds.")
@click.option("--no-wait", is_flag=True, help="Ask for it and return at once.")
@common.json_option
def command(
    workflow_id: str | None, reason: str | None, force_after: float | None, no_wait: bool, as_json: bool
) -> None:
    """Pause a running workflow at the next task boundary.

    The running task is let finish; after 5 minutes, or --force-after, it is cut off and will run
    again. A snapshot is made for resuming later.

    \b
    Examples:
      holdfast pause -r "going home"
      holdfast pause wf_01k9… --force-after 30
    """
    from holdfast.cli.running import chosen_workflow
    from holdfast.model.workflow import ACTIVE

    current = common.settings()
    with common.service_for(current) as service:
        workflow = chosen_workflow(service, current, workflow_id, "active", ACTIVE)
        if not as_json:
            click.echo(f"Pausing workflow {workflow.id}...")
        snapshot_id = service.pause_workflow(workflow.id, reason, force_after=force_after, wait=not no_wait)
    if as_json:
        status = "paused" if snapshot_id else "pausing"
        common.print_json({"status": status, "workflow_id": workflow.id, "snapshot_id": snapshot_id})
        return
    if snapshot_id is None:
        click.echo("✓ Pause requested: it is honoured at the end of the running task")
        return
    click.echo(f"✓ Workflow paused (snapshot: {snapshot_id})")
    click.echo(f"  Resume with: holdfast resume {workflow.id}")
