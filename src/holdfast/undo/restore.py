"""Taking changes back in the user's tree: planned whole, noted, done file by file, then recorded."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from holdfast.base.clock import Clock
from holdfast.base.durable import private_folder
from holdfast.base.errors import ConflictError, HoldfastError
from holdfast.base.faults import fault_point
from holdfast.model.git import decode_path, encode_path
from holdfast.undo.git import merge_texts
from holdfast.undo.objects import Repository
from holdfast.undo.plan import UndoPlan, UndoStep, held_back, plan_undo, without_content
from holdfast.undo.state import (
    MANIFEST_SCHEMA,
    FileState,
    KnownFile,
    LedgerEntry,
    PathChange,
    State,
    Status,
    same,
)
from holdfast.undo.worktree import UnreadableError, Worktree, folders_above

if TYPE_CHECKING:
    from holdfast.undo.work import UndoWork

log = logging.getLogger("holdfast.sidecar")

_NOTE = "restoring"

NamesOf = Callable[[int], Iterable[bytes]]
"""Inode to the paths under which that file was last seen."""


@dataclass
class Restoring:
    entry: LedgerEntry
    """As it would be if all went well, without its changes."""
    steps: list[UndoStep]
    subjects: dict[str, list[str]]
    """The entries to take back, each with its paths."""
    status_before: Status
    partial: bool
    left: dict[str, str] = field(default_factory=dict[str, str])
    is_blocked: bool = False
    """Something is left that is a reason to do nothing at all, unless it is to be `partial`."""

    @classmethod
    def planned(
        cls,
        work: UndoWork,
        entry: LedgerEntry,
        subjects: Sequence[LedgerEntry],
        unasked: Mapping[str, str],
        unsure: Mapping[str, str],
        *,
        status_before: Status,
        partial: bool,
    ) -> Restoring:
        """`subjects` the newest first. Left are files `unasked`, and what is in doubt of those `unsure`."""
        changes = [change for one in subjects for change in reversed(one.changes)]
        wanted = [
            change
            for one in subjects
            for change in reversed(one.changes)
            if change.path not in unasked and not (one.doubt and change.path in unsure)
        ]
        names = {change.path: decode_path(change.path) for change in changes}
        known = work.look_again(names.values())
        current = {path: row.state if (row := known[name]) else None for path, name in names.items()}

        def merge(ours: FileState, base: FileState, theirs: FileState) -> FileState | None:
            read = work.repository.read
            text = merge_texts(work.repository.folder, read(ours.oid), read(base.oid), read(theirs.oid))
            if text is None or not work.keep(text):
                return None
            return ours.changed(oid=work.repository.write("blob", text), size=len(text))

        plan = plan_undo(wanted, current, merge)
        no_place = _no_place(plan.steps, work.tree)
        for step in [step for step in plan.steps if step.path in no_place]:
            plan.refuse_one(step.path, no_place[step.path], step.expected, step.target)
            plan.steps.remove(step)
        left_by = {change.path: change.after for change in reversed(changes)}
        plan.refuse(_with_new_names(plan.steps, left_by, work.tree))
        for path in unsure.keys() & plan.conflicts.keys():  # what is in doubt lies over what is not
            plan.refused[path] = unsure[path]
            del plan.conflicts[path]
        certain = {**unasked, **unsure, **plan.conflicts}
        _leave_what_depends(plan, changes, certain, current, work)
        steps = _in_turn(_with_places(_without_filled(plan.steps, work.tree), work.tree))
        sure = [one for one in subjects if not (one.doubt and any(c.path in unsure for c in one.changes))]
        named = {one.id: [change.path for change in one.changes] for one in sure if one.id}
        taken = {change.path for change in wanted} - {*plan.conflicts, *plan.refused}
        left = {path: reason for path, reason in {**certain, **plan.refused}.items() if path not in taken}
        return cls(entry, steps, named, status_before, partial, left, is_blocked=bool(plan.conflicts))

    @classmethod
    def unfinished(cls, state: State) -> Restoring | None:
        document = state.note(_NOTE)
        if document is None:
            return None
        entry = MANIFEST_SCHEMA.upgrade(document["entry"], where="an undo that was begun")
        return _as_document().validate_python({**document, "entry": entry})

    def note(self, state: State) -> None:
        state.put_note(_NOTE, _as_document().dump_python(self, mode="json"))

    def forget(self, state: State) -> None:
        state.put_note(_NOTE, None)

    def carry_out(
        self, tree: Worktree, repository: Repository, clock: Clock, names_of: NamesOf
    ) -> tuple[LedgerEntry, dict[bytes, KnownFile | None]]:
        """Returns the entry with what was done, and the files as they are known from now on."""
        self.steps = [_as_stored(step, repository) for step in self.steps]
        names = [decode_path(step.path) for step in self.steps]
        rescue(tree, repository, names, self.entry.id, _unstored(self.steps))
        files: dict[bytes, KnownFile | None] = {}
        done: list[PathChange] = []
        written: dict[int, bytes] = {}

        def twins(inode: int) -> Iterable[bytes]:
            """Names of one file: what this undo wrote comes before what stands there."""
            standing = (one for one in names_of(inode) if tree.inode_of(one) == inode)
            return [written[inode]] if inode in written else standing

        for step, later in self._in_order(tree):
            name = decode_path(step.path)
            reason = _do(step, name, later, tree, repository, twins)
            if reason is not None:
                self.left[step.path] = reason
                continue
            files[name] = tree.look(name, None, clock(), lambda _, step=step: _is_stored(step.target))
            done.append(PathChange(path=step.path, before=step.expected, after=step.target))
            written |= {step.target.inode: name} if step.target and step.target.inode else {}
            fault_point("sidecar.step")
        for change in reversed(done):
            if change.after and change.after.folder:
                tree.close_folder(decode_path(change.path), change.after)
        return self._entry_of(done), files

    def _in_order(self, tree: Worktree) -> Generator[tuple[UndoStep, list[UndoStep]]]:
        """Each with those that come later; what another step sets aside is waited for."""
        waiting = list(self.steps)
        while waiting:
            step = next((one for one in waiting if _is_ready(one, tree)), waiting[0])
            waiting.remove(step)
            yield step, waiting

    def _entry_of(self, done: Sequence[PathChange]) -> LedgerEntry:
        """What was left is not undone and can be tried again."""
        undone = [
            name
            for name, paths in self.subjects.items()
            if not paths or any(path not in self.left for path in paths)
        ]
        return self.entry.changed(
            changes=tuple(done),
            left=tuple(self.left),
            undoes=tuple(undone),
            status=self.entry.status if self.partial or done or not self.left else self.status_before,
        )


@cache
def _as_document() -> TypeAdapter[Restoring]:
    return TypeAdapter(Restoring)


def _in_turn(steps: Iterable[UndoStep]) -> list[UndoStep]:
    """Folders are opened first. A file may have to make room for a folder of its name, and the other way
    round: so removals come before the rest, a folder's after those of what is in it."""
    opened = [one for one in steps if one.expected and one.target and one.target.folder]
    removed = [one for one in steps if one.target is None]
    put = [one for one in steps if one.target and one not in opened]
    removed.sort(key=lambda step: step.path, reverse=True)
    return [*sorted(opened, key=_path), *removed, *sorted(put, key=_path)]


