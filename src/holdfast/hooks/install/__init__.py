"""Hooks into an agent's settings and out again.

An installer has `install(target)` and `uninstall(target)`, which only say what would change; the
command shows that or does it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holdfast.hooks.install.files import FileChange

AGENTS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}
"""What people call an agent, and what we do."""


@dataclass(frozen=True)
class Target:
    """Whose agent is meant: the user's everywhere, or the one of a project."""

    home: Path
    environ: Mapping[str, str]
    project: Path | None = None

    def folder(self, variable: str, *default: str) -> Path:
        """A folder of the user's that a variable may move."""
        told = self.environ.get(variable)
        return Path(told) if told else self.home.joinpath(*default)


@dataclass(frozen=True)
class InstallPlan:
    changes: tuple[FileChange, ...]
    notes: tuple[str, ...] = ()
    """What the user must know or do."""


class Installer(Protocol):
    def install(self, target: Target) -> InstallPlan: ...

    def uninstall(self, target: Target) -> InstallPlan: ...


def installer_for(agent: str) -> Installer:
    if agent == "claude-code":
        from holdfast.hooks.install import claude

        return claude
    from holdfast.hooks.install import agents

    installers = {"codex": agents.Codex, "gemini": agents.Gemini, "opencode": agents.OpenCode}
    return installers[agent]()
