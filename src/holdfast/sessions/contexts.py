"""Contexts out of transcripts, and everything of one kind out of a snapshot."""

from __future__ import annotations

import gc
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from holdfast.base.errors import DamagedDataError, HoldfastError, InvalidInputError, NotFoundError
from holdfast.base.text import decode_path
from holdfast.model.frame import asks_to_wrap_up
from holdfast.model.gathered import Gathered
from holdfast.model.message import Message, ReadReport
from holdfast.model.statuses import DONE
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Price

TYPE_CHECKING = False

if TYPE_CHECKING:
    from holdfast.journal.usage import RecordedUsage
    from holdfast.model.snapshot import SessionSnapshot
    from holdfast.model.workflow import Workflow
    from holdfast.store.protocol import SnapshotSummary, Store
    from holdfast.transcripts.discover import FoundSession


# ── out of transcripts ────────────────────────────────────────────────────────────────────────────

# Contexts out of transcripts: find the session's file, read it once, compile.

_RECENT_MESSAGES = 50


class NothingSaidError(NotFoundError):
    """A record that is whole, and in which nobody has said anything yet."""


@dataclass(frozen=True)
class ReadSession:
    """One pass over a transcript: what was found, what the reader met, the newest messages."""

    found: Gathered
    report: ReadReport
    recent: tuple[Message, ...]


def read_session(
    path: Path, agent: str | None = None, session_id: str | None = None, *, turns: int | None = None
) -> ReadSession:
    """`session_id` chooses among several in one file, as OpenCode keeps them; of its turns the first ones."""
    from holdfast.findings.gather import gather
    from holdfast.transcripts import open_transcript, subagent_files

    report, messages = open_transcript(path, agent, session_id)
    messages = messages if turns is None else _first_turns(messages, turns)
    recent: deque[Message] = deque(maxlen=_RECENT_MESSAGES)
    subagents = (
        {key: partial(_of_subagent, file) for key, file in subagent_files(path).items()}
        if report.agent == "claude-code" and turns is None
        else {}
    )
    with _no_collection():
        found = gather(_remembered(messages, recent), report, subagents)
    if not found.messages:
        raise _nothing_read(path, report)
    return ReadSession(found, report, tuple(recent))


def usage_in(path: Path, agent: str, session_id: str, prices: Mapping[str, Price]) -> RecordedUsage:
    """What the session and its sub-agents have used by now."""
    from holdfast.journal.usage import session_usage
    from holdfast.transcripts import open_transcript, subagent_files

    report, messages = open_transcript(path, agent, session_id)
    own = subagent_files(path).values() if agent == "claude-code" else ()
    beside = (replace(one, subagent=one.subagent or file.stem) for file in own for one in _of_subagent(file))
    with _no_collection():
        return session_usage(chain(beside, messages), report.model, prices)


def _of_subagent(file: Path) -> Iterator[Message]:
    """As far as it can be read: it adds to what the session's own file tells."""
    from holdfast.transcripts import open_transcript

    try:
        yield from open_transcript(file, "claude-code")[1]
    except HoldfastError:
        return


def _first_turns(messages: Iterable[Message], turns: int) -> Iterator[Message]:
    """A turn begins with what the user typed."""
    for message in messages:
        typed = message.role == "user" and message.text and not message.tool_results
        if typed and not (message.injected or message.subagent or message.compaction):
            turns -= 1
        if turns < 0:
            return
        yield message


def _nothing_read(path: Path, report: ReadReport) -> HoldfastError:
    if report.torn or report.unknown or report.oversized:
        return DamagedDataError(
            f"{path} contains no readable {report.agent} session", hint="give its agent with --agent"
        )
    return NothingSaidError(f"{path} contains no messages yet")


def _remembered(messages: Iterable[Message], recent: deque[Message]) -> Iterator[Message]:
    """But for what was said when Holdfast asked for a handover: that is kept by itself."""
    wraps_up = False
    for message in messages:
        if message.role == "user":
            wraps_up = message.injected and asks_to_wrap_up(message.text)
        if not wraps_up:
            recent.append(message)
            yield message


class _no_collection:  # noqa: N801 - reads as what it does
    """Parsed lines hold no cycles; looking for them would take a third of the time."""

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()


