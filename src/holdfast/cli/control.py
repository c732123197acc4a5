"""`approve`, `reject`, `pause` and `cancel`: what a person tells a running workflow."""

from __future__ import annotations

import click

from holdfast.cli import common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.workflow import Workflow

_reason_option = click.option("--reason", "-r", help="Why, for the record.")


@click.command("approve")
@click.argument("workflow_id", metavar="WORKFLOW")
@click.option("--detach", is_flag=True, help="Leave it to a worker and return at once.")
@common.json_option
def approve_command(workflow_id: str, detach: bool, as_json: bool) -> int:
    """Approve the task that is waiting, and continue.

    \b
    Examples:
      holdfast approve wf_01k9…
    """
    from holdfast.cli.running import run_or_leave

    with common.starting(common.settings(), detach=detach) as (service, here):
        workflow = service.approve(workflow_id, claim=here.claim if here else None)
        return run_or_leave(service, here, workflow, "✓ Approved", _answer(workflow), as_json=as_json)


def _answer(workflow: Workflow) -> dict[str, str]:
    return {"status": workflow.status, "workflow_id": workflow.id}


# ── reject ────────────────────────────────────────────────────────────────────────────────────────


@click.command("reject")
@click.argument("workflow_id", metavar="WORKFLOW")
@_reason_option
@common.json_option
def reject_command(workflow_id: str, reason: str | None, as_json: bool) -> None:
    """Reject the task that is waiting for approval; the workflow fails.

    \b
    Examples:
      holdfast reject wf_01k9… -r "not like this"
    """
    with common.service_for(common.settings()) as service:
        workflow = service.reject(workflow_id, reason)
    common.tell(as_json, _answer(workflow), f"✓ Workflow {workflow.id} rejected")


# ── pause ─────────────────────────────────────────────────────────────────────────────────────────


@click.command("pause")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@click.option("--reason", "-r", help="Why, for whoever resumes it.")
@click.option("--force-after", type=click.FloatRange(0), help="Cut the task off after so many seconds.")
@click.option("--no-wait", is_flag=True, help="Ask for it and return at once.")
@common.json_option
def pause_command(
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


# ── cancel ────────────────────────────────────────────────────────────────────────────────────────


@click.command("cancel")
@click.argument("workflow_id", metavar="WORKFLOW")
@_reason_option
@common.json_option
def cancel_command(workflow_id: str, reason: str | None, as_json: bool) -> None:
    """Cancel a workflow for good; a running task is stopped.

    \b
    Examples:
      holdfast cancel wf_01k9… -r "done by hand"
    """
    with common.service_for(common.settings()) as service:
        workflow = service.cancel(workflow_id, reason)
    common.tell(as_json, _answer(workflow), f"✓ Workflow {workflow.id} cancelled")
