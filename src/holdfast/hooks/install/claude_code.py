"""Claude Code: hooks, skills, the MCP entry and the status line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from holdfast._version import __version__
from holdfast.hooks.events import EVENTS, HookEvent, hook_command
from holdfast.hooks.install import (
    COMMANDS,
    InstallPlan,
    Target,
    command_text,
    hook_settings,
    mcp_is_there,
    program_words,
    without_mcp,
)
from holdfast.hooks.install.files import FileChange, OwnFiles


def skill_text(name: str, program: str) -> str:
    """Claude Code puts its session's id in, so that exactly this session is meant."""
    more = " --session-id ${CLAUDE_SESSION_ID}" if name in ("quiet", "unquiet") else ""
    verb = COMMANDS[name].arguments.split()[0]
    return f"""---
name: {name}
description: "{COMMANDS[name].description}"
allowed-tools: Bash({program} {verb}:*)
---

{command_text(name, program, more)}"""


# ── claude plugin ─────────────────────────────────────────────────────────────────────────────────

# The Claude Code plugin, as text: manifest, hooks, skills.
#
# Installed, it lives in the user's skills folder, which Claude Code reads plugins from, and
# names this machine's interpreter. The one in `plugins/claude-code` is made by the same hand
# for people who add the repository as a marketplace: it finds the program on the PATH.

NAME = "holdfast"
_IF_ON_PATH = 'command -v holdfast-hook >/dev/null || { cat >/dev/null; exit 0; }; exec holdfast-hook "$@"'

CommandWords = Callable[[str], list[str]]
"""The command of an event."""


def installed_command(event: str) -> list[str]:
    return hook_command("claude-code", event)


def portable_command(event: str) -> list[str]:
    return ["/bin/sh", "-c", _IF_ON_PATH, "holdfast-hook", "claude-code", event]


def installed_files(*, with_hooks: bool) -> dict[str, str]:
    words = program_words()
    files = _files(shlex.join(words), installed_command if with_hooks else None)
    return {**files, ".mcp.json": _mcp_text(words)}


def portable_files() -> dict[str, str]:
    return {**_files("holdfast", portable_command), ".mcp.json": _mcp_text([NAME])}


def hook_groups(command: CommandWords) -> dict[str, dict[str, Any]]:
    """One group an event, in the exec form: no shell of the agent's in between, so no path needs quoting."""
    return {event.name: _group(event, command) for event in EVENTS["claude-code"] if not event.is_status_line}


def _group(event: HookEvent, command: CommandWords) -> dict[str, Any]:
    program, *arguments = command(event.name)
    hook = {"type": "command", "command": program, "args": arguments, "timeout": event.timeout}
    return {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [hook]}


def _files(program: str, command: CommandWords | None) -> dict[str, str]:
    files = {".claude-plugin/plugin.json": _json(_manifest())}
    if command:
        groups = {event: [group] for event, group in hook_groups(command).items()}
        files["hooks/hooks.json"] = _json({"description": "Holdfast records the session.", "hooks": groups})
    for name in COMMANDS:
        files[f"skills/{name}/SKILL.md"] = skill_text(name, program)
    return files


def _mcp_text(words: list[str]) -> str:
    return _json({"mcpServers": {NAME: {"command": words[0], "args": [*words[1:], "mcp"]}}})


def _manifest() -> dict[str, Any]:
    return {
        "name": NAME,
        "version": __version__,
        "description": "Pause, snapshot and resume the work of AI agents; no session is lost.",
        "author": {"name": "Holdfast"},
        "license": "Apache-2.0",
        "keywords": ["pause", "resume", "snapshot", "context"],
    }


def _json(document: Any) -> str:
    return json.dumps(document, indent=2) + "\n"


# ── claude ────────────────────────────────────────────────────────────────────────────────────────

# Claude Code: hooks in its settings or in a plugin, and in both cases the skills and the status line.

STATUS_LINE = "statusLine"


def install(target: Target, *, as_plugin: bool = False) -> InstallPlan:
    """Going from one form to the other takes the first one's hooks out: they must not run twice."""
    settings = hook_settings.plan_install(settings_file(target), _wanted(as_plugin), comments=False)
    folder = plugin_folder(target)
    texts = installed_files(with_hooks=as_plugin)
    if not mcp_is_there():
        texts.pop(".mcp.json")
    own, gone = _at(folder, texts), {}
    if not as_plugin:
        gone = {
            path: text
            for path, text in _at(folder, installed_files(with_hooks=True)).items()
            if path not in own
        }
    changes = OwnFiles(_folder(target)).install(own, gone)
    return InstallPlan((settings, *changes), _notes(settings))


def uninstall(target: Target) -> InstallPlan:
    wanted = [_wanted(as_plugin) for as_plugin in (False, True)]
    settings = hook_settings.plan_uninstall(settings_file(target), *wanted, comments=False)
    own = _at(plugin_folder(target), installed_files(with_hooks=True))
    return InstallPlan((settings, *OwnFiles(_folder(target)).uninstall(own)))


def _at(folder: Path, texts: Mapping[str, str]) -> dict[Path, str]:
    return {folder / name: text for name, text in texts.items()}


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


def _notes(settings: FileChange) -> tuple[str, ...]:
    notes = ["Claude Code reads its hooks at startup: sessions already running are not recorded."]
    if hook_settings.says(settings.after, "disableAllHooks"):
        notes.append(f"disableAllHooks is set in {settings.path}: nothing is recorded until it is off.")
    if not mcp_is_there():
        notes.append(without_mcp())
    if not hook_settings.holds_setting(settings.after, STATUS_LINE):
        notes.append("Your own status line is no command and is kept; Holdfast's is not shown.")
    elif hook_settings.holds_wrapped(settings.after, STATUS_LINE):
        notes.append("Your own status line is kept, with Holdfast's below it.")
    return tuple(notes)
