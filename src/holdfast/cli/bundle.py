"""`export` and `import`: sessions as a file."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.base.durable import replace_file, storage_errors
from holdfast.base.errors import CannotDoError, DamagedDataError
from holdfast.base.text import counted
from holdfast.cli import common


@click.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--session", "only", multiple=True, metavar="ID", help="Only this one; can be given again.")
@click.option("--encrypt", is_flag=True, help="With a passphrase: HOLDFAST_PASSPHRASE, or asked for.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@common.json_option
def export_command(file: Path, only: tuple[str, ...], encrypt: bool, force: bool, as_json: bool) -> None:
    """Export this project's sessions to a bundle FILE.

    With --encrypt the file is in age's format, and the `age` tool opens it too.

    \b
    Examples:
      holdfast export work.holdfast
      holdfast export work.holdfast --session session-20260106-120000
    """
    from holdfast.sessions.bundles import export_bundle

    if file.exists() and not force:
        raise CannotDoError(f"{file} is there already", hint="--force writes over it")
    passphrase = common.passphrase(confirm=True) if encrypt else None
    data, names = export_bundle(common.settings(), only, passphrase=passphrase)
    with storage_errors(f"write {file}"):
        replace_file(file, data)
    document = {"file": str(file), "bytes": len(data), "sessions": names, "encrypted": encrypt}
    told = f"Exported {counted(len(names), 'session')} to {file} ({len(data):,} bytes)"
    common.tell(as_json, document, told)


# ── import ────────────────────────────────────────────────────────────────────────────────────────


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@common.json_option
def import_command(file: Path, as_json: bool) -> None:
    """Import the sessions of a bundle FILE into this project.

    The bundle is checked as a whole first; one with anything wrong about it is refused and nothing is
    written. Names and ids that are taken here are replaced by new ones.

    \b
    Examples:
      holdfast import work.holdfast
    """
    from holdfast.sessions.bundles import import_bundle
    from holdfast.sessions.reindex import take_in_waiting
    from holdfast.store.bundle import LARGEST_BUNDLE
    from holdfast.store.encryption import is_encrypted

    current = common.settings()
    with storage_errors(f"read {file}"):
        if file.stat().st_size > LARGEST_BUNDLE:
            raise DamagedDataError("the bundle was refused: it is too large", hint="nothing was written")
        data = file.read_bytes()
    passphrase = common.passphrase() if is_encrypted(data) else None
    with common.store_for(current) as store:
        report = import_bundle(current, store, data, passphrase=passphrase)
        take_in_waiting(store, current)
    if as_json:
        common.print_json(vars(report))
        return
    click.echo(f"Imported {counted(len(report.sessions) + len(report.items), 'session')}")
    if report.transactions:
        click.echo(f"  with {counted(len(report.transactions), 'transaction')}: `holdfast tx list`")
    for old, new in report.renamed.items():
        click.echo(f"  {old} is {new} here")
    if report.already_there:
        click.echo(f"  {len(report.already_there)} were here already")
