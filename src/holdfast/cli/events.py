from __future__ import annotations

import time

import click

from holdfast.cli import common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.entry import Event, SessionTaken

_POLL_SECONDS = 0.2


@click.command("events")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@click.option(
    "--follow", "-f", is_flag=True, help="Keep printing new events until the workflow pauses or ends."
)
@click.option("--since", type=click.IntRange(0), default=0, help="Only events with a higher number.")
@common.json_option
def events_command(workflow_id: str | None, follow: bool, since: int, as_json: bool) -> None:
    """Show what happened in a workflow, in order.

    With --json and --follow, prints one JSON object per line.

    \b
    Examples:
      holdfast events
      holdfast events wf_01k9… --follow --since 120
    """
    from holdfast.cli.running import chosen_workflow
    from holdfast.model.statuses import VALID_TRANSITIONS

    current = common.settings()
    with common.service_for(current) as service:
        workflow = chosen_workflow(service, current, workflow_id, "known", VALID_TRANSITIONS)
        if as_json and not follow:
            common.print_json([event.model_dump(mode="json") for event in service.events(workflow.id, since)])
            return
        while True:
            running = service.workflow(workflow.id).status == "in_progress"
            for event in service.events(workflow.id, since):
                since = event.seq
                _print(event, as_json=as_json)
            if not follow or not running:
                return
            time.sleep(_POLL_SECONDS)


@click.command("logs")
@click.argument("task_id", metavar="TASK")
@click.option("--workflow", "workflow_id", metavar="WORKFLOW", help="Default: the one in this folder.")
@click.option("--attempt", type=click.IntRange(1), help="Default: the last one.")
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the attempt ends.")
@common.json_option
def logs_command(
    task_id: str, workflow_id: str | None, attempt: int | None, follow: bool, as_json: bool
) -> None:
    """Show what a task printed, also while it runs.

    Of long output the beginning and the end are kept.

    \b
    Examples:
      holdfast logs build
      holdfast logs build --follow
    """
    from holdfast.cli.running import chosen_workflow
    from holdfast.model.statuses import VALID_TRANSITIONS

    current = common.settings()
    with common.service_for(current) as service:
        workflow = chosen_workflow(service, current, workflow_id, "known", VALID_TRANSITIONS)
        since = 0
        while True:
            found = service.task_output(workflow.id, task_id, attempt=attempt, since=since)
            since, attempt = found.next, found.attempt or attempt
            if as_json:
                common.print_json(vars(found), in_a_line=follow)
            else:
                common.echo_contents(found.text)
            if not follow or not found.is_running:
                return
            time.sleep(_POLL_SECONDS)


def _print(event: Event, *, as_json: bool) -> None:
    if as_json:
        import json

        from holdfast.base.neutral import neutral_json

        click.echo(neutral_json(json.dumps(event.model_dump(mode="json"), ensure_ascii=False)))
        return
    click.echo(
        f"{event.seq:>6}  {event.at:%Y-%m-%d %H:%M:%S}  {event.entry.type:<24} {_told(event)}".rstrip()
    )


def _taken_by(entry: SessionTaken) -> str:
    from holdfast.model.statuses import holder

    before = f", taken over from {holder(entry.took_over_from)}" if entry.took_over_from else ""
    return common.in_a_line(f"by {holder(entry.claim)}{before}")


def _told(event: Event) -> str:
    """The fields that tell something, in a line."""
    from holdfast.model.entry import SessionTaken

    fields = event.entry.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    fields.pop("type", None)
    if isinstance(event.entry, SessionTaken):
        return _taken_by(event.entry)
    names = ("task_id", "outcome", "status", "trigger", "reason", "text", "attempt", "seconds", "result")
    parts = [str(fields[name]) for name in names if name in fields and not isinstance(fields[name], dict)]
    line = " ".join(" ".join(parts).split())
    return line if len(line) <= 100 else line[:99] + "…"
