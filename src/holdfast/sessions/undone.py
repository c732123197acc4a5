"""Whether what the completed tasks of a plan changed in files still stands, and what brings it back.

A task's change is what was recorded at its end, and of earlier attempts what stood then: what was undone
before is none of what it left. Whoever goes on with a plan, or tells where it stands, asks `undone_work`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from holdfast.base.errors import HoldfastError
from holdfast.base.text import shown_path
from holdfast.model.git import decode_path
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import Task
from holdfast.model.workflow import Workflow
from holdfast.project.formats import origin_of, plan_branches
from holdfast.project.layout import ProjectLayout
from holdfast.sessions.standing import may_be_undone
from holdfast.undo.ledger import Transaction, fold
from holdfast.undo.plan import touched_by
from holdfast.undo.state import LedgerEntry, PathChange, TasksEnded, task_name, told
from holdfast.undo.transactions import SideCar

ContentOf = Callable[[PathChange, Literal["before", "after"]], bytes | None]
UndoneState = Literal["undone", "partly_undone", "cannot_tell"]

_PATIENCE = 5.0
_MOST_TASKS = 5
_MOST_PATHS = 3
_MOST_COMMANDS = 10
_CONTINUED = "continued without what was undone of"

# ── what is said of it ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class UndoneTask:
    task_id: str
    state: UndoneState
    paths: tuple[str, ...]
    """In which its change does not stand, or may not."""

    @property
    def label(self) -> str:
        if self.state == "undone":
            return self.task_id
        more = f" and {len(self.paths) - _MOST_PATHS} more" if len(self.paths) > _MOST_PATHS else ""
        return f"{self.task_id} ({', '.join(map(shown_path, self.paths[:_MOST_PATHS]))}{more})"


@dataclass(frozen=True)
class UndoneWork:
    """Completed tasks whose change does not stand as they left it, in the plan's order."""

    tasks: tuple[UndoneTask, ...] = ()
    restored_by: tuple[str, ...] = ()
    """The undos to undo, in that order."""
    unknown: str = ""
    """Why it cannot be told of any task."""

    def __bool__(self) -> bool:
        return bool(self.tasks or self.unknown)

    @property
    def is_certain(self) -> bool:
        return any(one.state != "cannot_tell" for one in self.tasks)

    @property
    def commands(self) -> list[str]:
        """After more than these, what is left is told the next time."""
        return [f"holdfast tx undo {one}" for one in self.restored_by[:_MOST_COMMANDS]]

    @property
    def facts(self) -> tuple[str, ...]:
        if self.unknown:
            return (f"cannot tell whether what completed tasks had changed still stands: {self.unknown}",)
        certain = [one for one in self.tasks if one.state != "cannot_tell"]
        unsure = [one for one in self.tasks if one.state == "cannot_tell"]
        found: list[str] = []
        if certain:
            found.append(f"what completed tasks had changed was undone: {_listed(certain)}")
        if unsure:
            found.append(
                f"some of what was undone may have been changed by completed tasks: {_listed(unsure)}"
            )
        return tuple(found)

    @property
    def sentences(self) -> tuple[str, ...]:
        """For the next session, which would take its completed tasks for done."""
        facts = [f"{one[0].upper()}{one[1:]}" for one in self.facts]
        if facts and self.commands:
            facts[-1] += f". Restore it with {', then '.join(f'`{one}`' for one in self.commands)}"
        return tuple(facts)

    @property
    def document(self) -> dict[str, object] | None:
        """As `status` prints it."""
        if not self:
            return None
        return {
            "tasks": [
                {"id": one.task_id, "state": one.state, "paths": list(one.paths)} for one in self.tasks
            ],
            "facts": list(self.facts),
            "is_certain": self.is_certain,
            "restore_with": self.commands,
        }


def _listed(tasks: Sequence[UndoneTask]) -> str:
    more = f" and {len(tasks) - _MOST_TASKS} more" if len(tasks) > _MOST_TASKS else ""
    return ", ".join(one.label for one in tasks[:_MOST_TASKS]) + more


