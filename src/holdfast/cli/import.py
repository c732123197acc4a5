# noqa: N999 - named as the command is
from __future__ import annotations

from pathlib import Path

import click

from holdfast.base.durable import storage_errors
from holdfast.base.errors import DamagedDataError
from holdfast.cli import common


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@common.json_option
def command(file: Path, as_json: bool) -> None:
    """Take the sessions of a bundle FILE into this project.

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
    click.echo(f"Imported {len(report.sessions) + len(report.items)} sessions")
    if report.transactions:
        click.echo(f"  with {len(report.transactions)} transactions: `holdfast tx list`")
    for old, new in report.renamed.items():
        click.echo(f"  {old} is {new} here")
    if report.already_there:
        click.echo(f"  {len(report.already_there)} were here already")
