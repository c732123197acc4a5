from __future__ import annotations

import click

from holdfast.cli import common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.http import RemoteStore
    from holdfast.model.snapshot import SessionSnapshot
    from holdfast.project.settings import Settings
    from holdfast.store.sql import SqlStore

_CATEGORIES = ("decisions", "errors", "reviewer-feedback", "git-changes", "tasks", "tests", "journal")


@click.command("history")
@click.argument("snapshot")
@click.argument("category", type=click.Choice(_CATEGORIES))
@common.json_option
def command(snapshot: str, category: str, as_json: bool) -> None:
    """Show everything of one kind that a snapshot holds.

    What its context left out is here.

    \b
    Examples:
      holdfast history latest errors
      holdfast history session-20260106-120000 decisions --json
    """
    from holdfast.resume.snapshots import history
    from holdfast.sessions.contexts import history_data

    current = common.settings()
    with common.store_for(current) as store:
        found = store.snapshot(common.find_snapshot(store, current, snapshot).id)
        actions = _actions(store, current, found) if category == "journal" else []
    if as_json:
        common.print_json(history_data(found, category, actions))
        return
    text = history(found, category)
    if actions:
        text = ("" if text.startswith("No journal") else text) + "".join(f"- {line}\n" for line in actions)
    click.echo(text, nl=False)


def _actions(store: SqlStore | RemoteStore, current: Settings, found: SessionSnapshot) -> list[str]:
    """What the wind-down recorded, line by line, from where its journal is."""
    from holdfast.sessions.contexts import archived_lines
    from holdfast.store.sql import SqlStore

    if isinstance(store, SqlStore):
        return list(archived_lines(current.layout, found.session_id))
    return store.journal(found)