# ── the question ──────────────────────────────────────────────────────────────────────────────────


def undone_work(
    workflow: Workflow,
    tasks: Iterable[Task],
    session_number: int | None = None,
    *,
    also_accepted: bool = False,
) -> UndoneWork:
    """Of the completed ones among these tasks, as they stood at the end of that session, or stand now.

    `also_accepted`: also what the user let the plan go on without.
    """
    folder = ProjectLayout(Path(os.fsdecode(decode_path(workflow.worktree)))).sidecar
    completed = [task for task in tasks if task.status == "completed"]
    if not completed or workflow.options.repository is not None or not may_be_undone(folder, workflow.id):
        return UndoneWork()
    try:
        with SideCar(folder.parents[1], patience=_PATIENCE) as sidecar:
            number = workflow.session_count if session_number is None else session_number
            family = _recorded_of(sidecar, workflow.id, number)
            family = [_without_notes(one) for one in family] if also_accepted else family
            return judged(family, completed, sidecar.content)
    except HoldfastError as error:
        return UndoneWork(unknown=error.message)


def _recorded_of(sidecar: SideCar, workflow_id: str, session_number: int) -> list[Transaction]:
    """What its sessions up to that one changed. Of a fork also what it began with: what was recorded of the
    original until then, and what became of that since."""
    found = [one for one in sidecar.family(workflow_id) if session_of(one.id, workflow_id) <= session_number]
    for link in tuple(found):
        if (origin := origin_of(link.id)) is not None:
            found += filter(None, (_until(link, one) for one in _recorded_of(sidecar, *origin)))
    return found


def _until(link: Transaction, transaction: Transaction) -> Transaction | None:
    """Without what was changed after the fork; what was undone after it concerns both."""
    first = link.entries[0]
    kept = [
        one
        for one in transaction.entries
        if one.kind in ("undo", "rollback") or (one.number < first.number and one.at <= first.at)
    ]
    return fold(kept) if kept else None


def _without_notes(transaction: Transaction) -> Transaction:
    entries = [one for one in transaction.entries if not one.description.startswith(_CONTINUED)]
    return fold(entries) if entries else transaction


def undone_before(workflow: Workflow, snapshot: SessionSnapshot) -> tuple[str, ...]:
    """For whoever reads that snapshot's context: what is no longer as it says."""
    tasks = snapshot.task_dag.tasks
    return undone_work(workflow, tasks, snapshot.session_number, also_accepted=True).sentences


def fork_undone(origin: Workflow, tasks: Iterable[Task], session_number: int, fork: Workflow) -> str:
    """Let a fork know what was and will be undone of the tasks it takes over; what it cannot know, in words.

    In another folder nobody knows whether their change stands there.
    """
    if origin.options.repository is not None:
        return ""
    if fork.worktree != origin.worktree:
        work = undone_work(origin, tasks, session_number, also_accepted=True)
        return f"in {origin.worktree}, {'; '.join(work.facts)}" if work else ""
    folder = ProjectLayout(Path(os.fsdecode(decode_path(origin.worktree)))).sidecar
    if not plan_branches(str(folder), origin.id):
        return ""
    try:
        with SideCar(folder.parents[1], patience=_PATIENCE) as sidecar:
            sidecar.fork(origin.id, fork.id, session_number)
    except HoldfastError as error:
        return UndoneWork(unknown=error.message).facts[0]
    return ""


def accept(workflow: Workflow, work: UndoneWork) -> None:
    """Go on as it is: for these tasks it counts from here on what stands now."""
    folder = ProjectLayout(Path(os.fsdecode(decode_path(workflow.worktree)))).root
    names = tuple(task_name(one.task_id) for one in work.tasks)
    with SideCar(folder) as sidecar:
        last = sidecar.family(workflow.id)[-1]
        sidecar.note(last.id, f"{_CONTINUED} {', '.join(names)}", TasksEnded(names))


def session_of(transaction_id: str, workflow_id: str) -> int:
    number = transaction_id.removeprefix(f"{workflow_id}-s").partition("-")[0]
    return int(number) if number.isdigit() else 0


