"""`doctor`, `reindex` and `completion`: check the installation, rebuild the database, complete commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from holdfast.base.errors import CannotDoError, GitError, HoldfastError
from holdfast.base.text import counted
from holdfast.cli import common
from holdfast.project.settings import Settings


@dataclass(frozen=True)
class CheckResult:
    name: str
    ok: bool
    told: str
    hint: str | None = None
    optional: bool = False
    """Not there, and nothing is amiss: who does without it needs nothing more."""

    @property
    def mark(self) -> str:
        return "·" if self.optional else "✓" if self.ok else "✗"


@click.command("doctor")
@common.json_option
def doctor_command(as_json: bool) -> None:
    """Check the installation.

    \b
    Examples:
      holdfast doctor
      holdfast doctor --json
    """
    current = common.settings()
    findings = [finding for check in _CHECKS for finding in check(current)]
    if as_json:
        common.print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            click.echo(f"{finding.mark} {finding.name}: {finding.told}")
            if finding.hint and (finding.optional or not finding.ok):
                click.echo(f"    {finding.hint}")
    bad = [finding.name for finding in findings if not finding.ok]
    if bad:
        raise CannotDoError(f"check failed: {', '.join(bad)}", hint="see the lines marked ✗")


def _programs(current: Settings) -> Iterator[CheckResult]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield CheckResult("python", sys.version_info >= (3, 11), version, "Holdfast needs Python 3.11 or newer")
    git = _git_version(current)
    yield CheckResult("git", git is not None, git or "not found", "install git")


def _git_version(current: Settings) -> str | None:
    from holdfast.base.git import run_git

    try:
        return run_git(current.project, "version").out.decode(errors="replace").strip()
    except GitError:
        return None


def _project(current: Settings) -> Iterator[CheckResult]:
    from holdfast.capture.git import capture_git_state

    try:
        state = capture_git_state(current.project)
    except HoldfastError as error:
        yield CheckResult("project", False, error.message, error.hint)
        return
    told = f"{current.worktree}, " + (
        f"branch {state.branch or '(detached)'}" if state else "no git repository"
    )
    yield CheckResult("project", True, told)


def _database(current: Settings) -> Iterator[CheckResult]:
    from holdfast.store.engine import SCHEMA_HEAD
    from holdfast.workflows.service import OrchestratorService

    try:
        with OrchestratorService(current) as service:
            service.store.verify()
            yield CheckResult("database", True, f"{service.store.shown}, schema {SCHEMA_HEAD}")
            leases = service.store.leases.all()
            living = [lease for lease in leases if lease.kind == "worker" and not lease.expired]
            yield CheckResult("workers", True, f"{len(living)} there")
            lost = [flow for flow in service.store.claimed() if service.is_abandoned(flow)]
            yield CheckResult(
                "workflows",
                not lost,
                f"{len(lost)} abandoned by a dead process" if lost else "none abandoned",
                "; ".join(f"holdfast resume {flow.id}" for flow in lost) or None,
            )
    except HoldfastError as error:
        yield CheckResult("database", False, error.message, error.hint)


def _journal(current: Settings) -> Iterator[CheckResult]:
    from holdfast.sessions.winddown import IncrementalPauseManager

    orphaned = IncrementalPauseManager(settings=current).is_orphaned()
    yield CheckResult(
        "wind-down",
        not orphaned,
        "one was abandoned by a dead process" if orphaned else "none abandoned",
        "holdfast winddown recover",
    )


def _hooks(current: Settings) -> Iterator[CheckResult]:
    from holdfast.project.formats import HOOKS, UNKNOWN_EVENTS

    try:
        sent = (current.layout.state / HOOKS / UNKNOWN_EVENTS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        sent = ""
    unknown = ", ".join(sent.splitlines())
    yield CheckResult(
        "hooks",
        True,
        f"unknown to this version: {common.in_a_line(unknown)}" if unknown else "every event is known",
        "a newer Holdfast may know it; an agent is named as in `holdfast install`",
        optional=bool(unknown),
    )


def _drivers(current: Settings) -> Iterator[CheckResult]:
    from holdfast.model.task import Task
    from holdfast.workflows.drivers import DRIVERS, driver_named

    probe = Task(id="probe", description="", run="true", prompt="hello")
    for name in DRIVERS:
        try:
            driver_named(name, current).check(probe)
        except HoldfastError as error:
            told = f"unusable: {error.message}"
            yield CheckResult(f"driver {name}", True, told, error.hint, optional=True)
        else:
            yield CheckResult(f"driver {name}", True, "usable")


_CHECKS: tuple[Callable[[Settings], Iterator[CheckResult]], ...] = (
    _programs,
    _project,
    _database,
    _journal,
    _hooks,
    _drivers,
)


# ── reindex ───────────────────────────────────────────────────────────────────────────────────────


@click.command("reindex")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@common.json_option
def reindex_command(folders: tuple[Path, ...], as_json: bool) -> None:
    """Rebuild the database from the session files.

    Reads this project, the given FOLDERS, and every project the database has ever
    held. A damaged SQLite database is renamed first. Safe to run at any time.

    \b
    Examples:
      holdfast reindex
      holdfast reindex ../other-project
    """
    from holdfast.sessions.reindex import reindex

    report = reindex(common.settings(), folders)
    if as_json:
        common.print_json(asdict(report))
    else:
        if report.database_set_aside:
            click.echo(f"The damaged database was renamed to {report.database_set_aside}")
        click.echo(
            f"{counted(len(report.added), 'session')} added, {report.already_there} already "
            f"present, in {report.projects} projects."
        )
    for complaint in (*report.damaged, *report.held):
        click.echo(f"warning: {complaint}", err=True)
    if report.damaged:
        raise click.exceptions.Exit(4)


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in your shell.

    \b
    Examples:
      holdfast completion fish > ~/.config/fish/completions/holdfast.fish
      eval "$(holdfast completion bash)"        in ~/.bashrc
      eval "$(holdfast completion zsh)"         in ~/.zshrc
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    kind = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}[shell]
    click.echo(kind(ctx.find_root().command, {}, "holdfast", "_HOLDFAST_COMPLETE").source(), nl=False)