def find_transcript(session_id: str, project: Path, home: Path, environ: Mapping[str, str]) -> FoundSession:
    """The file of an agent's session of this project, by its id or the beginning of it."""
    from holdfast.transcripts.discover import find_sessions

    if not session_id:
        raise InvalidInputError("the session id is empty", hint="`holdfast sessions list` shows them")
    found = [one for one in find_sessions(project, home, environ) if one.session_id.startswith(session_id)]
    exact = [one for one in found if one.session_id == session_id] or found
    if not exact:
        raise NotFoundError(
            f"no agent session {session_id} in this project",
            hint="`holdfast sessions list` shows them",
        )
    if len({one.session_id for one in exact}) > 1:
        raise InvalidInputError(
            f"{session_id} is ambiguous: it matches {len(exact)} sessions",
            hint="give more characters of the id",
        )
    return exact[0]


# ── out of snapshots ──────────────────────────────────────────────────────────────────────────────

# All of one kind that a snapshot holds, as data: what `holdfast history --json` and the server tell.

_LOOKED_AT = 20
"""Of the newest ones; after that many idle sessions the folder's own word on the latest is taken."""


def newest_with_work(store: Store, workflow_ids: Iterable[str]) -> SessionSnapshot | None:
    """The snapshot to go on from: of the first workflow that has one, the newest of a session that did
    something; where none did, the newest. A session that did nothing hides no other."""
    newest: SessionSnapshot | None = None
    for workflow_id in workflow_ids:
        last = store.latest_snapshot(workflow_id)
        found = last if last is None or last.worked else _before(store, workflow_id)
        if found is not None:
            return open_before(store, found) or found
        newest = newest or last
    return newest


def open_before(store: Store, snapshot: SessionSnapshot) -> SessionSnapshot | None:
    """Where that session only looked, the open work it looked at."""
    from holdfast.sessions.threads import Folder, is_aside, open_because

    if not is_aside(snapshot):
        return None
    for line in _newest_first(store, snapshot.workflow_id)[:_LOOKED_AT]:
        earlier = store.snapshot(line.id)
        if _came_before(earlier, snapshot) and earlier.worked and not is_aside(earlier):
            folder = Folder(store.workflow(earlier.workflow_id).worktree)
            return earlier if open_because(earlier, folder, [snapshot]) else None
    return None


def asides_since(store: Store, snapshot: SessionSnapshot) -> tuple[str, ...]:
    """The newest session after it that only looked, or that was paused with a reason and nothing else, in a
    line; another on what earlier ones had left."""
    from holdfast.sessions.threads import aside_told, is_aside, left_told

    left = left_told(store, snapshot)
    for line in _newest_first(store, snapshot.workflow_id)[:_LOOKED_AT]:
        later = store.snapshot(line.id)
        if not _came_before(snapshot, later):
            break
        if later.worked:
            return (*left, aside_told(later)) if is_aside(later) else left
        if later.incremental_pause is not None and later.trigger != "crash" and later.pause_reason:
            return (*left, aside_told(later))
    return left


def _came_before(one: SessionSnapshot, other: SessionSnapshot) -> bool:
    return (one.created_at, one.session_number) < (other.created_at, other.session_number)


def _newest_first(store: Store, workflow_id: str) -> list[SnapshotSummary]:
    lines = store.snapshots(workflow_id)
    return sorted(lines, key=lambda one: (one.created_at, one.session_number), reverse=True)


def _before(store: Store, workflow_id: str) -> SessionSnapshot | None:
    """The newest with work, where the last one is idle. However many are: it is named in the folder, so that
    not all of them are read; only where that name is lost they are."""
    lines = _newest_first(store, workflow_id)
    name = _named_latest(store, workflow_id) if len(lines) > _LOOKED_AT else None
    named = [line for line in lines[_LOOKED_AT:] if line.session_id == name]
    for line in (*lines[1:_LOOKED_AT], *named, *lines[_LOOKED_AT:]):
        snapshot = store.snapshot(line.id)
        if snapshot.worked:
            return snapshot
    return None


def _named_latest(store: Store, workflow_id: str) -> str | None:
    """By its folder, where that is here."""
    from holdfast.store.session_files import SessionFiles

    folder = Path(os.fsdecode(decode_path(store.workflow(workflow_id).worktree)))
    return SessionFiles(ProjectLayout(folder).sessions).latest()


_RECORDS_TOLD = 12
"""Of each kind, the newest."""


