"""Finding the session to go on with, and what became of its files meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast.base.clock import Clock, system_clock
from holdfast.base.errors import InvalidInputError, SessionNotFoundError
from holdfast.capture.files import FileTracker
from holdfast.model.git import decode_path
from holdfast.model.item_session import SessionType
from holdfast.model.snapshot import FileFingerprint
from holdfast.project.layout import ProjectLayout
from holdfast.store.item_sessions import SessionStateManager

PATH = "path"
"""Where a session's configuration keeps which part of the project it is about."""


def new_session_id() -> str:
    return str(uuid4())


class ItemSessions:
    """The sessions of one kind about one part of a project."""

    def __init__(self, project: Path, kind: SessionType, scope: str, *, clock: Clock = system_clock) -> None:
        self.project = project
        self.kind: SessionType = kind
        self.scope = scope
        self.clock = clock
        self.manager = SessionStateManager(project, clock=clock)

    def found(self) -> list[Any]:
        """Newest first; one that is damaged is set aside and told about."""
        return [one for one in self.manager.list_sessions(self.kind) if one.config.get(PATH) == self.scope]

    def unfinished(self) -> Any | None:
        return next((one for one in self.found() if one.completed_at is None), None)

    def latest(self) -> Any:
        """The one to resume where none is named: unfinished before completed."""
        found = self.found()
        unfinished = [one for one in found if one.completed_at is None]
        if not found:
            raise SessionNotFoundError(
                f"no {self.kind} session of {self.scope} to resume", hint=self.hint_new
            )
        return self.load((unfinished or found)[0].session_id)

    def named(self, name: str) -> Any:
        """By its id, or the beginning of it."""
        prefix = f"{self.kind}-session-"
        folder = ProjectLayout(self.project).sessions
        known = sorted(path.name[len(prefix) : -len(".json")] for path in folder.glob(f"{prefix}*.json"))
        chosen = [one for one in known if one == name] or [one for one in known if one.startswith(name)]
        if not name or not chosen:
            raise SessionNotFoundError(
                f"no such {self.kind} session: {name}", hint="`holdfast sessions list` shows them"
            )
        if len(chosen) > 1:
            raise InvalidInputError(
                f"{name} is ambiguous: it matches {len(chosen)} sessions",
                hint="give more characters of the id",
            )
        state = self.load(chosen[0])
        about = state.config.get(PATH)
        if about is not None and about != self.scope:
            raise InvalidInputError(
                f"session {name} is for {about}, not for {self.scope}",
                hint=f"`holdfast docs {self.kind} {about} --resume {name}`",
            )
        return state

    def load(self, session_id: str) -> Any:
        return self.manager.load_session_state(session_id, self.kind)

    def delete(self, name: str | None = None) -> list[str]:
        """The named one, else all of this part; ids of what is gone."""
        chosen = [self.named(name)] if name else self.found()
        for state in chosen:
            self.manager.delete_session_state(state.session_id, self.kind)
        return [state.session_id for state in chosen]

    @property
    def hint_new(self) -> str:
        return f"`holdfast docs {self.kind} {self.scope} --new` starts one"


@dataclass
class SourceDrift:
    """What happened to the files of a session since it was saved."""

    modified: list[str] = field(default_factory=list[str])
    deleted: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])
    snapshot: dict[str, FileFingerprint] = field(default_factory=dict[str, FileFingerprint])
    """The fingerprints of today."""


def fingerprints(project: Path, files: Iterable[str], *, clock: Clock) -> dict[str, FileFingerprint]:
    return FileTracker.create_snapshot(map(decode_path, files), root=project, clock=clock)  # type: ignore[arg-type]


def drift_since(
    project: Path, snapshot: Mapping[str, FileFingerprint], files: Iterable[str], *, clock: Clock
) -> SourceDrift:
    """`files` are those of today; of the old ones, what is not among them is gone for us too."""
    changes = FileTracker.compare(snapshot, root=project, clock=clock)
    today = set(files)
    modified = [path for path in (*changes.modified, *changes.unreadable) if path in today]
    deleted = [path for path in snapshot if path not in today]
    new = sorted(today - set(snapshot))
    kept = {path: one for path, one in {**snapshot, **changes.refreshed}.items() if path in today}
    return SourceDrift(
        modified, deleted, new, {**kept, **fingerprints(project, (*modified, *new), clock=clock)}
    )
