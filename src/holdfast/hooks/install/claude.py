"""Claude Code: hooks in its settings or in a plugin, and in both cases the skills and the status line."""

from __future__ import annotations

import shlex
from pathlib import Path

from holdfast.hooks.install import Plan, Target, hook_settings, own_files
from holdfast.hooks.install.claude_plugin import NAME, hook_groups, installed_command, installed_files
from holdfast.hooks.install.files import Change

STATUS_LINE = "statusLine"


def install(target: Target, *, as_plugin: bool = False) -> Plan:
    """Going from one form to the other takes the first one's hooks out: they must not run twice."""
    settings = hook_settings.plan_install(settings_file(target), _wanted(as_plugin), comments=False)
    folder = plugin_folder(target)
    files = installed_files(with_hooks=as_plugin)
    changes = [own_files.plan_install(folder / name, text) for name, text in files.items()]
    if not as_plugin:
        changes.append(own_files.plan_uninstall(folder / "hooks" / "hooks.json", folder))
    return Plan((settings, *changes), _notes(settings))


def uninstall(target: Target) -> Plan:
    wanted = [_wanted(as_plugin) for as_plugin in (False, True)]
    settings = hook_settings.plan_uninstall(settings_file(target), *wanted, comments=False)
    folder, base = plugin_folder(target), _folder(target)
    names = installed_files(with_hooks=True)
    return Plan((settings, *(own_files.plan_uninstall(folder / name, base) for name in names)))


def settings_file(target: Target) -> Path:
    """In a project the local file, which is not shared: the interpreter's path is of this machine."""
    return _folder(target) / ("settings.local.json" if target.project else "settings.json")


def plugin_folder(target: Target) -> Path:
    return _folder(target) / "skills" / NAME


def _folder(target: Target) -> Path:
    return target.project / ".claude" if target.project else target.folder("CLAUDE_CONFIG_DIR", ".claude")


def _wanted(as_plugin: bool) -> hook_settings.Wanted:
    """A plugin can bring hooks, but no status line."""
    line = shlex.join(installed_command(STATUS_LINE))
    groups = {} if as_plugin else hook_groups(installed_command)
    return hook_settings.Wanted(groups, {STATUS_LINE: {"type": "command", "command": line, "padding": 0}})


def _notes(settings: Change) -> tuple[str, ...]:
    notes = ["Claude Code reads its hooks when it starts: sessions that run now are not watched."]
    if not hook_settings.holds_setting(settings.after, STATUS_LINE):
        notes.append("Your own status line stays; Holdfast's would show how full the context is.")
    return tuple(notes)
