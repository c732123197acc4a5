"""`doctor`, `prune`, `reindex` and `completion`: check and tidy up the installation, rebuild the database."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

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
    """Where it is not ok, nothing is broken: who does without it needs nothing more."""

    @property
    def failed(self) -> bool:
        return not self.ok and not self.optional

    @property
    def mark(self) -> str:
        return "✓" if self.ok else "·" if self.optional else "✗"

    @property
    def document(self) -> dict[str, Any]:
        return {**asdict(self), "hint": None if self.ok else self.hint}


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Repair what can be repaired without losing anything.")
@common.json_option
def doctor_command(fix: bool, as_json: bool) -> None:
    """Check the installation.

    With --fix, a failed check is repaired where that loses nothing: a damaged database is renamed and rebuilt
    from the session files, what a dead process left running is recorded as paused, files that others could
    read are made private, and temporary files of killed processes are removed. Each repair is announced
    first, on stderr.

    \b
    Examples:
      holdfast doctor
      holdfast doctor --fix
      holdfast doctor --json
    """
    current = common.settings()
    findings = _findings(current)
    for _ in range(_PASSES if fix else 0):
        if bad := [finding.name for finding in findings if finding.failed]:
            _repair(current, bad)
            findings = _findings(current)
    if as_json:
        common.print_json([finding.document for finding in findings])
    else:
        for finding in findings:
            click.echo(f"{finding.mark} {finding.name}: {finding.told}")
            if finding.hint and not finding.ok:
                click.echo(f"    {finding.hint}")
    bad = [finding.name for finding in findings if finding.failed]
    if bad:
        raise CannotDoError(f"check failed: {', '.join(bad)}", hint="see the lines marked ✗")


_PASSES = 2
"""What a damaged database hides is found once that is repaired."""


def _findings(current: Settings) -> list[CheckResult]:
    return [finding for check in _CHECKS for finding in check(current)]


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
    from holdfast.store.engine import SCHEMA_HEAD, verify_engine_tables
    from holdfast.workflows.service import OrchestratorService

    try:
        with OrchestratorService(current) as service:
            service.store.verify()
            verify_engine_tables(current.db)
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
        not unknown,
        f"unknown to this version: {common.in_a_line(unknown)}" if unknown else "every event is known",
        "a newer Holdfast may know it; an agent is named as in `holdfast install`",
        optional=True,
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
            yield CheckResult(f"driver {name}", False, told, error.hint, optional=True)
        else:
            yield CheckResult(f"driver {name}", True, "usable", optional=True)


def _files(current: Settings) -> Iterator[CheckResult]:
    open_to_others = list(_open_to_others(current))
    told = f"{counted(len(open_to_others), 'file')} can be accessed by other users"
    first = f", such as {open_to_others[0]}" if open_to_others else ""
    yield CheckResult(
        "private files",
        not open_to_others,
        f"{told}{first}" if open_to_others else "for you alone",
        "holdfast doctor --fix",
    )
    left = list(_left_behind(current))
    yield CheckResult(
        "temporary files",
        not left,
        f"{counted(len(left), 'file')} left behind by killed processes" if left else "none left behind",
        "holdfast prune",
    )


def _own_paths(current: Settings) -> Iterator[tuple[Path, os.stat_result]]:
    """All that Holdfast wrote itself: in this project, where that folder is trusted, and for this user."""
    for folder in (current.layout.folder, current.home):
        for place, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if name not in _OF_THE_USER]
            for name in (*folders, *files):
                path = Path(place, name)
                try:
                    found = path.lstat()
                except FileNotFoundError:  # gone since
                    continue
                yield path, found


# Files that an undo set aside, and checkouts in which workers work: whatever they are called, they are no
# leftovers of ours, and their modes belong to them.
_OF_THE_USER = ("set-aside", "worktrees")


def _open_to_others(current: Settings) -> Iterator[Path]:
    for path, found in _own_paths(current):
        if found.st_mode & 0o077 and not stat.S_ISLNK(found.st_mode):
            yield path


def _left_behind(current: Settings) -> Iterator[Path]:
    """Writers rename their temporary files at once; one that is older has lost its writer."""
    before = time.time() - _TEMPORARY_SECONDS
    for path, found in _own_paths(current):
        if path.suffix == ".tmp" and stat.S_ISREG(found.st_mode) and found.st_mtime < before:
            yield path


_TEMPORARY_SECONDS = 3_600.0


_CHECKS: tuple[Callable[[Settings], Iterator[CheckResult]], ...] = (
    _programs,
    _project,
    _database,
    _journal,
    _files,
    _hooks,
    _drivers,
)


# ── repairs ───────────────────────────────────────────────────────────────────────────────────────


def _repair(current: Settings, failed: list[str]) -> None:
    """What cannot be repaired is left as it is: the checks are made again afterwards, and tell."""
    for name in failed:
        if name not in _REPAIRS:
            continue
        announced, repair = _REPAIRS[name]
        click.echo(f"Fixing {name}: {announced}", err=True)
        try:
            repair(current)
        except (HoldfastError, OSError) as error:
            click.echo(f"warning: {name} was not fixed: {error}", err=True)


def _rebuild_database(current: Settings) -> None:
    from holdfast.sessions.reindex import reindex

    report = reindex(current)
    for kept in report.kept():
        click.echo(f"  {kept}", err=True)
    for complaint in (*report.damaged, *report.held):
        click.echo(f"  {complaint}", err=True)


def _settle_workflows(current: Settings) -> None:
    from holdfast.workflows.service import OrchestratorService

    with OrchestratorService(current) as service:
        for flow in service.store.claimed():
            service.recovered(flow.id)


def _settle_wind_down(current: Settings) -> None:
    from holdfast.sessions.winddown import IncrementalPauseManager

    manager = IncrementalPauseManager(settings=current)
    if manager.is_orphaned():
        manager.finalize_pause(trigger="crash", reason="its process ended without a pause")


def _make_private(current: Settings) -> None:
    for path in _open_to_others(current):
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & 0o700)


def _remove_left_behind(current: Settings) -> None:
    for path in _left_behind(current):
        path.unlink(missing_ok=True)


_REPAIRS: dict[str, tuple[str, Callable[[Settings], None]]] = {
    "database": ("rebuilding it from the session files", _rebuild_database),
    "workflows": ("recording as paused what a dead process left running", _settle_workflows),
    "wind-down": ("making a session of what a dead process recorded", _settle_wind_down),
    "private files": ("removing the access of other users", _make_private),
    "temporary files": ("removing what killed processes left behind", _remove_left_behind),
}


# ── prune ─────────────────────────────────────────────────────────────────────────────────────────

_OLD_NOTES_SECONDS = 14 * 86_400.0


@click.command("prune")
@click.option("--dry-run", is_flag=True, help="Show what would be removed without removing it.")
@common.yes_option
@common.json_option
def prune_command(dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove what Holdfast no longer needs.

    That is: temporary files of killed processes, compiled contexts that can be compiled again, and the hooks'
    notes of agent sessions that were saved more than 14 days ago. Sessions, snapshots, journals, logs,
    recorded changes and copies of damaged files are never removed.

    \b
    Examples:
      holdfast prune --dry-run
      holdfast prune --yes
    """
    current = common.settings()
    found = {path: why for why, paths in _prunable(current) for path in paths}
    sizes = {path: path.lstat().st_size for path in found if path.exists()}
    documents = [{"path": str(path), "bytes": sizes[path], "because": found[path]} for path in sizes]
    if not as_json:
        for one in documents:
            click.echo(f"{one['path']}  ({one['bytes']:,} bytes; {one['because']})")
    total = f"{counted(len(sizes), 'file')}, {sum(sizes.values()):,} bytes"
    if not dry_run and sizes:
        if not yes:
            click.confirm(f"Remove {total}?", default=False, abort=True, err=True)
        _remove(sizes)
    done = "Would remove" if dry_run else "Removed"
    told = f"{done} {total}." if sizes else "There is nothing to remove."
    common.tell(as_json, {"dry_run": dry_run, "files": documents}, told)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # only an empty folder of notes goes with its last file
            path.parent.rmdir()


