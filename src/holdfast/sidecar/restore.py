"""Taking changes back in the user's tree: planned whole, noted, done file by file, then recorded.

The note is written before the first file is touched, so that whoever comes after a crash can end it:
a file that is as expected is still to be done, one that is as wanted is done, any other was changed
by somebody meanwhile and stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from holdfast.clock import Clock
from holdfast.durable import private_folder
from holdfast.errors import ConflictError, HoldfastError
from holdfast.faults import fault_point
from holdfast.model.git import decode_path
from holdfast.sidecar.git import merge_texts
from holdfast.sidecar.manifest import Entry, FileState, PathChange, Status, same
from holdfast.sidecar.plan import Step, held_back, plan_undo
from holdfast.sidecar.repository import Repository
from holdfast.sidecar.state import Known, State
from holdfast.sidecar.worktree import Worktree

if TYPE_CHECKING:
    from holdfast.sidecar.work import Work

log = logging.getLogger("holdfast.sidecar")

_NOTE = "restoring"


@dataclass
class Restoring:
    entry: Entry
    """As it would be if all went well, without its changes."""
    steps: list[Step]
    subjects: dict[str, list[str]]
    """The entries to take back, each with its paths."""
    status_before: Status
    partial: bool
    left: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def planned(
        cls,
        work: Work,
        entry: Entry,
        subjects: Sequence[Entry],
        unsure: Mapping[str, str],
        *,
        status_before: Status,
        partial: bool,
    ) -> Restoring:
        """`subjects` the newest first; files in `unsure` are left alone."""
        changes = [change for one in subjects for change in reversed(one.changes)]
        wanted = [change for change in changes if change.path not in unsure]
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
        leaving = {names[step.path] for step in plan.steps if step.target is None}
        for step in list(plan.steps):
            reason = work.tree.refusal(names[step.path], leaving)
            if reason:
                plan.conflicts[step.path] = reason
                plan.steps.remove(step)
        left = {**unsure, **plan.conflicts}
        if left:
            left |= held_back(plan.steps, changes, left, current, _lines_in(work.repository))
            plan.steps = [step for step in plan.steps if step.path not in left]
        # Removals first: a file may have to make room for a folder of its name, and the other way round.
        steps = sorted(plan.steps, key=lambda step: (step.target is not None, step.path))
        named = {one.id: [change.path for change in one.changes] for one in subjects}
        return cls(entry, steps, named, status_before, partial, left)

    @classmethod
    def unfinished(cls, state: State) -> Restoring | None:
        document: Any = state.note(_NOTE)
        if document is None:
            return None
        return cls(
            Entry.model_validate(document["entry"]),
            [
                Step(step["path"], _state(step["expected"]), _state(step["target"]))
                for step in document["steps"]
            ],
            document["subjects"],
            document["status_before"],
            document["partial"],
            document["left"],
        )

    def note(self, state: State) -> None:
        steps = [
            {
                "path": step.path,
                "expected": step.expected and step.expected.model_dump(mode="json"),
                "target": step.target and step.target.model_dump(mode="json"),
            }
            for step in self.steps
        ]
        document = {
            "entry": self.entry.model_dump(mode="json"),
            "steps": steps,
            "subjects": self.subjects,
            "status_before": self.status_before,
            "partial": self.partial,
            "left": self.left,
        }
        state.put_note(_NOTE, document)

    def forget(self, state: State) -> None:
        state.put_note(_NOTE, None)

    def carry_out(
        self, tree: Worktree, repository: Repository, clock: Clock
    ) -> tuple[Entry, dict[bytes, Known | None]]:
        """Returns the entry with what was done, and the files as they are known from now on."""
        rescue(tree, repository, (decode_path(step.path) for step in self.steps), self.entry.id)
        files: dict[bytes, Known | None] = {}
        done: list[PathChange] = []
        for step in self.steps:
            name = decode_path(step.path)
            reason = _do(step, name, tree, repository)
            if reason is not None:
                self.left[step.path] = reason
                continue
            files[name] = tree.look(name, None, clock(), lambda _: True)
            done.append(PathChange(path=step.path, before=step.expected, after=step.target))
            fault_point("sidecar.step")
        return self._entry_of(done), files

    def _entry_of(self, done: Sequence[PathChange]) -> Entry:
        """What was left, at least in part, is not undone and can be tried again."""
        whole = [
            name for name, paths in self.subjects.items() if not any(path in self.left for path in paths)
        ]
        return self.entry.changed(
            changes=tuple(done),
            left=tuple(self.left),
            undoes=tuple(whole),
            status=self.entry.status if self.partial or not self.left else self.status_before,
        )


def _lines_in(repository: Repository) -> Callable[[FileState | None], frozenset[bytes]]:
    """The lines of a file that say something; what was not kept is one line of its own."""

    @cache
    def lines_in(oid: str) -> frozenset[bytes]:
        return frozenset(line for line in repository.read(oid).splitlines() if line.strip())

    def lines_of(state: FileState | None) -> frozenset[bytes]:
        if state is None:
            return frozenset()
        return lines_in(state.oid) if state.stored else frozenset([state.oid.encode()])

    return lines_of


def rescue(tree: Worktree, repository: Repository, paths: Iterable[bytes], mark: str) -> None:
    """What a crash left in the middle of an exchange: ours can go, anything else is the user's."""
    for leftover in tree.leftovers(paths):
        found = tree.state_at(leftover)
        if found is None or repository.has(found.oid):
            leftover.unlink()
            continue
        kept = private_folder(repository.folder / "kept") / f"{mark}-{leftover.name.lstrip('.')}"
        leftover.rename(kept)
        log.warning("a file that somebody changed during a crash was kept as %s", kept)


def _do(step: Step, name: bytes, tree: Worktree, repository: Repository) -> str | None:
    """One file; the reason where it was left as it is."""
    try:
        now = tree.state_of(name)
        if same(now, step.target):
            return None
        if not same(now, step.expected):
            return "it was changed meanwhile"
        data = repository.read(step.target.oid) if step.target else b""
        tree.put(name, step.expected, step.target, data)
    except ConflictError:
        return "it was changed meanwhile"
    except HoldfastError as error:
        return error.message
    except OSError as error:
        return f"it could not be written: {error.strerror or error}"
    return None


def _state(document: Any) -> FileState | None:
    return None if document is None else FileState.model_validate(document)
