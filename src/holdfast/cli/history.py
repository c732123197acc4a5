from __future__ import annotations

import click

from holdfast.cli import common

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
    from holdfast.retrieval import archived_lines, history_data

    current = common.settings()
    with common.store_for(current) as store:
        found = store.snapshot(common.find_snapshot(store, current, snapshot).id)
    if as_json:
        common.print_json(history_data(found, category, current.layout))
        return
    text = history(found, category)
    if category == "journal" and (actions := list(archived_lines(current.layout, found.session_id))):
        text = ("" if text.startswith("No journal") else text) + "".join(f"- {line}\n" for line in actions)
    click.echo(text, nl=False)
