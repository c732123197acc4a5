from __future__ import annotations

from pathlib import Path

import click

from holdfast.base.durable import replace_file, storage_errors
from holdfast.base.errors import CannotDoError
from holdfast.cli import common


@click.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--session", "only", multiple=True, metavar="ID", help="Only this one; can be given again.")
@click.option("--encrypt", is_flag=True, help="With a passphrase: HOLDFAST_PASSPHRASE, or asked for.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@common.json_option
def command(file: Path, only: tuple[str, ...], encrypt: bool, force: bool, as_json: bool) -> None:
    """Put this project's sessions into a bundle FILE.

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
    if as_json:
        common.print_json({"file": str(file), "bytes": len(data), "sessions": names, "encrypted": encrypt})
    else:
        click.echo(f"Exported {len(names)} sessions to {file} ({len(data):,} bytes)")
