from __future__ import annotations

import click

from holdfast.cli import common


@click.command("approve")
@click.argument("workflow_id", metavar="WORKFLOW")
@click.option("--detach", is_flag=True, help="Leave it to a worker and return at once.")
@common.json_option
def command(workflow_id: str, detach: bool, as_json: bool) -> int:
    """Let the task start that waits for approval, and go on.

    \b
    Examples:
      holdfast approve wf_01k9…
    """
    from holdfast.cli.running import leave_to_workers, run_here

    current = common.settings()
    if detach:
        with common.service_for(current) as service:
            workflow = service.approve(workflow_id)
            how = leave_to_workers(service, current)
        if as_json:
            common.print_json({"status": workflow.status, "workflow_id": workflow.id})
        else:
            click.echo(f"✓ Approved: {how}")
        return 0
    with common.runner_for(current) as here:
        workflow = here.service.approve(workflow_id, claim=here.claim)
        if not as_json:
            click.echo("✓ Approved")
        return run_here(here, workflow, as_json=as_json)
