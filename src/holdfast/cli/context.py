"""`context`, `history`, `handoff`, `snapshot`: what a snapshot holds, and which there are."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import click

from holdfast.base.errors import CannotDoError, InvalidInputError, NotFoundError
from holdfast.cli import common
from holdfast.hooks.fast.context import HANDED_OVER, LIMITS, ROOM_FOR_HEADING
from holdfast.model import frame
from holdfast.project.formats import AGENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.service import RemoteStore
    from holdfast.model.gathered import Fidelity
    from holdfast.model.snapshot import SessionSnapshot
    from holdfast.project.settings import Settings
    from holdfast.resume.compiler import Compiled
    from holdfast.store.protocol import Store
    from holdfast.store.reader import QuickReader
    from holdfast.store.sql import SqlStore
    from holdfast.transcripts.discover import FoundSession

_DEFAULT = 9_500
_Told = TypeVar("_Told")


@click.command("context")
@click.argument("snapshot", required=False)
@click.option("--session", metavar="ID", help="A coding agent's session in this project.")
@click.option(
    "--transcript",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="An agent's session file, anywhere on disk.",
)
@click.option(
    "--agent", help="The agent that wrote it: claude-code, codex, gemini or opencode. Detected by default."
)
@click.option(
    "--max-chars", type=int, metavar="N", help=f"Maximum length in characters. Default: {_DEFAULT}."
)
@click.option("--budget", type=int, metavar="TOKENS", help="Maximum length in tokens.")
@click.option(
    "--turns", type=click.IntRange(1), metavar="N", help="Only the first N turns of an agent's session."
)
@click.option(
    "--summary",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The outgoing agent's own summary: its prose is kept, and checked against the session's record.",
)
@click.option("--model", help="The model that will read it, to estimate the cost in the report.")
@click.option("--report", is_flag=True, help="Report on stderr what was included and what was left out.")
@common.json_option
def context_command(snapshot: str | None, as_json: bool, **options: Any) -> None:
    """Print what the next session should read.

    The source is SNAPSHOT (an id, a session name or `latest`), an agent's session, or a session
    file; by default, the latest snapshot of this worktree. Nothing else is written to stdout.

    \b
    Examples:
      holdfast context latest
      holdfast context --session 266b3f40 --max-chars 5000 --report
      holdfast context --transcript session.jsonl --budget 2000
    """
    if sum(given is not None for given in (snapshot, options["session"], options["transcript"])) > 1:
        raise InvalidInputError("give only one of SNAPSHOT, --session and --transcript")
    of_agent = options["session"] is not None or options["transcript"] is not None
    for name, next_step in (("summary", "that it sums up"), ("turns", "whose turns they are")):
        if options[name] is not None and not of_agent:
            raise InvalidInputError(
                f"--{name} needs --session or --transcript", hint=f"give the session {next_step}"
            )
    if not of_agent and snapshot in (None, "latest"):
        common.warn_of_abandoned(common.settings())
    compiled = _compile(snapshot, options, max_characters(options["max_chars"], options["budget"]))
    if not of_agent and snapshot in (None, "latest"):
        common.warn_of_left_out(common.settings())
    if as_json:
        _print_json(compiled, options["model"])
    else:
        click.echo(compiled.text, nl=False)
    if options["report"]:
        _report(compiled, options["model"])


def max_characters(characters: int | None, tokens: int | None, default: int = _DEFAULT) -> int:
    if characters is not None and tokens is not None:
        raise InvalidInputError("give --max-chars or --budget, not both")
    if tokens is not None:
        from holdfast.journal.usage import characters_for

        return characters_for(tokens)
    return default if characters is None else characters


def _compile(snapshot: str | None, options: dict[str, Any], max_chars: int) -> Compiled:
    if options["transcript"] is not None or options["session"] is not None:
        return _of_transcript(options, max_chars)
    return snapshot_context("latest" if snapshot is None else snapshot, max_chars)


def snapshot_context(snapshot: str, max_chars: int) -> Compiled:
    current = common.settings()
    return common.answered(
        current,
        lambda reader: _context_in(reader.store, current, snapshot, max_chars),
        lambda store: _context_in(store, current, snapshot, max_chars),
    )


def _context_in(store: Store, current: Settings, snapshot: str, max_chars: int) -> Compiled:
    from holdfast.capture.drift import find_drift
    from holdfast.resume.snapshots import ResumeContextCompiler
    from holdfast.sessions.contexts import as_it_stands, asides_since, undone_since

    found = store.snapshot(common.find_snapshot(store, current, snapshot).id)
    workflow = store.workflow(found.workflow_id)
    since = asides_since(store, found)
    found, moved_on = as_it_stands(store, found, workflow)
    drift = find_drift(found, current.project).sentences if workflow.worktree == current.worktree else ()
    told = (*undone_since(workflow, found), *since, *moved_on, *drift)
    return ResumeContextCompiler(max_chars).compile_with_report(
        found, workflow.issue, drift=told, worktree=workflow.users_folder
    )


def _of_transcript(options: dict[str, Any], max_chars: int) -> Compiled:
    from holdfast.resume.compiler import compile_context
    from holdfast.sessions.contexts import find_transcript, read_session

    if options["session"] is not None:
        found = find_transcript(options["session"], common.settings().project, Path.home(), os.environ)
        session, source = (
            read_session(found.path, found.agent, found.session_id, turns=options["turns"]),
            f"--session {shlex.quote(found.session_id)}",
        )
    else:
        path: Path = options["transcript"]
        session = read_session(path, options["agent"], turns=options["turns"])
        source = f"--transcript {shlex.quote(str(path))}"
    if session.report.torn or session.report.oversized:
        click.echo(
            f"warning: {session.report.torn} torn and {session.report.oversized} oversized lines were "
            "skipped",
            err=True,
        )
    return compile_context(session.found, max_chars, source, _summary(options["summary"]))


def _summary(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidInputError(f"cannot read the summary {path}: {error.strerror}") from error


def _report(compiled: Compiled, model: str | None) -> None:
    from holdfast.journal.prices import reading_cost

    click.echo(compiled.fidelity.table(), err=True, nl=False)
    cost = reading_cost(len(compiled.text), model, common.settings().prices)
    click.echo(f"Cost: {cost}", err=True)


def _print_json(compiled: Compiled, model: str | None) -> None:
    from holdfast.journal.prices import reading_cost

    cost = reading_cost(len(compiled.text), model, common.settings().prices)
    common.print_json({"context": compiled.text, "fidelity": asdict(compiled.fidelity), "cost": asdict(cost)})


# ── history ───────────────────────────────────────────────────────────────────────────────────────

_CATEGORIES = ("decisions", "errors", "reviewer-feedback", "git-changes", "tasks", "tests", "journal")


@click.command("history")
@click.argument("snapshot", metavar="SNAPSHOT|SESSION")
@click.argument("category", type=click.Choice(_CATEGORIES))
@common.json_option
def history_command(snapshot: str, category: str, as_json: bool) -> None:
    """Show all entries of one kind in a snapshot, or in an agent's session.

    This includes what the context left out. SESSION is the id of a coding agent's session in this project, or
    the beginning of it; its file is read as it stands now.

    \b
    Examples:
      holdfast history latest errors
      holdfast history session-20260106-120000 decisions --json
      holdfast history 266b3f40 errors
    """
    if as_json:
        common.print_json(snapshot_history(snapshot, category))
    else:
        click.echo(_in_history(snapshot, category, _history_text), nl=False)


def _history_text(found: SessionSnapshot, category: str, actions: list[str]) -> str:
    from holdfast.resume.snapshots import history

    text = history(found, category)
    if not actions:
        return text
    return ("" if text.startswith("No journal") else text) + "".join(f"- {line}\n" for line in actions)


def snapshot_history(snapshot: str, category: str) -> object:
    from holdfast.sessions.contexts import history_data

    return _in_history(snapshot, category, history_data)


def _in_history(
    snapshot: str, category: str, tell: Callable[[SessionSnapshot, str, list[str]], _Told]
) -> _Told:
    current = common.settings()

    def told(store: Store) -> _Told:
        found = store.snapshot(common.find_snapshot(store, current, snapshot).id)
        return tell(found, category, _actions(store, current, found) if category == "journal" else [])

    try:
        return common.answered(current, lambda reader: told(reader.store), told)
    except NotFoundError as error:
        return tell(_of_agent(current, snapshot, error), category, [])


def _of_agent(current: Settings, name: str, unknown: NotFoundError) -> SessionSnapshot:
    """What a snapshot of that agent's session would hold now, by rules alone; nothing is stored."""
    from holdfast.findings import records
    from holdfast.model.snapshot import SessionSnapshot
    from holdfast.sessions.contexts import find_transcript, read_session

    if name == "latest" or current.server is not None:  # a server has no agents' files
        raise unknown
    try:
        agent = find_transcript(name, current.project, Path.home(), os.environ)
    except NotFoundError:
        hint = "`holdfast snapshot list` and `holdfast sessions list` show what there is"
        raise NotFoundError(unknown.message, hint=hint) from None
    found, at = read_session(agent.path, agent.agent, agent.session_id).found, agent.updated
    snapshot = SessionSnapshot(
        id=agent.session_id,
        workflow_id="",
        session_number=1,
        session_id=agent.session_id,
        created_at=at,
        trigger="pause",
        decisions=tuple(records.decisions(found, agent.session_id, at)),
        errors=tuple(records.errors(found, agent.session_id, at)),
        reviewer_feedback=records.feedback(found, at),
        test_state=records.test_state(found, at),
        gathered=found,
    )
    return snapshot.without_secrets()


