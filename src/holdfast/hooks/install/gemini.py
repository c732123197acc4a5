"""Gemini CLI: hooks in its settings, which may hold comments; time-outs in milliseconds."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from holdfast.hooks.events import EVENTS, HookEvent, hook_command
from holdfast.hooks.install import InstallPlan, Target, hook_settings


def install(target: Target) -> InstallPlan:
    change = hook_settings.plan_install(_file(target), _wanted(), comments=True)
    notes = ("Gemini CLI runs a project's hooks only in a folder you trust (/permissions).",)
    return InstallPlan((change,), notes if target.project else ())


def uninstall(target: Target) -> InstallPlan:
    return InstallPlan((hook_settings.plan_uninstall(_file(target), _wanted(), comments=True),))


def _file(target: Target) -> Path:
    home = target.project or target.folder("GEMINI_CLI_HOME")
    return home / ".gemini" / "settings.json"


def _wanted() -> hook_settings.Wanted:
    return hook_settings.Wanted({event.name: _group(event) for event in EVENTS["gemini"]})


def _group(event: HookEvent) -> dict[str, Any]:
    hook = {
        "name": f"holdfast-{event.name}",
        "type": "command",
        "command": shlex.join(hook_command("gemini", event.name)),
        "timeout": event.timeout * 1000,
    }
    return {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [hook]}
