"""The program's frame: finding commands, and turning every end into an exit code and words."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import click

from holdfast._version import __version__
from holdfast.base.errors import INTERRUPTED, HoldfastError, exit_code
from holdfast.base.neutral import neutral, without_controls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from click.shell_completion import CompletionItem

COMMANDS = {
    "approve": "Approve the waiting task and continue.",
    "cancel": "Cancel a workflow permanently; a running task is stopped, with all its processes.",
    "completion": "Print a script that completes commands and options in your shell.",
    "context": "Print what the next session should read.",
    "docs": "Rate, rank and improve the documentation of your code.",
    "doctor": "Check the installation.",
    "events": "Show what happened in a workflow, in order.",
    "export": "Export this project's sessions to a bundle FILE.",
    "fork": "Copy a workflow, paused, to try another way from any of its tasks.",
    "handoff": "Continue this work in another agent.",
    "history": "Show all entries of one kind in a snapshot, or in an agent's session.",
    "import": "Import the sessions of a bundle FILE into this project.",
    "install": "Install Holdfast in a coding agent: hooks, commands and tools.",
    "list": "List workflows, most recently changed first.",
    "logs": "Show what a task printed, also while it runs.",
    "mcp": "Serve Holdfast's tools to an agent over MCP.",
    "note": "Leave words for the next session.",
    "pause": "Pause a running workflow at the next task boundary.",
    "prune": "Remove what Holdfast no longer needs.",
    "quiet": "Silence Holdfast's nudges in one agent session.",
    "reindex": "Rebuild the database from the session files.",
    "reject": "Reject the task that is waiting for approval; the workflow fails.",
    "remind": "Remind agents in this project of TEXT, once in each session.",
    "resume": "Resume a paused or failed workflow from its last snapshot.",
    "retry": "Retry a failed task, or all that failed, and continue.",
    "rewind": "Restore the files that an agent changed as they were at the end of TURN.",
    "run": "Run a plan, task by task, so that it can be paused and resumed.",
    "schedules": "List the plans that workers run on a schedule, and remove them.",
    "serve": "Serve the dashboard and the API for this database.",
    "sessions": "List the coding agents' sessions in this project, and your own.",
    "share": "Share this project's sessions through a git remote.",
    "skip": "Skip a task and continue with those that depend on it.",
    "snapshot": "List, show, compare and delete snapshots.",
    "stats": "Summarise the recorded actions by type and tool, with the time to exhaustion.",
    "status": "Show the status of the work in this folder.",
    "threads": "List the open pieces of work in this folder.",
    "token": "Give others limited access to the server, and take it back.",
    "trust": "Inspect a .holdfast folder from elsewhere, and trust it.",
    "tx": "Show which files sessions changed, and undo the changes.",
    "uninstall": "Remove Holdfast from a coding agent.",
    "usage": "Show how full the context window is, by agent session and workflow.",
    "watch": "Watch this folder's work, with keys to pause, resume and undo.",
    "winddown": "Record the last actions of a session and turn them into a snapshot.",
    "worker": "Run queued workflows and take over from dead workers.",
}
"""Name and one line for `--help`; the module has the same name, unless it is in `_SHARED`."""
_SHARED = {
    **dict.fromkeys(("approve", "cancel", "pause", "reject", "resume", "retry", "run", "skip"), "control"),
    **dict.fromkeys(("fork", "schedules"), "control"),
    **dict.fromkeys(("context", "handoff", "history", "snapshot"), "context"),
    **dict.fromkeys(("export", "import", "share"), "bundle"),
    **dict.fromkeys(("completion", "doctor", "prune", "reindex", "trust"), "doctor"),
    **dict.fromkeys(("events", "logs"), "events"),
    **dict.fromkeys(("install", "uninstall"), "install"),
    **dict.fromkeys(("list", "stats", "status", "threads", "usage", "watch"), "status"),
    **dict.fromkeys(("note", "quiet", "remind"), "quiet"),
    **dict.fromkeys(("serve", "token", "worker"), "serve"),
    "rewind": "tx",
}
"""Small commands that stand in one module; there each is called NAME_command."""


_LOOKING = ("context", "events", "history", "list", "logs", "snapshot", "stats", "status", "threads")
_DOING = ("approve", "cancel", "fork", "pause", "reject", "resume", "retry", "run", "skip")
OVER_HTTP = frozenset((*_LOOKING, *_DOING))
"""Commands that do with `--server` what they do without it."""


class LazyCommands(click.Group):
    """Knows all commands by name and loads the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        module = import_module(f"holdfast.cli.{_SHARED.get(cmd_name, cmd_name)}")
        name = f"{cmd_name}_command" if cmd_name in _SHARED else "command"
        command: click.Command = getattr(module, name)
        if "logging" in sys.modules:
            from holdfast.cli.common import show_warnings

            show_warnings()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {near[0]!r}?", ctx) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """By the table: to load every command for its one line takes longer than a person types."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=line) for name, line in COMMANDS.items() if name.startswith(incomplete)
        ]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success, 1 cannot be done, 2 usage error, 3 conflict: held or changed by "
    "another process, 4 damaged data (kept), 130 interrupted.",
)
@click.option("--project", type=click.Path(file_okay=False), help="Project folder. Default: the current one.")
@click.option("--server", metavar="URL", help="Use this server instead of the local database.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.version_option(__version__, message="holdfast %(version)s")
@click.pass_context
def cli(ctx: click.Context, project: str | None, server: str | None, debug: bool) -> None:  # noqa: ARG001 - `run` looks for debug itself
    """Pause, snapshot and resume the work of AI agents.

    Without a command it shows where the work in this folder stands.

    \b
    Try:
      holdfast install claude-code
      holdfast
      holdfast context latest
      holdfast tx list
    """
    if project is not None:
        os.environ["HOLDFAST_PROJECT"] = os.path.abspath(project)  # noqa: PTH100 - pathlib is not loaded yet
    if server is not None:
        if (ctx.invoked_subcommand or "status") not in OVER_HTTP:
            raise click.UsageError(f"{ctx.invoked_subcommand} runs locally only; --server is not supported.")
        os.environ["HOLDFAST_SERVER"] = server
    if ctx.invoked_subcommand is None:
        from holdfast.cli.status import status_command

        ctx.invoke(status_command)
        click.echo("Commands:  holdfast --help")


def run(arguments: Sequence[str]) -> int:
    """Run a command line; returns the exit code. Never lets a traceback out unless asked to."""
    debug = "--debug" in arguments
    sys.stdout, sys.stderr = CleanStream(sys.stdout), CleanStream(sys.stderr)
    try:
        return _run(arguments, debug)
    finally:  # what click puts in place for a reader that left stays there
        sys.stdout, sys.stderr = _unfiltered(sys.stdout), _unfiltered(sys.stderr)


def _unfiltered(stream: TextIO | CleanStream) -> TextIO:
    return stream.unfiltered if isinstance(stream, CleanStream) else stream


_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])")


