"""All of one kind that a snapshot holds, as data: what `holdfast history --json` and the server tell."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.journal.archive import find_archive
from holdfast.journal.log import Reader
from holdfast.model.git import decode_path
from holdfast.project.layout import ProjectLayout
from holdfast.store.session_files import SessionFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.snapshot import SessionSnapshot
    from holdfast.store.protocol import Store


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
            return found
        newest = newest or last
    return newest


def _before(store: Store, workflow_id: str) -> SessionSnapshot | None:
    """The newest with work, where the last one is idle. However many are: it is named in the folder, so that
    not all of them are read; only where that name is lost they are."""
    lines = sorted(
        store.snapshots(workflow_id), key=lambda one: (one.created_at, one.session_number), reverse=True
    )
    name = _named_latest(store, workflow_id) if len(lines) > _LOOKED_AT else None
    named = [line for line in lines[_LOOKED_AT:] if line.session_id == name]
    for line in (*lines[1:_LOOKED_AT], *named, *lines[_LOOKED_AT:]):
        snapshot = store.snapshot(line.id)
        if snapshot.worked:
            return snapshot
    return None


def _named_latest(store: Store, workflow_id: str) -> str | None:
    """By its folder, where that is here."""
    folder = Path(os.fsdecode(decode_path(store.workflow(workflow_id).worktree)))
    return SessionFiles(ProjectLayout(folder).sessions).latest()


def archived_lines(layout: ProjectLayout, session_id: str) -> Iterator[str]:
    """The actions of a wind-down that became this session, a JSON object each."""
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
        "tasks": lambda: document["task_dag"]["tasks"] or gathered.get("todos", []),
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
