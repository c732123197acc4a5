"""The files that each session at work in a project named to its tools: what tells their changes apart."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from holdfast.base.command_line import DYNAMIC, programs
from holdfast.base.durable import is_held
from holdfast.base.errors import HoldfastError, IllegalTransitionError, InvalidInputError
from holdfast.base.process import ProcessIdentity
from holdfast.findings.rules.actions import Action, action_of
from holdfast.findings.rules.files import files_written
from holdfast.hooks.fast import error_log, notes
from holdfast.model.message import ToolCall, ToolOutcome
from holdfast.project import formats
from holdfast.project.formats import (
    APART,
    ENDING,
    LATE_LOOK,
    NAMED,
    NOT_APART,
    OLD_NAMES,
    RECORDING,
    TOLD_UNRECORDED,
    TRANSACTION,
    TURN_OVER,
    TURNING,
    UNRECORDED,
    WHO,
)
from holdfast.project.trust import are_own_notes
from holdfast.transcripts import read_end
from holdfast.undo.state import NamedFiles, TasksEnded, ending_file, late_look, lost_turn
from holdfast.undo.transactions import SideCar
from holdfast.undo.worktree import checked_path

if TYPE_CHECKING:
    from holdfast.hooks.background_tasks import SessionWork


# ── named files ───────────────────────────────────────────────────────────────────────────────────

# The files that each session at work in a project named to its tools: what tells their changes apart.

_CHANGING = ("edit", "write", "delete")
_EXACT = frozenset(("truncate", "restore"))
_OF_MODE_OR_TIME = frozenset(("touch", "chmod", "chown"))
_COPYING = frozenset(("mv", "cp", "ln", "install", "rsync"))
_TARGET = re.compile(r"--target-directory(?:=(?P<folder>.+))?|-[A-Za-su-z]*t")
_PATTERN = re.compile(rf"[*?\[{{$`{DYNAMIC}]")

_RECORDED_IN_LINES = ("claude-code", "codex", "gemini")
"""Agents whose records can be read from the end. The hooks of the last one have no ids of calls."""
_END_OF_A_RECORD = 8 << 20

Reach = Literal["file", "whole", "new", "mode"]
"""How much of a name counts: itself; all below it; all below it where it is a new folder; mode and time."""


def named_files(project: Path) -> dict[str, NamedFiles]:
    """By transaction, of every session whose turn is being watched."""
    found: dict[str, NamedFiles] = {}
    for path in (project / formats.FOLDER / formats.STATE / formats.HOOKS).glob(f"*/{TRANSACTION}"):
        turn = _text(path.with_name(RECORDING)) or _text(path.with_name(ENDING))
        if turn and are_own_notes(str(path.parent)):
            named: dict[Reach, set[bytes]] = {"file": set(), "whole": set(), "new": set(), "mode": set()}
            for name, reach in _paths(path.with_name(NAMED), project):
                named[reach].add(name)
            files, wholes, news, modes = map(frozenset, named.values())
            found[_text(path)] = NamedFiles(files, f"turn {turn}", wholes, news, modes)
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _paths(path: Path, project: Path) -> Iterator[tuple[bytes, Reach]]:
    calls = _calls(path)
    for call, outcome in zip(calls, _outcomes(path.with_name(WHO), calls), strict=True):
        if _never_done(call.action, outcome):
            continue
        yield from _paths_of(call, project)


def _paths_of(call: _Call, project: Path) -> Iterator[tuple[bytes, Reach]]:
    cwd = call.cwd or str(project)
    for name, reach in _changed(call.action, call.given, cwd):
        try:
            yield checked_path(project, os.path.join(cwd, name)), reach
        except InvalidInputError:
            continue  # outside of the project


class _Call(NamedTuple):
    id: str
    """Empty where the agent's hooks have none."""
    tool: str
    action: Action
    given: dict[str, Any]
    cwd: str


def _calls(path: Path) -> list[_Call]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []  # no tool named any
    return [found for line in lines if (found := _call_in(line))]


