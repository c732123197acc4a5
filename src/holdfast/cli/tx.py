from __future__ import annotations

from typing import Any

import click

from holdfast.cli import common
from holdfast.errors import InvalidInputError, NotFoundError
from holdfast.sidecar.ledger import Transaction
from holdfast.sidecar.manifest import Entry, PathChange
from holdfast.sidecar.transactions import Outcome, SideCar


@click.group("tx")
def command() -> None:
    """What sessions changed in your files, and taking it back.

    A transaction is one session's changes. ID is its id, the beginning of one, or `last`.

    \b
    Examples:
      holdfast tx list
      holdfast tx show last
      holdfast tx undo last
      holdfast tx rollback last
    """


@command.command("list")
@common.json_option
def list_transactions(as_json: bool) -> None:
    """List transactions, the most recently changed first."""
    with _sidecar() as sidecar:
        found = sidecar.transactions()
    if as_json:
        common.print_json([_summary(one) for one in found])
        return
    if not found:
        click.echo("No session has changed files here yet.")
        return
    common.print_table(
        ("TRANSACTION", "SESSION", "STATUS", "CHANGES", "FILES", "UPDATED (UTC)"),
        [
            (
                one.id,
                one.session_id,
                one.status,
                len(one.changes),
                len(_paths(one)),
                f"{one.updated:%Y-%m-%d %H:%M:%S}",
            )
            for one in found
        ],
    )


@command.command()
@click.argument("name", metavar="[ID|last]", default="last")
@common.json_option
def show(name: str, as_json: bool) -> None:
    """Show a transaction's changes, oldest first."""
    with _sidecar() as sidecar:
        found = _find(sidecar, name)
    if as_json:
        common.print_json(
            {**_summary(found), "entries": [one.model_dump(mode="json") for one in found.entries]}
        )
        return
    click.echo(f"{found.id}  {found.status}  session {found.session_id}")
    for entry in found.entries:
        _print_entry(entry, stands=entry.id in found.standing)


@command.command()
@click.argument("name", metavar="[ID|last]", default="last")
@click.option("--doubtful", is_flag=True, help="Even where whose change it was cannot be told.")
@common.json_option
def undo(name: str, doubtful: bool, as_json: bool) -> int:
    """Take one change back: the change ID, or the last one of a transaction.

    Files that moved on since keep what was added to them. Where that cannot be told apart, nothing is
    changed. An undo is a change itself and can be undone.
    """
    with _sidecar() as sidecar:
        outcome = sidecar.undo(_find_change(sidecar, name), doubtful=doubtful)
    return _report(outcome, "Undone", as_json)


@command.command()
@click.argument("name", metavar="[ID|last]", default="last")
@click.option("--partial", is_flag=True, help="Leave alone what cannot be taken back without loss.")
@click.option("--doubtful", is_flag=True, help="Even where whose change it was cannot be told.")
@common.yes_option
@common.json_option
def rollback(name: str, partial: bool, doubtful: bool, yes: bool, as_json: bool) -> int:
    """Take all changes of a transaction back."""
    with _sidecar() as sidecar:
        found = _find(sidecar, name)
        if not yes and common.is_interactive():
            question = f"Take back {len(found.changes)} changes in {len(_paths(found))} files?"
            click.confirm(question, abort=True, err=True)
        outcome = sidecar.rollback(found.id, partial=partial, doubtful=doubtful)
    return _report(outcome, "Rolled back", as_json)


def _sidecar() -> SideCar:
    return SideCar(common.settings().project)


def _find(sidecar: SideCar, name: str) -> Transaction:
    found = sidecar.transactions()
    if name == "last":
        if not found:
            raise NotFoundError("no session has changed files here yet", hint="`holdfast tx list`")
        return found[0]
    exact = [one for one in found if one.id == name]
    chosen = exact or [one for one in found if name and one.id.startswith(name)]
    if len(chosen) > 1:
        raise InvalidInputError(
            f"{name} could be any of {len(chosen)} transactions", hint="give more of its id"
        )
    return chosen[0] if chosen else sidecar.transaction(name)


def _find_change(sidecar: SideCar, name: str) -> str:
    """A change by its id; else the last one that stands in the transaction of that name."""
    if name != "last":
        ids = [entry.id for one in sidecar.transactions() for entry in one.entries]
        if name in ids:
            return name
        near = [one for one in ids if name.startswith("ch_") and one.startswith(name)]
        if len(near) == 1:
            return near[0]
    found = _find(sidecar, name)
    if not found.changes:
        raise NotFoundError(
            f"transaction {found.id} has no change that stands", hint=f"`holdfast tx show {found.id}`"
        )
    return found.changes[-1].id


def _paths(transaction: Transaction) -> set[str]:
    return {change.path for entry in transaction.changes for change in entry.changes}


def _summary(one: Transaction) -> dict[str, Any]:
    return {
        "id": one.id,
        "session_id": one.session_id,
        "status": one.status,
        "began": one.began,
        "updated": one.updated,
        "changes": len(one.changes),
        "files": sorted(_paths(one)),
        "continued_from": one.continued_from,
    }


def _print_entry(entry: Entry, *, stands: bool) -> None:
    notes = [] if stands else ["undone"]
    notes += [f"in doubt: {entry.doubt}"] if entry.doubt else []
    told = f" ({'; '.join(notes)})" if notes else ""
    line = (
        f"{entry.id}  {entry.at:%Y-%m-%d %H:%M:%S}  {entry.kind}{told}  {' '.join(entry.description.split())}"
    )
    click.echo(line.rstrip())
    renames = entry.renames
    moved = set(renames.values())
    for change in entry.changes:
        if change.path in renames:
            click.echo(f"  R {renames[change.path]} -> {change.path}")
        elif change.path not in moved:
            click.echo(f"  {_letter(change)} {change.path}")
    for path in entry.left:
        click.echo(f"  ! {path} was left as it is")


def _letter(change: PathChange) -> str:
    if change.before is None:
        return "A"
    return "D" if change.after is None else "M"


def _report(outcome: Outcome, done: str, as_json: bool) -> int:
    if as_json:
        common.print_json(
            {"entry": outcome.entry.id, "restored": list(outcome.restored), "left": dict(outcome.left)}
        )
    else:
        click.echo(f"{done}: {len(outcome.restored)} files")
        for path in outcome.restored:
            click.echo(f"  {path}")
        for path, reason in outcome.left.items():
            click.echo(f"left as it is: {path}: {reason}", err=True)
    return 3 if outcome.left else 0
