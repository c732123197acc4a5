"""What undoing comes to, file by file: pure thought, nothing is written to the tree here.

Where the file is as the change left it, it goes back to what it was. Where it moved on since, the
change alone is taken out of it, line by line; where that cannot be told apart, it is a conflict. Where
a content is needed that was not kept, that file alone is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise

from holdfast.base.text import counted, shown_path
from holdfast.undo.state import FileState, PathChange, same

Merge = Callable[[FileState, FileState, FileState], FileState | None]
"""Ours, base, theirs to the merged file; None where they touch the same lines or are no text."""


NOT_KEPT = "its earlier content was too large to store; restore it from git or a backup if possible"


@dataclass(frozen=True)
class UndoStep:
    path: str
    expected: FileState | None
    target: FileState | None

    @property
    def unkept_content(self) -> str | None:
        """The content to put there, where that is not stored and has to come from a file set aside."""
        target = self.target
        return None if target is None or target.stored or target.same_content(self.expected) else target.oid

    @property
    def sets_aside(self) -> str | None:
        """The content that leaves the tree with this and is not stored."""
        expected = self.expected
        if expected is None or expected.stored or expected.same_content(self.target):
            return None
        return expected.oid


@dataclass
class UndoPlan:
    steps: list[UndoStep] = field(default_factory=list[UndoStep])
    conflicts: dict[str, str] = field(default_factory=dict[str, str])
    """Path to the reason why it cannot be done there without loss; a reason to do nothing at all."""
    refused: dict[str, str] = field(default_factory=dict[str, str])
    """The same, where it is about that file alone: a content was not kept, or went with one that was not."""

    def refuse(self, reasons: Mapping[str, str]) -> None:
        self.refused |= reasons
        self.steps = [step for step in self.steps if step.path not in reasons]

    def refuse_one(self, path: str, reason: str, *states: FileState | None) -> None:
        kept = all(state is None or state.stored for state in states)
        (self.conflicts if kept else self.refused)[path] = reason


def plan_undo(
    changes: Iterable[PathChange], current: Mapping[str, FileState | None], merge: Merge
) -> UndoPlan:
    """`changes` the newest first. A path with a conflict is left out as a whole."""
    plan = UndoPlan()
    wanted: dict[str, FileState | None] = {}
    for change in changes:
        path = change.path
        if path in plan.conflicts or path in plan.refused:
            continue
        now = wanted.get(path, current[path]) if path in wanted else current[path]
        outcome = _without(change, now, merge)
        if isinstance(outcome, str):
            plan.refuse_one(path, outcome, now, change.before, change.after)
            wanted.pop(path, None)
        else:
            wanted[path] = outcome[0]
    for path, target in wanted.items():
        if not same(target, current[path]):
            plan.steps.append(UndoStep(path, current[path], target))
    return plan


def without_content(steps: Iterable[UndoStep], set_aside: Callable[[str], int]) -> dict[str, str]:
    """Steps whose content is neither stored nor set aside, nor will be by another step: path to reason."""
    remaining, refused = list(steps), dict[str, str]()
    while True:
        there = Counter(oid for step in remaining if (oid := step.sets_aside))
        there.update({oid: set_aside(oid) for step in remaining if (oid := step.unkept_content)})
        lacking: list[UndoStep] = []
        for step in remaining:
            if oid := step.unkept_content:
                there[oid] -= 1
                lacking += [step] if there[oid] < 0 else []
        if not lacking:
            return refused
        refused |= dict.fromkeys((step.path for step in lacking), NOT_KEPT)
        remaining = [step for step in remaining if step not in lacking]


def held_back(
    steps: Iterable[UndoStep],
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
                held[step.path] = f"it contains what was in {shown_path(path)}, which is left unchanged"
                remaining.remove(step)
                waiting.append(step.path)
    return held


@dataclass(frozen=True)
class Hunk:
    """A piece of a change that can be undone on its own: some lines, or the whole file if it has none."""

    number: int
    change: PathChange
    lines: tuple[str, ...]
    """Of a unified diff, its heading first; none where it is the whole file."""

    @property
    def spans(self) -> tuple[slice, slice]:
        """Which lines before, and which after."""
        found = re.match(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", self.lines[0])
        numbers = [1 if one is None else int(one) for one in found.groups()] if found else [0, 0, 0, 0]
        return _span(*numbers[:2]), _span(*numbers[2:])


def _span(start: int, count: int) -> slice:
    first = start - 1 if count else start
    return slice(first, first + count)


def hunks_of(
    changes: Iterable[PathChange], difference: Callable[[PathChange], Sequence[str] | None]
) -> list[Hunk]:
    """Numbered from 1, in the order in which a diff shows them."""
    found: list[Hunk] = []
    for change in changes:
        lines = list(difference(change) or ())
        starts = [number for number, line in enumerate(lines) if line.startswith("@@")]
        for start, end in pairwise([*starts, len(lines)] if starts else [0, 0]):
            found.append(Hunk(len(found) + 1, change, tuple(lines[start:end])))
    return found


def without_hunks(before: bytes, after: bytes, hunks: Iterable[Hunk]) -> bytes:
    """The content after a change, with these of its hunks as they were before."""
    old, new = (content.split(b"\n") for content in (before, after))
    old, new = ([*(line + b"\n" for line in one[:-1]), one[-1]] for one in (old, new))
    for hunk in sorted(hunks, key=lambda one: one.number, reverse=True):
        was, is_now = hunk.spans
        new[is_now] = old[was]
    return b"".join(new)


_MOST_PAIRS = 1_000_000
"""Of lines that are compared with each other: some tenths of a second where all are the same."""

Version = tuple[str | None, bytes, bytes]
"""Who changed a file, if it is to be known, and its content before and after."""


class _TooManyLinesError(Exception):
    """To compare them would take too long."""


def touched_by(versions: Sequence[Version], before: bytes, after: bytes) -> set[str | None]:
    """Whose lines a change takes away, or brings back: as `git blame` tells, also of lines that are gone.

    None is among them where somebody else had a hand in it, or nobody can tell.
    """
    try:
        return _touched_by(versions, before, after)
    except _TooManyLinesError:
        return {None}


def _touched_by(versions: Sequence[Version], before: bytes, after: bytes) -> set[str | None]:
    lines, owners = list[bytes](), list[str | None]()
    gaps: list[set[str | None]] = [set()]
    """Who removed lines there, before each line and at the end."""
    for who, old, new in (*versions, (None, before, before)):
        for owner, content in ((None, old), (who, new)):
            following = content.splitlines(keepends=True)
            if following != lines:
                owners, gaps = _carried(lines, following, owners, gaps, owner)
                lines = following
    found: set[str | None] = set()
    for tag, start, end, _, _ in _differences(lines, after.splitlines(keepends=True)):
        if tag == "insert":
            found |= gaps[start] or {None}
        elif tag != "equal":
            found.update(owners[start:end])
    return found or {None}


def _carried(
    lines: Sequence[bytes],
    following: Sequence[bytes],
    owners: Sequence[str | None],
    gaps: Sequence[set[str | None]],
    owner: str | None,
) -> tuple[list[str | None], list[set[str | None]]]:
    """The owners of lines and gaps, after one more change."""
    next_owners: list[str | None] = []
    next_gaps: list[set[str | None]] = [set() for _ in range(len(following) + 1)]
    for tag, start, end, to_start, to_end in _differences(lines, following):
        if tag == "equal":
            next_owners += owners[start:end]
            for step in range(end - start):
                next_gaps[to_start + step] |= gaps[start + step]
        else:
            next_owners += [owner] * (to_end - to_start)
            if end > start:
                next_gaps[to_end].update({owner}, *gaps[start:end])
    next_gaps[-1] |= gaps[-1]
    return next_owners, next_gaps


def _differences(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[str, int, int, int, int]]:
    """Compared is only what stands between the lines that both begin, and both end with."""
    most = min(len(old), len(new))
    head = next((number for number in range(most) if old[number] != new[number]), most)
    rest = most - head
    tail = next((number for number in range(rest) if old[-1 - number] != new[-1 - number]), rest)
    some, others = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(some) * len(others) > _MOST_PAIRS:
        raise _TooManyLinesError
    found = [("equal", 0, head, 0, head)] if head else []
    for tag, *places in SequenceMatcher(None, some, others, autojunk=False).get_opcodes():
        start, end, to_start, to_end = (place + head for place in places)
        found.append((tag, start, end, to_start, to_end))
    ends = len(old) - tail, len(old), len(new) - tail, len(new)
    return [*found, ("equal", *ends)] if tail else found


StepOutcome = tuple[FileState | None]


def _without(change: PathChange, now: FileState | None, merge: Merge) -> StepOutcome | str:
    before, after = change.before, change.after
    if same(now, after):
        return (_dressed(before, after, now),)
    if same(now, before) or change.path.endswith("/"):
        return (now,)
    if now is None:
        return "it has since been deleted"
    if after is None:
        return "another file has since been created there"
    if before is None:
        return "it was changed after it was created"
    return _merged(before, after, now, merge)


def _dressed(before: FileState | None, after: FileState | None, now: FileState | None) -> FileState | None:
    """As it was, with the owner and extended attributes that it was given since the change."""
    if before is None or after is None or now is None:
        return before
    changed = {
        name: getattr(now, name)
        for name in ("owner", "attributes")
        if getattr(now, name) != getattr(after, name)
    }
    return before.changed(**changed) if changed else before


def _merged(before: FileState, after: FileState, now: FileState, merge: Merge) -> StepOutcome | str:
    permissions = before.permissions if now.permissions == after.permissions else now.permissions
    if now.link or before.link or after.link:
        if same(now, after.changed(permissions=now.permissions)):
            return (before.changed(permissions=permissions),)
        return "it has since been changed, and is or was a link"
    if now.oid == after.oid:
        return (_dressed(before.changed(permissions=permissions), after, now),)
    if before.oid in (now.oid, after.oid):
        return (now.changed(permissions=permissions),)
    if not (now.stored and before.stored and after.stored):
        return "it has since been changed, and was too large to store"
    merged = merge(now, after, before)
    if merged is None:
        return "it has since been changed in the same places"
    return (merged.changed(permissions=permissions),)


# ── how it is told ────────────────────────────────────────────────────────────────────────────────


def with_folders(files: Collection[str] | None, touched: Collection[str]) -> Collection[str]:
    """All if none are named; else these, and the folders around them that came or went with them."""
    if files is None:
        return touched
    around = (one for one in touched if one.endswith("/") and any(file.startswith(one) for file in files))
    return {*files, *around}


def way_around(others: int) -> str:
    if not others:
        return "`holdfast tx diff` shows what to take out by hand"
    return f"add --partial to undo the other {counted(others, 'file')} and skip what cannot be undone"


def told_reasons(reasons: Mapping[str, str], most: int = 3) -> str:
    lines = [f"{shown_path(path)} ({reason})" for path, reason in list(reasons.items())[:most]]
    return ", ".join(lines) + (f" and {len(reasons) - most} more" if len(reasons) > most else "")
