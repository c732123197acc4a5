"""`export`, `import` and `share`: sessions as a file, and through a git remote."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from holdfast.base.durable import replace_file, storage_errors
from holdfast.base.errors import CannotDoError, DamagedDataError, NotFoundError
from holdfast.base.text import counted
from holdfast.cli import common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.base.text import Progress
    from holdfast.project.settings import Settings
    from holdfast.sessions.bundles import ImportReport
    from holdfast.store.protocol import Store

_only_option = click.option(
    "--session", "only", multiple=True, metavar="ID", help="Only this session. Repeatable."
)
_encrypt_option = click.option(
    "--encrypt", is_flag=True, help="Encrypt with a passphrase (HOLDFAST_PASSPHRASE, or prompted)."
)


@click.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@_only_option
@_encrypt_option
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@common.json_option
def export_command(file: Path, only: tuple[str, ...], encrypt: bool, force: bool, as_json: bool) -> None:
    """Export this project's sessions to a bundle FILE.

    With --encrypt the file is in age format, so the `age` tool can open it too.

    \b
    Examples:
      holdfast export work.holdfast
      holdfast export work.holdfast --session session-20260106-120000
    """
    from holdfast.sessions.bundles import export_bundle

    if file.exists() and not force:
        raise CannotDoError(f"{file} already exists", hint="pass --force to overwrite it")
    passphrase = common.passphrase(confirm=True) if encrypt else None
    with common.progress(quiet=as_json) as progress:
        data, names, damaged = export_bundle(
            common.settings(), only, passphrase=passphrase, progress=progress
        )
    with storage_errors(f"write {file}"):
        replace_file(file, data)
    document = {"file": str(file), "bytes": len(data), "sessions": names, "encrypted": encrypt}
    told = f"Exported {counted(len(names), 'session')} to {file} ({len(data):,} bytes)"
    common.tell(as_json, document, told)
    _tell_of_damage(damaged)


def _tell_of_damage(complaints: list[str]) -> None:
    for complaint in complaints:
        click.echo(f"warning: left out: {complaint}", err=True)
    if complaints:
        raise click.exceptions.Exit(4)


# ── import ────────────────────────────────────────────────────────────────────────────────────────


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@common.json_option
def import_command(file: Path, as_json: bool) -> None:
    """Import the sessions of a bundle FILE into this project.

    The whole bundle is verified first; if anything is wrong it is rejected and nothing is
    written. Names and ids that already exist here are replaced by new ones.

    FILE may be the folder in which claude-mpm saved its sessions.

    \b
    Examples:
      holdfast import work.holdfast
      holdfast import .claude-mpm/sessions
    """
    from holdfast.sessions.reindex import take_in_waiting

    current = common.settings()
    if not file.exists():
        raise NotFoundError(f"no such file: {file}", hint="give one that `holdfast export` exported")
    damaged: list[str] = []
    with common.store_for(current) as store:
        take = _from_folder(current, file, damaged) if file.is_dir() else _from_bundle(current, file)
        with common.progress(quiet=as_json) as progress:
            report = take(store, progress)
            take_in_waiting(store, current, progress)
    _tell_of_import(report, as_json)
    _tell_of_damage(damaged)


def _from_bundle(current: Settings, file: Path) -> Callable[[Store, Progress], ImportReport]:
    """Read, with the passphrase asked for; what is returned writes it."""
    from holdfast.sessions.bundles import import_bundle
    from holdfast.store.bundle import LARGEST_BUNDLE
    from holdfast.store.encryption import is_encrypted

    with storage_errors(f"read {file}"):
        if file.stat().st_size > LARGEST_BUNDLE:
            raise DamagedDataError("the bundle was refused: it is too large", hint="nothing was written")
        data = file.read_bytes()
    passphrase = common.passphrase() if is_encrypted(data) else None
    return lambda store, progress: import_bundle(
        current, store, data, passphrase=passphrase, progress=progress
    )


def _from_folder(
    current: Settings, folder: Path, damaged: list[str]
) -> Callable[[Store, Progress], ImportReport]:
    from holdfast.sessions.bundles import import_sessions
    from holdfast.sessions.claude_mpm import read_sessions

    found = read_sessions(folder, Path(current.worktree))
    damaged.extend(found.left_out)
    return lambda store, progress: import_sessions(
        current, store, found.sessions, found.journals, progress=progress
    )


def _tell_of_import(report: ImportReport, as_json: bool) -> None:
    if as_json:
        common.print_json(vars(report))
        return
    click.echo(f"Imported {counted(len(report.sessions) + len(report.items), 'session')}")
    if report.transactions:
        click.echo(f"  with {counted(len(report.transactions), 'transaction')}: `holdfast tx list`")
    for old, new in report.renamed.items():
        click.echo(f"  {old} was imported as {new}")
    for name in report.merged:
        click.echo(f"  {name} got ratings from there")
    for line in report.kept:
        click.echo(f"  left as it is here: {line}")
    if report.already_there:
        click.echo(f"  {len(report.already_there)} already existed")


# ── share ─────────────────────────────────────────────────────────────────────────────────────────


@click.group("share")
def share_command() -> None:
    """Share this project's sessions through a git remote.

    They are stored under a separate ref (refs/holdfast/sessions), which clones do not fetch by default.

    \b
    Examples:
      holdfast share push --encrypt
      holdfast share pull upstream
    """


@share_command.command()
@click.argument("remote", default="origin")
@_only_option
@_encrypt_option
@common.json_option
def push(remote: str, only: tuple[str, ...], encrypt: bool, as_json: bool) -> None:
    """Push this project's sessions to REMOTE, replacing those pushed from this copy before."""
    from holdfast.sessions.bundles import export_bundle

    current = common.settings()
    passphrase = common.passphrase(confirm=True) if encrypt else None
    with common.progress(quiet=as_json) as progress:
        data, names, _ = export_bundle(
            current, only, passphrase=passphrase, for_sharing=True, progress=progress
        )
    _shared(remote).push(data)
    document = {"remote": remote, "bytes": len(data), "sessions": names, "encrypted": encrypt}
    told = f"Shared {counted(len(names), 'session')} through {remote} ({len(data):,} bytes)"
    common.tell(as_json, document, told)


