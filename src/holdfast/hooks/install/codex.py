"""Codex: `hooks.json`, which does nothing until the user has trusted it in Codex itself."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from holdfast.hooks.events import EVENTS, HookEvent, hook_command
from holdfast.hooks.install import InstallPlan, Target, hook_settings


def install(target: Target) -> InstallPlan:
    change = hook_settings.plan_install(_file(target), _wanted(), comments=False)
    return InstallPlan(
        (change,),
        ("Codex runs no hook before you have trusted it: start `codex`, type /hooks and trust Holdfast's.",),
    )


def uninstall(target: Target) -> InstallPlan:
    return InstallPlan((hook_settings.plan_uninstall(_file(target), _wanted(), comments=False),))


def _file(target: Target) -> Path:
    folder = target.project / ".codex" if target.project else target.folder("CODEX_HOME", ".codex")
    return folder / "hooks.json"


def _wanted() -> hook_settings.Wanted:
    return hook_settings.Wanted({event.name: _group(event) for event in EVENTS["codex"]})


def _group(event: HookEvent) -> dict[str, Any]:
    hook = {
        "type": "command",
        "command": shlex.join(hook_command("codex", event.name)),
        "timeout": event.timeout,
    }
    return {**({"matcher": event.matcher} if event.matcher else {}), "hooks": [hook]}