def _call_in(line: bytes | str) -> _Call | None:
    try:
        called = json.loads(line)
        action = action_of(ToolCall("", str(called["tool"]), called["given"]))
        tool, given, cwd = str(called["tool"]), called["given"], str(called["cwd"])
        return _Call(called.get("id", ""), tool, action, given, cwd)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # half a line: the power went


def _outcomes(who: Path, calls: Sequence[_Call]) -> Sequence[ToolOutcome | None]:
    """What the newest part of the session's record tells of these calls."""
    told = formats.parse_who(notes.read(str(who)))
    if calls and told is not None:
        agent, session, transcript, *_ = told
        with suppress(HoldfastError, OSError, ValueError, sqlite3.Error):  # else it tells nothing
            if agent == "opencode" and any(call.id for call in calls):
                outcomes = _outcomes_in_opencode(session, who)
                return [outcomes.get(call.id) for call in calls]
            if agent in _RECORDED_IN_LINES and transcript:
                return _outcomes_in_lines(agent, Path(transcript), calls)
    return [None] * len(calls)


def _outcomes_in_opencode(session: str, who: Path) -> dict[str, ToolOutcome]:
    from holdfast.sessions.contexts import find_transcript
    from holdfast.transcripts.opencode import newest_outcomes

    project = who.parents[4]
    return newest_outcomes(find_transcript(session, project, Path.home(), os.environ).path, session)


def _outcomes_in_lines(agent: str, record: Path, calls: Sequence[_Call]) -> Sequence[ToolOutcome | None]:
    messages = list(read_end(record, agent, _END_OF_A_RECORD))
    results = (one for message in messages for one in message.tool_results)
    outcomes: dict[str, ToolOutcome] = {one.call_id: one.outcome for one in results}
    if agent != "gemini":
        return [outcomes.get(call.id) for call in calls]
    made = [one for message in messages for one in message.tool_calls if one.id in outcomes]
    found: list[ToolOutcome | None] = []
    for call in reversed(calls):  # by what was asked for: the newest is the newest
        same = next((one for one in reversed(made) if _is_same_call(call, one)), None)
        if same is not None:
            made.remove(same)
        found.append(outcomes[same.id] if same else None)
    return found[::-1]


def _is_same_call(call: _Call, recorded: ToolCall) -> bool:
    """The hook notes a part of what was given."""
    same = all(recorded.arguments.get(name) == value for name, value in call.given.items())
    return recorded.name == call.tool and same


def _never_done(action: Action, outcome: ToolOutcome | None) -> bool:
    """The user said no, or the edit did not fit the file: whoever changed it since, it was not this call.

    A command that failed may have done something before.
    """
    return outcome == "interrupted" or (outcome == "error" and action.kind != "shell")


def _changed(action: Action, given: dict[str, Any], cwd: str) -> list[tuple[str, Reach]]:
    """The files that a tool call changes, as it names them."""
    if action.kind == "edit" and not action.path:  # a patch may come as the command of its tool
        action = action_of(ToolCall("", "shell", given))
    if action.patched:
        return [(name, "file") for _, name in action.patched]
    if action.path and action.kind in _CHANGING:
        return [(action.path, "whole" if action.kind == "delete" else "file")]
    if action.kind != "shell":
        return []
    return [*((name, "file") for name in files_written(action.command)), *_operands(action.command, cwd)]


def _operands(command: str, cwd: str) -> list[tuple[str, Reach]]:
    """Files and folders that a shell command removes, moves, makes or writes into, where it names them."""
    found: list[tuple[str, Reach]] = []
    for simple in programs(command):
        folder = os.path.join(cwd, simple.folder or "")
        found.extend((os.path.join(folder, name), "file") for name in simple.writes)
        program, *rest = simple.words or [""]
        if program == "git" and rest:
            program, *rest = rest
        if "--cached" not in rest and not _is_of_index(program, rest):
            found.extend((os.path.join(folder, name), reach) for name, reach in _done(program, rest, folder))
    return [(name, reach) for name, reach in found if DYNAMIC not in name]