def judged(family: Sequence[Transaction], completed: Sequence[Task], content: ContentOf) -> UndoneWork:
    """Costs what the plan's own transactions cost to look through once; `content` is asked only for files of
    which some lines were undone."""
    books = [_Book(one) for one in family]
    by_task: dict[str, list[_Share]] = {}
    for book in books:
        for place, entry in enumerate(book.transaction.entries):
            for number, names in enumerate((entry.tasks, entry.beside)):
                for name in names:
                    by_task.setdefault(name, []).append(_Share(book, place, entry, is_beside=number > 0))
    pieces = [
        piece
        for book in books
        for piece in book.transaction.entries
        if piece.kind == "undo" and not piece.undoes and book.transaction.standing.get(piece.id)
    ]
    lines = _Lines(sorted((one for book in books for one in book.transaction.entries), key=_number), content)
    found: list[UndoneTask] = []
    undos: dict[str, LedgerEntry] = {}
    for task in completed:
        shares = sorted(by_task.get(task_name(task.id), ()), key=lambda one: one.order)
        one = _judged_task(task, shares, pieces, by_task, lines, undos)
        if one is not None:
            found.append(one)
    newest_first = sorted(undos.values(), key=lambda one: (one.number, one.at), reverse=True)
    return UndoneWork(tuple(found), tuple(one.id for one in newest_first))


# ── inside ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Book:
    """A transaction, with what undid what in it."""

    transaction: Transaction

    @cached_property
    def undos(self) -> list[tuple[int, LedgerEntry]]:
        entries = enumerate(self.transaction.entries)
        return [(place, one) for place, one in entries if one.kind in ("undo", "rollback")]

    @cached_property
    def takers(self) -> Mapping[str, list[LedgerEntry]]:
        """Entry to the undos that took it back, directly or by taking back its redo, the newest first."""
        undoes = {one.id: one.undoes for one in self.transaction.entries}
        found: dict[str, list[LedgerEntry]] = {}
        for _, undo in reversed(self.undos):
            seen: set[str] = set()
            waiting = list(undo.undoes)
            while waiting:
                name = waiting.pop()
                if name not in seen:
                    seen.add(name)
                    waiting += undoes.get(name, ())
                    found.setdefault(name, []).append(undo)
        return found


@dataclass(frozen=True)
class _Share:
    """An entry that names a task."""

    book: _Book
    place: int
    entry: LedgerEntry
    is_beside: bool = field(kw_only=True)
    """It was recorded while the task was still running."""

    @property
    def order(self) -> tuple[int, float, int]:
        return self.entry.number, self.entry.at.timestamp() if not self.entry.number else 0.0, self.place

    @property
    def standing(self) -> frozenset[str]:
        return self.book.transaction.standing.get(self.entry.id, frozenset())

    @property
    def is_whole(self) -> bool:
        return len(self.standing) == len({change.path for change in self.entry.changes})

    def lost_since(self, end: _Share | None) -> frozenset[str]:
        """The files in which it stood when the task ended, and does not any more."""
        if self.is_whole:
            return frozenset()
        paths = frozenset(change.path for change in self.entry.changes)
        if end is None or end.entry is self.entry:
            return paths - self.standing
        before = [place for place, undo in self.book.undos if _is_before(place, undo, end, self.book)]
        if not before:
            return paths - self.standing
        then = fold(self.book.transaction.entries[: before[-1] + 1])
        return then.standing.get(self.entry.id, frozenset()) - self.standing

    def restored_by(self, paths: frozenset[str]) -> Iterator[LedgerEntry]:
        left = set(paths)
        for undo in self.book.takers.get(self.entry.id, ()):
            if not left:
                return
            if covered := left & self.book.transaction.standing.get(undo.id, frozenset()):
                left -= covered
                yield undo


def _is_before(place: int, undo: LedgerEntry, end: _Share, book: _Book) -> bool:
    if book is end.book:
        return place < end.place
    if undo.number and end.entry.number:
        return undo.number < end.entry.number
    return undo.at < end.entry.at  # recorded before entries were numbered


