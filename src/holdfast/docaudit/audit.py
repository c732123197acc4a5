"""An audit rates every item from 1 to 4, or skips it; the ranking says what to improve first."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from holdfast.base.clock import to_datetime
from holdfast.base.text import Progress, untold
from holdfast.docaudit.items import CodeItem
from holdfast.docaudit.languages import ItemKind
from holdfast.docaudit.search import Analysis, analyse_files, find_files
from holdfast.docaudit.sessions import (
    PATH,
    ItemSessions,
    drift_since,
    fingerprints,
    new_session_id,
)
from holdfast.model.base import Value
from holdfast.model.item_session import AuditSessionState

# ── ranking ───────────────────────────────────────────────────────────────────────────────────────

_NEED_BY_RATING = {1: 0.9, 2: 0.6, 3: 0.25, 4: 0.0}
_WORDS = {1: "rated 1: missing or misleading", 2: "rated 2: weak", 3: "rated 3: good, could be better"}

AuditOutcome = Literal["accepted", "skipped"]


class Pending(Value):
    """A write about to happen: what the file held and will hold, as SHA-256."""

    before: str
    after: str


class PlanItem(Value):
    """An item to improve and, once its turn has come, what became of it."""

    filepath: str
    name: str
    kind: ItemKind
    language: str
    line: int
    score: float
    reason: str
    documented: str | None = Field(default=None, description="SHA-256 of what it had when it was planned")
    proposal: str | None = None
    withheld: bool = Field(default=False, description="The proposal contained a secret, so it is not stored")
    pending: Pending | None = None
    outcome: AuditOutcome | None = None
    change_id: str | None = Field(default=None, description="Id of the side-car change that wrote it")
    step: int = Field(default=0, ge=0, description="Sequence number of the decision")


def rank(items: Iterable[CodeItem], ratings: Mapping[str, Mapping[str, int | None]]) -> list[PlanItem]:
    """Worst and most important first. What is documented and not rated is left out."""
    planned: list[PlanItem] = []
    for item in items:
        rating = ratings.get(item.filepath, {}).get(item.name)
        need, reason = _need(item, rating)
        if need > 0:
            planned.append(
                PlanItem(
                    filepath=item.filepath,
                    name=item.name,
                    kind=item.kind,
                    language=item.language,
                    line=item.line,
                    score=round(100 * need * _weight(item), 1),
                    reason=f"{reason}; {_size(item)}",
                    documented=text_hash(item.documentation),
                )
            )
    return sorted(planned, key=lambda one: (-one.score, one.filepath, one.line))


def text_hash(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _need(item: CodeItem, rating: int | None) -> tuple[float, str]:
    if rating is not None:
        return _NEED_BY_RATING[rating], _WORDS.get(rating, "")
    return (1.0, "undocumented") if item.documentation is None else (0.0, "")


def _weight(item: CodeItem) -> float:
    """From 0 to 1: branches and length, each counting less the more there are; public things count more."""
    complexity = min(1.0, math.log1p(item.branches) / math.log1p(20))
    length = min(1.0, math.log1p(item.lines) / math.log1p(200))
    inner = 0.35 if not item.public else 0.6 if item.name.rpartition(".")[2].startswith("__") else 1.0
    return (0.3 + 0.4 * complexity + 0.3 * length) * inner


def _size(item: CodeItem) -> str:
    told = [] if item.public else ["private"]
    told.append(f"{item.lines} line{'s' if item.lines != 1 else ''}")
    if item.branches:
        told.append(f"{item.branches} branch{'es' if item.branches != 1 else ''}")
    return ", ".join(told)


# ── the audit ─────────────────────────────────────────────────────────────────────────────────────

RATINGS = {1: "missing or misleading", 2: "weak", 3: "good", 4: "excellent"}

Ratings = dict[str, dict[str, int | None]]
"""File, then item, in the order of rating: who is rated anew goes to the end, and so does its file."""


@dataclass(frozen=True)
class AuditSummary:
    rated: int
    skipped: int
    total: int
    documented: int
    average: float | None


class Audit:
    """The items as they are today, and the session's ratings of them. Where one stands is derived."""

    def __init__(self, sessions: ItemSessions, state: AuditSessionState, analysis: Analysis) -> None:
        self.sessions = sessions
        self.state = state
        self.analysis = analysis

    @classmethod
    def start(cls, sessions: ItemSessions, config: dict[str, Any], progress: Progress = untold) -> Audit:
        files = find_files(sessions.project, sessions.scope)
        # Before they are read: a file changed in between is then one that changed.
        snapshot = fingerprints(sessions.project, files, clock=sessions.clock)
        analysis = analyse_files(sessions.project, files, progress=progress)
        state = AuditSessionState(
            session_id=new_session_id(),
            started_at=sessions.manager.starting_time(),
            total_items=len(analysis.items),
            file_snapshot=snapshot,
            config={**config, PATH: sessions.scope},
        )
        audit = cls(sessions, state, analysis)
        if analysis.items:
            audit._save(state)
        return audit

    @classmethod
    def resume(
        cls, sessions: ItemSessions, state: AuditSessionState, progress: Progress = untold
    ) -> tuple[Audit, list[str]]:
        """The session with the files of today, and what there is to tell about those."""
        files = find_files(sessions.project, sessions.scope)
        drift = drift_since(sessions.project, state.file_snapshot, files, clock=sessions.clock)
        analysis = analyse_files(sessions.project, files, progress=progress)
        names = {(item.filepath, item.name) for item in analysis.items}
        gone = {*drift.modified, *drift.deleted}
        kept: Ratings = {
            path: here
            for path, rated in state.partial_ratings.items()
            if path not in gone
            and (here := {name: value for name, value in rated.items() if (path, name) in names})
        }
        lost = _count(state.partial_ratings) - _count(kept)
        notices = _notices(drift.modified, drift.deleted, drift.new, lost)
        today = state.changed(partial_ratings=kept, file_snapshot=drift.snapshot)
        audit = cls(sessions, today, analysis)
        if notices:  # fresher stamps alone can wait: who only looks around is in nobody's way
            audit._save(today)
        return audit, notices

    @property
    def items(self) -> list[CodeItem]:
        return self.analysis.items

    def is_rated(self, item: CodeItem) -> bool:
        return item.name in self.state.partial_ratings.get(item.filepath, {})

    @property
    def current(self) -> CodeItem | None:
        """The first item without an entry."""
        return next((item for item in self.items if not self.is_rated(item)), None)

    @property
    def done(self) -> int:
        return sum(self.is_rated(item) for item in self.items)

    def rate(self, item: CodeItem, rating: int | None) -> None:
        """None skips it."""
        ratings = _without(self.state.partial_ratings, item.filepath, item.name)
        file = {**ratings.pop(item.filepath, {}), item.name: rating}
        self._save(self.state.changed(partial_ratings={**ratings, item.filepath: file}))

    def undo(self) -> CodeItem | None:
        """Take the last rating back; the item that had it."""
        ratings = self.state.partial_ratings
        if not ratings:
            return None
        filepath = list(ratings)[-1]
        name = list(ratings[filepath])[-1]
        self._save(self.state.changed(partial_ratings=_without(ratings, filepath, name)))
        return next(item for item in self.items if (item.filepath, item.name) == (filepath, name))

    def configure(self, **config: Any) -> None:
        self._save(self.state.changed(config={**self.state.config, **config}))

    def summary(self) -> AuditSummary:
        return summarise(self.items, self.state.partial_ratings)

    def _save(self, state: AuditSessionState) -> None:
        before = self.state
        self.state = state
        done, total = self.done, len(self.items)
        completed = (state.completed_at or to_datetime(self.sessions.clock())) if done == total else None
        self.state = state.changed(current_index=done, total_items=total, completed_at=completed)
        try:
            self.sessions.manager.save_session_state(self.state, "audit")
        except BaseException:
            self.state = before  # what is not on the disk did not happen
            raise


