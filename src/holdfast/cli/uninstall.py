from __future__ import annotations

import click

from holdfast.cli.install import carry_out, target_for
from holdfast.hooks.install import AGENTS, installer_for


@click.command("uninstall")
@click.argument("agent", type=click.Choice(list(AGENTS)))
@click.option("--user", "scope", flag_value="user", default="user", help="In all projects. The default.")
@click.option("--project", "scope", flag_value="project", help="In this project alone.")
@click.option("--dry-run", is_flag=True, help="Show what would change, as a diff, and change nothing.")
def command(agent: str, scope: str, dry_run: bool) -> None:
    """Take Holdfast's hooks out of a coding agent again.

    Sessions and snapshots stay.

    \b
    Examples:
      holdfast uninstall claude-code --dry-run
      holdfast uninstall codex --project
    """
    plan = installer_for(agent).uninstall(target_for(scope))
    if not carry_out(plan, dry_run, f"Holdfast is out of {agent}"):
        click.echo(f"Holdfast is not installed for {agent}.")