def _judged_task(
    task: Task,
    shares: Sequence[_Share],
    pieces: Sequence[LedgerEntry],
    by_task: Mapping[str, Sequence[_Share]],
    lines: _Lines,
    undos: dict[str, LedgerEntry],
) -> UndoneTask | None:
    """None where its change stands. What would bring it back is added to `undos`."""
    ends = [one for one in shares if not one.is_beside]
    end = ends[-1] if ends else None
    lost: set[str] = set()
    unsure: set[str] = set()
    kept = False
    for share in shares:
        missing = share.lost_since(end)
        undos |= {one.id: one for one in share.restored_by(missing)}
        is_split = len(share.entry.tasks) > 1 and bool(share.standing)
        (unsure if share.is_beside or is_split else lost).update(missing)
        kept |= not share.is_beside and bool(share.standing)
    own = {path for share in ends for path in share.standing}
    for piece in pieces if own else ():
        touched = own & {change.path for change in piece.changes}
        if touched and end is not None and _comes_after(piece, end):
            for path in touched:
                name = task_name(task.id)
                whose = lines.whose(piece, path) if _is_shared({path}, name, by_task) else frozenset({name})
                if whose is None or name in whose:
                    undos[piece.id] = piece
                    (unsure if whose is None else lost).add(path)
    if lost:
        return UndoneTask(task.id, "partly_undone" if kept else "undone", tuple(told(lost)))
    return UndoneTask(task.id, "cannot_tell", tuple(told(unsure))) if unsure else None


def _number(entry: LedgerEntry) -> int:
    return entry.number


@dataclass
class _Lines:
    """Whose the lines of a file are that several tasks changed."""

    entries: Sequence[LedgerEntry]
    """In the order in which they were recorded."""
    content: ContentOf
    _known: dict[tuple[str, str], frozenset[str] | None] = field(
        default_factory=dict[tuple[str, str], frozenset[str] | None]
    )

    def whose(self, piece: LedgerEntry, path: str) -> frozenset[str] | None:
        """The tasks whose lines this piece of an undo took back; None where nobody can tell."""
        key = (piece.id, path)
        if key not in self._known:
            self._known[key] = self._found(piece, path)
        return self._known[key]

    def _found(self, piece: LedgerEntry, path: str) -> frozenset[str] | None:
        if not piece.number:
            return None
        versions: list[tuple[str | None, bytes, bytes]] = []
        for entry in (one for one in self.entries if one.number < piece.number):
            is_sure = (
                entry.kind == "change" and len(entry.tasks) == 1 and not entry.beside and not entry.doubt
            )
            for sides in self._sides(entry, path):
                if sides is None:
                    return None
                versions.append((entry.tasks[0] if is_sure else None, *sides))
        taken = [sides for sides in self._sides(piece, path) if sides is not None]
        names = touched_by(versions, *taken[0]) if taken else {None}
        return None if None in names else frozenset(one for one in names if one)

    def _sides(self, entry: LedgerEntry, path: str) -> Iterator[tuple[bytes, bytes] | None]:
        for change in entry.changes:
            if change.path == path:
                yield self._both(change)

    def _both(self, change: PathChange) -> tuple[bytes, bytes] | None:
        """None where one of them is not stored; a file that is not there has no lines."""
        try:
            before = self.content(change, "before") if change.before else b""
            after = self.content(change, "after") if change.after else b""
        except HoldfastError:
            return None
        return None if before is None or after is None else (before, after)


def _comes_after(piece: LedgerEntry, end: _Share) -> bool:
    if piece.number and end.entry.number:
        return piece.number > end.entry.number
    return piece.at >= end.entry.at


def _is_shared(paths: set[str], name: str, by_task: Mapping[str, Sequence[_Share]]) -> bool:
    return any(
        not paths.isdisjoint(share.standing)
        for other, shares in by_task.items()
        for share in shares
        if other != name and not share.is_beside
    )
