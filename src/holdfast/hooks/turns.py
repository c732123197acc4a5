"""The files that each session at work in a project named to its tools: what tells their changes apart."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.base.durable import is_held
from holdfast.base.errors import HoldfastError, IllegalTransitionError, InvalidInputError
from holdfast.base.process import ProcessIdentity
from holdfast.findings.rules.actions import Action, action_of
from holdfast.findings.rules.files import files_written
from holdfast.hooks.fast import error_log, notes
from holdfast.model.message import ToolCall
from holdfast.project import formats
from holdfast.project.formats import ENDING, LATE_LOOK, NAMED, RECORDING, TRANSACTION, TURN_OVER, TURNING
from holdfast.undo.state import ending_file
from holdfast.undo.transactions import SideCar
from holdfast.undo.work import NamedFiles
from holdfast.undo.worktree import checked_path

if TYPE_CHECKING:
    from holdfast.hooks.background_tasks import SessionWork


# ── named files ───────────────────────────────────────────────────────────────────────────────────

# The files that each session at work in a project named to its tools: what tells their changes apart.

_CHANGING = ("edit", "write", "delete")
_WRITING = frozenset(("rm", "mv", "cp", "touch", "ln", "mkdir", "rmdir", "truncate", "chmod", "restore"))


def named_files(project: Path) -> dict[str, NamedFiles]:
    """By transaction, of every session whose turn is being watched."""
    found: dict[str, NamedFiles] = {}
    for path in (project / formats.FOLDER / formats.STATE / formats.HOOKS).glob(f"*/{TRANSACTION}"):
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
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
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
    if action.kind != "shell":
        return []
    return [*files_written(action.command), *_operands(action.command)]


def _operands(command: str) -> list[str]:
    """Files and folders that a shell command removes, moves, makes or writes into, where it names them."""
    words = shlex.shlex(command.partition("<<")[0], posix=True, punctuation_chars=True)
    words.whitespace_split = True
    found: list[str] = []
    folder = joined_by = ""
    try:
        for is_joint, part in groupby(words, lambda word: not word.strip("();<>|&")):
            program, *rest = part
            if is_joint:
                joined_by = [program, *rest][-1]
                continue
            if program == "git" and rest:
                program, *rest = rest
            names = [word for word in rest if not word.startswith("-")]
            if joined_by.endswith(">"):
                found.append(os.path.join(folder, program))
            elif program == "cd":
                folder = os.path.join(folder, *names[:1])
            elif program in _WRITING:
                found += [os.path.join(folder, name) for name in names]
    except ValueError:
        return []  # an open quote
    return found


# ── turns ─────────────────────────────────────────────────────────────────────────────────────────

# An agent's turns as changes of one transaction a session, recorded in processes of their own.
#
# A turn is watched from its prompt to its end. What was changed between two turns is the user's.

_PATIENCE = 120.0
_GONE = "the turn did not end: the file may have been changed by another process since"
_MISSED = "what turn {turn} changed before the first look at the files was finished"
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,70}")


def look(work: SessionWork) -> bool:
    """Take the tree in, so that the first turn needs to look only at what changed since."""
    os.nice(10)
    with _sidecar(work) as sidecar:
        sidecar.look()
    return True


def watch(work: SessionWork, turn: str) -> bool:
    try:
        _wait_while_there(work.note(ENDING))
        with _sidecar(work) as sidecar:
            unended = _read(work, RECORDING)
            if unended:
                _record(work, sidecar, unended, doubt=_GONE)
                notes.remove(work.note(NAMED))
            # What tools name from here on is this turn's: in a large tree they do not wait for the watch.
            name = sidecar.take_up(_name(work), owner=_agent(work))
        notes.write(work.note(TRANSACTION), name.encode())
        notes.write(work.note(RECORDING), turn.encode() or b"0")
        if os.path.exists(work.note(TURN_OVER)):
            _give_up_watching(work, turn)
    finally:
        notes.remove(work.note(TURNING))
    with _sidecar(work) as sidecar:
        sidecar.complete_first_look()
    return True


def _give_up_watching(work: SessionWork, turn: str) -> None:
    """The turn was over before its watch began: what is changed now is hardly the agent's."""
    try:
        os.replace(work.note(RECORDING), work.note(ENDING))
    except FileNotFoundError:
        return  # the turn's end saw the watch after all, and has it recorded
    try:
        with _sidecar(work) as sidecar:
            _record(work, sidecar, turn, doubt=_GONE)
    finally:
        notes.remove(work.note(ENDING))


