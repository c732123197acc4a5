from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from holdfast.cli import common


@click.command("reindex")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@common.json_option
def command(folders: tuple[Path, ...], as_json: bool) -> None:
    """Rebuild the database from the session files.

    Reads this project, the FOLDERS named, and every project the database ever held.
    A damaged SQLite database is set aside first. Can be run at any time.

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
            click.echo(f"The damaged database was kept as {report.database_set_aside}")
        click.echo(
            f"{len(report.added)} sessions added, {report.already_there} were there, "
            f"in {report.projects} projects."
        )
    for complaint in (*report.damaged, *report.held):
        click.echo(f"warning: {complaint}", err=True)
    if report.damaged:
        raise click.exceptions.Exit(4)
