"""`doctor`, `prune`, `reindex`, `completion`, `trust`: check, repair, tidy up, trust."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from holdfast.base.errors import CannotDoError, GitError, HoldfastError, NotFoundError
from holdfast.base.text import counted
from holdfast.cli import common
from holdfast.cli.quiet import accept_reminders, strange_reminders
from holdfast.project import formats
from holdfast.project.formats import FOLDER
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Settings, load_settings
from holdfast.project.trust import Trust, read_plain
from holdfast.store.session_files import SessionFiles


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
@click.option("--notify", is_flag=True, help="Also send a test message to where `notify` says.")
@common.json_option
def doctor_command(fix: bool, notify: bool, as_json: bool) -> None:
    """Check the installation.

    With --fix, a failed check is repaired where that loses nothing: a damaged database is renamed and rebuilt
    from the session files, what a dead process left running is recorded as paused, files that others could
    read are made private, and temporary files of killed processes are removed. Each repair is announced
    first, on stderr.

    \b
    Examples:
      holdfast doctor
      holdfast doctor --fix
      holdfast doctor --notify
    """
    current = common.settings()
    if notify and not current.notify:
        raise CannotDoError(
            "there is nowhere to send a test message: the setting `notify` is empty",
            hint='set notify = ["ntfy://TOPIC"] in your config file, or HOLDFAST_NOTIFY',
        )
    findings = _findings(current)
    for _ in range(_PASSES if fix else 0):
        if bad := [finding.name for finding in findings if finding.failed]:
            _repair(current, bad)
            findings = _findings(current)
    if notify:
        findings += _notifications(current)
    if as_json:
        common.print_json([finding.document for finding in findings])
    else:
        _print(findings, current)
    bad = [finding.name for finding in findings if finding.failed]
    if bad:
        raise CannotDoError(f"check failed: {', '.join(bad)}", hint="see the lines marked ✗")


def _print(findings: Iterable[CheckResult], current: Settings) -> None:
    unasked: list[str] = []
    for finding in findings:
        kind, _, name = finding.name.partition(" ")
        if kind == "driver" and not finding.ok and not _is_asked_for(name, current):
            unasked.append(name)
            continue
        click.echo(f"{finding.mark} {finding.name}: {finding.told}")
        if finding.hint and not finding.ok:
            click.echo(f"    {finding.hint}")
    if unasked:
        click.echo(f"· drivers that are not set up: {', '.join(unasked)}")
        click.echo("    `holdfast doctor --json` says what each of them needs")


def _is_asked_for(driver: str, current: Settings) -> bool:
    return bool(current.agent_model) if driver == "model" else driver in common.recorded_agents()


def _notifications(current: Settings) -> Iterator[CheckResult]:
    """By number: an address may hold a password."""
    from holdfast.workflows.runner_context import send_test

    for number, taken in enumerate(send_test(current.notify), start=1):
        yield CheckResult(
            f"notification {number}",
            taken,
            "a test message was delivered" if taken else "the test message was not delivered",
            "check the address: each service has its own form, see apprise's documentation",
        )


_PASSES = 2
"""What a damaged database hides is found once that is repaired."""


def _findings(current: Settings) -> list[CheckResult]:
    return [finding for check in _CHECKS for finding in check(current)]


def _programs(current: Settings) -> Iterator[CheckResult]:
    from holdfast.journal.prices import price_table

    version = ".".join(map(str, sys.version_info[:3]))
    yield CheckResult("python", sys.version_info >= (3, 11), version, "Holdfast needs Python 3.11 or newer")
    git = _git_version(current)
    yield CheckResult("git", git is not None, git or "not found", "install git")
    own = f", and {len(current.prices)} of your own" if current.prices else ""
    yield CheckResult("prices", True, f"as of {price_table()['as_of']}{own}")


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
            yield CheckResult("workers", True, f"{len(living) or 'none'} running")
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
    from holdfast.hooks.fast import notes
    from holdfast.hooks.fast.event import MOMENTS

    noted = str(current.home / formats.UNKNOWN_EVENTS)
    try:
        sent = (notes.read(noted) or b"").decode(errors="replace")
    except OSError:
        sent = ""
    words = [line.partition(" ") for line in sent.splitlines()]
    unknown = ", ".join(f"{agent} {name}" for agent, _, name in words if name not in MOMENTS.get(agent, ()))
    yield CheckResult(
        "hooks",
        not unknown,
        f"unknown to this version: {common.in_a_line(unknown)}"
        if unknown
        else "no agent sent an unknown event",
        f"a newer Holdfast may know it; an agent is named as in `holdfast install`; it is noted in {noted}",
        optional=True,
    )


def _agents(current: Settings) -> Iterator[CheckResult]:  # noqa: ARG001 - as all checks are called
    """Hooks of an installation that was removed or moved do nothing, and nobody would notice."""
    found = common.recorded_agents()
    if not found:
        yield CheckResult("agents", False, "none is recorded", common.INSTALL_STEP, optional=True)
    for agent, is_current in found.items():
        told = "recorded" if is_current else "its hooks are of another installation or version of Holdfast"
        yield CheckResult(f"agent {agent}", is_current, told, f"holdfast install {agent}", optional=True)


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
        f"{told}{first}" if open_to_others else "only you can read them",
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
    _agents,
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

    with common.progress() as progress:
        report = reindex(current, progress=progress)
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

    That is: temporary files of killed processes, compiled contexts that can be compiled again, the index of
    `sessions list --all --search`, which the next search builds again, and the hooks' notes of agent sessions
    that were saved more than 14 days ago. Sessions, snapshots, journals, logs,
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
    yield "can be built again", _search_index(current)


def _old_contexts(current: Settings) -> Iterator[Path]:
    """All but those of the latest session, which the next one is given."""
    from holdfast.store.session_files import SessionFiles

    latest = SessionFiles(current.layout.sessions).latest()
    for path in current.layout.sessions.glob("session-*.context-[0-9]*.md"):
        name = path.name.partition(".")[0]
        if name != latest and path.with_name(f"{name}.json").exists():
            yield path


def _search_index(current: Settings) -> Iterable[Path]:
    from holdfast.base.durable import is_held
    from holdfast.transcripts.search_index import files_in, lock_of

    return () if is_held(lock_of(current.home)) else files_in(current.home)


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

    with common.progress(quiet=as_json) as progress:
        report = reindex(common.settings(), folders, progress=progress)
    if as_json:
        common.print_json(asdict(report))
    else:
        for kept in report.kept():
            click.echo(kept)
        click.echo(
            f"{counted(len(report.added), 'session')} added, {report.already_there} already "
            f"present, in {counted(report.projects, 'project')}."
        )
    left_out = (
        f"{one} was left out: not written by Holdfast there (`holdfast trust` shows and accepts it)"
        for one in report.strange
    )
    for complaint in (*report.damaged, *report.held, *left_out):
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


# ── trust ─────────────────────────────────────────────────────────────────────────────────────────

_PARTS = {
    formats.CONFIG: "project settings",
    formats.SESSIONS: "sessions: context for the next agent, and task commands",
    formats.STATE: "reminders, notes and usage of agent sessions",
    formats.SIDECAR: "recorded file changes, for undo",
    formats.SHARE: "the local copy of shared sessions",
}
_LISTED = 20


@dataclass(frozen=True)
class Contents:
    """What stands in a `.holdfast` folder, seen without following a link or reading a file as ours."""

    folder: str
    trusted: bool
    reason: str | None
    files: int
    size: int
    by_part: dict[str, int]
    links: list[str]
    settings: list[str]
    unproved: list[str]
    """In a folder of ours: what something else put there, and nobody believes until it is accepted."""


@click.command("trust")
@click.option("--show", is_flag=True, help="Only show the contents of the folder.")
@click.option("--revoke", is_flag=True, help="Ignore the folder from now on.")
@common.yes_option
@common.json_option
def trust_command(show: bool, revoke: bool, yes: bool, as_json: bool) -> None:
    """Inspect a .holdfast folder from elsewhere, and trust it.

    A folder that came with a clone or an archive, is tracked by git, or is owned by another user is ignored
    until you trust it. Trusting it means: its sessions are offered to agents as your own, and `holdfast
    resume` runs the commands of their tasks.

    \b
    Examples:
      holdfast trust --show
      holdfast trust
      holdfast trust --revoke
    """
    project = _nearest_project()
    if revoke:
        _revoke(project)
        return
    contents = _contents(project)
    if as_json:
        common.print_json(asdict(contents))
    else:
        _print_contents(contents)
    if not show and (not contents.trusted or contents.unproved):
        _accept(project, contents, yes)


def _nearest_project() -> Path:
    """The nearest folder upwards with a `.holdfast`, whoever owns it."""
    given = os.environ.get("HOLDFAST_PROJECT")
    start = load_settings(project_file=False).project if given else Path.cwd()
    for candidate in (start, *start.parents):
        if os.path.lexists(candidate / FOLDER):
            return candidate
    raise NotFoundError("no .holdfast folder here", hint="there is nothing to trust")


def _revoke(project: Path) -> None:
    where = project / FOLDER
    if not Trust().revoke(str(project)):
        raise CannotDoError(f"{where} was not trusted", hint="it is already ignored")
    click.echo(f"{_shown(where)} is ignored from now on.")


def _accept(project: Path, contents: Contents, yes: bool) -> None:
    if contents.links:
        raise CannotDoError(
            "a folder with symbolic links in it cannot be trusted",
            hint=f"remove them first: {', '.join(contents.links[:3])}",
        )
    if not yes and not _agreed():
        raise CannotDoError(
            "the folder is still ignored", hint="`holdfast trust --yes` accepts it without asking"
        )
    Trust().accept(str(project))
    reason = Trust().foreign_because(str(project))
    if reason:
        raise CannotDoError(f"the folder is still ignored: {reason}")
    sessions = ProjectLayout(project).sessions
    if sessions.is_dir():
        SessionFiles(sessions).accept_waiting()
    accept_reminders(ProjectLayout(project))
    click.echo("Trusted.", err=True)
    _save_ended(project)
    if sessions.is_dir() and SessionFiles(sessions).session_ids():
        click.echo("`holdfast reindex` adds its sessions, should the database not have them.", err=True)


def _save_ended(project: Path) -> None:
    """Sessions that ended while the folder was ignored. Should that fail, the next that begins does it."""
    from holdfast.hooks.fast import notes
    from holdfast.project import formats

    folder = Path(formats.hooks_folder(str(ProjectLayout(project).state)))
    ended: list[Path] = []
    for line in Trust().take_sessions(str(project)):
        notes_of_session = folder / line.removeprefix(formats.ENDED_BESIDE)
        if line.startswith(formats.ENDED_BESIDE) and (notes_of_session / formats.WHO).exists():
            notes.write(str(notes_of_session / formats.ENDED), b"end")
            notes.write(str(notes_of_session / formats.SETTLING), b"")
            ended.append(notes_of_session)
    if ended:
        from holdfast.hooks.background_tasks import save_ended

        try:
            for name in save_ended(project, ended):
                click.echo(f"Saved {name}, a session that ended while the folder was ignored.", err=True)
        except HoldfastError as error:
            click.echo(f"warning: sessions that ended meanwhile are not saved yet: {error.message}", err=True)


def _agreed() -> bool:
    try:
        return click.confirm("Trust this folder?", err=True)
    except click.Abort:  # nobody there to answer
        return False


def _contents(project: Path) -> Contents:
    folder = project / FOLDER
    parts: Counter[str] = Counter()
    size = 0
    links = [_shown(folder)] if folder.is_symlink() else []
    for place, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            path = Path(place, name)
            if path.is_symlink():
                links.append(_shown(path.relative_to(project)))
            elif name in files:
                parts[path.relative_to(folder).parts[0]] += 1
                size += path.lstat().st_size
    reason = Trust().foreign_because(str(project))
    return Contents(
        folder=_shown(folder),
        trusted=reason is None,
        reason=reason,
        files=sum(parts.values()),
        size=size,
        by_part=dict(sorted((_shown(name), number) for name, number in parts.items())),
        links=links,
        settings=_settings(folder / formats.CONFIG),
        unproved=_unproved(ProjectLayout(project)) if reason is None else [],
    )


def _unproved(layout: ProjectLayout) -> list[str]:
    reminders = [f"reminder: {_shown(line)}" for line in strange_reminders(layout)]
    files = SessionFiles(layout.sessions)
    names = files.session_ids() if layout.sessions.is_dir() else []
    return [*reminders, *(name for name in names if not files.may_stand_in(name))]


def _settings(path: Path) -> list[str]:
    """The lines of the settings file, as text only."""
    lines = read_plain(str(path), most=65_536).decode(errors="replace").splitlines()
    return [_shown(line) for line in lines if line.strip()][:_LISTED]


def _shown(text: str | Path) -> str:
    """Names from elsewhere may hold control characters, which a terminal would obey."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in str(text))


def _print_contents(contents: Contents) -> None:
    click.echo(contents.folder)
    click.echo(f"  {'trusted' if contents.trusted else f'ignored: {contents.reason}'}")
    for name, number in contents.by_part.items():
        meaning = f"  {_PARTS[name]}" if name in _PARTS else ""
        click.echo(f"  {name:12} {number:5} {'file' if number == 1 else 'files'}{meaning}")
    for link in contents.links:
        click.echo(f"  symbolic link: {link}")
    for line in contents.settings:
        click.echo(f"    {line}")
    for line in contents.unproved:
        click.echo(f"  ignored, not written by Holdfast here: {line}")
