"""OpenCode: a plugin file of ours, since it has no hook commands; it calls the same program."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.hooks.events import EVENTS, hook_command
from holdfast.hooks.install import InstallPlan, Target, files

_TEMPLATE = Path(__file__).with_name("opencode_plugin.js")


def install(target: Target) -> InstallPlan:
    return InstallPlan((files.plan_install(_file(target), plugin_text()),))


def uninstall(target: Target) -> InstallPlan:
    return InstallPlan((files.plan_uninstall(_file(target), _file(target).parents[1]),))


def plugin_text() -> str:
    """The plugin with this machine's commands in it."""
    events = {
        event.name: {"command": hook_command("opencode", event.name), "seconds": event.timeout}
        for event in EVENTS["opencode"]
    }
    body = _TEMPLATE.read_text(encoding="utf-8")
    return body.replace("const EVENTS = {}", f"const EVENTS = {json.dumps(events, indent=2)}")


def _file(target: Target) -> Path:
    if target.project:
        folder = target.project / ".opencode"
    else:
        folder = target.folder("OPENCODE_CONFIG_DIR", *_config_folder(target))
    return folder / "plugin" / "holdfast.js"


def _config_folder(target: Target) -> tuple[str, ...]:
    told = target.environ.get("XDG_CONFIG_HOME")
    return (told, "opencode") if told else (".config", "opencode")
