"""`quiet`, `remind` and `note`: what Holdfast says to agents in this project, and they to the next one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from holdfast.base.clock import iso, system_clock
from holdfast.base.durable import keep_if_damaged, lock_file, read_file, replace_file, storage_errors
from holdfast.base.errors import InvalidInputError, NotFoundError
from holdfast.base.ids import file_name_for
from holdfast.base.text import counted
from holdfast.cli import common
from holdfast.hooks.fast import quiet
from holdfast.hooks.fast.context import live_sessions
from holdfast.hooks.fast.notes import read as read_note
from holdfast.project import formats
from holdfast.project.formats import REMINDERS, REMINDERS_OWN, SESSION_VARIABLES, STATE, UNKNOWN_SESSION
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Settings, load_settings
from holdfast.project.trust import as_ours, lines_of_ours

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
    """The flag, the agent's variable, a hook's payload on stdin, the only one alive here, or nobody's.

    Of several that are alive none is meant for certain.
    """
    if known := given or current_session() or _session_on_stdin():
        return known
    alive = live_sessions(str(load_settings().layout.state))
    if len(alive) > 1:
        raise InvalidInputError(
            f"{len(alive)} sessions are open here: {', '.join(sorted(alive))}",
            hint="say which one with --session-id",
        )
    return alive[0] if alive else UNKNOWN_SESSION


def current_session() -> str | None:
    """The agent session that runs this command, as far as its agent tells."""
    return next((os.environ[name] for name in SESSION_VARIABLES if os.environ.get(name)), None)


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
            # First that they are ours: of a crash in between nothing is left that hooks do not believe.
            write_own_reminders(layout, [] if done else [*_own(layout), pending[-1]])
            replace_file(path, "".join(f"{line}\n" for line in pending).encode(errors="replace"))
    else:
        pending = _pending(path)
    own = _own(layout)
    if strange := strange_reminders(layout):
        click.echo(
            f"warning: {counted(len(strange), 'reminder')} not written by `holdfast remind` here, not passed "
            "on (`holdfast trust` shows and accepts them, `holdfast remind --done` clears them)",
            err=True,
        )
    _show([line for line in pending if line in own], as_json=as_json, words=words, done=done)


def _own(layout: ProjectLayout) -> list[str]:
    """The lines that this command wrote, whatever stands in the file now."""
    written = lines_of_ours(str(layout.root), f"{STATE}/{REMINDERS_OWN}") if layout.state.is_dir() else []
    return [line.decode(errors="replace") for line in written]


def strange_reminders(layout: ProjectLayout) -> list[str]:
    """Lines that something else put into the file."""
    own = _own(layout)
    return [line for line in _pending(layout.state / REMINDERS) if line not in own]


def write_own_reminders(layout: ProjectLayout, lines: list[str]) -> None:
    replace_file(
        layout.state / REMINDERS_OWN,
        as_ours(str(layout.root), (line.encode(errors="replace") for line in lines)),
    )


def accept_reminders(layout: ProjectLayout) -> None:
    """The user trusts the folder with all that stands in the file."""
    if pending := _pending(layout.state / REMINDERS):
        write_own_reminders(layout, pending)


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


# ── note ──────────────────────────────────────────────────────────────────────────────────────────

_LONGEST_HANDOVER = 20_000


@click.group("note")
def note_command() -> None:
    """Leave words for the next session.

    \b
    Examples:
      holdfast note handover < handover.md
    """


@note_command.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@_session_option
@common.json_option
def handover(file: Path | None, session_id: str | None, as_json: bool) -> None:
    """Hand over in your own words: FILE, or stdin.

    An agent uses this before its session ends: what comes next, what was decided and why, the state, what to
    watch out for. The words stand in the context of the session, checked against its record. They replace
    earlier ones and count until the next prompt. In a terminal without an agent's session they are
    added to the latest snapshot of this folder.
    """
    from holdfast.base.redact import redact

    current = common.settings()
    words, _ = redact(_words(file))
    session = session_id or session_at_work(current)
    if session and note_handover(current, session, words):
        common.tell(as_json, {"session_id": session}, f"✓ Handover noted for session {session}")
    elif session_id:
        raise InvalidInputError(
            f"no hooks have recorded a session {session_id} here", hint="`holdfast sessions list` shows them"
        )
    else:
        name = _add_to_latest(current, words)
        common.tell(as_json, {"session_id": name}, f"✓ Handover added to {name}")


def note_handover(current: Settings, session: str, words: str) -> bool:
    """Keep the words for that session's next snapshot; False where no hooks have recorded it here."""
    folder = current.layout.state / formats.HOOKS / file_name_for(session)
    if not folder.is_dir():
        return False
    prompts = read_note(str(folder / formats.PROMPTS), 32) or b"0"
    replace_file(folder / formats.HANDOVER, prompts.strip() + b"\n" + words.encode())
    return True


def _words(file: Path | None) -> str:
    if file is None and sys.stdin.isatty():
        raise InvalidInputError("no handover given", hint="holdfast note handover < FILE")
    if file is not None and not file.exists():
        raise NotFoundError(f"no such file: {file}", hint="holdfast note handover < FILE")
    with storage_errors(f"read {file}"):
        data = sys.stdin.buffer.read() if file is None else read_file(file)
    words = data.decode("utf-8", "replace").strip()
    if not words:
        raise InvalidInputError("the handover is empty", hint="holdfast note handover < FILE")
    if len(words) > _LONGEST_HANDOVER:
        raise InvalidInputError(
            f"the handover has {len(words):,} characters; the maximum is {_LONGEST_HANDOVER:,}",
            hint="leave out what is settled",
        )
    return words


def session_at_work(current: Settings) -> str | None:
    """The agent session that we belong to: as its agent names it, else the only one alive in this folder."""
    return current_session() or _only_session_alive(str(current.layout.state))


def _only_session_alive(state: str) -> str | None:
    """Gemini CLI and OpenCode tell the commands that they run nothing of the session."""
    found = live_sessions(state)
    return found[0] if len(found) == 1 else None


def _add_to_latest(current: Settings, words: str) -> str:
    from holdfast.sessions.enrich import with_handover

    if current.server is not None:
        raise InvalidInputError("notes are kept with a local database only", hint="run it without --server")
    with common.store_for(current) as store:
        snapshot = common.find_snapshot(store, current, "latest")
    with_handover(current, snapshot.id, words)
    return snapshot.session_id
