from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import click

from holdfast.base.errors import HoldfastError, InvalidInputError
from holdfast.base.process import lasting_parent
from holdfast.base.text import counted
from holdfast.cli import common
from holdfast.journal.log import ACTION_TYPES, NotActiveError
from holdfast.project.formats import ARCHIVE_SUFFIX, SESSION_VARIABLES
from holdfast.sessions.winddown import IncrementalPauseManager

OrphanChoice = Literal["finalize", "discard", "continue"]

_percent = click.option(
    "--percent",
    type=float,
    required=True,
    metavar="FRACTION",
    help="Context in use, as a fraction such as 0.90.",
)

_APPEND_HELP = f"""Record one action; it is on disk when this returns.

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
@click.option("--state", default="{}", metavar="JSON", help="Initial state; `-` reads stdin.")
@common.json_option
def start(percent: float, state: str, as_json: bool) -> None:
    """Start a wind-down in this project.

    If a crash left a wind-down behind, you are asked what to do with it; without a terminal it is
    finalised.
    """
    initial = common.parse_json_object(state, "--state")
    if conversation := _conversation():
        initial = {"conversation": conversation, **initial}
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
@click.option("--data", default="{}", metavar="JSON", help="Details of the action; `-` reads stdin.")
@_percent
@common.json_option
def append(type: str, data: str, percent: float, as_json: bool) -> None:  # noqa: A002 - the option's name
    manager = _manager()
    details = common.parse_json_object(data, "--data")
    manager.append_action(type, details, percent, conversation=_conversation())
    if as_json:
        common.print_json({"recorded": type, "context_percentage": percent})


@command.command()
@common.json_option
def summary(as_json: bool) -> None:
    """Show the status of the active wind-down."""
    manager = _manager()
    found = _active(manager)
    orphaned = manager.is_orphaned()
    start, now = found["context_range"]
    common.tell(
        as_json,
        {**found, "orphaned": orphaned},
        f"Session:  {found['session_id']}{'  (abandoned by a dead process)' if orphaned else ''}",
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
@click.option("--archive-only", is_flag=True, help="Keep only the journal; make no snapshot.")
@click.option("--commit", is_flag=True, help="Commit the snapshot's files to git, without running hooks.")
@click.option("-r", "--reason", help="Reason for the pause, shown to the next session.")
@click.option(
    "--transcript",
    type=click.Path(path_type=Path, readable=False),  # a wrong one costs the findings, not the pause
    metavar="FILE",
    help="The agent's session file, to add decisions, errors, files and commands from.",
)
@common.json_option
def finalize(
    archive_only: bool, commit: bool, reason: str | None, transcript: Path | None, as_json: bool
) -> None:
    """Turn the wind-down into a session: JSON, YAML, Markdown and a database entry."""
    if archive_only and commit:
        raise InvalidInputError("--archive-only makes no snapshot, so there is nothing to --commit")
    manager = _manager()
    reason = as_text(reason) if reason else None
    conversation = manager.conversation() or _conversation()
    path = manager.finalize_pause(not archive_only, reason=reason, worked=transcript is not None)
    if path is None:
        raise NotActiveError("no wind-down is active here")
    if transcript is not None and not archive_only:
        _enrich(manager, path.stem, transcript)
    if not archive_only:
        _join_conversation(manager, path.stem, conversation)
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


def _join_conversation(manager: IncrementalPauseManager, session_id: str, conversation: str | None) -> None:
    """The journal names the conversation that began it; else the shell of the agent that runs this does.
    The pause is safe either way."""
    from holdfast.hooks.fast.context import live_sessions
    from holdfast.sessions.enrich import join_conversation
    from holdfast.store.session_files import SessionFiles

    try:
        alive = live_sessions(str(manager.layout.state))
        join_conversation(manager.settings, session_id, conversation, alive)
    except HoldfastError as error:
        if conversation is None and SessionFiles(manager.layout.sessions).unindexed():
            return  # the pause has said that the database is away
        belongs = f"part of {conversation}" if conversation else "part of the agent session before it"
        click.echo(f"warning: not noted as {belongs}: {error.message}", err=True)


def _conversation() -> str | None:
    return next(filter(None, map(os.environ.get, SESSION_VARIABLES)), None)


def _session_of(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(ARCHIVE_SUFFIX).removesuffix(".json")


@command.command()
@common.yes_option
def discard(yes: bool) -> None:
    """Discard the active wind-down; nothing is kept."""
    manager = _manager()
    found = _active(manager)
    if not yes and common.is_interactive():
        begun = manager.conversation()
        of = f" of agent session {begun}" if begun else ""
        click.confirm(f"Discard {found['action_count']} recorded actions{of}?", abort=True, err=True)
    manager.discard_pause(conversation=_conversation())
    click.echo(f"Discarded: {found['session_id']}")


@command.command()
@click.option("--finalize", "choice", flag_value="finalize", help="Make a snapshot from what was recorded.")
@click.option("--discard", "choice", flag_value="discard", help="Discard it.")
@click.option("--continue", "choice", flag_value="continue", help="Take it over and continue appending.")
@common.json_option
def recover(choice: OrphanChoice | None, as_json: bool) -> None:
    """Recover a wind-down left behind by a crash.

    Asks on a terminal; otherwise finalises it with what was recorded.
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
        click.echo(f"Continuing {found['session_id']}.")


def _settle_orphan(manager: IncrementalPauseManager, choice: OrphanChoice | None) -> OrphanChoice:
    """Finalise, discard or leave the wind-down that is there, as chosen, asked, or by default finalised."""
    found = _active(manager)
    chosen = choice or (_ask(found) if common.is_interactive() else "finalize")
    if chosen == "finalize":
        crashed = manager.is_orphaned()
        conversation = manager.conversation() or _conversation()
        path = manager.finalize_pause(
            trigger="crash" if crashed else None,
            reason="its process ended without a pause" if crashed else None,
        )
        if path is not None:
            _join_conversation(manager, path.stem, conversation)
        click.echo(f"Recovered {found['session_id']}: {path}", err=True)
    elif chosen == "discard":
        manager.discard_pause(conversation=_conversation())
        click.echo(f"Discarded {found['session_id']}.", err=True)
    return chosen


def _ask(found: dict[str, Any]) -> OrphanChoice:
    click.echo(f"Found an unfinished wind-down: {found['session_id']}", err=True)
    click.echo(f"  {counted(found['action_count'], 'action')}, started {found['pause_started_at']}", err=True)
    letter = click.prompt(
        "Finalise (f), discard (d) or continue (c)?",
        type=click.Choice(["f", "d", "c"]),
        default="f",
        err=True,
    )
    answers: dict[str, OrphanChoice] = {"f": "finalize", "d": "discard", "c": "continue"}
    return answers[letter]
