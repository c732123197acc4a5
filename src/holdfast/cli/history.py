from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from holdfast.cli import common
from holdfast.config import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.snapshot import SessionSnapshot

_CATEGORIES = ("decisions", "errors", "reviewer-feedback", "git-changes", "tasks", "tests", "journal")


@click.command("history")
@click.argument("snapshot")
@click.argument("category", type=click.Choice(_CATEGORIES))
@common.json_option
def command(snapshot: str, category: str, as_json: bool) -> None:
    """Everything of one kind that a snapshot holds.

    What its context left out is here.

    \b
    Examples:
      holdfast history latest errors
      holdfast history session-20260106-120000 decisions --json
    """
    from holdfast.resume.history import history

    current = common.settings()
    with common.store_for(current) as store:
        found = store.snapshot(common.find_snapshot(store, current, snapshot).id)
    if as_json:
        common.print_json(_as_data(found, category, current))
        return
    text = history(found, category)
    if category == "journal" and (actions := list(_archived(current, found.session_id))):
        text = ("" if text.startswith("No journal") else text) + "".join(f"- {line}\n" for line in actions)
    click.echo(text, nl=False)


def _archived(current: Settings, session_id: str) -> Iterator[str]:
    from holdfast.journal.archive import find_archive
    from holdfast.journal.log import Reader

    path = find_archive(current.layout.sessions, session_id)
    if path is not None:
        yield from (action.to_json_line() for action in Reader(path))


def _as_data(found: SessionSnapshot, category: str, current: Settings) -> object:
    import json

    document: dict[str, Any] = found.model_dump(mode="json")
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
            "actions": [json.loads(line) for line in _archived(current, found.session_id)],
            **_part(gathered, "turns"),
            **_part(gathered, "commands"),
        },
    }
    return views[category]()


def _part(gathered: dict[str, object], name: str) -> dict[str, object]:
    return {name: gathered[name]} if name in gathered else {}
