"""The Claude Code plugin, as text: manifest, hooks, skills.

Installed, it lives in the user's skills folder, which Claude Code reads plugins from, and
names this machine's interpreter. The one in `plugins/claude-code` is made by the same hand
for people who add the repository as a marketplace: it finds the program on the PATH.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from typing import Any

from holdfast._version import __version__
from holdfast.hooks.command import hook_command
from holdfast.hooks.events import EVENTS, HookEvent
from holdfast.hooks.install.skills import SKILLS, skill_text

NAME = "holdfast"
_IF_ON_PATH = 'command -v holdfast-hook >/dev/null || { cat >/dev/null; exit 0; }; exec holdfast-hook "$@"'

Words = Callable[[str], list[str]]
"""The command of an event."""


def installed_command(event: str) -> list[str]:
    return hook_command("claude", event)


def portable_command(event: str) -> list[str]:
    return ["/bin/sh", "-c", _IF_ON_PATH, "holdfast-hook", "claude", event]


def installed_files(*, with_hooks: bool) -> dict[str, str]:
    program = f"{shlex.quote(sys.executable)} -P -m holdfast"
    return _files(program, installed_command if with_hooks else None)


def portable_files() -> dict[str, str]:
    return _files("holdfast", portable_command)


def hook_groups(command: Words) -> dict[str, dict[str, Any]]:
    """One group an event, in the exec form: no shell of the agent's in between, so no path needs quoting."""
    return {event.name: _group(event, command) for event in EVENTS["claude"] if not event.is_status_line}


def _group(event: HookEvent, command: Words) -> dict[str, Any]:
    program, *arguments = command(event.name)
    hook = {"type": "command", "command": program, "args": arguments, "timeout": event.timeout}
    return {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [hook]}


def _files(program: str, command: Words | None) -> dict[str, str]:
    files = {".claude-plugin/plugin.json": _json(_manifest())}
    if command:
        groups = {event: [group] for event, group in hook_groups(command).items()}
        files["hooks/hooks.json"] = _json({"description": "Holdfast watches the session.", "hooks": groups})
    for name in SKILLS:
        files[f"skills/{name}/SKILL.md"] = skill_text(name, program)
    return files


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
