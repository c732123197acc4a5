"""What executes a task. A driver is a file here and a line in `DRIVERS`."""

from __future__ import annotations

from importlib import import_module

from holdfast.base.errors import InvalidInputError
from holdfast.project.settings import Settings
from holdfast.workflows.drivers.protocol import Driver
from holdfast.workflows.drivers.tests_seen import SeesTests

DRIVERS = {
    "shell": "holdfast.workflows.drivers.shell:ShellDriver",
    "claude-code": "holdfast.workflows.drivers.claude_code:ClaudeCodeDriver",
    "codex": "holdfast.workflows.drivers.codex:CodexDriver",
    "gemini": "holdfast.workflows.drivers.gemini:GeminiDriver",
    "opencode": "holdfast.workflows.drivers.opencode:OpenCodeDriver",
    "model": "holdfast.workflows.drivers.model:ModelDriver",
}
"""The name in a plan, and the class behind it: called with the settings, loaded when a plan names it."""


def driver_named(name: str, settings: Settings) -> Driver:
    if name not in DRIVERS:
        raise InvalidInputError(f"no such driver: {name!r}", hint=f"available drivers: {', '.join(DRIVERS)}")
    module, _, kind = DRIVERS[name].partition(":")
    return SeesTests(getattr(import_module(module), kind)(settings))
