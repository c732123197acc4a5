"""What undoing comes to, file by file: pure thought, nothing is written to the tree here.

Where the file is as the change left it, it goes back to what it was. Where it moved on since, the
change alone is taken out of it, line by line; where that cannot be told apart, it is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.sidecar.manifest import FileState, PathChange, same

Merge = Callable[[FileState, FileState, FileState], FileState | None]
"""Ours, base, theirs to the merged file; None where they touch the same lines or are no text."""


@dataclass(frozen=True)
class Step:
    path: str
    expected: FileState | None
    target: FileState | None


@dataclass
class Plan:
    steps: list[Step] = field(default_factory=list[Step])
    conflicts: dict[str, str] = field(default_factory=dict[str, str])
    """Path to the reason why it cannot be done there without loss."""


def plan_undo(changes: Iterable[PathChange], current: Mapping[str, FileState | None], merge: Merge) -> Plan:
    """`changes` the newest first. A path with a conflict is left out as a whole."""
    plan = Plan()
    wanted: dict[str, FileState | None] = {}
    for change in changes:
        path = change.path
        if path in plan.conflicts:
            continue
        outcome = _without(
            change, wanted.get(path, current[path]) if path in wanted else current[path], merge
        )
        if isinstance(outcome, str):
            plan.conflicts[path] = outcome
            wanted.pop(path, None)
        else:
            wanted[path] = outcome[0]
    for path, target in wanted.items():
        if target is not None and not target.stored and not same(target, current[path]):
            plan.conflicts[path] = "it was too large to be kept"
        elif not same(target, current[path]):
            plan.steps.append(Step(path, current[path], target))
    return plan


def held_back(
    steps: Iterable[Step],
    changes: Iterable[PathChange],
    left: Iterable[str],
    current: Mapping[str, FileState | None],
    lines_of: Callable[[FileState | None], frozenset[bytes]],
) -> dict[str, str]:
    """Steps that would remove what a file in `left` had before, and will not get back: path to reason.

    A session that renames a file, or moves lines into another one, makes two changes of one: where
    the one stays, so must the other, or the lines are in neither.
    """
    before: dict[str, set[bytes]] = {}
    for change in changes:
        before.setdefault(change.path, set()).update(lines_of(change.before))
    held: dict[str, str] = {}
    waiting, remaining = list(left), list(steps)
    while waiting:
        path = waiting.pop()
        missing = before[path] - lines_of(current[path])
        for step in list(remaining):
            if missing & (lines_of(step.expected) - lines_of(step.target)):
                held[step.path] = f"it holds what was in {path}, which is left as it is"
                remaining.remove(step)
                waiting.append(step.path)
    return held


Outcome = tuple[FileState | None]


def _without(change: PathChange, now: FileState | None, merge: Merge) -> Outcome | str:
    before, after = change.before, change.after
    if same(now, after):
        return (before,)
    if same(now, before):
        return (now,)
    if now is None:
        return "it was deleted since"
    if after is None:
        return "another file was made there since"
    if before is None:
        return "it was changed since it was made"
    return _merged(before, after, now, merge)


def _merged(before: FileState, after: FileState, now: FileState, merge: Merge) -> Outcome | str:
    permissions = before.permissions if now.permissions == after.permissions else now.permissions
    if now.link or before.link or after.link:
        if same(now, after.changed(permissions=now.permissions)):
            return (before.changed(permissions=permissions),)
        return "it was changed since, and is or was a link"
    if now.oid == after.oid:
        return (before.changed(permissions=permissions),)
    if before.oid in (now.oid, after.oid):
        return (now.changed(permissions=permissions),)
    if not (now.stored and before.stored and after.stored):
        return "it was changed since and was too large to be kept"
    merged = merge(now, after, before)
    if merged is None:
        return "it was changed since in the same places"
    return (merged.changed(permissions=permissions),)
