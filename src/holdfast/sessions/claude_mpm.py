"""Sessions that claude-mpm saved, from its folder `.claude-mpm/sessions`.

What its files say is taken as they say it. What they cannot say is left open: they name a branch and changed
files, but no content that could be compared, so nobody can tell whether the folder changed since.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from holdfast.base.clock import to_datetime
from holdfast.base.durable import read_file, storage_errors
from holdfast.base.errors import DamagedDataError, NotFoundError
from holdfast.base.ids import id_of, is_session_id, session_order
from holdfast.base.redact import redact
from holdfast.base.text import one_line
from holdfast.journal.log import PauseAction, Reader, encode
from holdfast.journal.summary import archive_name
from holdfast.model.message import TodoItem
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Issue, Workflow
from holdfast.project.formats import ARCHIVE_SUFFIX, JOURNAL, JOURNAL_KEYS
from holdfast.sessions.winddown import journal_in_snapshot, taken_in

log = logging.getLogger("holdfast.bundles")

_LARGEST = 64 << 20
_SAYS_NOTHING = ("No summary provided", "Manual pause - see message below", "In progress")
"""What it writes where nobody said anything."""


@dataclass
class SavedSessions:
    """What a folder holds: sessions, oldest first, their journals by name, and what could not be read."""

    sessions: list[tuple[SessionSnapshot, Workflow]] = field(
        default_factory=list[tuple[SessionSnapshot, Workflow]]
    )
    journals: dict[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: list[str] = field(default_factory=list[str])


@dataclass
class _Session:
    name: str
    document: dict[str, Any]
    actions: list[PauseAction]
    skipped: int
    at: datetime


def sessions_folder(place: Path) -> Path | None:
    """The folder of its sessions: that one, or one above it."""
    for folder in (place, place / "sessions", place / ".claude-mpm" / "sessions"):
        if folder.is_dir() and (any(folder.glob("session-*.json*")) or (folder / JOURNAL).is_file()):
            return folder
    return None


def read_sessions(place: Path, worktree: Path) -> SavedSessions:
    """All that its files tell; nothing is written. Together they are one piece of work, in their order."""
    folder = sessions_folder(place)
    if folder is None:
        raise NotFoundError(
            f"no sessions of claude-mpm in {place}", hint="they are in `.claude-mpm/sessions` of a project"
        )
    found = SavedSessions()
    read = sorted(_read(folder, found.left_out), key=lambda one: (one.at, session_order(one.name)))
    if not read:
        raise DamagedDataError(
            f"no session in {folder} can be read", hint="; ".join(found.left_out) or "nothing was written"
        )
    first, last = read[0], read[-1]
    owner = Workflow(
        id=id_of("wf", first.at.timestamp(), f"claude-mpm {first.name}"),
        issue=Issue.for_folder(worktree.name),
        worktree=str(worktree),
        status="paused",
        session_count=len(read),
        created_at=first.at,
        updated_at=last.at,
        paused_at=last.at,
        pause_reason=_reason(last),
    )
    for number, one in enumerate(read, start=1):
        found.sessions.append((_snapshot(one, owner.id, number), owner))
        if one.actions:
            found.journals[one.name] = b"".join(_line(action, one.name) for action in one.actions)
    return found


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def _read(folder: Path, left_out: list[str]) -> Iterator[_Session]:
    documents = [path for path in folder.glob("session-*.json") if is_session_id(path.stem)]
    names = {path.stem for path in documents}
    archives = folder.glob(f"session-*{ARCHIVE_SUFFIX}")
    names |= {path.name.removesuffix(ARCHIVE_SUFFIX) for path in archives}
    for name in sorted(name for name in names if is_session_id(name)):
        yield from _kept(left_out, lambda name=name: _finished(folder, name))
    active = folder / JOURNAL
    if active.is_file():
        yield from _kept(left_out, lambda: _unfinished(active, names))


def _kept(left_out: list[str], read: Callable[[], _Session]) -> Iterator[_Session]:
    try:
        yield read()
    except DamagedDataError as error:
        left_out.append(error.message)


def _finished(folder: Path, name: str) -> _Session:
    path, journal = folder / f"{name}.json", folder / archive_name(name)
    document = _document(path) if path.exists() else {}
    actions, skipped = _actions(journal) if journal.exists() else ([], 0)
    at = _moment(document.get("paused_at")) or (_moment(actions[-1].timestamp) if actions else None)
    if at is None:
        raise DamagedDataError(f"{path.name} does not say when the session was paused")
    return _Session(name, document, actions, skipped, at)


def _unfinished(journal: Path, taken: Iterable[str]) -> _Session:
    """A wind-down that nobody finalised: its journal is all there is of it."""
    actions, skipped = _actions(journal)
    at = _moment(actions[-1].timestamp) if actions else None
    if at is None:
        raise DamagedDataError(f"no action in {journal.name} can be read")
    name = actions[0].session_id
    if not is_session_id(name) or name in taken:
        name = f"session-{at:%Y%m%d-%H%M%S}"
    return _Session(name, {}, actions, skipped, at)


def _actions(path: Path) -> tuple[list[PauseAction], int]:
    _refuse_large(path)
    reader = Reader(path)
    return list(reader), reader.skipped


def _document(path: Path) -> dict[str, Any]:
    _refuse_large(path)
    try:
        document: object = json.loads(read_file(path))
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise DamagedDataError(f"{path.name} is damaged: not a JSON object")
    return cast("dict[str, Any]", document)


def _refuse_large(path: Path) -> None:
    with storage_errors(f"read {path}"):
        if not path.is_file() or path.is_symlink():
            raise DamagedDataError(f"{path.name} is not a plain file")
        if path.stat().st_size > _LARGEST:
            raise DamagedDataError(f"{path.name} is too large")


def _moment(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return to_datetime(found.timestamp())
    except (ValueError, OverflowError, OSError):
        return None


# ── what it says ──────────────────────────────────────────────────────────────────────────────────


def _snapshot(one: _Session, owner: str, number: int) -> SessionSnapshot:
    digest, recorded = taken_in(one.actions)
    todos, handover = tuple(_todos(_part(one.document, "todos"))), "\n".join(_told(one.document))
    return SessionSnapshot(
        id=id_of("snap", one.at.timestamp(), f"claude-mpm {one.name} {one.at.isoformat()}"),
        workflow_id=owner,
        session_number=number,
        session_id=one.name,
        created_at=one.at,
        trigger="exhaustion" if one.actions else "pause",
        pause_reason=_reason(one),
        todos=todos,
        worked=bool(one.actions or todos or handover or _reason(one)),
        usage=_usage(_part(one.document, "context_usage"), digest.by_type["tool_call"]),
        incremental_pause=journal_in_snapshot(digest, recorded, one.skipped) if one.actions else None,
        handover=handover or None,
    )


def _reason(one: _Session) -> str | None:
    if not one.document:
        return "claude-mpm recorded a wind-down and saved no snapshot of it"
    return _said(_part(one.document, "conversation").get("summary")) or None


def _told(document: dict[str, Any]) -> Iterator[str]:
    talk = _part(document, "conversation")
    for label, key in (("Task", "primary_task"), ("Phase", "current_phase")):
        if text := _said(talk.get(key)):
            yield f"{label}: {text}"
    for label, items in (
        ("Done", talk.get("accomplishments")),
        ("Next", talk.get("next_steps")),
        ("Remember", document.get("important_reminders")),
        ("Open question", document.get("open_questions")),
    ):
        yield from (f"{label}: {text}" for text in _texts(items))
    yield from _git(_part(document, "git_context"))


def _git(context: dict[str, Any]) -> Iterator[str]:
    """Words alone: nothing here could be compared with the folder."""
    branch, status = _said(context.get("branch")), _part(context, "status")
    if branch:
        yield f"At that pause the branch was {branch}"
    for label, key in (("changed", "modified_files"), ("untracked", "untracked_files")):
        if files := _texts(status.get(key)):
            yield f"At that pause {label}: {', '.join(files)}"


def _todos(todos: dict[str, Any]) -> Iterator[TodoItem]:
    # `task_list` is left out: it names the tasks of every project on that machine.
    yield from (TodoItem(text, "pending") for text in _texts(todos.get("active")))
    yield from (TodoItem(text, "completed") for text in _texts(todos.get("completed")))


def _usage(told: dict[str, Any], tool_calls: int) -> UsageMetrics:
    used, total = told.get("tokens_used"), told.get("tokens_total")
    if not isinstance(used, int) or not isinstance(total, int) or not 0 < used <= total:
        return UsageMetrics(tool_calls=tool_calls)  # it writes zeros where it did not count
    return UsageMetrics(
        tokens_used=used,
        tokens_remaining_estimate=total - used,
        context_utilization=used / total,
        tool_calls=tool_calls,
    )


def _texts(items: object) -> list[str]:
    found = cast("list[object]", items) if isinstance(items, list) else []
    return [text for item in found if (text := _text(item))]


def _text(item: object) -> str:
    if isinstance(item, dict):
        fields = cast("dict[str, object]", item)
        item = next((fields[key] for key in ("content", "task", "title", "text") if fields.get(key)), "")
    return _said(item)


def _said(value: object) -> str:
    text = one_line(value) if isinstance(value, str) else ""
    return "" if text in _SAYS_NOTHING else text


def _part(document: dict[str, Any], key: str) -> dict[str, Any]:
    part = document.get(key)
    return cast("dict[str, Any]", part) if isinstance(part, dict) else {}


def _line(action: PauseAction, name: str) -> bytes:
    values = {key: getattr(action, key) for key in JOURNAL_KEYS} | {"session_id": name}
    return encode(values, clean=lambda text: redact(text)[0]) + b"\n"
