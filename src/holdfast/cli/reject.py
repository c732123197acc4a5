from __future__ import annotations

import click

from holdfast.cli import common


@click.command("reject")
@click.argument("workflow_id", metavar="WORKFLOW")
@click.option("--reason", "-r", help="Why, for the record.")
@common.json_option
def command(workflow_id: str, reason: str | None, as_json: bool) -> None:
    """Refuse the task that waits for approval; the workflow has failed.

    \b
    Examples:
      holdfast reject wf_01k9… -r "not like this"
    """

    with common.service_for(common.settings()) as service:
        workflow = service.reject(workflow_id, reason)
    if as_json:
        common.print_json({"status": workflow.status, "workflow_id": workflow.id})
    else:
        click.echo(f"✓ Workflow {workflow.id} rejected")
