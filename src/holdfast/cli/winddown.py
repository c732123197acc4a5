from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from holdfast.base.errors import HoldfastError, InvalidInputError
from holdfast.base.process import lasting_parent
from holdfast.base.text import counted
from holdfast.cli import common
from holdfast.journal.log import ACTION_TYPES, NotActiveError
from holdfast.project.formats import ARCHIVE_SUFFIX
from holdfast.sessions.winddown import IncrementalPauseManager

OrphanChoice = Literal["finalize", "discard", "continue"]

_percent = click.option(
    "--percent", type=float, required=True, metavar="FRACTION", help="Context in use, as a fraction: 0.90."
)

_APPEND_HELP = f"""Record one action; it is on the disk when this returns.

TYPE is one of {", ".join(ACTION_TYPES)}.
"""


@click.group("winddown")
def command() -> None:
    """Record the last actions of a session and turn them into a snapshot.

    \b
    Examples:
      holdfast winddown start --percent 0.90 --state '{"model": "claude-sonnet-4-5"}'
      holdfast winddown append tool_call --data '{"tool": "Read", "path": "a.py"}' --percent 0.91
      holdfast winddown summary
      holdfast winddown finalize
    """


def _manager() -> IncrementalPauseManager:
    # This process ends at once; the one that called it is the one whose end leaves an orphan.
    return IncrementalPauseManager(settings=common.settings(), owner=lasting_parent())


@command.command()
@_percent
@click.option("--state", default="{}", metavar="JSON", help="What is known at the start; `-` reads stdin.")
@common.json_option
def start(percent: float, state: str, as_json: bool) -> None:
    """Start a wind-down in this project.

    One that a crash left behind is offered first on a terminal, and finalised elsewhere.
    """
    initial = common.parse_json_object(state, "--state")
    manager = _manager()
    manager.check_start(percent, initial)  # before an orphan is touched
    if manager.is_orphaned() and _settle_orphan(manager, None) == "continue":
        session_id = manager.continue_pause()
    else:
        session_id = manager.start_incremental_pause(percent, initial)
    common.tell(
        as_json,
        {"session_id": session_id, "journal": str(manager.layout.journal)},
        f"Wind-down started: {session_id}",
        "Record with: holdfast winddown append TYPE --data JSON --percent P",
    )


@command.command(help=_APPEND_HELP)
@click.argument("type", metavar="TYPE")
@click.option("--data", default="{}", metavar="JSON", help="What happened; `-` reads stdin.")
@_percent
@common.json_option
def append(type: str, data: str, percent: float, as_json: bool) -> None:  # noqa: A002 - the option's name
    manager = _manager()
    manager.append_action(type, common.parse_json_object(data, "--data"), percent)
    if as_json:
        common.print_json({"recorded": type, "context_percentage": percent})


@command.command()
@common.json_option
def summary(as_json: bool) -> None:
    """Show where the active wind-down stands."""
    manager = _manager()
    found = _active(manager)
    orphaned = manager.is_orphaned()
    start, now = found["context_range"]
    common.tell(
        as_json,
        {**found, "orphaned": orphaned},
        f"Session:  {found['session_id']}{'  (left behind by a process that is gone)' if orphaned else ''}",
        f"Actions:  {found['action_count']}, the last a {found['last_action_type'] or 'damaged line'}",
        f"Context:  {start:.1%} -> {now:.1%}",
        f"Duration: {common.duration(found['duration_seconds'])}",
    )


def _active(manager: IncrementalPauseManager) -> dict[str, Any]:
    found = manager.get_pause_summary()
    if found is None:
        raise NotActiveError("no wind-down is active here")
    return found