class CleanStream:
    """What any command prints may hold text of a repository, a bundle or an agent. No terminal obeys it, and
    no agent that runs the command takes a part of it for the system's words."""

    def __init__(self, unfiltered: TextIO) -> None:
        self.unfiltered = unfiltered

    def write(self, text: str) -> int:
        self.unfiltered.write(neutral(_without_sequences(text)))
        return len(text)

    def write_contents(self, text: str) -> int:
        """Of a file or a program's output: in code `<system…>` is no tag."""
        self.unfiltered.write(without_controls(_without_sequences(text)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


def _without_sequences(text: str) -> str:
    return _SEQUENCE.sub("", text) if "\x1b" in text else text


def _run(arguments: Sequence[str], debug: bool) -> int:
    try:
        result = cli.main(args=list(arguments), prog_name="holdfast", standalone_mode=False)
    except HoldfastError as error:
        _show_traceback(debug)
        hint = error.hint and error.hint.replace("holdfast COMMAND", _command_of(arguments))
        return _complain(error.message, hint, exit_code(error))
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "holdfast"
        return _complain(error.format_message().replace("\n\t", " "), f"see `{path} --help`", 2)
    except (click.Abort, KeyboardInterrupt):
        click.echo(err=True)  # off the line of the prompt
        return _complain("interrupted", None, INTERRUPTED)
    except SystemExit as ended:
        # The reader went away (`| head`): click has put a silent stdout in place and wants to end with 1.
        reader_left = type(sys.stdout).__name__.endswith("PacifyFlushWrapper")
        return 0 if reader_left else int(ended.code or 0)
    except click.ClickException as error:
        return _complain(error.format_message(), None, error.exit_code)
    except Exception as error:  # noqa: BLE001 - the program ends here
        _show_traceback(debug)
        if isinstance(error, OSError) and error.filename and error.strerror:
            return _complain(
                f"could not use {os.fsdecode(error.filename)}: {error.strerror}",
                "check what it is (a link, a folder, another user's) and move it away if it is not needed",
                1,
            )
        return _complain(
            f"unexpected: {type(error).__name__}: {error}",
            "run it again with --debug and report what it shows",
            1,
        )
    return result if isinstance(result, int) else 0


def _command_of(arguments: Sequence[str]) -> str:
    """The command that was called, by its full name."""
    group: click.Command | None = cli
    path = ["holdfast"]
    for word in arguments:
        if isinstance(group, click.Group) and word in group.list_commands(click.Context(group)):
            group = group.get_command(click.Context(group), word)
            path.append(word)
    return " ".join(path)


def _show_traceback(debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc()


def _complain(message: str, hint: str | None, code: int) -> int:
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
    return code