def _is_of_index(program: str, words: list[str]) -> bool:
    """`git restore --staged` leaves the files alone."""
    short = "".join(word for word in words if re.fullmatch("-[A-Za-z]+", word))
    is_staged = "--staged" in words or "S" in short
    return program == "restore" and is_staged and "--worktree" not in words and "W" not in short


def _names(words: list[str]) -> list[str]:
    options = words.index("--") if "--" in words else len(words)
    return [*(word for word in words[:options] if not word.startswith("-")), *words[options + 1 :]]


def _done(program: str, words: list[str], folder: str) -> Iterator[tuple[str, Reach]]:
    names = _names(words)
    short = "".join(word for word in words if re.fullmatch("-[A-Za-z]+", word))
    if program == "rm":
        is_whole = "r" in short or "R" in short or "--recursive" in words
        reach: Reach = "whole" if is_whole else "file"
        for name in names:
            yield name, reach
    elif program == "rmdir" or program in _EXACT:
        for name in names:
            yield name, "file"
    elif program == "mkdir" or (program == "install" and "d" in short):
        yield from _made(names, with_parents="p" in short or "--parents" in words or program == "install")
    elif program in _OF_MODE_OR_TIME:
        for name in names:
            yield name, "mode"
    elif program in _COPYING:
        yield from _copied(program, words, folder, short)
    else:
        yield from _edited_in_place(program, words)


def _edited_in_place(program: str, words: list[str]) -> Iterator[tuple[str, Reach]]:
    """The files behind `sed -i SCRIPT` or `perl -pi -e SCRIPT`, and their copies: `-i.bak`."""
    names: list[str] = []
    suffix: str | None = None
    has_script = is_next_script = False
    for word in words:
        if is_next_script:
            is_next_script = False
        elif not word.startswith("-"):
            names.append(word)
        elif word.startswith("--"):
            option, _, value = word.partition("=")
            suffix = value if option == "--in-place" else suffix
            has_script |= option in ("--expression", "--file")
            is_next_script = word in ("--expression", "--file")
        else:
            flags, is_in_place, given = word[1:].partition("i")
            suffix = given if is_in_place else suffix
            is_next_script = flags[-1:] in ("e", "f") and not is_in_place
            has_script |= "e" in flags or "f" in flags
    if program not in ("sed", "perl") or suffix is None:
        return
    for name in names if has_script else names[1:]:
        yield name, "file"
        if suffix:
            yield name + suffix, "file"


def _made(names: list[str], *, with_parents: bool) -> Iterator[tuple[str, Reach]]:
    for name in names:
        yield name, "file"
        while with_parents and (name := os.path.dirname(name.rstrip("/"))).strip("/"):
            yield name, "file"


def _copied(program: str, words: list[str], folder: str, short: str) -> Iterator[tuple[str, Reach]]:
    """Where it goes to, and of a move also where it came from."""
    is_deep = program == "mv" or any(sign in short for sign in "rRa")
    is_deep = is_deep or not {"--recursive", "--archive"}.isdisjoint(words)
    sources, into = _ends(program, words)
    if program == "mv":
        for name in sources:
            yield name, "whole"
    reach: Reach = "whole" if is_deep else "file"
    at = os.path.join(folder, into)
    if into and (not os.path.isdir(at) or os.path.islink(at)):
        yield into, reach
        return
    for source in sources:
        base = os.path.basename(source if program == "rsync" else source.rstrip("/"))
        if base in ("", ".", "..") or _PATTERN.search(base):
            continue  # its names are not told
        yield os.path.join(into, base), reach
        if is_deep and not os.path.lexists(os.path.join(at, base)):
            yield into, "new"  # the folder itself was copied or moved to that name