@command.command()
@click.option("--archive-only", is_flag=True, help="Keep the journal alone; make no snapshot.")
@click.option("--commit", is_flag=True, help="Commit the snapshot's files to git, without running hooks.")
@click.option("-r", "--reason", help="Why it was paused, for the next session to read.")
@click.option(
    "--transcript",
    type=click.Path(path_type=Path, readable=False),  # a wrong one costs the findings, not the pause
    metavar="FILE",
    help="The agent's session file: decisions, errors, files and commands are added from it.",
)
@common.json_option
def finalize(
    archive_only: bool, commit: bool, reason: str | None, transcript: Path | None, as_json: bool
) -> None:
    """Make the wind-down a session: JSON, YAML, Markdown, and an entry in the database."""
    if archive_only and commit:
        raise InvalidInputError("--archive-only makes no snapshot, so there is nothing to --commit")
    manager = _manager()
    reason = as_text(reason) if reason else None
    path = manager.finalize_pause(not archive_only, reason=reason, worked=transcript is not None)
    if path is None:
        raise NotActiveError("no wind-down is active here")
    if transcript is not None and not archive_only:
        _enrich(manager, path.stem, transcript)
    if commit:
        manager.commit(path.stem)
    paused = (f"Paused: {path.stem}", f"  {path}", f"See it with: holdfast snapshot show {path.stem}")
    lines = (f"Journal kept: {path}",) if archive_only else paused
    common.tell(as_json, {"session_id": _session_of(path.name), "path": str(path)}, *lines)


def as_text(argument: str) -> str:
    """An argument is bytes; what of it is not valid UTF-8 is shown as such and stops nothing."""
    return argument.encode(errors="surrogateescape").decode(errors="replace")


def _enrich(manager: IncrementalPauseManager, session_id: str, transcript: Path) -> None:
    """The pause is safe; should this fail, only the findings are missing."""
    from holdfast.sessions.enrich import enrich_snapshot

    try:
        with common.store_for(manager.settings) as store:
            snapshot_id = common.find_snapshot(store, manager.settings, session_id).id
        enrich_snapshot(manager.settings, snapshot_id, transcript)
    except HoldfastError as error:
        click.echo(f"warning: nothing was added from {transcript}: {error.message}", err=True)


def _session_of(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(ARCHIVE_SUFFIX).removesuffix(".json")


@command.command()
@common.yes_option
def discard(yes: bool) -> None:
    """Throw the active wind-down away; nothing of it is kept."""
    manager = _manager()
    found = _active(manager)
    if not yes and common.is_interactive():
        click.confirm(f"Throw away {found['action_count']} recorded actions?", abort=True, err=True)
    manager.discard_pause()
    click.echo(f"Discarded: {found['session_id']}")


@command.command()
@click.option("--finalize", "choice", flag_value="finalize", help="Make a snapshot of what it holds.")
@click.option("--discard", "choice", flag_value="discard", help="Throw it away.")
@click.option("--continue", "choice", flag_value="continue", help="Take it over and go on appending.")
@common.json_option
def recover(choice: OrphanChoice | None, as_json: bool) -> None:
    """Settle a wind-down that a crash left behind.

    Asks on a terminal; finalises it with what it holds elsewhere.
    """
    manager = _manager()
    found = manager.get_pause_summary()
    if found is None:
        common.tell(as_json, {"recovered": None}, "Nothing to recover.")
        return
    done = _settle_orphan(manager, choice)
    if done == "continue":
        manager.continue_pause()
    if as_json:
        common.print_json({"recovered": found["session_id"], "how": done})
    elif done == "continue":
        click.echo(f"Going on with {found['session_id']}.")


def _settle_orphan(manager: IncrementalPauseManager, choice: OrphanChoice | None) -> OrphanChoice:
    """Finalise, discard or leave the wind-down that is there, as chosen, asked, or by default finalised."""
    found = _active(manager)
    chosen = choice or (_ask(found) if common.is_interactive() else "finalize")
    if chosen == "finalize":
        crashed = manager.is_orphaned()
        path = manager.finalize_pause(
            trigger="crash" if crashed else None,
            reason="its process ended without a pause" if crashed else None,
        )
        click.echo(f"Recovered {found['session_id']}: {path}", err=True)
    elif chosen == "discard":
        manager.discard_pause()
        click.echo(f"Discarded {found['session_id']}.", err=True)
    return chosen


def _ask(found: dict[str, Any]) -> OrphanChoice:
    click.echo(f"Found a wind-down that nobody finished: {found['session_id']}", err=True)
    click.echo(f"  {counted(found['action_count'], 'action')}, started {found['pause_started_at']}", err=True)
    letter = click.prompt(
        "Finalise (f), discard (d) or continue (c)?",
        type=click.Choice(["f", "d", "c"]),
        default="f",
        err=True,
    )
    answers: dict[str, OrphanChoice] = {"f": "finalize", "d": "discard", "c": "continue"}
    return answers[letter]
