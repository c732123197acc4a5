from __future__ import annotations

import click

from holdfast.base.errors import NotFoundError
from holdfast.cli import common
from holdfast.project.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.workflow import Workflow
    from holdfast.workflows.service import Resumed


@click.command("resume")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@click.option("--from", "from_snapshot", metavar="SNAPSHOT", help="Go on from an older snapshot.")
@click.option("--message", "-m", help="What the next session should know from you.")
@click.option("--strict", is_flag=True, help="Refuse unless the worktree is known to be as at the pause.")
@click.option("--detach", is_flag=True, help="Leave it to a worker and return at once.")
@common.yes_option
@common.json_option
def command(
    workflow_id: str | None,
    from_snapshot: str | None,
    message: str | None,
    strict: bool,
    detach: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Resume a paused or failed workflow from its last snapshot.

    It continues where it left off, with the context of what earlier sessions did; a task that
    failed is tried again. A workflow whose process was killed is resumed the same way. A
    session without a plan, such as a wind-down, has nothing to run: its context is printed,
    and it is noted as taken up.

    \b
    Examples:
      holdfast resume
      holdfast resume wf_01k9… -m "use the new endpoint" --strict
      holdfast resume --from session-20260106-120000
    """
    from holdfast.cli.running import run_or_leave

    current = common.settings()
    with common.starting(current, detach=detach) as (service, here):
        workflow = _chosen(service, current, workflow_id)
        snapshot_id = _snapshot(service, current, from_snapshot)
        if here and not as_json and service.tasks(workflow.id).tasks:
            _show(service, workflow, snapshot_id, ask=not yes)
        claim = here.claim if here else None
        resumed = service.resume_workflow(
            workflow.id, snapshot_id=snapshot_id, message=message, strict=strict, claim=claim
        )
        for sentence in resumed.drift:
            click.echo(f"warning: {sentence}", err=True)
        if resumed.is_handover:
            return _hand_over(resumed, message, as_json=as_json)
        document = resumed.workflow.model_dump(mode="json")
        said = "✓ Workflow resumed"
        return run_or_leave(service, here, resumed.workflow, said, document, as_json=as_json)


def _chosen(service: common.Service, current: Settings, workflow_id: str | None) -> Workflow:
    from holdfast.cli.running import chosen_workflow
    from holdfast.model.workflow import OPEN, VALID_TRANSITIONS

    if workflow_id is None:
        # A failed one is meant while nothing came after it: later it may long be done in another way.
        newest = service.of_worktree(current.worktree, frozenset(VALID_TRANSITIONS))
        workflow_id = newest.id if newest and newest.status == "failed" else None
    workflow = chosen_workflow(service, current, workflow_id, "paused", OPEN)
    return service.resumable(workflow.id)


def _snapshot(service: common.Service, current: Settings, name: str | None) -> str | None:
    return common.find_snapshot(service.store, current, name).id if name else None


def _show(service: common.Service, workflow: Workflow, snapshot_id: str | None, *, ask: bool) -> None:
    """What it goes on from and what that costs, before anything is spent."""
    snapshot = service.snapshot(snapshot_id) if snapshot_id else service.store.latest_snapshot(workflow.id)
    if snapshot is not None:
        click.echo(f"Resuming from session {snapshot.session_number}:")
        why = snapshot.pause_reason or snapshot.trigger
        stopped = "Failed" if snapshot.trigger == "failure" else "Paused"
        click.echo(f"  {stopped}: {snapshot.created_at:%Y-%m-%d %H:%M:%S} UTC ({common.in_a_line(why)})")
        click.echo(f"  Tasks: {snapshot.tasks_completed} done, {snapshot.tasks_remaining} remaining")
        if workflow.options.driver != "shell":
            from holdfast.resume.snapshots import ResumeContextCompiler

            text = ResumeContextCompiler().compile(snapshot, workflow.issue)
            click.echo(f"  Context: about {len(text) // 4:,} tokens")
        if ask and common.is_interactive() and workflow.options.driver != "shell":
            click.confirm("Go on?", default=True, abort=True, err=True)
    click.echo(f"\nResuming workflow {workflow.id}...")


def _hand_over(resumed: Resumed, message: str | None, *, as_json: bool) -> int:
    """What the next session should read: the user's message, and what `holdfast context` prints."""
    from holdfast.resume.snapshots import ResumeContextCompiler

    snapshot, workflow, before = resumed.snapshot, resumed.workflow, resumed.taken_up_before
    if snapshot is None:
        raise NotFoundError(f"workflow {workflow.id} has no snapshot", hint="`holdfast snapshot list`")
    compiled = ResumeContextCompiler().compile_with_report(snapshot, workflow.issue, drift=resumed.drift)
    text = f"The user says now: {message}\n\n{compiled.text}" if message else compiled.text
    if as_json:
        handover = {"snapshot_id": snapshot.id, "session_id": snapshot.session_id, "context": text}
        document = workflow.model_dump(mode="json")
        common.print_json({**document, "handover": {**handover, "taken_up_before": before}})
        return 0
    again = f" again; before that at {before:%Y-%m-%d %H:%M:%S} UTC" if before else ""
    click.echo(f"Taken up {snapshot.session_id}{again}. There is no plan to run; go on from this:", err=True)
    click.echo(text, nl=False)
    return 0