def _path(step: UndoStep) -> str:
    return step.path


def _without_filled(steps: Sequence[UndoStep], tree: Worktree) -> list[UndoStep]:
    """Without the folders that are not empty when the rest is gone: they stay, and nothing is lost."""
    leaving = {decode_path(step.path) for step in steps if step.target is None}
    kept = list(steps)
    for step in sorted(steps, key=_path, reverse=True):
        name = decode_path(step.path)
        if step.target is None and name.endswith(b"/") and tree.holds_more(name, leaving):
            leaving.discard(name)
            kept.remove(step)
    return kept


def _with_places(steps: Sequence[UndoStep], tree: Worktree) -> list[UndoStep]:
    """With the folders that somebody has removed since and that what comes back stands in: so that
    undoing this removes them again."""
    coming = {step.path for step in steps if step.target}
    made: dict[str, UndoStep] = {}
    for step in steps:
        for folder in folders_above(decode_path(step.path)) if step.target else ():
            path = encode_path(folder)
            if path not in coming and not tree.is_folder(folder[:-1]):
                made[path] = UndoStep(path, None, tree.folder_like_above(folder))
    return [*made.values(), *steps]


def _no_place(steps: Sequence[UndoStep], tree: Worktree) -> dict[str, str]:
    """Steps that something in the tree stands in the way of, which no other step removes: path to reason."""
    names = {step.path: decode_path(step.path) for step in steps}
    leaving = {names[step.path] for step in steps if step.target is None}
    return {path: reason for path, name in names.items() if (reason := tree.refusal(name, leaving))}


