"""What a tool call does, whichever agent's tool it is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from holdfast.model.gathered import LastStep
from holdfast.model.message import ToolCall, ToolOutcome

ActionKind = Literal["shell", "edit", "write", "delete", "read", "search", "agent", "todo", "plan", "other"]

_TOOLS: dict[ActionKind, tuple[str, ...]] = {
    "shell": (
        *("bash", "shell", "local_shell", "exec_command", "shell_command", "run_shell_command", "execute"),
        *("run_command", "terminal", "container.exec"),
    ),
    "edit": (
        *("edit", "multiedit", "notebookedit", "replace", "apply_patch", "patch", "str_replace"),
        *("str_replace_based_edit_tool", "edit_file"),
    ),
    "write": ("write", "write_file", "create_file", "create"),
    "delete": ("delete_file",),
    "read": ("read", "read_file", "view", "view_image", "notebookread", "open"),
    "search": (
        *("grep", "glob", "search_file_content", "grep_search", "list", "ls", "list_directory", "list_files"),
        "codesearch",
    ),
    "todo": (
        *("todowrite", "todoread", "taskcreate", "taskupdate", "tasklist", "taskget", "update_plan"),
        "write_todos",
    ),
    "agent": ("task", "agent", "spawn_agent", "invoke_agent", "codebase_investigator"),
    "plan": ("exitplanmode", "exit_plan_mode", "plan_exit"),
}
_KINDS: dict[str, ActionKind] = {tool: kind for kind, tools in _TOOLS.items() for tool in tools}
_PATH_KEYS = ("file_path", "filePath", "path", "absolute_path", "notebook_path", "filename", "file")
_NEW_KEYS = (
    "new_string",
    "newString",
    "content",
    "new_str",
    "file_text",
    "new_source",
    "patch",
    "input",
    "patchText",
    "new",
)
_OLD_KEYS = ("old_string", "oldString", "old_str", "old")
_PROMPT_KEYS = ("prompt", "message", "objective")
_PATCHED = re.compile(r"\*\*\* (Update|Add|Delete) File: (.+)$")
_MOVED, _IS_BELOW = "*** Move to: ", "@@ "
_PATCH_SCAN = 200_000
_STEP_ABOUT = 300


@dataclass(slots=True)  # not frozen: there is one for every call
class Action:
    kind: ActionKind
    tool: str
    path: str = ""
    command: str = ""
    new: str = ""
    old: str = ""
    about: str = ""
    patched: tuple[tuple[str, str], ...] = ()
    lines: str = ""  # which were read
    parts: tuple[Action, ...] = ()  # of a patch of several files: what it does to each


@dataclass(slots=True)
class _FilePatch:
    """What a patch does to one file, while its lines are read."""

    verb: str
    path: str
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])


def step_of(action: Action, outcome: ToolOutcome) -> LastStep:
    on = action.about[:_STEP_ABOUT] if action.kind in ("search", "agent", "plan", "other") else ""
    return LastStep(action.kind, action.tool, action.command or on or action.path, outcome)


def is_absolute(path: str) -> bool:
    return path.startswith(("/", "~")) or path[1:2] == ":"


def action_of(call: ToolCall) -> Action:
    arguments = call.arguments
    kind = _KINDS.get(call.name.lower(), "other")
    if kind == "shell":
        return _by_command(call.name, arguments)
    if kind == "agent":
        prompt = _first(arguments, _PROMPT_KEYS)
        about = _first(arguments, ("description",)) or prompt.strip().partition("\n")[0][:_STEP_ABOUT]
        return Action(kind, call.name, new=prompt, about=about)
    if kind == "search":
        return Action(
            kind, call.name, path=_first(arguments, _PATH_KEYS), about=_first(arguments, ("pattern", "query"))
        )
    if kind == "todo":
        return Action(kind, call.name)
    if kind == "plan":
        return Action(kind, call.name, about=_first(arguments, ("plan",)))
    if kind == "other":
        return Action(
            kind, call.name, path=_first(arguments, ("file_path", "filePath")), about=_strings(arguments)
        )
    return _on_file(kind, call.name, arguments)


def _by_command(tool: str, arguments: dict[str, Any]) -> Action:
    command = _command(arguments)
    if "*** Begin Patch" in command[:400] and (patch := _patch(tool, command)):
        return patch
    if tool in _LOOKS_BY_COMMAND and (look := _look(command, _first(arguments, ("workdir",)))):
        return look
    return Action("shell", tool, command=command, about=_first(arguments, ("description",)))


def _look(command: str, folder: str) -> Action | None:
    """A command that shows one file or searches, and does nothing else."""
    program = command.partition(" ")[0]
    if found := _SHOWS.fullmatch(command):
        path = found["path"] or found["piped"]
        first, last = found["first"] or found["from"], found["last"] or found["to"]
        lines = f"lines {first} to {last}" if first else ""
        return Action("read", program, path=_below(folder, path), lines=lines)
    found = _SEARCHES.fullmatch(command)
    if found and not _NAMES_ONE_FILE.search(found["path"] or ""):
        about = _UNESCAPED.sub(r"\1", found["double"] or "") or found["single"] or found["bare"]
        return Action("search", program, path=_below(folder, found["path"] or ""), about=about)
    return None


def _below(folder: str, path: str) -> str:
    return path if not folder or not path or is_absolute(path) else f"{folder.rstrip('/')}/{path}"


_LOOKS_BY_COMMAND = ("exec_command", "shell", "shell_command", "local_shell", "container.exec")
"""Tools of Codex, which has no other to read a file or to search."""
_NAMES_ONE_FILE = re.compile(r"\w\.\w{1,8}$")
"""What is found in one file is no list of places; its lines are what was looked for."""
_UNESCAPED = re.compile(r'\\(["$`\\])')
_PLAIN = r"(?:[\w@+=:,]|[./~](?=[\w.]))[\w./@+=:,~-]*|\."
_SHOWS = re.compile(
    rf"(?:cat|nl(?: -ba)?|sed -n '?(?P<first>\d{{1,7}}),(?P<last>\d{{1,7}})p'?)(?: --)? (?P<path>{_PLAIN})"
    rf"|nl(?: -ba)? (?P<piped>{_PLAIN}) \| sed -n '?(?P<from>\d{{1,7}}),(?P<to>\d{{1,7}})p'?"
)
_SEARCHES = re.compile(
    r"(?:rg|grep)(?: -[EFHIPRhilnorsw]{1,8}){0,4}(?: --)? "
    r"(?:\"(?P<double>(?:[^\"$`\\]|\\[^\n])+)\"|'(?P<single>[^']+)'"
    rf"|(?P<bare>{_PLAIN}))(?: (?P<path>{_PLAIN}))?"
)


def _on_file(kind: ActionKind, tool: str, arguments: dict[str, Any]) -> Action:
    path = _first(arguments, _PATH_KEYS)
    new, old = _first(arguments, _NEW_KEYS), _first(arguments, _OLD_KEYS)
    edits: Any = arguments.get("edits")
    if isinstance(edits, list):
        pairs = [cast(dict[str, Any], one) for one in cast(list[object], edits) if isinstance(one, dict)]
        new = "\n".join(_first(one, _NEW_KEYS) for one in pairs)
        old = "\n".join(_first(one, _OLD_KEYS) for one in pairs)
    if not path and (patch := _patch(tool, new)):
        return patch
    lines = _lines(arguments) if kind == "read" else ""
    return Action(kind, tool, path=path, new=new, old=old, lines=lines)


def _lines(arguments: dict[str, Any]) -> str:
    first, count = arguments.get("offset"), arguments.get("limit")
    last = arguments.get("end_line")
    if isinstance(last, int):
        first = arguments.get("start_line", 1)
        count = last - first + 1 if isinstance(first, int) else None
    if not isinstance(first, int) or not isinstance(count, int) or first < 0 or count < 1:
        return ""
    return f"lines {max(first, 1)} to {max(first, 1) + count - 1}"


def _patch(tool: str, text: str) -> Action | None:
    """A patch of one file is an edit like any other; one of several has a part for each."""
    files = _files_of(text[:_PATCH_SCAN])
    parts = tuple(
        Action(
            _PATCH_KINDS[one.verb],
            tool,
            path=one.path,
            new="\n".join(one.new),
            old="\n".join(one.old),
            patched=((one.verb, one.path),),
        )
        for one in files
    )
    if len(parts) < 2:
        return parts[0] if parts else None
    return Action(
        "edit", tool, path=parts[0].path, patched=tuple(one.patched[0] for one in parts), parts=parts
    )


_PATCH_KINDS: dict[str, ActionKind] = {"Update": "edit", "Add": "write", "Delete": "delete"}


def _files_of(text: str) -> list[_FilePatch]:
    files: list[_FilePatch] = []
    for line in text.split("\n"):
        if found := _PATCHED.match(line):
            files.append(_FilePatch(found[1], found[2].strip()))
        elif files and line.startswith(_MOVED):
            moved = _FilePatch("Update", line.removeprefix(_MOVED).strip())
            files[-1].verb = "Delete"
            files.append(moved)
        elif files and line.startswith(_IS_BELOW):  # the definition in which the change is made
            files[-1].old.append(line.removeprefix(_IS_BELOW))
            files[-1].new.append(line.removeprefix(_IS_BELOW))
        elif files and not line.startswith(("***", "@@")):
            if line[:1] != "-":
                files[-1].new.append(line[1:])
            if line[:1] != "+":
                files[-1].old.append(line[1:])
    return files


def _command(arguments: dict[str, Any]) -> str:
    command: Any = arguments.get("command", arguments.get("cmd", ""))
    if isinstance(command, list):
        words = [word for word in cast(list[object], command) if isinstance(word, str)]
        if len(words) == 3 and words[1] in ("-c", "-lc"):
            return words[2].strip()
        return " ".join(words)
    return command.strip() if isinstance(command, str) else ""


def _first(arguments: dict[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = arguments.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def _strings(arguments: dict[str, Any]) -> str:
    return " ".join(value for value in arguments.values() if isinstance(value, str))[:4000]