def _prunable(current: Settings) -> Iterator[tuple[str, Iterable[Path]]]:
    yield "left behind by a killed process", _left_behind(current)
    yield "can be compiled again", _old_contexts(current)
    yield "notes of a saved session", _old_notes(current)


def _old_contexts(current: Settings) -> Iterator[Path]:
    """All but those of the latest session, which the next one is given."""
    from holdfast.store.session_files import SessionFiles

    latest = SessionFiles(current.layout.sessions).latest()
    for path in current.layout.sessions.glob("session-*.context-[0-9]*.md"):
        name = path.name.partition(".")[0]
        if name != latest and path.with_name(f"{name}.json").exists():
            yield path


def _old_notes(current: Settings) -> Iterator[Path]:
    from holdfast.project.formats import HOOKS, SETTLED

    before = time.time() - _OLD_NOTES_SECONDS
    for settled in (current.layout.state / HOOKS).glob(f"*/{SETTLED}"):
        notes = [path for path in settled.parent.iterdir() if not path.is_dir()]
        if max(path.lstat().st_mtime for path in notes) < before:
            yield from notes


# ── reindex ───────────────────────────────────────────────────────────────────────────────────────


@click.command("reindex")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@common.json_option
def reindex_command(folders: tuple[Path, ...], as_json: bool) -> None:
    """Rebuild the database from the session files.

    Reads this project, the given FOLDERS, and every project the database has ever
    held. A damaged SQLite database, also that of the engine of workflows, is renamed
    first. Safe to run at any time.

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
        for kept in report.kept():
            click.echo(kept)
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
