"""All of one kind that a snapshot holds, as data: what `holdfast history --json` and the server tell."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from holdfast.journal.archive import find_archive
from holdfast.journal.log import Reader
from holdfast.layout import ProjectLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.snapshot import SessionSnapshot
    from holdfast.store.protocol import Store


_FURTHEST_BACK = 50


def newest_with_work(store: Store, workflow_ids: Iterable[str]) -> SessionSnapshot | None:
    """The snapshot to go on from: of the first workflow that has one, the newest of a session that did
    something; where none did, the newest. A session that did nothing hides no other."""
    newest: SessionSnapshot | None = None
    looks = 0
    for workflow_id in workflow_ids:
        lines = store.snapshots(workflow_id)
        for line in sorted(lines, key=lambda one: (one.created_at, one.session_number), reverse=True):
            snapshot = store.snapshot(line.id)
            newest = newest or snapshot
            looks += 1
            if snapshot.worked:
                return snapshot
            if looks >= _FURTHEST_BACK:
                return newest
    return newest


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