def _actions(store: Store, current: Settings, found: SessionSnapshot) -> list[str]:
    """What the wind-down recorded, line by line, from where its journal is."""
    if current.server is None:
        from holdfast.sessions.contexts import archived_lines

        return list(archived_lines(current.layout, found.session_id))
    return cast("RemoteStore", store).journal(found)


# ── handoff ───────────────────────────────────────────────────────────────────────────────────────

_LOOKED_AT = 20
_PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}


@click.command("handoff", context_settings={"ignore_unknown_options": True})
@click.option(
    "--to", "agent", type=common.AgentName(list(AGENTS)), required=True, help="The agent that continues."
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
def handoff_command(
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
    from holdfast.journal.prices import reading_cost

    current = common.settings()
    common.warn_of_abandoned(current)
    longest = LIMITS[agent] - ROOM_FOR_HEADING
    room = max_characters(options["max_chars"], options["budget"], longest)
    handed = _handed_over(current, agent, session_id, room)
    cost = reading_cost(len(handed.text), options["model"], current.prices)
    length = f"context of {len(handed.text):,} characters ({agent} accepts {LIMITS[agent]:,} in full)"
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
    from holdfast.project.formats import SESSION_VARIABLES
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
    told: tuple[str, ...] = ()
    if snapshot.task_dag.tasks:
        from holdfast.sessions.undone import undone_before

        told = undone_before(workflow, snapshot)
    return ResumeContextCompiler(room).compile_with_report(snapshot, workflow.issue, drift=told)


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


# ── snapshot ──────────────────────────────────────────────────────────────────────────────────────


@click.group("snapshot")
def snapshot_command() -> None:
    """List, show, compare and delete snapshots.

    SNAPSHOT is an id, the beginning of one, a session name (session-20260106-120000),
    or `latest`.

    \b
    Examples:
      holdfast snapshot list
      holdfast snapshot show latest
      holdfast snapshot diff session-20260106-120000 latest
    """


@snapshot_command.command("list")
@click.argument("workflow_id", metavar="[WORKFLOW]", required=False)
@click.option("--all", "everywhere", is_flag=True, help="Include all projects.")
@common.json_option
def list_snapshots(workflow_id: str | None, everywhere: bool, as_json: bool) -> None:
    """List snapshots, oldest first."""
    current = common.settings()
    worktree = None if everywhere else current.worktree
    lines = common.answered(
        current,
        lambda reader: read_lines(reader, worktree, workflow_id),
        lambda store: stored_lines(store, worktree, workflow_id),
    )
    lines.sort(key=lambda line: (line["seq"], line["created_at"], line["session_number"], line["id"]))
    common.tell_table(
        as_json,
        lines,
        f"No snapshots yet. Start with: {common.first_step()}",
        ("SNAPSHOT", "SESSION", "#", "TRIGGER", "PAUSED (UTC)", "TASKS", "REASON"),
        lambda line: (
            line["id"],
            line["session_id"],
            line["session_number"],
            line["trigger"],
            f"{line['created_at']:%Y-%m-%d %H:%M:%S}",
            f"{line['tasks_completed']}/{line['tasks_completed'] + line['tasks_remaining']}",
            line["pause_reason"],
        ),
    )


def read_lines(reader: QuickReader, worktree: str | None, workflow_id: str | None) -> list[dict[str, Any]]:
    if workflow_id is not None:
        flows = [reader.workflow(workflow_id)]
    else:
        flows = reader.workflows(worktree, limit=1000)
    return [line for flow in flows for line in reader.snapshots(flow["id"])]


def stored_lines(
    store: SqlStore | RemoteStore, worktree: str | None, workflow_id: str | None
) -> list[dict[str, Any]]:
    """The same of any store."""
    if workflow_id is not None:
        flows = [store.workflow(workflow_id)]
    else:
        flows = store.workflows(worktree=worktree, limit=1000)
    return [vars(line) for flow in flows for line in store.snapshots(flow.id)]


@snapshot_command.command()
@click.argument("snapshot")
@common.json_option
def show(snapshot: str, as_json: bool) -> None:
    """Show a snapshot as a page, or in full as JSON."""
    from holdfast.store.documents import markdown, session_document

    current = common.settings()
    with common.store_for(current) as store:
        found = store.snapshot(common.find_snapshot(store, current, snapshot).id)
        workflow = store.workflow(found.workflow_id)
    if as_json:
        common.print_json(session_document(found, workflow))
    else:
        click.echo(markdown(found, workflow), nl=False)


@snapshot_command.command()
@click.argument("before")
@click.argument("after")
@common.json_option
def diff(before: str, after: str, as_json: bool) -> None:
    """Show what changed from one snapshot to another."""
    from holdfast.model import snapshot as model

    current = common.settings()
    with common.store_for(current) as store:
        first, second = (
            store.snapshot(common.find_snapshot(store, current, name).id) for name in (before, after)
        )
    changes = model.diff(first, second)
    if as_json:
        common.print_json(changes.model_dump(mode="json"))
    elif changes.is_empty:
        click.echo("No difference.")
    else:
        _print_diff(changes)


def _print_diff(changes: Any) -> None:
    click.echo(f"{changes.before} -> {changes.after}")
    for step in changes.facts:
        click.echo(f"  {step.what}: {_shown(step.before)} -> {_shown(step.after)}")
    for task in changes.tasks:
        click.echo(f"  task {task.id}: {_shown(task.before)} -> {_shown(task.after)}")
    for item in changes.decisions_added:
        click.echo(f"  + decision: {item.description}")
    for item in changes.errors_added:
        click.echo(f"  + error: {item.error_type}: {item.error_message}")
    for item in changes.errors_resolved:
        click.echo(f"  ✓ resolved: {item.error_type}: {item.error_message}")
    for sign, paths in (
        ("+", changes.files_added),
        ("-", changes.files_removed),
        ("~", changes.files_changed),
    ):
        for path in paths:
            click.echo(f"  {sign} file: {path}")


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1%}"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"  # pyright: ignore[reportUnknownArgumentType]
    return "none" if value is None else str(value)


@snapshot_command.command()
@click.argument("snapshot")
@common.yes_option
@common.json_option
def delete(snapshot: str, yes: bool, as_json: bool) -> None:
    """Delete a snapshot, with its files if they are in this project."""
    from holdfast.model.workflow import Workflow
    from holdfast.sessions.pause import keep_end
    from holdfast.sessions.transitions import Core
    from holdfast.store.session_files import SessionFiles
    from holdfast.store.sql import SqlStore

    current = common.settings()
    with common.store_for(current) as store:
        line = common.find_snapshot(store, current, snapshot)
        if not yes and common.is_interactive():
            click.confirm(f"Delete {line.session_id} ({line.id}) and its journal?", abort=True, err=True)
        if not isinstance(store, SqlStore):
            store.delete_snapshot(line)  # and the server its files
        else:
            workflow: Workflow = store.workflow(line.workflow_id)
            # Files first: should the database fail now, the next attempt still finds what to delete.
            if workflow.worktree == current.worktree and current.layout.sessions.is_dir():
                SessionFiles(current.layout.sessions).delete(line.session_id)
            with contextlib.suppress(NotFoundError):  # somebody else was faster; gone is what was asked for
                Core(store).delete_snapshot(line.id)
            keep_end(store, workflow, current.project)
    common.tell(as_json, {"deleted": line.id, "session_id": line.session_id}, f"Deleted: {line.session_id}")