def _with_new_names(
    steps: Sequence[UndoStep], left_by: Mapping[str, FileState | None], tree: Worktree
) -> dict[str, str]:
    """Files that had one name after the last of the changes, and that somebody gave another since: that would
    keep what is undone, and be another file from then on."""
    several = [
        (step.path, step.expected.inode)
        for step in steps
        if step.target and step.expected and not step.target.same_content(step.expected)
        if step.expected.inode and (last := left_by[step.path]) and not last.inode
    ]
    named: dict[int, list[bytes]] = {}
    for name in tree.list_files(tree.users_git()) if several else ():
        named.setdefault(tree.inode_of(name) or 0, []).append(name)
    found: dict[str, str] = {}
    for path, inode in several:
        if others := [one for one in map(encode_path, named.get(inode, ())) if one not in left_by]:
            found[path] = f"{others[0]} is a hard link to it now: make that a copy, or remove it"
    return found


def _leave_what_depends(
    plan: UndoPlan,
    changes: Sequence[PathChange],
    certain: Mapping[str, str],
    current: Mapping[str, FileState | None],
    work: UndoWork,
) -> None:
    """Refuse what lacks its content or its place, and what must stay with what is left, until all fits."""
    lines_of = _lines_in(work, changes, current)
    more = True
    while more:
        steps = len(plan.steps)
        plan.refuse(_no_place(plan.steps, work.tree))
        plan.refuse(without_content(plan.steps, lambda oid: len(work.tree.set_aside.find(oid))))
        left = {**certain, **plan.refused}
        if left:
            plan.refuse(held_back(plan.steps, changes, left, current, lines_of))
        more = len(plan.steps) < steps


def _as_stored(step: UndoStep, repository: Repository) -> UndoStep:
    """What is about to leave the tree must be there to be read; if not, it is set aside."""
    expected = step.expected
    if expected is None or not expected.blob or repository.has(expected.oid):
        return step
    return replace(step, expected=expected.changed(stored=False))


def _is_stored(state: FileState | None) -> bool:
    return state is not None and state.stored


def _unstored(steps: Iterable[UndoStep]) -> set[str]:
    states = (state for step in steps for state in (step.expected, step.target))
    return {state.oid for state in states if state is not None and not state.stored}


def _is_ready(step: UndoStep, tree: Worktree) -> bool:
    return step.unkept_content is None or tree.has_content(step.unkept_content)


