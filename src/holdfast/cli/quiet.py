"""`quiet` and `remind`: what Holdfast says to agents in this project."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from holdfast.base.clock import iso, system_clock
from holdfast.base.durable import keep_if_damaged, lock_file, read_file, replace_file, storage_errors
from holdfast.base.errors import InvalidInputError
from holdfast.base.ids import file_name_for
from holdfast.cli import common
from holdfast.hooks.fast import quiet
from holdfast.project.formats import REMINDERS, UNKNOWN_SESSION
from holdfast.project.settings import load_settings

SESSION_VARIABLES = ("HOLDFAST_SESSION_ID", "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID")
_STDIN_WAIT = 0.2

_session_option = click.option(
    "--session-id", metavar="ID", help="The agent session. Default: the current one."
)


@click.group("quiet")
def quiet_command() -> None:
    """Silence Holdfast's nudges in one agent session.

    Guards and housekeeping continue to run. Other sessions are not affected.

    \b
    Examples:
      holdfast quiet on
      holdfast quiet status --session-id 266b3f40-6f1d-491c-aeca-825cbb3fcbc5
    """


@quiet_command.command()
@_session_option
def on(session_id: str | None) -> None:
    """Silence the nudges from now on."""
    session = find_session(session_id)
    current = load_settings()
    current.layout.ensure()
    quiet.turn_on(_marker(session, str(current.layout.state)))
    click.echo(f"Nudges are off in session {session}. Back on with: holdfast quiet off")


@quiet_command.command()
@_session_option
def off(session_id: str | None) -> None:
    """Turn the nudges back on; prints nothing if they were not silenced."""
    session = find_session(session_id)
    if quiet.turn_off(_marker(session, str(load_settings().layout.state))):
        click.echo(f"Nudges are back on in session {session}.")


@quiet_command.command()
@_session_option
@common.json_option
def status(session_id: str | None, as_json: bool) -> None:
    """Show whether the session is quiet, and for how many prompts."""
    session = find_session(session_id)
    prompts = quiet.prompts_since(_marker(session, str(load_settings().layout.state)))
    if as_json:
        common.print_json({"session_id": session, "quiet": prompts is not None, "prompts": prompts})
    elif prompts is None:
        click.echo(f"Session {session} is not quiet.")
    else:
        click.echo(f"Session {session} is quiet, for {prompts} prompts.")


def _marker(session: str, state_folder: str) -> str:
    return quiet.marker_path(state_folder, file_name_for(session))


def find_session(given: str | None) -> str:
    """The flag, the agent's variable, a hook's payload on stdin, or a name for nobody's."""
    if given:
        return given
    for variable in SESSION_VARIABLES:
        if os.environ.get(variable):
            return os.environ[variable]
    return _session_on_stdin() or UNKNOWN_SESSION


def _session_on_stdin() -> str | None:
    """Waits a moment only: stdin may be a pipe that nobody will ever write to."""
    try:
        descriptor = sys.stdin.fileno()
        if os.isatty(descriptor):
            return None
    except (AttributeError, OSError, ValueError):
        return None
    text = _read_within(descriptor, _STDIN_WAIT)
    if not text:
        return None
    import json

    try:
        found = json.loads(text).get("session_id")
    except (ValueError, AttributeError):
        return None
    return found if isinstance(found, str) and found else None


def _read_within(descriptor: int, seconds: float) -> bytes:
    import select
    import time

    deadline = time.monotonic() + seconds
    data = b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left)[0]:
            break
        block = os.read(descriptor, 1 << 16)
        if not block:
            break
        data += block
    return data


# ── remind ────────────────────────────────────────────────────────────────────────────────────────


@click.command("remind")
@click.argument("text", nargs=-1)
@click.option("--done", is_flag=True, help="Clear all reminders of this project.")
@common.json_option
def remind_command(text: tuple[str, ...], done: bool, as_json: bool) -> None:
    """Remind agents in this project of TEXT, once in each session.

    Without TEXT, lists the pending reminders.

    \b
    Examples:
      holdfast remind "run the migration before the release"
      holdfast remind --done
    """
    words = _without_secrets(" ".join(" ".join(text).split()))
    if done and words:
        raise InvalidInputError("give either TEXT or --done")
    layout = common.settings().layout
    path = layout.state / REMINDERS
    if words or done:
        layout.ensure()
        with storage_errors("save the reminder"), lock_file(layout.state / f"{REMINDERS}.lock"):
            pending = [] if done else [*_pending(path), f"{iso(system_clock())}\t{words}"]
            keep_if_damaged(path)
            replace_file(path, "".join(f"{line}\n" for line in pending).encode(errors="replace"))
    else:
        pending = _pending(path)
    _show(pending, as_json=as_json, words=words, done=done)


def _without_secrets(words: str) -> str:
    from holdfast.base.redact import redact  # its patterns take a while, and listing needs none

    return redact(words)[0] if words else words


def _pending(path: Path) -> list[str]:
    try:
        return [line for line in read_file(path).decode(errors="replace").split("\n") if line]
    except FileNotFoundError:
        return []


def _show(pending: list[str], *, as_json: bool, words: str, done: bool) -> None:
    reminders = [line.partition("\t")[2] or line for line in pending]
    if as_json:
        common.print_json({"reminders": reminders})
    elif words:
        click.echo(f"Agents in this project will be reminded: {words}")
    elif done:
        click.echo("All reminders cleared.")
    else:
        click.echo("\n".join(reminders) if reminders else "No reminders.")