@share_command.command()
@click.argument("remote", default="origin")
@common.json_option
def pull(remote: str, as_json: bool) -> None:
    """Import the sessions that others pushed to REMOTE; every bundle is verified first."""
    from holdfast.sessions.bundles import import_bundle
    from holdfast.sessions.reindex import take_in_waiting
    from holdfast.store.encryption import is_encrypted

    current = common.settings()
    shared = _shared(remote)
    reports: list[dict[str, Any]] = []
    with common.store_for(current) as store:
        for fetched in shared.pull():
            if shared.is_taken_in(fetched):
                continue
            passphrase = common.passphrase() if is_encrypted(fetched.data) else None
            with common.progress(quiet=as_json) as progress:
                report = import_bundle(current, store, fetched.data, passphrase=passphrase, progress=progress)
            shared.note_taken_in(fetched)
            reports.append({"from": fetched.name, **vars(report)})
        take_in_waiting(store, current)
    number = sum(len(one["sessions"]) + len(one["items"]) for one in reports)
    told = [f"Imported {counted(number, 'session')} from {counted(len(reports), 'other')}"]
    told += [f"  {name} got ratings from there" for one in reports for name in one["merged"]]
    told += [f"  left as it is here: {line}" for one in reports for line in one["kept"]]
    common.tell(as_json, reports, *told)


def _shared(remote: str) -> Any:
    from holdfast.sessions.sharing import Shared

    current = common.settings()
    current.layout.ensure()
    return Shared(current.project, current.layout.folder, remote, time.time)
