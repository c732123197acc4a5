"""`install` and `uninstall`: hooks in a coding agent's settings."""

from __future__ import annotations

import os
from pathlib import Path

import click

from holdfast.base.errors import InvalidInputError
from holdfast.hooks.install import AGENTS, InstallPlan, Target, installer_for


@click.command("install")
@click.argument("agent", type=click.Choice(list(AGENTS)))
@click.option("--user", "scope", flag_value="user", default="user", help="For all projects (default).")
@click.option("--project", "scope", flag_value="project", help="For this project only.")
@click.option(
    "--settings",
    "form",
    flag_value="settings",
    default="settings",
    help="Claude Code: put the hooks in its settings (default).",
)
@click.option("--plugin", "form", flag_value="plugin", help="Claude Code: put the hooks in a plugin.")
@click.option("--dry-run", is_flag=True, help="Show the changes as a diff without making them.")
def install_command(agent: str, scope: str, form: str, dry_run: bool) -> None:
    """Install Holdfast's hooks in a coding agent.

    From then on its sessions are recorded, saved and can be resumed.

    Your own settings are kept, and a backup of each changed file is saved next to it.

    \b
    Examples:
      holdfast install claude-code --dry-run
      holdfast install claude-code --plugin
      holdfast install codex --project
    """
    plan = _planned(agent, target_for(scope), form)
    changed = carry_out(plan, dry_run, f"Holdfast is installed for {agent}")
    if not changed:
        click.echo(f"Holdfast was already installed for {agent}.")
    elif not dry_run:
        for note in plan.notes:
            click.echo(f"note: {note}")


def _planned(agent: str, target: Target, form: str) -> InstallPlan:
    if form == "settings":
        return installer_for(agent).install(target)
    if agent != "claude-code":
        raise InvalidInputError("--plugin only works with claude-code", hint=f"holdfast install {agent}")
    from holdfast.hooks.install import claude

    return claude.install(target, as_plugin=True)


def target_for(scope: str) -> Target:
    from holdfast.project.settings import load_settings

    project = load_settings().project if scope == "project" else None
    return Target(Path.home(), os.environ, project)


def carry_out(plan: InstallPlan, dry_run: bool, done: str) -> bool:
    """Whether there was anything to do. Every file was looked at before the first is changed."""
    changes = [change for change in plan.changes if change.is_needed]
    for change in changes:
        if dry_run:
            click.echo(change.diff(), nl=False)
        else:
            change.apply()
    if changes and not dry_run:
        click.echo(f"{done}:")
        for change in changes:
            click.echo(f"  {change.path}")
    return bool(changes)


# ── uninstall ─────────────────────────────────────────────────────────────────────────────────────


@click.command("uninstall")
@click.argument("agent", type=click.Choice(list(AGENTS)))
@click.option("--user", "scope", flag_value="user", default="user", help="For all projects (default).")
@click.option("--project", "scope", flag_value="project", help="For this project only.")
@click.option("--dry-run", is_flag=True, help="Show the changes as a diff without making them.")
def uninstall_command(agent: str, scope: str, dry_run: bool) -> None:
    """Remove Holdfast's hooks from a coding agent.

    Sessions and snapshots are kept.

    \b
    Examples:
      holdfast uninstall claude-code --dry-run
      holdfast uninstall codex --project
    """
    plan = installer_for(agent).uninstall(target_for(scope))
    if not carry_out(plan, dry_run, f"Holdfast was removed from {agent}"):
        click.echo(f"Holdfast is not installed for {agent}.")
