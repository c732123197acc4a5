"""Codex, Gemini CLI and OpenCode: where each keeps its hooks, and how it wants them."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

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
from holdfast.hooks.install.files import FileChange, OwnFiles, backup_path

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
        return (_toml_without_server(path) if remove else _toml_with_server(path),)

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


_BLOCK_START, _BLOCK_END = "# begin: made by holdfast install", "# end: made by holdfast install"
_SERVER = ("mcp_servers", "holdfast")
_BOM = "\ufeff"


def _toml_with_server(path: Path) -> FileChange:
    """Our server, in a table at the end of a file of the user's; where it is there, it stays in its place."""
    before, bom, text = _read_toml(path)
    server = _server_in(path, text)
    kept = files.read_text(backup_path(path))
    command, arguments = _server_words()
    wanted = {"command": command, "args": arguments}
    if server is not None:
        if not hook_settings.runs_our_program(server) or {**server, **wanted} == server:
            return FileChange(path, before, before)
        after = _with_values(text, wanted)
        if _server_in(path, after) == {**server, **wanted}:
            return FileChange(path, before, bom + after, kept, within=path.parent)
    own = None if before is None else _without_ours(text)
    # an empty file of the user's has an empty line before the block, a new file has none
    gap = "" if own is None and not bom else "\n"
    lines = [_BLOCK_START, "[mcp_servers.holdfast]", *(_line(*one) for one in wanted.items()), _BLOCK_END]
    after = "".join((bom, own or "", gap, *(f"{line}\n" for line in lines)))
    _parsed(
        path,
        after.removeprefix(bom),
        "a table [mcp_servers.holdfast] cannot stand beside `mcp_servers = …`: ",
    )
    return FileChange(path, before, after, before, within=path.parent)


def _toml_without_server(path: Path) -> FileChange:
    """Our server is known by its name and its command; what the agent wrote beside it stays to the byte."""
    before, bom, text = _read_toml(path)
    server = _server_in(path, text)
    if before is None or (server is not None and not hook_settings.runs_our_program(server)):
        note = server and f"[mcp_servers.holdfast] in {path} is kept: it is not as Holdfast wrote it."
        return FileChange(path, before, before, note=note or None)
    own = _without_ours(text)
    after = bom + (own or "") if bom or own is not None else None
    note = None
    if _server_in(path, own or "") is not None:
        note = f"{path} still names Holdfast's tools: remove `holdfast` from `mcp_servers`."
    # settings for our tools go with them, so the file as it was is kept if anything was changed since
    backup = None if after == files.read_text(backup_path(path)) else before
    return FileChange(path, before, after, backup, within=path.parent, note=note)


def _read_toml(path: Path) -> tuple[str | None, str, str]:
    """The file, the mark that some editors put first, and the text after it."""
    before = files.read_text(path)
    text = (before or "").removeprefix(_BOM)
    return before, _BOM if text != (before or "") else "", text


def _server_in(path: Path, text: str) -> Any:
    servers = _parsed(path, text).get(_SERVER[0])
    return cast("dict[str, Any]", servers).get(_SERVER[1]) if isinstance(servers, dict) else None


def _parsed(path: Path, text: str, why: str = "") -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "fix the file; nothing was changed"
        if why:
            hint = "write each server there as a table ([mcp_servers.NAME]); nothing was changed"
        raise InvalidInputError(f"{path}: {why}{error}", hint=hint) from None


def _without_ours(text: str) -> str | None:
    """The text without our server and the comments around it; None where it was all there is."""
    parts = list(_statements(text))
    first = next((at for at, one in enumerate(parts) if _begins_ours(*one)), len(parts))
    head, rest = (_kept(some) for some in (parts[:first], parts[first:]))
    if parts and not head + rest:
        return None
    starts = [one.strip() for one, _ in parts[max(first - 1, 0) : first + 1]]
    if first < len(parts) and (starts[-1] == _BLOCK_START or starts[0] == ""):
        head = head.removesuffix("\n").removesuffix("\r")
    return head + ("\n" if rest and head and not head.endswith("\n") else "") + rest


def _begins_ours(statement: str, keys: tuple[str, ...]) -> bool:
    return statement.strip() == _BLOCK_START or keys[:2] == _SERVER


def _kept(parts: list[tuple[str, tuple[str, ...]]]) -> str:
    return "".join(one for one, keys in parts if not _begins_ours(one, keys) and one.strip() != _BLOCK_END)


def _with_values(text: str, values: Mapping[str, Any]) -> str:
    """The text with other values of our server, each on the line where it was."""
    new: dict[tuple[str, ...], str] = {
        (*_SERVER, name): f"{_line(name, value)}\n" for name, value in values.items()
    }
    return "".join(new.get(keys, one) for one, keys in _statements(text))


def _line(name: str, value: Any) -> str:
    """JSON's strings and lists are TOML's, too."""
    return f"{name} = {json.dumps(value)}"


def _statements(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The text in pieces, each with the full name of what it sets; a comment or an empty line has none."""
    table: tuple[str, ...] = ()
    piece = ""
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        piece += line
        try:
            keys = _keys(tomllib.loads(piece))
        except tomllib.TOMLDecodeError:  # a string or a list goes on in the next line
            continue
        if piece.lstrip().startswith("["):
            table = keys
            yield piece, table
        else:
            yield piece, (*table, *keys) if keys else ()
        piece = ""


def _keys(told: Any) -> tuple[str, ...]:
    if not isinstance(told, dict) or len(table := cast("dict[str, Any]", told)) != 1:
        return ()
    (name, inner), *_ = table.items()
    return (name, *_keys(inner))


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
