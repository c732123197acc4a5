from __future__ import annotations

import time
from typing import Any

import click

from holdfast.base.errors import NotFoundError
from holdfast.cli import common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.workflow import Workflow
    from holdfast.project.settings import Settings
    from holdfast.store.reader import QuickReader

_POLL_SECONDS = 0.2
_LOOKED_AT = 20
"""Newest workflows of a folder, as the service looks at."""


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
    current = common.settings()
    if follow:
        _follow(current, workflow_id, since, as_json=as_json)
        return
    found = _events(current, workflow_id, since)
    if as_json:
        common.print_json(found)
        return
    for event in found:
        _print(event)


def _events(current: Settings, workflow_id: str | None, since: int) -> list[dict[str, Any]]:
    def quickly(reader: QuickReader) -> list[dict[str, Any]]:
        return reader.printed_events(_workflow_named(reader, current, workflow_id), since)

    for found in common.answered_quickly(current, quickly):
        return found
    with common.service_for(current) as service:
        workflow = _known_workflow(service, current, workflow_id)
        return [event.model_dump(mode="json") for event in service.events(workflow.id, since)]


def _workflow_named(reader: QuickReader, current: Settings, workflow_id: str | None) -> str:
    """As `_known_workflow` chooses; where there is none, that says so."""
    from holdfast.sessions.standing import chosen

    if workflow_id is not None:
        return reader.workflow(workflow_id)["id"]
    found = chosen(reader.workflows(current.worktree, _LOOKED_AT), lambda flow: flow["status"])
    if found is None:
        raise NotFoundError("none in this folder")
    return found["id"]


def _known_workflow(service: common.Service, current: Settings, workflow_id: str | None) -> Workflow:
    from holdfast.cli.running import chosen_workflow
    from holdfast.model.statuses import VALID_TRANSITIONS

    return chosen_workflow(service, current, workflow_id, "known", VALID_TRANSITIONS)


def _follow(current: Settings, workflow_id: str | None, since: int, *, as_json: bool) -> None:
    with common.service_for(current) as service:
        workflow = _known_workflow(service, current, workflow_id)
        while True:
            running = service.workflow(workflow.id).status == "in_progress"
            for event in service.events(workflow.id, since):
                since = event.seq
                document = event.model_dump(mode="json")
                if as_json:
                    common.print_json(document, in_a_line=True)
                else:
                    _print(document)
            if not running:
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
    current = common.settings()
    with common.service_for(current) as service:
        workflow = _known_workflow(service, current, workflow_id)
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


def _print(event: dict[str, Any]) -> None:
    at = event["at"][:19].replace("T", " ")
    click.echo(f"{event['seq']:>6}  {at}  {event['entry']['type']:<24} {_told(event['entry'])}".rstrip())


def _taken_by(entry: dict[str, Any]) -> str:
    from holdfast.model.statuses import holder

    before = f", taken over from {holder(entry['took_over_from'])}" if entry["took_over_from"] else ""
    return common.in_a_line(f"by {holder(entry['claim'])}{before}")


def _told(entry: dict[str, Any]) -> str:
    """The fields that tell something, in a line; a first attempt goes without saying."""
    if entry["type"] == "session_taken":
        return _taken_by(entry)
    names = ("task_id", "outcome", "status", "trigger", "reason", "text", "attempt", "seconds", "result")
    told = [name for name in names if entry.get(name) is not None and (name, entry[name]) != ("attempt", 1)]
    parts = [str(entry[name]) for name in told if not isinstance(entry[name], dict)]
    line = " ".join(" ".join(parts).split())
    return line if len(line) <= 100 else line[:99] + "…"
