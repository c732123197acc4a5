"""Codex, Gemini CLI and OpenCode: where each keeps its hooks, and how it wants them."""

from __future__ import annotations

import json
import shlex
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from holdfast.hooks.events import EVENTS, HookEvent, hook_command
from holdfast.hooks.install import InstallPlan, Target, files, hook_settings

_OPENCODE_TEMPLATE = Path(__file__).with_name("opencode_plugin.js")


class HooksInSettings(ABC):
    """An agent that reads its hooks from a settings file."""

    agent: ClassVar[str]
    comments: ClassVar[bool] = False
    """Whether the file may hold comments."""

    def install(self, target: Target) -> InstallPlan:
        change = hook_settings.plan_install(self.file(target), self._wanted(), comments=self.comments)
        return InstallPlan((change,), self.notes(target))

    def uninstall(self, target: Target) -> InstallPlan:
        wanted = self._wanted()
        change = hook_settings.plan_uninstall(self.file(target), wanted, comments=self.comments)
        return InstallPlan((change,))

    def _wanted(self) -> hook_settings.Wanted:
        groups = {event.name: {"hooks": [self.hook(event)]} for event in EVENTS[self.agent]}
        return hook_settings.Wanted(groups)

    def hook(self, event: HookEvent) -> dict[str, Any]:
        command = shlex.join(hook_command(self.agent, event.name))
        return {"type": "command", "command": command, "timeout": event.timeout}

    @abstractmethod
    def file(self, target: Target) -> Path: ...

    @abstractmethod
    def notes(self, target: Target) -> tuple[str, ...]: ...


class Codex(HooksInSettings):
    """`hooks.json`, which does nothing until the user has trusted it in Codex itself."""

    agent = "codex"

    def file(self, target: Target) -> Path:
        folder = target.project / ".codex" if target.project else target.folder("CODEX_HOME", ".codex")
        return folder / "hooks.json"

    def notes(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same everywhere
        return (
            "Codex does not run a hook until you trust it: start `codex`, type /hooks and trust Holdfast's "
            "hooks.",
        )


class Gemini(HooksInSettings):
    """Its settings may hold comments, and count in milliseconds."""

    agent = "gemini"
    comments = True

    def file(self, target: Target) -> Path:
        home = target.project or target.folder("GEMINI_CLI_HOME")
        return home / ".gemini" / "settings.json"

    def hook(self, event: HookEvent) -> dict[str, Any]:
        return {"name": f"holdfast-{event.name}", **super().hook(event), "timeout": event.timeout * 1000}

    def notes(self, target: Target) -> tuple[str, ...]:
        told = ("Gemini CLI runs a project's hooks only in a folder you trust (/permissions).",)
        return told if target.project else ()


class OpenCode:
    """A plugin file of ours, since it has no hook commands; it calls the same program."""

    def install(self, target: Target) -> InstallPlan:
        return InstallPlan((files.plan_install(_plugin_file(target), plugin_text()),))

    def uninstall(self, target: Target) -> InstallPlan:
        path = _plugin_file(target)
        return InstallPlan((files.plan_uninstall(path, path.parents[1]),))


def plugin_text() -> str:
    """The plugin with this machine's commands in it."""
    events = {
        event.name: {"command": hook_command("opencode", event.name), "seconds": event.timeout}
        for event in EVENTS["opencode"]
    }
    body = _OPENCODE_TEMPLATE.read_text(encoding="utf-8")
    return body.replace("const EVENTS = {}", f"const EVENTS = {json.dumps(events, indent=2)}")


def _plugin_file(target: Target) -> Path:
    if target.project:
        folder = target.project / ".opencode"
    else:
        told = target.environ.get("XDG_CONFIG_HOME")
        folder = target.folder("OPENCODE_CONFIG_DIR", told or ".config", "opencode")
    return folder / "plugin" / "holdfast.js"
