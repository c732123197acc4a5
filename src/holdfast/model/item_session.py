"""Sessions that walk through a list of items: an audit, an improvement run."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from holdfast.model.base import ITEM_SESSION_SCHEMA, Value
from holdfast.model.snapshot import FileFingerprint

SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")

Rating = Annotated[int, Field(ge=1, le=4)]
SessionType = Literal["audit", "improve"]


class _ItemSession(Value):
    schema_version: Literal[2] = ITEM_SESSION_SCHEMA.current
    session_id: str = Field(pattern=f"^{SESSION_ID.pattern}$")
    started_at: AwareDatetime
    current_index: int = Field(default=0, ge=0)
    file_snapshot: dict[str, FileFingerprint] = Field(default={})
    config: dict[str, Any] = Field(default={})
    completed_at: AwareDatetime | None = None


class AuditSessionState(_ItemSession):
    total_items: int = Field(ge=0)
    partial_ratings: dict[str, dict[str, Rating | None]] = Field(
        default={}, description="File, then item, to a rating of 1 to 4; null if skipped"
    )


class ImproveProgress(Value):
    accepted: int = Field(default=0, ge=0)
    skipped: int = Field(default=0, ge=0)
    errors: int = Field(default=0, ge=0)


class ImproveSessionState(_ItemSession):
    transaction_id: str
    continued_from: str | None = Field(default=None, description="The committed transaction before this one")
    plan_items: tuple[dict[str, Any], ...] = ()
    user_preferences: dict[str, Any] = Field(default={})
    progress: ImproveProgress = ImproveProgress()


ItemSessionState = AuditSessionState | ImproveSessionState

STATE_CLASSES: dict[SessionType, type[AuditSessionState] | type[ImproveSessionState]] = {
    "audit": AuditSessionState,
    "improve": ImproveSessionState,
}


def same_session(one: ItemSessionState, other: ItemSessionState) -> bool:
    """Whether both are revisions of one session, wherever they were made: id and start never change."""
    return (type(one), one.session_id, one.started_at) == (type(other), other.session_id, other.started_at)


def merged_audit(ours: AuditSessionState, theirs: AuditSessionState) -> tuple[AuditSessionState, list[str]]:
    """Ours with the ratings that only they have; and the items that both rated differently, which stay ours.

    A rating counts for the very content that was rated.
    """
    ratings = {file: dict(items) for file, items in ours.partial_ratings.items()}
    conflicts: list[str] = []
    for file, items in theirs.partial_ratings.items():
        if _content(ours, file) != _content(theirs, file):
            continue
        for item, rating in items.items():
            known = ratings.setdefault(file, {})
            if known.get(item) is None and (rating is not None or item not in known):
                known[item] = rating
            elif rating is not None and known[item] != rating:
                conflicts.append(f"{file}: {item}")
    done = sum(map(len, ratings.values()))
    ended = (ours.completed_at or theirs.completed_at) if done >= ours.total_items else ours.completed_at
    return ours.changed(partial_ratings=ratings, current_index=done, completed_at=ended), conflicts


def _content(state: AuditSessionState, file: str) -> str | None:
    found = state.file_snapshot.get(file)
    return found.hash if found else None