def _lines_in(
    work: UndoWork, changes: Sequence[PathChange], current: Mapping[str, FileState | None]
) -> Callable[[FileState | None], frozenset[bytes]]:
    """The lines of a file that say something. What was not kept is one line of its own, and has those that
    any of the files held before: they may have been moved, or copied, into it."""
    tree = work.tree

    @cache
    def lines_in(oid: str) -> frozenset[bytes]:
        return frozenset(line for line in work.repository.read(oid).splitlines() if line.strip())

    @cache
    def lines_before() -> frozenset[bytes]:
        befores = (one.before for one in changes)
        oids = {state.oid for state in befores if state and state.stored and not state.folder}
        return frozenset[bytes]().union(*map(lines_in, oids))

    @cache
    def lines_in_unkept(oid: str) -> frozenset[bytes]:
        standing = [decode_path(path) for path, state in current.items() if state and state.oid == oid]
        places = [*map(tree.location, standing), *map(os.fsencode, tree.set_aside.find(oid))]
        found = tree.lines_among(places[0], lines_before()) if places else frozenset[bytes]()
        return found | {oid.encode()}

    def lines_of(state: FileState | None) -> frozenset[bytes]:
        if state is None or state.folder:
            return frozenset()
        return lines_in(state.oid) if state.stored else lines_in_unkept(state.oid)

    return lines_of


def rescue(
    tree: Worktree, repository: Repository, paths: Iterable[bytes], mark: str, unstored: Iterable[str]
) -> None:
    """What a crash left in the middle of an exchange: ours can go, anything else is the user's.

    `unstored` names the contents that are to be set aside.
    """
    names = list(paths)
    for leftover in tree.leftovers(names):
        found = _state_at(leftover, tree)
        if tree.is_second_name(leftover, names):
            leftover.unlink()
        elif found is not None and found.oid in unstored:
            tree.set_aside.take_in(leftover, found.changed(stored=False), _name_of(leftover))
        elif found is not None and repository.has(found.oid):
            leftover.unlink()
        else:
            _keep(leftover, repository, mark)


def _state_at(place: Path, tree: Worktree) -> FileState | None:
    try:
        return tree.state_at(place)
    except (UnreadableError, OSError):
        return None


def _name_of(staged: Path) -> str:
    """`.holdfast-staged-PID-NUMBER-NAME`"""
    return staged.name.split("-", 4)[-1]


def _keep(leftover: Path, repository: Repository, mark: str) -> None:
    kept = private_folder(repository.folder / "kept") / f"{mark}-{leftover.name.lstrip('.')}"
    try:
        leftover.rename(kept)
    except OSError as error:
        log.warning("%s was left by a crash and could not be moved: %s", leftover, error.strerror or error)
    else:
        log.warning("a file that was changed during a crash was kept as %s", kept)


def _twin(step: UndoStep, name: bytes, tree: Worktree, names_of: NamesOf) -> bytes | None:
    """A path at which the very file stands that is to stand at this one too."""
    target = step.target
    if target is None or not target.inode or not target.stored:
        return None
    others = (one for one in names_of(target.inode) if one != name)
    return next((one for one in others if same(tree.state_of(one), target)), None)


def _do(
    step: UndoStep,
    name: bytes,
    later: Iterable[UndoStep],
    tree: Worktree,
    repository: Repository,
    names_of: NamesOf,
) -> str | None:
    """One file; the reason where it was left as it is."""
    try:
        now = tree.state_of(name)
        if same(now, step.target):
            return None
        if not same(now, step.expected) and not (now and now.folder):
            return "it was changed in the meantime"
        if not _is_ready(step, tree):
            _copy_from_later(step, later, tree)
        data = repository.read(step.target.oid) if step.target and step.target.blob else b""
        tree.put(name, step.expected, step.target, data, _twin(step, name, tree, names_of))
    except ConflictError:
        return "it was changed in the meantime"
    except HoldfastError as error:
        return error.message
    except OSError as error:
        return f"it could not be written: {error.strerror or error}"
    return None


def _copy_from_later(step: UndoStep, later: Iterable[UndoStep], tree: Worktree) -> None:
    """Large files that changed places with each other: each waits for the other, so one is copied."""
    for other in later:
        if other.expected is not None and other.sets_aside == step.unkept_content:
            tree.copy_aside(decode_path(other.path), other.expected)
            return