def records_standing(store: Store, worktree: str) -> list[tuple[str, str]]:
    """What agents recorded in a folder, each with what it is: it holds whether or not any work is open.

    Constraints and decisions out of all its work; open tasks and a handover out of the newest alone.
    """
    flows = [flow for flow in store.workflows(worktree=worktree) if flow.run_id is None]
    from holdfast.model.entry import ConstraintPinned, DecisionRecorded

    kinds = ("constraint_pinned", "decision_recorded")
    entries = [
        one.entry for flow in reversed(flows) for one in store.events(workflow_id=flow.id, types=kinds)
    ]
    rules = [one.text for one in entries if isinstance(one, ConstraintPinned)]
    made = [one.decision for one in entries if isinstance(one, DecisionRecorded)]
    decided = [f"{one.description} ({one.rationale})" for one in made if one.task_id is None]
    newest = newest_with_work(store, (flow.id for flow in flows))
    todos = [todo.text for todo in newest.todos if todo.status != "completed"] if newest else []
    words = [newest.handover] if newest and newest.handover else []
    told = (("constraint", rules), ("decision", decided), ("to do", todos), ("handover", words))
    return [(kind, text) for kind, texts in told for text in list(dict.fromkeys(texts))[-_RECORDS_TOLD:]]


_MOVED_ON: Mapping[str, str] = {
    "completed": "The workflow has completed since this pause; nothing of its plan is left to do.",
    "cancelled": "The workflow was cancelled after this pause; what was left of its plan is not to be done.",
    "in_progress": "The workflow is running again; leave what is left of its plan to it (`holdfast status`).",
    "blocked": "The workflow was resumed and now waits for approval (`holdfast status`).",
}


def as_it_stands(
    store: Store, snapshot: SessionSnapshot, workflow: Workflow
) -> tuple[SessionSnapshot, tuple[str, ...]]:
    """A snapshot without tasks that nobody is to take up any more, and what to say of its workflow.

    A pause is not the last word on a plan: after it the workflow may have ended, or run again elsewhere.
    """
    said = _MOVED_ON.get(workflow.status)
    if said is None or not snapshot.task_dag.tasks:
        return snapshot, ()
    from holdfast.sessions.transitions import Core

    done = [task for task in Core(store).fold(workflow).tasks().tasks if task.status in DONE]
    known = {task.id for task in done}
    kept = [task.changed(depends_on=tuple(known.intersection(task.depends_on))) for task in done]
    plan = type(snapshot.task_dag)(tasks=tuple(kept))
    return snapshot.changed(task_dag=plan, current_task_id=None, next_task_id=None), (said,)


def undone_since(workflow: Workflow, snapshot: SessionSnapshot) -> tuple[str, ...]:
    """What of its completed tasks was undone; where nothing can be, nothing of the side-car is loaded."""
    from holdfast.sessions.standing import may_be_undone

    sidecar = ProjectLayout(Path(os.fsdecode(decode_path(workflow.worktree)))).sidecar
    if not snapshot.task_dag.tasks or not may_be_undone(sidecar, workflow.id):
        return ()
    from holdfast.sessions.undone import undone_before

    return undone_before(workflow, snapshot)


def archived_lines(layout: ProjectLayout, session_id: str) -> Iterator[str]:
    """The actions of a wind-down that became this session, a JSON object each."""
    from holdfast.journal.log import Reader
    from holdfast.journal.summary import find_archive

    path = find_archive(layout.sessions, session_id)
    if path is not None:
        yield from (action.to_json_line() for action in Reader(path))


def newest_actions(layout: ProjectLayout, session_id: str, most: int) -> tuple[list[dict[str, Any]], bool]:
    """The last so many of them, and whether there are more."""
    kept: deque[str] = deque(maxlen=most)
    total = 0
    for line in archived_lines(layout, session_id):
        kept.append(line)
        total += 1
    return [json.loads(line) for line in kept], total > most


def history_data(snapshot: SessionSnapshot, category: str, actions: Iterable[str] = ()) -> object:
    """`actions`: the lines of the wind-down's journal, for that category."""
    document: dict[str, Any] = snapshot.model_dump(mode="json")
    gathered: dict[str, Any] = document["gathered"] or {}
    views: dict[str, Callable[[], object]] = {
        "decisions": lambda: document["decisions"],
        "errors": lambda: document["errors"],
        "reviewer-feedback": lambda: document["reviewer_feedback"] or [],
        "git-changes": lambda: {
            "git_state": document["git_state"],
            "files": document["files"],
            **_part(gathered, "git"),
        },
        "tasks": lambda: document["task_dag"]["tasks"] or gathered.get("todos") or document["todos"],
        "tests": lambda: document["test_state"],
        "journal": lambda: {
            "actions": [json.loads(line) for line in actions],
            **_part(gathered, "turns"),
            **_part(gathered, "commands"),
        },
    }
    return views[category]()


def _part(gathered: dict[str, object], name: str) -> dict[str, object]:
    return {name: gathered[name]} if name in gathered else {}