def _ends(program: str, words: list[str]) -> tuple[list[str], str]:
    """The sources and the destination; none where options leave that open."""
    for place, word in enumerate(words):
        option = None if program == "rsync" else _TARGET.fullmatch(word)
        if option:
            rest = words[place + 1 :] if option["folder"] else words[place + 2 :]
            into = option["folder"] or "".join(words[place + 1 : place + 2])
            return _names([*words[:place], *rest]), into
    names = _names(words)
    if program == "ln" and len(names) == 1:
        return names, "."
    is_plain = len(names) > 1 and words[-1] == names[-1] and (words[-2] == "--" or words[-2][:1] != "-")
    return (names[:-1], names[-1]) if is_plain else ([], "")


# ── turns ─────────────────────────────────────────────────────────────────────────────────────────

# An agent's turns as changes of one transaction a session, recorded in processes of their own.
#
# A turn is watched from its prompt to its end. What was changed between two turns is the user's.

_PATIENCE = 120.0
_GONE = "the turn did not end: the file may have been changed by another process since"
_NOT_APART = (
    "what others did to {names} in turn {turn} before a tool edited it, which counts as done by the tool"
)
_REASON = 300
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
                _forget_named(work)
            # What tools name from here on is this turn's: in a large tree they do not wait for the watch.
            lost = _unrecorded(work)
            name = sidecar.take_up(
                _name(work),
                owner=_agent(work),
                formerly=_former_name(work),
                description=f"turn {[*lost, _read(work, ENDING) or turn][0]}",
                missed="; ".join(lost_turn(*one) for one in lost.items()),
            )
            _forget_unrecorded(work)
        notes.write(work.note(TRANSACTION), name.encode())
        notes.write(work.note(RECORDING), turn.encode() or b"0")
        if os.path.exists(work.note(TURN_OVER)):
            _give_up_watching(work, turn)
    except Exception as error:
        _note_unrecorded(work, turn, error)
        raise
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


def set_apart(work: SessionWork, command: str, *paths: str) -> bool:
    """What was done to these files in this turn, before its tools edit them: not by a tool that said so.

    Of a command only those whose content it changes.
    """
    name, turn = _read(work, TRANSACTION), _read(work, RECORDING)
    if not name or not turn:
        return False
    inside: list[bytes] = []
    for path in paths:
        with suppress(InvalidInputError):
            inside.append(checked_path(work.project, path))
    if command:
        inside = _first_written(work, command, inside)
    if not inside:
        return True
    with _sidecar(work) as sidecar:
        sidecar.set_apart(name, inside, f"turn {turn}")
    return True


def _first_written(work: SessionWork, command: str, paths: list[bytes]) -> list[bytes]:
    """Those that this command changes, and no tool before it in this turn; they are not asked about again."""
    call = _call_in(command)
    before = {name for name, _ in _paths(Path(work.note(NAMED)), work.project)}
    named = _paths_of(call, work.project) if call else ()
    written = {name for name, reach in named if reach != "mode"}
    told = [os.path.join(os.fsencode(work.project), name) for name in paths if name in before | written]
    notes.write(work.note(APART), b"\0".join([notes.read(work.note(APART)) or b"", *told]))
    return [name for name in paths if name in written - before]


def record(work: SessionWork) -> bool:
    """The end of a turn."""
    turn = _read(work, ENDING)
    try:
        with _sidecar(work) as sidecar:
            _record(work, sidecar, turn)
    except Exception as error:
        _note_unrecorded(work, turn, error)
        raise
    finally:
        _forget_named(work)
        notes.remove(work.note(ENDING))
    return True


def _forget_named(work: SessionWork) -> None:
    for note in (NAMED, APART):
        notes.remove(work.note(note))


