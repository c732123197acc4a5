"""Hooks in a settings file of the kind that Claude Code, Codex and Gemini CLI share.

`{"hooks": {EVENT: [{"matcher"?: TOOLS, "hooks": [{"type": "command", …}]}]}}`: our entries go
last into each event's list, and are told from the user's by the program they run.
"""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from holdfast.base.errors import InvalidInputError
from holdfast.hooks.install import jsonc
from holdfast.hooks.install.files import FileChange, backup_path, read_text
from holdfast.project.formats import AGENTS, OLD_NAMES

_OURS = ("/holdfast/hooks/hook.sh", "/holdfast/hooks/entry.py", "-m holdfast mcp")
_BY_NAME = "holdfast-hook"
_SERVERS = "mcpServers"
_EMPTY = "{}\n"


@dataclass(frozen=True)
class Wanted:
    """What shall stand in the file: one group of hooks an event, and further settings of ours."""

    groups: Mapping[str, dict[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Put in where the user has none of that name, around a command of theirs; taken out where it is ours."""
    servers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Tools over MCP, likewise, among those in `mcpServers`."""


def plan_install(path: Path, wanted: Wanted, *, comments: bool) -> FileChange:
    before = read_text(path)
    document = _Document(path, before or "", comments)
    after = document.installed(wanted)
    kept = read_text(backup_path(path))
    backup = before if not document.holds_ours() else kept
    return FileChange(path, before, after, backup)


def plan_uninstall(path: Path, *wanted: Wanted, comments: bool) -> FileChange:
    """As it was before, to the byte, unless the file was changed since: then all but our entries stay."""
    before = read_text(path)
    if before is None:
        return FileChange(path, None, None)
    document = _Document(path, before, comments)
    if not document.holds_ours():
        return FileChange(path, before, before)
    kept = read_text(backup_path(path))
    if any(document.is_installed_over(kept, one) for one in wanted):
        return FileChange(path, before, kept)
    after = document.uninstalled(kept)
    return FileChange(path, before, after, backup=before)


class _Document:
    def __init__(self, path: Path, text: str, comments: bool) -> None:
        self._path = path
        self._text = text
        self._comments = comments
        self._root = self._parse(text)

    def holds_ours(self) -> bool:
        own = (*(self._root.members or ()), *_servers_of(self._root))
        return any(True for _ in self._ours(self._root)) or any(
            runs_our_program(one.node.plain) for one in own
        )

    def is_installed_over(self, kept: str | None, wanted: Wanted) -> bool:
        try:
            return _Document(self._path, kept or "", self._comments).installed(wanted) == self._text
        except InvalidInputError:
            return False

    def installed(self, wanted: Wanted) -> str:
        if self._has_all(wanted):
            return self._text
        text = self._without_ours(None)
        for event, group in wanted.groups.items():
            text = self._with_group(text, event, group)
        for name, value in wanted.settings.items():
            text = self._with_setting(text, name, value)
        for name, value in wanted.servers.items():
            # what the user or the agent set for our server stays with it
            text = self._with_server(text, name, {**self._own_servers().get(name, {}), **value})
        return text

    def _with_setting(self, text: str, name: str, value: dict[str, Any]) -> str:
        root = self._parse(text)
        there = root.get(name)
        if there is None:
            return jsonc.insert(text if text.strip() else _EMPTY, root, _member(name, value))
        around = wrapped(there.node.plain, value)
        return _exchanged(text, there, around["command"]) if around else text

    def _with_server(self, text: str, name: str, value: Any) -> str:
        root = self._parse(text)
        listed = root.get(_SERVERS)
        if listed is None:
            return jsonc.insert(text if text.strip() else _EMPTY, root, _member(_SERVERS, {name: value}))
        known = self._object(text, listed.node, _SERVERS)
        return text if known.get(name) is not None else jsonc.insert(text, known, _member(name, value))

    def uninstalled(self, kept: str | None) -> str | None:
        text = self._without_ours(kept)
        was_there = kept is not None
        return text if was_there or self._parse(text).members else None

    def _has_all(self, wanted: Wanted) -> bool:
        found: dict[str, list[Any]] = {}
        for event, group, hook in self._ours(self._root):
            found.setdefault(event.name, []).append((group.plain, hook.plain))
        expected = {event: [(group, group["hooks"][0])] for event, group in wanted.groups.items()}
        rest = [name for name, value in wanted.settings.items() if not self._has_setting(name, value)]
        stale = [
            one.name
            for one in self._root.members or []
            if runs_our_program(one.node.plain) and one.name not in wanted.settings
        ]
        servers = self._own_servers()
        taken = {one.name for one in _servers_of(self._root)} - set(servers)
        wanted_servers = {name: value for name, value in wanted.servers.items() if name not in taken}
        told = {name: {**servers.get(name, {}), **value} for name, value in wanted_servers.items()}
        return found == expected and not rest and not stale and servers == told

    def _own_servers(self) -> dict[str, dict[str, Any]]:
        return {
            one.name: one.node.plain for one in _servers_of(self._root) if runs_our_program(one.node.plain)
        }

    def _has_setting(self, name: str, value: dict[str, Any]) -> bool:
        there = self._root.get(name)
        if there is None:
            return False
        own = unwrapped(there.node.plain)
        if own is not None:
            return wrapped(own, value) == there.node.plain
        return there.node.plain == value or wrapped(there.node.plain, value) is None

    def _without_ours(self, kept: str | None) -> str:
        """Our hooks go, then the lists and groups that they leave empty, unless they were there empty."""
        text = self._text
        while True:
            root = self._parse(text)
            step = next(self._removals(root, text, kept), None)
            if step is None:
                return text
            text = step

    def _removals(self, root: jsonc.JsonNode, text: str, kept: str | None) -> Iterator[str]:
        """The text with one thing less, for each thing that could go; the first is taken."""
        known = self._parse(kept or "")
        for event, group, hook in self._ours(root):
            hooks = cast("jsonc.JsonMember", group.get("hooks")).node
            if len(hooks.items or []) > 1:
                yield self._cut(text, hooks, (hooks.items or []).index(hook))
            elif len(event.node.items or []) > 1:
                yield self._cut(text, event.node, (event.node.items or []).index(group))
            else:
                yield self._cut_event(text, root, event, known)
        for index, one in enumerate(root.members or []):
            if (own := unwrapped(one.node.plain)) is not None:
                yield _exchanged(text, one, own["command"])
            elif runs_our_program(one.node.plain):
                yield self._cut(text, root, index)
        for index, one in enumerate(_servers_of(root)):
            if runs_our_program(one.node.plain):
                yield self._cut_server(text, root, index, known)

    def _cut_server(self, text: str, root: jsonc.JsonNode, index: int, known: jsonc.JsonNode) -> str:
        listed = cast("jsonc.JsonMember", root.get(_SERVERS))
        if len(listed.node.members or []) > 1 or known.get(_SERVERS) is not None:
            return self._cut(text, listed.node, index)
        return self._cut(text, root, (root.members or []).index(listed))

    def _cut_event(
        self, text: str, root: jsonc.JsonNode, event: jsonc.JsonMember, known: jsonc.JsonNode
    ) -> str:
        """An event of which nothing is left goes too, and `hooks` with the last of them."""
        hooks = cast("jsonc.JsonMember", root.get("hooks"))
        known_hooks = known.get("hooks")
        if known_hooks is not None and known_hooks.node.get(event.name) is not None:
            return self._cut(text, event.node, 0)
        if len(hooks.node.members or []) > 1 or known_hooks is not None:
            return self._cut(text, hooks.node, (hooks.node.members or []).index(event))
        return self._cut(text, root, (root.members or []).index(hooks))

    def _cut(self, text: str, container: jsonc.JsonNode, index: int) -> str:
        return jsonc.remove(text, container, index, comments=self._comments)

    def _with_group(self, text: str, event: str, group: dict[str, Any]) -> str:
        text = text if text.strip() else _EMPTY
        root = self._parse(text)
        hooks = root.get("hooks")
        if hooks is None:
            return jsonc.insert(text, root, _member("hooks", {event: [group]}))
        listed = self._object(text, hooks.node, "hooks").get(event)
        if listed is None:
            return jsonc.insert(text, hooks.node, _member(event, [group]))
        return jsonc.insert(text, self._list(text, listed.node, event), _printed(group))

    def _ours(
        self, root: jsonc.JsonNode
    ) -> Iterator[tuple[jsonc.JsonMember, jsonc.JsonNode, jsonc.JsonNode]]:
        """Event, group and hook of each of our entries."""
        hooks = root.get("hooks")
        for event in (hooks.node.members or []) if hooks else []:
            for group in event.node.items or []:
                inner = group.get("hooks")
                for hook in (inner.node.items or []) if inner else []:
                    if runs_our_program(hook.plain):
                        yield event, group, hook

    def _parse(self, text: str) -> jsonc.JsonNode:
        try:
            root = jsonc.parse(text if text.strip("\ufeff \t\r\n") else _EMPTY, comments=self._comments)
        except jsonc.NotJsonError as error:
            raise InvalidInputError(
                f"{self._path}: line {error.line}, column {error.column}: {error.what}",
                hint="fix the file; nothing was changed",
            ) from None
        return self._object(text, root, "the whole")

    def _object(self, text: str, node: jsonc.JsonNode, what: str) -> jsonc.JsonNode:
        return self._checked(text, node, node.members, f"{what} is not an object")

    def _list(self, text: str, node: jsonc.JsonNode, what: str) -> jsonc.JsonNode:
        return self._checked(text, node, node.items, f"{what} is not a list")

    def _checked(self, text: str, node: jsonc.JsonNode, inner: object, complaint: str) -> jsonc.JsonNode:
        if inner is None:
            line, column = jsonc.place(text, node.start)
            raise InvalidInputError(
                f"{self._path}: line {line}, column {column}: {complaint}",
                hint="fix the file; nothing was changed",
            )
        return node


def _servers_of(root: jsonc.JsonNode) -> list[jsonc.JsonMember]:
    listed = root.get(_SERVERS)
    return (listed.node.members or []) if listed else []


_BOTH = (
    'payload=$(cat); own=$(printf %s "$payload" | /bin/sh -c "$0"); '
    '[ -z "$own" ] || printf "%s\\n" "$own"; printf %s "$payload" | "$@"'
)
"""The user's own command, then ours, each with what the agent sent."""


def wrapped(own: Any, ours: dict[str, Any]) -> dict[str, Any] | None:
    """The user's command with ours after it; None where theirs is no command, or is ours already."""
    if not isinstance(own, dict) or runs_our_program(own):
        return None
    theirs = cast("dict[str, Any]", own)
    if theirs.get("type") != "command" or not isinstance(theirs.get("command"), str):
        return None
    words = ["/bin/sh", "-c", _BOTH, theirs["command"], *shlex.split(ours["command"])]
    return {**theirs, "command": shlex.join(words)}


def unwrapped(value: Any) -> dict[str, Any] | None:
    """What the user had before it was wrapped; None where nothing was."""
    if not isinstance(value, dict) or not runs_our_program(value):
        return None
    told = cast("dict[str, Any]", value)
    try:
        words = shlex.split(told["command"])
    except ValueError:
        return None
    return {**told, "command": words[3]} if words[2:3] == [_BOTH] and len(words) > 4 else None


def _exchanged(text: str, member: jsonc.JsonMember, command: str) -> str:
    """The text with another command in that member, and all else as it is."""
    there = cast("jsonc.JsonMember", member.node.get("command")).node
    return text[: there.start] + json.dumps(command, ensure_ascii=False) + text[there.end :]


def holds_setting(text: str | None, name: str) -> bool:
    """Whether that setting in the file is ours."""
    return runs_our_program(json.loads((text or _EMPTY).removeprefix("\ufeff")).get(name))


def says(text: str | None, name: str) -> bool:
    """Whether a switch of that name is on in the file."""
    return json.loads((text or _EMPTY).removeprefix("\ufeff")).get(name) is True


def holds_wrapped(text: str | None, name: str) -> bool:
    return unwrapped(json.loads((text or _EMPTY).removeprefix("\ufeff")).get(name)) is not None


def runs_our_program(hook: Any) -> bool:
    """Whether a hook's command is Holdfast's, of whichever installation."""
    if not isinstance(hook, dict):
        return False
    told = cast("dict[str, Any]", hook)
    words: list[Any] = [told.get("command"), *_as_list(told.get("args"))]
    text = " ".join(word for word in words if isinstance(word, str)).replace("\\", "/")
    return any(mark in text for mark in _OURS) or _calls_by_name(text)


def _calls_by_name(text: str) -> bool:
    """`holdfast-hook AGENT EVENT`; a command of the user's that only has the name in it stays."""
    words = [word.strip("'\"") for word in text.split()]
    return any(
        word.rpartition("/")[2].removesuffix(".exe") == _BY_NAME and after in (*AGENTS, *OLD_NAMES)
        for word, after in itertools.pairwise(words)
    )


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _member(name: str, value: Any) -> str:
    return f"{json.dumps(name)}: {_printed(value)}"


def _printed(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