def summarise(items: Sequence[CodeItem], ratings: Ratings) -> AuditSummary:
    values = [
        ratings[item.filepath][item.name] for item in items if item.name in ratings.get(item.filepath, {})
    ]
    given = [value for value in values if value is not None]
    return AuditSummary(
        rated=len(given),
        skipped=len(values) - len(given),
        total=len(items),
        documented=sum(item.documentation is not None for item in items),
        average=sum(given) / len(given) if given else None,
    )


def ratings_of(sessions: ItemSessions, state: AuditSessionState) -> Ratings:
    """Those that still hold: of files that are what they were."""
    drift = drift_since(sessions.project, state.file_snapshot, state.file_snapshot, clock=sessions.clock)
    return {path: rated for path, rated in state.partial_ratings.items() if path not in drift.modified}


def _count(ratings: Ratings) -> int:
    return sum(map(len, ratings.values()))


def _without(ratings: Ratings, filepath: str, name: str) -> Ratings:
    left = {one: value for one, value in ratings.get(filepath, {}).items() if one != name}
    return {
        path: left if path == filepath else rated
        for path, rated in ratings.items()
        if path != filepath or left
    }


def _notices(modified: list[str], deleted: list[str], new: list[str], lost: int) -> list[str]:
    told: list[str] = []
    if modified:
        told.append(f"{_files(modified)} changed since and {_was(modified)} analysed again")
    if deleted:
        told.append(f"{_files(deleted)} {_was(deleted)} deleted or excluded, and dropped")
    if new:
        told.append(f"{_files(new)} {_was(new)} added")
    if lost:
        told.append(f"{lost} rating{'s' if lost > 1 else ''} no longer valid; rate again")
    return told


def _files(paths: list[str]) -> str:
    named = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
    return f"{len(paths)} file{'s' if len(paths) > 1 else ''} ({named})"


def _was(paths: list[str]) -> str:
    return "were" if len(paths) > 1 else "was"
