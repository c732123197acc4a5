from __future__ import annotations

import click

from holdfast.cli import common


@click.command("cancel")
@click.argument("workflow_id", metavar="WORKFLOW")
@click.option("--reason", "-r", help="Why, for the record.")
@common.json_option
def command(workflow_id: str, reason: str | None, as_json: bool) -> None:
    """End a workflow for good; a task in flight is stopped.

    \b
    Examples:
      holdfast cancel wf_01k9… -r "done by hand"
    """

    with common.service_for(common.settings()) as service:
        workflow = service.cancel(workflow_id, reason)
    if as_json:
        common.print_json({"status": workflow.status, "workflow_id": workflow.id})
    else:
        click.echo(f"✓ Workflow {workflow.id} cancelled")
