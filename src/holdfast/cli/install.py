"""`install` and `uninstall`: Holdfast in a coding agent's settings."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import click

from holdfast.base.errors import CannotDoError, InvalidInputError, NotFoundError, installed_from
from holdfast.base.text import counted
from holdfast.cli import common
from holdfast.hooks.install import InstallPlan, Target, agents_here, installer_for
from holdfast.hooks.install.files import FileChange
from holdfast.project.formats import AGENTS

F = TypeVar("F", bound=Callable[..., object])


def _options(command: F) -> F:
    """The same for both, so that what was installed is uninstalled by the same words."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Show which files would change, and change nothing."),
        click.option("--verbose", "-v", is_flag=True, help="With --dry-run: show the changes as a diff."),
        click.option("--plugin", "form", flag_value="plugin", help="Claude Code: the hooks are in a plugin."),
        click.option(
            "--settings",
            "form",
            flag_value="settings",
            default="settings",
            help="Claude Code: the hooks are in its settings (default).",
        ),
        click.option("--project", "scope", flag_value="project", help="For this project only."),
        click.option(
            "--user", "scope", flag_value="user", default="user", help="For all projects (default)."
        ),
        click.option("--all", "everywhere", is_flag=True, help="For every agent that is found here."),
        click.argument("agent", type=common.AgentName(list(AGENTS)), required=False),
    ):
        command = option(command)
    return command


@click.command("install")
@_options
def install_command(
    agent: str | None, everywhere: bool, scope: str, form: str, dry_run: bool, verbose: bool
) -> None:
    """Install Holdfast in a coding agent: hooks, commands and tools.

    From then on its sessions are recorded, saved and can be resumed.

    Your own settings are kept, and a backup of each changed file is saved next to it.

    \b
    Examples:
      holdfast install claude-code --dry-run
      holdfast install claude-code --plugin
      holdfast install codex --project
      holdfast install --all
    """
    target = target_for(scope)
    agents = _chosen(agent, everywhere, target)
    if not dry_run:
        _refuse_temporary()
    # all are looked at before one is changed
    plans = {name: _planned(name, target, form, is_one_of_all=everywhere) for name in agents}
    for name, plan in plans.items():
        if not carry_out(plan, target, _shown(dry_run, verbose), f"Holdfast is installed for {name}"):
            click.echo(f"Holdfast was already installed for {name}.")
        elif not dry_run:
            _say(plan.notes)


_TEMPORARY = re.compile(r"/(?:archive|environments)-v\d+/|/\.cache/pipx/|/pipx/\.cache/")
"""Where `uvx` and `pipx run` keep what they may remove at any time."""


def _refuse_temporary() -> None:
    if _TEMPORARY.search(f"{sys.prefix}/"):
        tool = "pipx install" if "pipx" in sys.prefix else "uv tool install"
        raise CannotDoError(
            "this copy of Holdfast is a temporary one, and an agent's hooks would end with it",
            hint=f"install it first: {tool} {shlex.quote(installed_from() or 'PACKAGE')}",
        )


def _chosen(agent: str | None, everywhere: bool, target: Target) -> list[str]:
    if (agent is None) == (not everywhere):
        raise click.UsageError("Give an agent, or --all.")
    if agent is not None:
        return [agent]
    found = agents_here(target)
    if not found:
        raise NotFoundError("no coding agent was found here", hint=f"name one: {', '.join(AGENTS)}")
    return found


def _planned(agent: str, target: Target, form: str, *, is_one_of_all: bool) -> InstallPlan:
    if agent == "claude-code":
        from holdfast.hooks.install import claude_code

        return claude_code.install(target, as_plugin=form == "plugin")
    if form == "plugin" and not is_one_of_all:
        raise InvalidInputError("--plugin only works with claude-code", hint=f"holdfast install {agent}")
    return installer_for(agent).install(target)


def target_for(scope: str) -> Target:
    from holdfast.project.settings import load_settings

    project = load_settings().project if scope == "project" else None
    return Target(Path.home(), os.environ, project)


_Shown = Callable[[FileChange], str]


def _shown(dry_run: bool, verbose: bool) -> _Shown | None:
    """How a change is told in place of being made."""
    if verbose and not dry_run:
        raise InvalidInputError("--verbose is for --dry-run", hint="add --dry-run; nothing was changed")
    return (FileChange.diff if verbose else _summary) if dry_run else None


def _summary(change: FileChange) -> str:
    if change.after is None:
        return f"Would remove {change.path}\n"
    added, removed = change.lines
    if change.before is None:
        return f"Would create {change.path} ({counted(added, 'line')})\n"
    return f"Would change {change.path} (lines: +{added} -{removed})\n"


def carry_out(plan: InstallPlan, target: Target, shown: _Shown | None, done: str) -> bool:
    """Whether there was anything to do. Every file was looked at before the first is changed.

    With `shown` the changes are told and not made.
    """
    changes = [change for change in plan.changes if change.is_needed]
    if target.project:
        _check_inside(target.project.resolve(), changes)
    for change in changes:
        if shown:
            click.echo(shown(change), nl=False)
        else:
            change.apply()
    if changes and not shown:
        click.echo(f"{done}:")
        for change in changes:
            click.echo(f"  {change.path}")
    _say(change.note for change in plan.changes if change.note)
    return bool(changes)


def _say(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(f"note: {note}")


def _check_inside(project: Path, changes: list[FileChange]) -> None:
    """Your own settings may be links to where you keep them; a repository's may lead anywhere."""
    for change in changes:
        if not change.path.resolve().is_relative_to(project):
            raise InvalidInputError(
                f"{change.path} leads out of the project through a symbolic link",
                hint="remove the link, or install with --user; nothing was changed",
            )


# ── uninstall ─────────────────────────────────────────────────────────────────────────────────────


@click.command("uninstall")
@_options
def uninstall_command(
    agent: str | None,
    everywhere: bool,
    scope: str,
    form: str,  # noqa: ARG001 - both forms go
    dry_run: bool,
    verbose: bool,
) -> None:
    """Remove Holdfast from a coding agent.

    Sessions and snapshots are kept.

    \b
    Examples:
      holdfast uninstall claude-code --dry-run
      holdfast uninstall codex --project
      holdfast uninstall --all
    """
    target = target_for(scope)
    plans = {name: installer_for(name).uninstall(target) for name in _chosen(agent, everywhere, target)}
    for name, plan in plans.items():
        if not carry_out(plan, target, _shown(dry_run, verbose), f"Holdfast was removed from {name}"):
            click.echo(f"Holdfast is not installed for {name}.")
