from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import click

from holdfast.base.errors import CannotDoError, NotFoundError
from holdfast.cli import common
from holdfast.cli.context import max_characters
from holdfast.hooks.fast.context import HANDED_OVER, LIMITS, ROOM_FOR_HEADING
from holdfast.hooks.install import AGENTS
from holdfast.journal.cost import reading_cost
from holdfast.model import frame
from holdfast.project.settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.usage import Fidelity
    from holdfast.resume.compiler import Compiled
    from holdfast.transcripts.discover import FoundSession

_LOOKED_AT = 20
_PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}


@click.command("handoff", context_settings={"ignore_unknown_options": True})
@click.option(
    "--to", "agent", type=click.Choice(list(AGENTS)), required=True, help="The agent that continues."
)
@click.option(
    "--session", "session_id", metavar="ID", help="The agent session to hand over. Default: the newest."
)
@click.option(
    "--max-chars",
    type=int,
    metavar="N",
    help="Maximum length. Default: what the other agent accepts in full.",
)
@click.option("--budget", type=int, metavar="TOKENS", help="Maximum length in tokens.")
@click.option("--model", help="The model that will read it, to estimate the cost.")
@click.option("--report", is_flag=True, help="Report on stderr what was included and what was left out.")
@click.option("--exec", "start", is_flag=True, help="Start the other agent instead of printing the command.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- WORD…]")
@common.json_option
def command(
    agent: str, session_id: str | None, start: bool, words: tuple[str, ...], as_json: bool, **options: Any
) -> None:
    """Continue this work in another agent.

    Takes a snapshot of the agent session in this folder and prints the command that starts the
    other agent with that context in its first prompt. Arguments after `--` are passed to the agent. What
    the context costs to read is shown first; --report adds what it includes and leaves out.

    \b
    Examples:
      holdfast handoff --to codex
      holdfast handoff --to claude-code --session 266b3f40 --exec
      holdfast handoff --to codex --report --exec -- exec --sandbox workspace-write
    """
    current = common.settings()
    longest = LIMITS[AGENTS[agent]] - ROOM_FOR_HEADING
    room = max_characters(options["max_chars"], options["budget"], longest)
    handed = _handed_over(current, agent, session_id, room)
    cost = reading_cost(len(handed.text), options["model"])
    length = f"context of {len(handed.text):,} characters ({agent} accepts {LIMITS[AGENTS[agent]]:,} in full)"
    click.echo(f"{handed.name}: {length}, {cost}", err=True)
    if options["report"]:
        click.echo(handed.fidelity.table(), err=True, nl=False)
    command_words = _command(agent, words)
    if start:
        _start([*command_words, handed.text], handed.name)
    elif as_json:
        told = {"fidelity": asdict(handed.fidelity), "cost": asdict(cost)}
        file = {"session": handed.name, "context_file": str(handed.path)}
        run = {"command": command_words, "prompt": handed.text, "environment": {HANDED_OVER: handed.name}}
        common.print_json({**file, **run, **told})
    else:
        reading = f'"$(cat {shlex.quote(str(handed.path))})"'
        click.echo(f"{HANDED_OVER}={handed.name} {shlex.join(command_words)} {reading}")


@dataclass(frozen=True)
class _Handed:
    name: str
    path: Path
    text: str
    fidelity: Fidelity


def _handed_over(current: Settings, agent: str, session_id: str | None, room: int) -> _Handed:
    """A snapshot of the session, and its context in a file."""
    name = _settled(current, _session(current, session_id))
    compiled = _compiled(current, name, room)
    path = current.layout.sessions / f"{name}.context-for-{agent}.md"
    text = _heading(name) + compiled.text
    _write(current, path, text)
    return _Handed(name, path, text, compiled.fidelity)


def _session(current: Settings, session_id: str | None) -> FoundSession | None:
    """The one that was named, the one we run in, or the newest of this worktree that did something.

    None where that is a session which was paused without an agent.
    """
    from holdfast.cli.quiet import SESSION_VARIABLES
    from holdfast.store.session_files import SessionFiles
    from holdfast.transcripts.discover import find_sessions

    found = list(find_sessions(current.project, Path.home(), os.environ))
    if session_id:
        named = [one for one in found if one.session_id.startswith(session_id)]
        if len(named) != 1:
            raise NotFoundError(
                f"{len(named)} sessions of this project begin with {session_id}",
                hint="`holdfast sessions list` shows them",
            )
        return named[0]
    ours = {os.environ[name] for name in SESSION_VARIABLES if os.environ.get(name)}
    found.sort(key=lambda one: one.session_id not in ours)  # stable: ours first, then the newest
    worked = _at_work(current, found[:_LOOKED_AT])
    if worked is None and SessionFiles(current.layout.sessions).latest_worked():
        return None
    return worked or (found[0] if found else None)


def _at_work(current: Settings, found: list[FoundSession]) -> FoundSession | None:
    """The first that did something: a session that did nothing is no work to hand over."""
    from holdfast.hooks.background_tasks import SessionWork, did_work

    def worked(one: FoundSession) -> bool:
        return did_work(SessionWork(one.agent, one.session_id, str(current.project)), str(one.path))

    return next((one for one in found if worked(one)), None)


def _settled(current: Settings, session: FoundSession | None) -> str:
    """The name of the snapshot; where no agent has a session here, of the one paused last."""
    from holdfast.hooks.background_tasks import SessionWork, settle
    from holdfast.store.session_files import SessionFiles

    if session is None:
        latest = SessionFiles(current.layout.sessions).latest() if current.layout.sessions.is_dir() else None
        if latest is None:
            raise NotFoundError(
                "nothing to hand over: no agent session found for this folder",
                hint="run the command in the project folder, or pass --session",
            )
        return latest
    current.layout.ensure()
    work = SessionWork(session.agent, session.session_id, str(current.project))
    settle(work, "handoff", str(session.path))
    return work.settled[0]


def _compiled(current: Settings, name: str, room: int) -> Compiled:
    from holdfast.resume.snapshots import ResumeContextCompiler
    from holdfast.store.documents import read_session_document
    from holdfast.store.session_files import SessionFiles

    document = SessionFiles(current.layout.sessions).read(name)
    snapshot, workflow = read_session_document(document, where=f"{name}.json")
    return ResumeContextCompiler(room).compile_with_report(snapshot, workflow.issue)


def _heading(name: str) -> str:
    return (
        f"{frame.HANDED_OVER}{name}). What follows was recorded then; check it against the files before "
        "relying on it. "
        f"More: `holdfast history {name} decisions|errors|tasks|journal`.\n\n"
    )


def _write(current: Settings, path: Path, text: str) -> None:
    from holdfast.base.durable import replace_file, storage_errors
    from holdfast.store.session_files import SessionFiles

    with SessionFiles(current.layout.sessions).locked(), storage_errors(f"write {path}"):
        replace_file(path, text.encode())


def _command(agent: str, words: tuple[str, ...]) -> list[str]:
    """All but the prompt, which comes last. OpenCode's own screen takes it as an option."""
    if agent == "opencode" and (not words or words[0].startswith("-")):
        return ["opencode", *words, "--prompt"]
    return [_PROGRAMS[agent], *words]


def _start(words: list[str], name: str) -> NoReturn:
    program = shutil.which(words[0])
    if program is None:
        raise CannotDoError(f"{words[0]} is not installed", hint="omit --exec to see the command")
    os.environ[HANDED_OVER] = name
    os.execv(program, words)  # noqa: S606 - no shell is wanted in between