def finish(work: SessionWork) -> bool:
    """The end of the session: its changes are meant to stay."""
    _wait_while_there(work.note(TURNING))
    _wait_while_there(work.note(ENDING))
    name, lost = _read(work, TRANSACTION), _unrecorded(work)
    if name or lost:
        with _sidecar(work) as sidecar:
            turn = _read(work, RECORDING)  # there only where the turn had no end: the user stopped it
            doubt = _GONE if turn or lost else ""
            turn = turn or next(iter(lost), "")
            missed = "; ".join(lost_turn(*one) for one in lost.items())
            name = name or sidecar.take_up(_name(work))  # not one turn could be recorded
            if sidecar.is_in_progress(name):
                told = TasksEnded(missed=missed)
                sidecar.finish(name, f"turn {turn}" if turn else "", doubt=doubt, ended=told)
            ending_file(sidecar.folder, name).unlink(missing_ok=True)
        _forget_unrecorded(work)
    for note in (NAMED, APART, TRANSACTION, RECORDING, TURN_OVER, LATE_LOOK, NOT_APART):
        notes.remove(work.note(note))
    return True


def finish_killed(work: SessionWork) -> None:
    """Of a session that ended unexpectedly: what it did is in doubt, and stays.

    Not its last turn, where that had come to its end: whoever records it is let finish.
    """
    with _sidecar(work) as sidecar:
        mark = ending_file(sidecar.folder, _read(work, TRANSACTION))
    notes.lasts(lambda: is_held(mark), _PATIENCE)
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
        sidecar.record(name, f"turn {turn}", doubt=doubt, missed=_missed(work, turn))
        notes.remove(work.note(LATE_LOOK))
        notes.remove(work.note(NOT_APART))
    except IllegalTransitionError as error:
        _note_unrecorded(work, turn, error)
        error_log.note(str(work.state), f"turn {turn} of {work.session} is not recorded: {error.message}")


def _note_unrecorded(work: SessionWork, turn: str, error: Exception) -> None:
    reason = " ".join((error.message if isinstance(error, HoldfastError) else str(error)).split())
    with suppress(OSError):  # on a full disk there is still room for a name
        notes.create(work.note(f"{UNRECORDED}{turn or 0}"), reason.encode("utf-8", "replace")[:_REASON])


def _unrecorded(work: SessionWork) -> dict[str, str]:
    """Turns that could not be recorded since the last that could, and why."""
    found = sorted(work.folder.glob(f"{UNRECORDED}*"), key=lambda one: (len(one.name), one.name))
    return {
        path.name.removeprefix(UNRECORDED).removesuffix(TOLD_UNRECORDED): (
            notes.read(str(path), _REASON) or b"no space left"
        ).decode("utf-8", "replace")
        for path in found
    }


def _forget_unrecorded(work: SessionWork) -> None:
    for path in work.folder.glob(f"{UNRECORDED}*"):
        path.unlink(missing_ok=True)


def _missed(work: SessionWork, turn: str) -> str:
    names = (notes.read(work.note(NOT_APART), 4096) or b"").decode("utf-8", "replace").split("\n")
    missed = [late_look(turn)] if os.path.exists(work.note(LATE_LOOK)) else []
    missed += [_NOT_APART.format(turn=turn, names=", ".join(names))] if names[0] else []
    return "; ".join(missed)


def _name(work: SessionWork) -> str:
    """Of the transaction; ids of sessions may hold other signs, or be longer."""
    if _PLAIN.fullmatch(work.session):
        return f"{work.agent}-{work.session}"
    return f"{work.agent}-{hashlib.sha256(work.session.encode()).hexdigest()[:32]}"


def _former_name(work: SessionWork) -> str | None:
    """As an earlier version called it that had another name for the agent."""
    old = next((old for old, name in OLD_NAMES.items() if name == work.agent), None)
    return _name(work).replace(work.agent, old, 1) if old else None


def _agent(work: SessionWork) -> ProcessIdentity | None:
    """The process whose end leaves the watch without anybody to end it."""
    process = formats.process_in_who(notes.read(work.note(formats.WHO)))
    return {"pid": process[0], "started": process[1]} if process else None


def _read(work: SessionWork, name: str) -> str:
    return (notes.read(work.note(name), 200) or b"").decode("ascii", "replace")


def _wait_while_there(path: str) -> None:
    """For the process that is at it; one that was killed is not waited for for ever."""
    notes.lasts(lambda: os.path.exists(path), _PATIENCE)
