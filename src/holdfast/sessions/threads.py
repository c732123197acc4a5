"""Threads: the pieces of work in a folder, each with the sessions that belong to it.

A thread is computed from snapshots, never stored. Sessions belong together where they are one conversation of
an agent, where one goes on from the other's handover, where they change the same files on a branch, or where
they run the same plan. A session that did no work belongs to none, and one that only looked says nothing of
where the work stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from pydantic import AwareDatetime, Field

from holdfast.base.errors import HoldfastError, InvalidInputError, NotFoundError
from holdfast.base.text import clipped, counted, one_line
from holdfast.findings.rules.trail import only_looked
from holdfast.model.base import Value
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import OPEN, Workflow
from holdfast.resume.ledger import WorkLedger
from holdfast.resume.now import named_as_left
from holdfast.resume.rendering import quoted
from holdfast.resume.snapshots import ledger_at

if TYPE_CHECKING:
    from holdfast.store.protocol import SnapshotSummary, Store
    from holdfast.store.session_files import SessionFiles

_LOOKED_AT = 40
"""Newest sessions of a folder that did something; what nobody touched in so many others is history."""
_FOLDERS = 10
_LOOKED_AT_EACH = 10
"""Of several folders at once."""
_TITLE = 90
_STATE = 160
_ASIDE = 80
_FEW_WORDS = 4
"""A request of so many words at most ("go on") says nothing of what is worked on."""
_ENDED_BY_ITSELF = ("the agent session ended", "the work is handed over to another agent")


class Thread(Value):
    """One piece of work, as its newest session left it."""

    id: str = Field(description="Name of its newest session, or the id of its workflow if it has a plan")
    title: str
    status: Literal["open", "finished"]
    state: str = Field(description="Where it stands, in a few words")
    branch: str | None = Field(description="Null outside of git and on a detached HEAD")
    worktree: str
    files: tuple[str, ...] = Field(description="Files its sessions changed, the newest session's first")
    issue: str | None = Field(default=None, description="Id of the issue, if it has a plan")
    workflow_id: str
    snapshot_id: str = Field(description="Snapshot of its newest session")
    sessions: tuple[str, ...] = Field(description="Names of its sessions, newest first")
    updated_at: AwareDatetime

    @property
    def is_open(self) -> bool:
        return self.status == "open"


@dataclass
class _Group:
    """The sessions of one thread, oldest first."""

    members: list[tuple[SessionSnapshot, Workflow]]
    files: dict[str, None] = field(default_factory=dict[str, None])
    conversations: set[str] = field(default_factory=set[str])

    @property
    def newest(self) -> SessionSnapshot:
        return self.members[-1][0]

    def take(self, snapshot: SessionSnapshot, workflow: Workflow) -> None:
        self.members.append((snapshot, workflow))
        self.files = dict.fromkeys((*ledger_at(snapshot).changed, *self.files))
        if snapshot.conversation:
            self.conversations.add(snapshot.conversation)

    @property
    def at_work(self) -> tuple[SessionSnapshot, Workflow]:
        """The newest that did more than to look: it says where the work stands."""
        working = (one for one in reversed(self.members) if not is_aside(one[0]))
        return next(working, self.members[-1])


# ── which sessions belong together ────────────────────────────────────────────────────────────────


def threads_among(sessions: Iterable[tuple[SessionSnapshot, Workflow]]) -> list[Thread]:
    """Open ones first, then the newest; sessions that did no work are left out."""
    groups: list[_Group] = []
    ordered = sorted(sessions, key=lambda one: (one[0].created_at, one[0].session_number))
    for snapshot, workflow in ordered:
        if not snapshot.worked:
            continue
        group = next((one for one in reversed(groups) if _belongs(snapshot, one)), None)
        if group is None:
            group = _Group([])
            groups.append(group)
        group.take(snapshot, workflow)
        groups.remove(group)
        groups.append(group)  # the newest last
    found = [_thread(group) for group in reversed(groups)]
    return sorted(found, key=lambda thread: not thread.is_open)


def _belongs(snapshot: SessionSnapshot, group: _Group) -> bool:
    newest = group.newest
    if snapshot.task_dag.tasks or newest.task_dag.tasks:
        return snapshot.workflow_id == newest.workflow_id and bool(newest.task_dag.tasks)
    if snapshot.conversation in group.conversations:
        return True
    changed = set(ledger_at(snapshot).changed)
    shares = not changed.isdisjoint(group.files)
    if any(member.session_id == snapshot.continues for member, _ in group.members):
        if is_aside(snapshot) or shares or not group.files:
            return True
        return _settles(snapshot, newest) or (bool(changed) and _goes_on(snapshot))
    return shares and _branch(snapshot) == _branch(newest)


def is_aside(snapshot: SessionSnapshot) -> bool:
    """A session that changed and decided nothing and left nothing to do: it hides no work that is open."""
    found = snapshot.gathered
    if found is None or snapshot.task_dag.tasks or snapshot.incremental_pause is not None:
        return False
    is_over = snapshot.trigger == "pause" and snapshot.pause_reason in _ENDED_BY_ITSELF
    return is_over and only_looked(found) and not _announced(found.last_words)


def aside_told(snapshot: SessionSnapshot) -> str:
    """In one line: what was said may matter all the same."""
    found = snapshot.gathered
    said = [quoted(turn.said.strip(' \t\n"'), _ASIDE) for turn in found.turns[-2:]] if found else []
    answer = quoted(found.last_words, _ASIDE) if found and found.last_words else ""
    told = [f"the user said {' and '.join(said)}"] if said else []
    told += [f"the agent answered {answer}"] if answer else []
    return f"A later session changed nothing ({snapshot.session_id}): {', '.join(told) or 'nothing was said'}"


def _settles(snapshot: SessionSnapshot, before: SessionSnapshot) -> bool:
    """Whether what the earlier one had not committed is committed now."""
    then, now = ledger_at(before).not_committed, ledger_at(snapshot).git.uncommitted
    return bool(then) and now is not None and not set(then) & set(now)


def _goes_on(snapshot: SessionSnapshot) -> bool:
    """Whether all that was asked for is to continue."""
    turns = snapshot.gathered.turns if snapshot.gathered else ()
    return bool(turns) and len(turns[0].said.split()) <= _FEW_WORDS


def _branch(snapshot: SessionSnapshot) -> str | None:
    return snapshot.git_state.branch if snapshot.git_state else None


# ── where a thread stands ─────────────────────────────────────────────────────────────────────────


def _thread(group: _Group) -> Thread:
    snapshot, workflow = group.at_work
    has_plan = bool(snapshot.task_dag.tasks)
    is_settled = _settles(group.newest, snapshot)  # who only looked may have seen that somebody committed it
    because = (
        _plan_open_because(snapshot, workflow) if has_plan else open_because(snapshot, is_settled=is_settled)
    )
    return Thread(
        id=workflow.id if has_plan else snapshot.session_id,
        title=clipped(_title(group), _TITLE),
        status="open" if because else "finished",
        state=clipped(one_line(because), _STATE) or _ended(workflow),
        branch=_branch(snapshot),
        worktree=workflow.worktree,
        files=tuple(group.files),
        issue=workflow.issue.id if has_plan else None,
        workflow_id=workflow.id,
        snapshot_id=snapshot.id,
        sessions=tuple(member.session_id for member, _ in reversed(group.members)),
        updated_at=group.newest.created_at,
    )


def _ended(workflow: Workflow) -> str:
    return "cancelled" if workflow.status == "cancelled" else "finished"


def _title(group: _Group) -> str:
    """The first thing that was asked for, and says something; else why the work was paused."""
    first, workflow = group.members[0]
    if first.task_dag.tasks:
        return one_line(workflow.issue.title)
    said = [
        turn.said
        for member, _ in group.members
        for turn in (member.gathered.turns if member.gathered else ())
    ]
    telling = next((words for words in said if len(words.split()) > _FEW_WORDS), said[0] if said else "")
    return one_line(telling or first.pause_reason or workflow.issue.title)


def _plan_open_because(snapshot: SessionSnapshot, workflow: Workflow) -> str:
    if workflow.status not in OPEN and workflow.status != "failed":
        return ""
    left = counted(snapshot.tasks_remaining, "task")
    return f"{workflow.status.replace('_', ' ')}, {left} left"


def open_because(snapshot: SessionSnapshot, *, is_settled: bool = False) -> str:
    """Why the work of a session without a plan is not finished; empty where all says that it is.

    `is_settled`: what it had not committed is committed by now.
    """
    found = snapshot.gathered
    if snapshot.closed:
        return ""
    if snapshot.trigger != "pause":
        return snapshot.pause_reason or f"ended by {snapshot.trigger}"
    if found is None or snapshot.pause_reason not in _ENDED_BY_ITSELF:
        return f"paused: {snapshot.pause_reason}" if snapshot.pause_reason else "paused"
    ledger = ledger_at(snapshot)
    if is_settled:
        ledger = replace(ledger, not_committed=())
    return _stopped(snapshot) or _left_over(ledger) or _announced(found.last_words)


def _announced(last_words: str) -> str:
    told = named_as_left(last_words)
    return f"the agent's last words: {told}" if told else ""


_STOPPED = {
    "asked": "the agent asked the user something",
    "in_flight": "a call had no result yet",
    "working": "the agent was in the middle of it",
    "unanswered": "the user's last message was not answered",
    "stopped": "the user stopped the agent",
    "failed": "the agent's program reported an error",
    "unknown": "how it ended is not recorded",
}


def _stopped(snapshot: SessionSnapshot) -> str:
    stop = snapshot.gathered.stop if snapshot.gathered else None
    if stop is None or stop.kind in ("answered", "spoke"):
        return ""
    said = stop.words or ", ".join(call.target for call in stop.calls)
    return f"{_STOPPED[stop.kind]}{f': {said}' if said else ''}"


_RED = {"test": "tests fail", "build": "the build fails", "lint": "the linter fails"}


def _left_over(ledger: WorkLedger) -> str:
    if todo := ledger.open_tasks():
        return f"{counted(len(todo), 'task')} left: {todo[0].text}"
    if ledger.red is not None:
        return f"{_RED[ledger.red.kind]}: {ledger.red.command}"
    if ledger.git.under_way:
        return f"a {ledger.git.under_way} is in progress"
    return f"not committed: {', '.join(ledger.not_committed[:3])}" if ledger.not_committed else ""


# ── where they are read from ──────────────────────────────────────────────────────────────────────


def threads_in(store: Store, worktree: str | None = None) -> list[Thread]:
    """Of one folder; else of those that were worked in last."""
    by_folder: dict[str, list[Workflow]] = {}
    for flow in store.workflows(worktree=worktree):
        by_folder.setdefault(flow.worktree, []).append(flow)
    folders = list(by_folder.values())[:_FOLDERS]
    most = _LOOKED_AT if worktree is not None else _LOOKED_AT_EACH
    found = [thread for own in folders for thread in threads_among(_stored(store, own, most))]
    return sorted(found, key=lambda thread: (not thread.is_open, _ago(thread.updated_at)))


def _ago(moment: datetime) -> float:
    return -moment.timestamp()


def _stored(store: Store, flows: Sequence[Workflow], most: int) -> Iterator[tuple[SessionSnapshot, Workflow]]:
    lines = [(line, flow) for flow in flows for line in _needed(store.snapshots(flow.id))]
    lines.sort(key=lambda one: (one[0].created_at, one[0].session_number), reverse=True)
    worked = 0
    for line, flow in lines:
        snapshot = store.snapshot(line.id)
        worked += snapshot.worked
        yield snapshot, flow
        if worked >= most:
            return


def _needed(lines: Sequence[SnapshotSummary]) -> Sequence[SnapshotSummary]:
    """Of a plan the newest alone: it tells where the plan stands."""
    newest = max(lines, key=lambda line: (line.created_at, line.session_number), default=None)
    has_plan = newest is not None and newest.tasks_completed + newest.tasks_remaining > 0
    return [newest] if newest is not None and has_plan else lines


def threads_of_files(files: SessionFiles) -> list[Thread]:
    """As the folder's own files tell it, where the database is away."""
    return threads_among(_filed(files))


def _filed(files: SessionFiles) -> Iterator[tuple[SessionSnapshot, Workflow]]:
    from holdfast.store.documents import read_session_document

    worked = 0
    for name in files.session_ids():
        try:
            found = read_session_document(files.read(name), where=f"{name}.json")
        except HoldfastError:
            continue  # damaged: `doctor` tells of it
        worked += found[0].worked
        yield found
        if worked >= _LOOKED_AT:
            return


def find_thread(threads: Sequence[Thread], name: str) -> Thread | None:
    """By its id or the beginning of it, the name of any of its sessions, or its issue."""
    exact = [one for one in threads if name in (one.id, one.issue) or name in one.sessions]
    begun = [one for one in threads if name and (one.id.startswith(name) or _starts(one, name))]
    found = exact or begun
    if len(found) > 1:
        raise InvalidInputError(
            f"{name} is ambiguous: it matches {len(found)} threads", hint="`holdfast threads` shows them"
        )
    return found[0] if found else None


def _starts(thread: Thread, name: str) -> bool:
    return any(session.startswith(name) for session in thread.sessions)


def thread_not_found(name: str) -> NotFoundError:
    return NotFoundError(f"no such thread or workflow: {name}", hint="`holdfast threads` shows them")
