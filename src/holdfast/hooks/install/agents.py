"""Codex, Gemini CLI and OpenCode: where each keeps its hooks, and how it wants them."""

from __future__ import annotations

import json
import shlex
import tomllib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from holdfast.base.errors import InvalidInputError
from holdfast.hooks.events import EVENTS, HookEvent, hook_command
from holdfast.hooks.install import (
    COMMANDS,
    InstallPlan,
    Target,
    command_text,
    files,
    hook_settings,
    mcp_is_there,
    program_words,
    without_mcp,
)
from holdfast.hooks.install.files import FileChange, OwnFiles

_OPENCODE_TEMPLATE = Path(__file__).with_name("opencode_plugin.js")


class HooksInSettings(ABC):
    """An agent that reads its hooks from a settings file."""

    agent: ClassVar[str]
    comments: ClassVar[bool] = False
    """Whether the file may hold comments."""

    def install(self, target: Target) -> InstallPlan:
        change = hook_settings.plan_install(self.file(target), self._wanted(), comments=self.comments)
        own = OwnFiles(self.file(target).parent).install(self._commands(target))
        return InstallPlan((change, *own, *self.servers(target)), self.notes(target))

    def uninstall(self, target: Target) -> InstallPlan:
        wanted = self._wanted()
        change = hook_settings.plan_uninstall(self.file(target), wanted, comments=self.comments)
        own = OwnFiles(self.file(target).parent).uninstall(self._commands(target))
        return InstallPlan((change, *own, *self.servers(target, remove=True)))

    def _commands(self, target: Target) -> dict[Path, str]:
        program = shlex.join(program_words())
        folder = self.file(target).parent
        return {folder / self.command_file(name): self.command(name, program) for name in COMMANDS}

    @abstractmethod
    def command_file(self, name: str) -> str: ...

    @abstractmethod
    def command(self, name: str, program: str) -> str: ...

    def servers(self, target: Target, *, remove: bool = False) -> tuple[FileChange, ...]:  # noqa: ARG002
        """Where the tools over MCP are named in a file of their own."""
        return ()

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

    def command_file(self, name: str) -> str:
        return f"skills/holdfast-{name}/SKILL.md"

    def command(self, name: str, program: str) -> str:
        """A skill; the user calls it as `$holdfast-status`."""
        about = f'name: holdfast-{name}\ndescription: "{COMMANDS[name].description}"'
        return f"---\n{about}\n---\n\n{command_text(name, program)}"

    def servers(self, target: Target, *, remove: bool = False) -> tuple[FileChange, ...]:
        if not remove and not mcp_is_there():
            return ()
        path = self.file(target).with_name("config.toml")
        return (toml_block(path, "" if remove else _CODEX_SERVER.format(*map(json.dumps, _server_words()))),)

    def notes(self, target: Target) -> tuple[str, ...]:  # noqa: ARG002 - the same everywhere
        return (
            "Codex does not run a hook until you trust it: start `codex`, type /hooks and trust Holdfast's "
            "hooks.",
            *(() if mcp_is_there() else (without_mcp(),)),
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

    def command_file(self, name: str) -> str:
        return f"commands/holdfast/{name}.toml"

    def command(self, name: str, program: str) -> str:
        """The user calls it as `/holdfast:status`. JSON's strings are TOML's, too."""
        about = json.dumps(COMMANDS[name].description, ensure_ascii=False)
        return (
            f"description = {about}\nprompt = {json.dumps(command_text(name, program), ensure_ascii=False)}\n"
        )

    def _wanted(self) -> hook_settings.Wanted:
        command, arguments = _server_words()
        entry = {"command": command, "args": arguments}
        return hook_settings.Wanted(
            super()._wanted().groups, servers={"holdfast": entry} if mcp_is_there() else {}
        )

    def notes(self, target: Target) -> tuple[str, ...]:
        told = ("Gemini CLI runs a project's hooks only in a folder you trust (/permissions).",)
        return (*(told if target.project else ()), *(() if mcp_is_there() else (without_mcp(),)))


def _server_words() -> tuple[str, list[str]]:
    words = program_words()
    return words[0], [*words[1:], "mcp"]


_BLOCK_START, _BLOCK_END = "# begin: made by holdfast install\n", "# end: made by holdfast install\n"
_CODEX_SERVER = "[mcp_servers.holdfast]\ncommand = {}\nargs = {}\n"


def toml_block(path: Path, block: str) -> FileChange:
    """Our tables at the end of a file of the user's; an empty block takes them out to the byte."""
    before = files.read_text(path)
    head, found, rest = (before or "").partition(_BLOCK_START)
    own = head[:-1] + rest.partition(_BLOCK_END)[2] if found else before or ""
    # an empty file of the user's has an empty line before the block, a new file has none
    was_there = bool(own or head) if found else before is not None
    _check_toml(path, own)
    servers = tomllib.loads(own).get("mcp_servers")
    if not block or (isinstance(servers, dict) and "holdfast" in servers):
        after = own if was_there else None
    else:
        after = f"{own}{chr(10) if was_there else ''}{_BLOCK_START}{block}{_BLOCK_END}"
        _check_toml(path, after, "a table [mcp_servers.holdfast] cannot stand beside `mcp_servers = …`: ")
    return FileChange(path, before, after, within=path.parent)


def _check_toml(path: Path, text: str, why: str = "") -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = "fix the file; nothing was changed"
        if why:
            hint = "write each server there as a table ([mcp_servers.NAME]); nothing was changed"
        raise InvalidInputError(f"{path}: {why}{error}", hint=hint) from None


class OpenCode:
    """A plugin file of ours, since it has no hook commands; it calls the same program."""

    def install(self, target: Target) -> InstallPlan:
        notes = () if mcp_is_there() else (without_mcp(),)
        return InstallPlan(self._own(target).install(self._texts(target)), notes)

    def uninstall(self, target: Target) -> InstallPlan:
        return InstallPlan(self._own(target).uninstall(self._texts(target)))

    def _own(self, target: Target) -> OwnFiles:
        return OwnFiles(_plugin_file(target).parents[1])

    def _texts(self, target: Target) -> dict[Path, str]:
        return {_plugin_file(target): plugin_text(), **_opencode_commands(target)}


def _opencode_commands(target: Target) -> dict[Path, str]:
    """The user calls one as `/holdfast-status`."""
    folder, program = _plugin_file(target).parents[1] / "command", shlex.join(program_words())
    return {
        folder / f"holdfast-{name}.md": (
            f"---\ndescription: {json.dumps(one.description)}\n---\n\n{command_text(name, program)}"
        )
        for name, one in COMMANDS.items()
    }


def plugin_text() -> str:
    """The plugin with this machine's commands in it."""
    events = {
        event.name: {"command": hook_command("opencode", event.name), "seconds": event.timeout}
        for event in EVENTS["opencode"]
    }
    body = _OPENCODE_TEMPLATE.read_text(encoding="utf-8")
    server = [*program_words(), "mcp"] if mcp_is_there() else None
    body = body.replace("const MCP = null", f"const MCP = {json.dumps(server)}")
    return body.replace("const EVENTS = {}", f"const EVENTS = {json.dumps(events, indent=2)}")


def _plugin_file(target: Target) -> Path:
    if target.project:
        folder = target.project / ".opencode"
    else:
        told = target.environ.get("XDG_CONFIG_HOME")
        folder = target.folder("OPENCODE_CONFIG_DIR", told or ".config", "opencode")
    return folder / "plugin" / "holdfast.js"
