"""The files that each session at work in a project named to its tools: what tells their changes apart."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.base.errors import InvalidInputError
from holdfast.findings.rules.actions import Action, action_of
from holdfast.findings.rules.files import files_written
from holdfast.hooks.housekeeping.file_changes import ENDING, NAMED, RECORDING, TRANSACTION
from holdfast.model.message import ToolCall
from holdfast.undo.work import NamedFiles
from holdfast.undo.worktree import checked_path

_CHANGING = ("edit", "write", "delete")


def named_files(project: Path) -> dict[str, NamedFiles]:
    """By transaction, of every session whose turn is being watched."""
    found: dict[str, NamedFiles] = {}
    for path in (project / ".holdfast" / "state" / "hooks").glob(f"*/{TRANSACTION}"):
        turn = _text(path.with_name(RECORDING)) or _text(path.with_name(ENDING))
        if turn:
            paths = frozenset(_paths(path.with_name(NAMED), project))
            found[_text(path)] = NamedFiles(paths, f"turn {turn}")
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _paths(path: Path, project: Path) -> Iterator[bytes]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return  # no tool named any
    for line in lines:
        try:
            called = json.loads(line)
            action = action_of(ToolCall("", str(called["tool"]), called["given"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # half a line: the power went
        for name in _changed(action, called["given"]):
            try:
                yield checked_path(project, os.path.join(str(called["cwd"] or project), name))
            except InvalidInputError:
                continue  # outside of the project


def _changed(action: Action, given: dict[str, Any]) -> list[str]:
    """The files that a tool call changes, as it names them."""
    if action.kind == "edit" and not action.path:  # a patch may come as the command of its tool
        action = action_of(ToolCall("", "shell", given))
    if action.patched:
        return [name for _, name in action.patched]
    if action.path and action.kind in _CHANGING:
        return [action.path]
    return files_written(action.command) if action.kind == "shell" else []