def record(work: SessionWork) -> bool:
    """The end of a turn."""
    try:
        with _sidecar(work) as sidecar:
            _record(work, sidecar, _read(work, ENDING))
    finally:
        notes.remove(work.note(NAMED))
        notes.remove(work.note(ENDING))
    return True


def finish(work: SessionWork) -> bool:
    """The end of the session: its changes are meant to stay."""
    _wait_while_there(work.note(TURNING))
    _wait_while_there(work.note(ENDING))
    name = _read(work, TRANSACTION)
    if name:
        with _sidecar(work) as sidecar:
            turn = _read(work, RECORDING)  # there only where the turn had no end: the user stopped it
            if sidecar.is_in_progress(name):
                sidecar.finish(name, f"turn {turn}" if turn else "", doubt=_GONE if turn else "")
            ending_file(sidecar.folder, name).unlink(missing_ok=True)
    for note in (NAMED, TRANSACTION, RECORDING, TURN_OVER, LATE_LOOK):
        notes.remove(work.note(note))
    return True


def finish_killed(work: SessionWork) -> None:
    """Of a session that ended unexpectedly: what it did is in doubt, and stays.

    Not its last turn, where that had come to its end: whoever records it is let finish.
    """
    with _sidecar(work) as sidecar:
        mark = ending_file(sidecar.folder, _read(work, TRANSACTION))
    _wait_while(lambda: is_held(mark))
    for note in (TURNING, ENDING):
        notes.remove(work.note(note))
    try:
        finish(work)
    except HoldfastError as error:
        error_log.note(str(work.state), f"what {work.session} changed is not recorded: {error.message}")


def _sidecar(work: SessionWork) -> SideCar:
    return SideCar(work.project, named_files=lambda: named_files(work.project))


def _record(work: SessionWork, sidecar: SideCar, turn: str, doubt: str = "") -> None:
    name = _read(work, TRANSACTION)
    if not name:
        return
    try:
        missed = _MISSED.format(turn=turn) if os.path.exists(work.note(LATE_LOOK)) else ""
        sidecar.record(name, f"turn {turn}", doubt=doubt, missed=missed)
        notes.remove(work.note(LATE_LOOK))
    except IllegalTransitionError as error:
        error_log.note(str(work.state), f"turn {turn} of {work.session} is not recorded: {error.message}")


def _name(work: SessionWork) -> str:
    """Of the transaction; ids of sessions may hold other signs, or be longer."""
    if _PLAIN.fullmatch(work.session):
        return f"{work.agent}-{work.session}"
    return f"{work.agent}-{hashlib.sha256(work.session.encode()).hexdigest()[:32]}"


def _agent(work: SessionWork) -> ProcessIdentity | None:
    """The process whose end leaves the watch without anybody to end it."""
    process = formats.process_in_who(notes.read(work.note(formats.WHO)))
    return {"pid": process[0], "started": process[1]} if process else None


def _read(work: SessionWork, name: str) -> str:
    return (notes.read(work.note(name), 200) or b"").decode("ascii", "replace")


def _wait_while_there(path: str) -> None:
    """For the process that is at it; one that was killed is not waited for for ever."""
    _wait_while(lambda: os.path.exists(path))


def _wait_while(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
