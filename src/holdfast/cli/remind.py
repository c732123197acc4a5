from __future__ import annotations

from pathlib import Path

import click

from holdfast.base.clock import iso, system_clock
from holdfast.base.durable import lock_file, read_file, replace_file, storage_errors
from holdfast.base.errors import InvalidInputError
from holdfast.cli import common


@click.command("remind")
@click.argument("text", nargs=-1)
@click.option("--done", is_flag=True, help="Forget all reminders of this project.")
@common.json_option
def command(text: tuple[str, ...], done: bool, as_json: bool) -> None:
    """Have agents in this project reminded of TEXT, once in each session.

    With no TEXT, lists what is pending.

    \b
    Examples:
      holdfast remind "run the migration before the release"
      holdfast remind --done
    """
    words = " ".join(" ".join(text).split())
    if done and words:
        raise InvalidInputError("give a text or --done, not both")
    layout = common.settings().layout
    path = layout.state / "reminders"
    if words or done:
        layout.ensure()
        with storage_errors("note the reminder"), lock_file(layout.state / "reminders.lock"):
            pending = [] if done else [*_pending(path), f"{iso(system_clock())}\t{words}"]
            replace_file(path, "".join(f"{line}\n" for line in pending).encode(errors="replace"))
    else:
        pending = _pending(path)
    _show(pending, as_json=as_json, words=words, done=done)


def _pending(path: Path) -> list[str]:
    try:
        return [line for line in read_file(path).decode(errors="replace").split("\n") if line]
    except FileNotFoundError:
        return []


def _show(pending: list[str], *, as_json: bool, words: str, done: bool) -> None:
    reminders = [line.partition("\t")[2] or line for line in pending]
    if as_json:
        common.print_json({"reminders": reminders})
    elif words:
        click.echo(f"Agents in this project will be reminded: {words}")
    elif done:
        click.echo("No reminders are left.")
    else:
        click.echo("\n".join(reminders) if reminders else "No reminders.")
