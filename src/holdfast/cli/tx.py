from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from holdfast.base.errors import CannotDoError, InvalidInputError, NotFoundError
from holdfast.base.text import counted, encode_path, shown_path
from holdfast.cli import common
from holdfast.project.formats import OLD_NAMES, agent_called

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.undo.ledger import Transaction
    from holdfast.undo.plan import Hunk
    from holdfast.undo.state import LedgerEntry, PathChange
    from holdfast.undo.transactions import SideCar, UndoOutcome

_partial_option = click.option(
    "--partial", is_flag=True, help="Skip files that cannot be undone without losing later changes."
)

_doubtful_option = click.option(
    "--doubtful",
    "--include-doubtful",
    is_flag=True,
    help="Include changes that cannot be attributed to the session with certainty.",
)

_dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
_file_option = click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="Only this file, or the files in this folder. Can be repeated.",
)


def _numbers(_context: click.Context, _option: click.Parameter, text: str | None) -> frozenset[int] | None:
    """`1,3-5`"""
    if text is None:
        return None
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise click.BadParameter("give numbers such as 1,3-5")
        found.update(range(int(first), min(int(last or first), 1_000_000) + 1))
    return frozenset(found)


_RESUMED_WITH = {
    "claude-code": "claude --resume {} --fork-session (then /rewind chooses a turn of the conversation)",
    "codex": "codex resume {}",
    "gemini": "gemini --resume {}",
    "opencode": "opencode -s {}",
}


@click.group("tx")
def command() -> None:
    """Show which files sessions changed, and undo the changes.

    A transaction holds one session's changes. ID is an id, the beginning of one, or `last`.

    \b
    Examples:
      holdfast tx list
      holdfast tx show last
      holdfast tx diff last
      holdfast tx undo last --file src/app.py
      holdfast tx redo
      holdfast tx rollback last
    """


@command.command("list")
@common.json_option
def list_transactions(as_json: bool) -> None:
    """List transactions, most recently changed first."""
    with _sidecar() as sidecar:
        found, aside = sidecar.transactions(), sidecar.all_set_aside()
    if as_json:
        common.print_json([one.summary for one in found])
        return
    if found:
        _print_list(found)
    else:
        click.echo(f"No session has changed files here yet. Start with: {common.first_step()}")
    if aside:
        _print_total(aside)


def _print_list(found: Sequence[Transaction]) -> None:
    common.print_table(
        ("TRANSACTION", "SESSION", "STATUS", "CHANGES", "FILES", "COVERAGE", "UPDATED (UTC)"),
        [
            (
                one.id,
                one.session_id,
                one.status,
                len(one.changes),
                len(one.paths),
                "partial" if one.uncovered else "all files",
                f"{one.updated:%Y-%m-%d %H:%M:%S}",
            )
            for one in found
        ],
    )
    if any(one.uncovered for one in found):
        click.echo("Partial coverage: `holdfast tx show ID` lists what is not recorded.")


def _print_total(aside: Sequence[Path]) -> None:
    size = sum(path.lstat().st_size for path in aside) / 1e6
    files = counted(len(aside), "file")
    click.echo(f"{files} set aside, {size:,.1f} MB in {aside[0].parent}")


@command.command()
@click.argument("name", metavar="[ID|last]", default="last")
@common.json_option
def show(name: str, as_json: bool) -> None:
    """Show a transaction's changes, oldest first."""
    with _sidecar() as sidecar:
        found = _find(sidecar, name)
        aside = {entry.id: sidecar.set_aside(entry) for entry in found.entries}
    if as_json:
        entries = [
            {**one.model_dump(mode="json"), "set_aside": _told_places(aside[one.id])} for one in found.entries
        ]
        common.print_json({**found.summary, "entries": entries})
        return
    click.echo(f"{found.id}  {found.status}  session {found.session_id}")
    for line in found.uncovered:
        click.echo(f"not covered: {line}")
    for entry in found.entries:
        _print_entry(entry, aside[entry.id], stands=entry.id in found.standing)


@command.command()
@click.argument("name", metavar="[ID|last]", default="last")
@_partial_option
@_doubtful_option
@_file_option
@click.option(
    "--hunks",
    "numbers",
    metavar="N,N-N",
    callback=_numbers,
    help="Only these hunks, by the numbers that `holdfast tx diff ID` shows.",
)
@click.option("-p", "--patch", "asks", is_flag=True, help="Show every hunk, and ask whether to undo it.")
@_dry_run_option
@common.json_option
def undo(
    name: str,
    partial: bool,
    doubtful: bool,
    files: tuple[str, ...],
    numbers: frozenset[int] | None,
    asks: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Undo one change: change ID, or the last change of a transaction.

    Later edits to the same files are kept. If they conflict with the undo, nothing is
    changed. A file whose earlier content was too large to store, or whose change is in doubt, is
    skipped. An undo is itself a change and can be undone.

    With --hunks or --patch, undo some lines of what `holdfast tx diff ID` shows.
    """
    if asks and numbers is not None:
        raise InvalidInputError("use either --hunks or --patch", hint="nothing was changed")
    with _sidecar() as sidecar:
        if asks or numbers is not None:
            transaction, hunks = _hunks_of(sidecar, name, files)
            _refuse_mixed(hunks)
            picked = _ask_about(hunks) if numbers is None else numbers
            outcome = sidecar.undo_hunks(
                transaction, hunks, picked, partial=partial, doubtful=doubtful, dry_run=dry_run
            )
            return _report(outcome, {}, "Would undo" if dry_run else "Undid", as_json)
        chosen = _find_change(sidecar, name, doubtful=doubtful)
        return _undo(sidecar, chosen, "Undid", partial, doubtful, files, dry_run, as_json)


@command.command()
@click.argument("name", metavar="[ID|last]", default="last")
@_partial_option
@_file_option
@_dry_run_option
@common.json_option
def redo(name: str, partial: bool, files: tuple[str, ...], dry_run: bool, as_json: bool) -> int:
    """Redo what the last undo or rollback of a transaction undid."""
    with _sidecar() as sidecar:
        found = _find(sidecar, name)
        if found.last_undo is None:
            raise NotFoundError(
                f"transaction {found.id} has no undo to redo", hint=f"`holdfast tx show {found.id}`"
            )
        return _undo(sidecar, found.last_undo.id, "Redid", partial, True, files, dry_run, as_json)


@command.command()
@click.argument("name", metavar="[ID|last]", default="last")
@_partial_option
@_doubtful_option
@_file_option
@_dry_run_option
@common.yes_option
@common.json_option
def rollback(
    name: str, partial: bool, doubtful: bool, files: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool
) -> int:
    """Undo all changes of a transaction."""
    with _sidecar() as sidecar:
        found = _find(sidecar, name)
        chosen = _chosen_files(files, {one.path for entry in found.changes for one in entry.changes})
        missing = _lacking([found])
        if not dry_run and not yes and common.is_interactive():
            _print_missing(missing)
            _preview(
                sidecar.rollback(found.id, partial=partial, doubtful=doubtful, files=chosen, dry_run=True)
            )
            click.confirm("Undo these changes?", abort=True, err=True)
        outcome = sidecar.rollback(
            found.id, partial=partial, doubtful=doubtful, files=chosen, dry_run=dry_run
        )
        done = "Would roll back" if dry_run else "Rolled back"
        aside = {} if dry_run else sidecar.set_aside(outcome.entry)
        return _report(outcome, aside, done, as_json, missing)


def _lacking(family: Iterable[Transaction], after: int = -1) -> list[str]:
    """What is not recorded of the turns after that one, each sentence once."""
    from holdfast.undo.state import turns_lacking

    found = [each for one in family for each in turns_lacking(one.uncovered)]
    return list(dict.fromkeys(line for turn, line in found if not turn.isdecimal() or int(turn) > after))


def _print_missing(missing: Iterable[str]) -> None:
    for line in missing:
        click.echo(f"not covered: {line}", err=True)


@command.command()
@click.argument("name", metavar="[ID|last]", default="last")
@_file_option
def diff(name: str, files: tuple[str, ...]) -> None:
    """Show what a transaction or one change of it changed in files, as a unified diff.

    Behind # is the number of a hunk, or of a whole file, for `holdfast tx undo --hunks`.
    """
    with _sidecar() as sidecar:
        _, hunks = _hunks_of(sidecar, name, files)
    lines = [line for one in hunks for line in _hunk_lines(one, hunks)]
    text = "".join(f"{line}\n" for line in lines)
    if common.is_interactive():
        click.echo_via_pager(text)
    else:
        common.echo_contents(text)


@click.command("rewind")
@click.argument("turn", type=click.IntRange(0))
@click.option(
    "--session", metavar="ID", help="The agent's session, or the beginning of its id. Default: the last one."
)
@_partial_option
@_doubtful_option
@_dry_run_option
@common.yes_option
@common.json_option
def rewind_command(
    turn: int,
    session: str | None,
    partial: bool,
    doubtful: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Restore the files that an agent changed as they were at the end of TURN.

    `holdfast tx show` names the turns; 0 is before the first one. Your own edits are kept, as with
    `holdfast tx undo`, and the rewind can be undone. How to continue the conversation from
    there is printed: the agent's own session always holds all turns.

    \b
    Examples:
      holdfast rewind 3 --dry-run
      holdfast rewind 3 --session claude-266b3f40
    """
    flags = {"partial": partial, "doubtful": doubtful}
    with _sidecar() as sidecar:
        family = _agents_transactions(sidecar, session)
        missing = _lacking(family, after=turn)
        later = _later_changes(family, turn, is_partial=bool(missing))
        if not dry_run and not yes and common.is_interactive():
            _print_missing(missing)
            for outcome in sidecar.rewind(later, dry_run=True, **flags):
                _preview(outcome)
            click.confirm("Undo these changes?", abort=True, err=True)
        done = sidecar.rewind(later, dry_run=dry_run, **flags)
    left = {path: reason for one in done for path, reason in one.left.items()}
    undone = _undone_turns(family, turn)
    document = {
        "session": family[-1].session_id,
        "turn": turn,
        "restored": _told({path for one in done for path in one.restored}),
        "left": left,
        "not_covered": missing,
        "undone_turns": undone,
        "undo_with": [] if dry_run else [f"holdfast tx undo {one.entry.id}" for one in done[::-1]],
        "continue_with": _ways_to_continue(family[-1].session_id, turn),
    }
    if as_json:
        common.print_json(document)
    else:
        _print_rewind(document, "Would restore" if dry_run else "Restored")
    return 3 if left or missing else 0


def _print_rewind(document: dict[str, Any], done: str) -> None:
    click.echo(f"{done} {counted(len(document['restored']), 'file')} to the end of turn {document['turn']}")
    for path in document["restored"]:
        click.echo(f"  {shown_path(path)}")
    _print_left(document["left"], document["restored"])
    _print_missing(document["not_covered"])
    if document["undone_turns"]:
        turns = ", ".join(map(str, document["undone_turns"]))
        click.echo(f"still undone: turns {turns}; `holdfast tx redo` redoes the last undo", err=True)
    for words in document["undo_with"]:
        click.echo(f"undo: {words}")
    for about, words in document["continue_with"].items():
        click.echo(f"{about}: {words}")


def _agents_transactions(sidecar: SideCar, session: str | None) -> list[Transaction]:
    """Of one session of an agent, oldest first: resumed, it begins another transaction."""
    found = [one for one in sidecar.transactions() if any(_turn_of(entry) for entry in one.entries)]
    if session:
        found = [one for one in found if _begins(one.id, session)]
    if not found:
        raise NotFoundError(
            "no turn of such a session is recorded here", hint="`holdfast tx list` shows the sessions"
        )
    names = {one.session_id for one in found}
    if session and len(names) > 1:
        raise InvalidInputError(f"{session} is ambiguous", hint="give more characters of the id")
    chosen = found[0].session_id
    return [one for one in reversed(found) if one.session_id == chosen]


def _begins(name: str, session: str) -> bool:
    """With the agent's name before the id, or without."""
    return name.startswith(session) or _agent_of(name)[1].startswith(session)


def _turn_of(entry: LedgerEntry) -> int | None:
    word, _, number = entry.description.partition(" ")
    return int(number) if word == "turn" and number.isdecimal() else None


def _undone_turns(family: Sequence[Transaction], turn: int) -> list[int]:
    """Those up to this one of which nothing stands."""
    numbers = [
        (number, entry.id in one.standing)
        for one in family
        for entry in one.entries
        if entry.kind == "change" and (number := _turn_of(entry)) is not None and number <= turn
    ]
    return sorted({number for number, _ in numbers} - {number for number, stands in numbers if stands})


def _later_changes(
    family: Sequence[Transaction], turn: int, *, is_partial: bool
) -> list[tuple[str, list[str]]]:
    """What came after the last change of that turn, by the order of the record, newest transaction first.

    Of a record that lacks later turns it cannot be said that no file was changed.
    """
    entries = [(one.id, entry) for one in family for entry in one.changes]
    turns = [number for _, entry in entries if (number := _turn_of(entry)) is not None]
    if turn > max(turns, default=0):
        if turn in _undone_turns(family, turn):
            raise CannotDoError(
                f"turn {turn} has been undone", hint="`holdfast tx redo` redoes the last undo"
            )
        if is_partial:
            return []
        raise NotFoundError(
            f"no file was changed after turn {turn}",
            hint=f"`holdfast tx show {family[-1].id}` names the turns",
        )
    reached = [place for place, (_, entry) in enumerate(entries) if (_turn_of(entry) or 0) <= turn]
    rest = entries[reached[-1] + 1 if reached and turn else 0 :]
    found = [(one.id, [entry.id for name, entry in rest if name == one.id]) for one in family[::-1]]
    return [(name, ids) for name, ids in found if ids]


def _agent_of(name: str) -> tuple[str, str]:
    """The agent, and its id of the session, that the name of a transaction begins with."""
    known = next((one for one in (*_RESUMED_WITH, *OLD_NAMES) if name.startswith(f"{one}-")), "")
    return agent_called(known), name.removeprefix(f"{known}-")


def _ways_to_continue(session: str, turn: int) -> dict[str, str]:
    agent, name = _agent_of(session)
    if not agent:
        return {}
    return {
        f"to continue after turn {turn}, in any agent": f"holdfast context --session {name} --turns {turn}",
        "to continue with all turns": _RESUMED_WITH[agent].format(name),
    }


def _hunks_of(sidecar: SideCar, name: str, files: Sequence[str]) -> tuple[str, list[Hunk]]:
    """What the transaction, or the one change, changed in these files; numbered as in all."""
    transaction, changes = _changes_of(sidecar, name)
    chosen = _chosen_files(files, {one.path for one in changes})
    names = _told(one.path for one in changes)
    hunks = sidecar.hunks(one for one in changes if one.path in names)
    return transaction, [one for one in hunks if chosen is None or one.change.path in chosen]


def _refuse_mixed(hunks: Sequence[Hunk]) -> None:
    """Hunks of a file that others changed between two of its changes would take their lines along."""
    changes = {(one.change.path, id(one.change)) for one in hunks}
    paths = [path for path, _ in changes]
    if mixed := sorted({path for path in paths if paths.count(path) > 1}):
        raise CannotDoError(
            f"{shown_path(mixed[0])} was also changed by somebody else in between",
            hint="undo hunks of one change; `holdfast tx show` lists the changes",
        )


def _changes_of(sidecar: SideCar, name: str) -> tuple[str, tuple[PathChange, ...]]:
    if name.startswith("ch_"):
        near = [e for one in sidecar.transactions() for e in one.entries if e.id.startswith(name)]
        if len(near) == 1:
            return near[0].transaction_id, near[0].changes
    found = _find(sidecar, name)
    return found.id, found.net_changes


def _hunk_lines(hunk: Hunk, hunks: Sequence[Hunk]) -> list[str]:
    """With the file's name above the first one of a file."""
    first = next(one for one in hunks if one.change.path == hunk.change.path)
    number = "" if hunk.lines else f" #{hunk.number}"
    head = _head_lines(hunk.change, number) if hunk is first else []
    return [*head, *(_coloured(_numbered(line, hunk.number)) for line in hunk.lines)]


def _head_lines(change: PathChange, number: str) -> list[str]:
    from holdfast.undo.users_index import NOTHING

    head = [click.style(f"{_letter(change)} {shown_path(change.path)}{number}", bold=True)]
    before, after = change.before, change.after
    if before and after and before.permissions != after.permissions:
        head.append(f"mode {before.permissions:o} -> {after.permissions:o}")
    elif number and (before.oid if before else NOTHING) != (after.oid if after else NOTHING):
        head.append("(not text, or too large to store)")
    return head


def _numbered(line: str, number: int) -> str:
    start, ats, rest = line.partition(" @@")
    return f"{start}{ats} #{number}{rest}" if line.startswith("@@") else line


def _ask_about(hunks: Sequence[Hunk]) -> frozenset[int]:
    """As `git add -p` does."""
    if not common.is_interactive():
        raise InvalidInputError(
            "--patch needs a terminal", hint="use --hunks; `holdfast tx diff` shows the numbers"
        )
    picked: set[int] = set()
    rest = list(hunks)
    while rest:
        hunk = rest.pop(0)
        click.echo("\n".join(_hunk_lines(hunk, [hunk])), err=True)
        answer = _answer()
        picked.update([hunk.number] if answer in "ya" else [])
        if answer in "ad":
            picked.update(one.number for one in rest if answer == "a" and one.change.path == hunk.change.path)
            rest = [one for one in rest if one.change.path != hunk.change.path]
        if answer == "q":
            break
    return frozenset(picked)


def _answer() -> str:
    while True:
        answer: str = click.prompt("Undo this hunk", type=click.Choice(list(_ANSWERS)), err=True)
        if answer != "?":
            return answer
        for key, meaning in _ANSWERS.items():
            click.echo(f"{key} - {meaning}", err=True)


_ANSWERS = {
    "y": "undo this hunk",
    "n": "do not undo this hunk",
    "a": "undo this hunk and the later ones in the file",
    "d": "do not undo this hunk or the later ones in the file",
    "q": "do not undo this hunk or any of the remaining ones",
    "?": "print this help",
}


def _coloured(line: str) -> str:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return click.style(_visible(line), fg=colour) if colour else _visible(line)


def _visible(line: str) -> str:
    """With nothing in it that a terminal would obey."""
    return "".join(one if one.isprintable() or one == "\t" else repr(one)[1:-1] for one in line)


def _undo(
    sidecar: SideCar,
    change_id: str,
    done: str,
    partial: bool,
    doubtful: bool,
    files: Sequence[str],
    dry_run: bool,
    as_json: bool,
) -> int:
    entry = next(e for one in sidecar.transactions() for e in one.entries if e.id == change_id)
    chosen = _chosen_files(files, {change.path for change in entry.changes})
    outcome = sidecar.undo(change_id, partial=partial, doubtful=doubtful, files=chosen, dry_run=dry_run)
    if dry_run:
        done = {"Undid": "Would undo", "Redid": "Would redo"}[done]
    return _report(outcome, {} if dry_run else sidecar.set_aside(outcome.entry), done, as_json)


def _chosen_files(given: Sequence[str], known: Collection[str]) -> set[str] | None:
    """Of the files known those that were given, or are in a folder that was; all (None) where none was."""
    if not given:
        return None
    from holdfast.undo.worktree import checked_path

    root = common.settings().project
    names = [encode_path(checked_path(root, os.path.abspath(one))) for one in given]  # noqa: PTH100 - as typed
    chosen = {path for path in known for name in names if path == name or path.startswith(f"{name}/")}
    if not chosen:
        raise NotFoundError(
            f"no change to {', '.join(given)} here", hint="`holdfast tx show` lists the files"
        )
    return chosen


def _preview(outcome: UndoOutcome) -> None:
    for path in _told(outcome.restored):
        click.echo(f"  {shown_path(path)}", err=True)
    _print_left(outcome.left, outcome.restored, indent="  ")


def _told(paths: Iterable[str]) -> list[str]:
    from holdfast.undo.state import told

    return told(paths)


def _sidecar() -> SideCar:
    from holdfast.hooks.turns import named_files
    from holdfast.undo.transactions import SideCar

    common.show_warnings()
    project = common.settings().project
    return SideCar(project, named_files=lambda: named_files(project))


def _find(sidecar: SideCar, name: str) -> Transaction:
    found = sidecar.transactions()
    if name == "last":
        if not found:
            raise NotFoundError(
                "no session has changed files here yet", hint=f"start with: {common.first_step()}"
            )
        return found[0]
    exact = [one for one in found if one.id == name]
    chosen = exact or [one for one in found if name and one.id.startswith(name)]
    if len(chosen) > 1:
        raise InvalidInputError(
            f"{name} is ambiguous: it matches {len(chosen)} transactions",
            hint="give more characters of the id",
        )
    try:
        return chosen[0] if chosen else sidecar.transaction(name)
    except NotFoundError as error:
        raise NotFoundError(
            f"no such transaction or change: {name}", hint="`holdfast tx list` shows them"
        ) from error


def _find_change(sidecar: SideCar, name: str, *, doubtful: bool) -> str:
    """A change by its id; else the last one that stands in that transaction, of the certain ones first."""
    if name != "last":
        ids = [entry.id for one in sidecar.transactions() for entry in one.entries]
        if name in ids:
            return name
        near = [one for one in ids if name.startswith("ch_") and one.startswith(name)]
        if len(near) == 1:
            return near[0]
    found = _find(sidecar, name)
    newest = found.newest(doubtful=doubtful)
    if newest is None:
        raise NotFoundError(f"transaction {found.id} has no change left to undo", hint=_next_step(found))
    return newest.id


def _next_step(found: Transaction) -> str:
    undoing = [one for one in found.entries if one.kind in ("undo", "rollback") and one.id in found.standing]
    if not undoing:
        return f"`holdfast tx show {found.id}`"
    return f"`holdfast tx redo {found.id}` reverts the last {undoing[-1].kind}"


def _print_entry(entry: LedgerEntry, aside: Mapping[str, Path], *, stands: bool) -> None:
    notes = [] if stands else ["undone"]
    notes += [f"in doubt: {entry.doubt}"] if entry.doubt else []
    remarks = f" ({'; '.join(notes)})" if notes else ""
    about = _visible(" ".join(entry.description.split()))
    line = f"{entry.id}  {entry.at:%Y-%m-%d %H:%M:%S}  {entry.kind}{remarks}  {about}"
    click.echo(line.rstrip())
    renames = entry.renames
    moved = set(renames.values())
    shown = _told(change.path for change in entry.changes)
    for change in (one for one in entry.changes if one.path in shown):
        note = f" (set aside: {aside[change.path]})" if change.path in aside else ""
        if change.path in renames:
            click.echo(f"  R {shown_path(renames[change.path])} -> {shown_path(change.path)}{note}")
        elif change.path not in moved:
            click.echo(f"  {_letter(change)} {shown_path(change.path)}{note}")
    for path in entry.left:
        click.echo(f"  ! {shown_path(path)} was left unchanged")


def _letter(change: PathChange) -> str:
    return change.kind[0].upper()


def _told_places(aside: Mapping[str, Path]) -> dict[str, str]:
    return {path: str(place) for path, place in aside.items()}


def _print_left(left: Mapping[str, str], restored: Collection[str], indent: str = "") -> None:
    for path, reason in left.items():
        words = "left in part" if path in restored else "left unchanged"
        click.echo(f"{indent}{words}: {shown_path(path)}: {reason}", err=True)


def _report(
    outcome: UndoOutcome,
    aside: Mapping[str, Path],
    done: str,
    as_json: bool,
    missing: Sequence[str] | None = None,
) -> int:
    if as_json:
        common.print_json(
            {
                "entry": outcome.entry.id,
                "restored": list(outcome.restored),
                "set_aside": _told_places(aside),
                "left": dict(outcome.left),
                **({} if missing is None else {"not_covered": missing}),
            }
        )
    else:
        restored = _told(outcome.restored)
        files = [path for path in restored if not path.endswith("/")]
        folders = counted(len(restored) - len(files), "folder")
        more = f" and {folders}" if len(files) < len(restored) else ""
        click.echo(f"{done} {counted(len(files), 'file')}{more}")
        for path in restored:
            click.echo(f"  {shown_path(path)}")
        for path, place in aside.items():
            click.echo(f"set aside: {shown_path(path)}: {place}")
        if aside:
            click.echo(f"`holdfast tx undo {outcome.entry.id}` restores the files set aside")
        _print_left(outcome.left, outcome.restored)
        _print_missing(missing or ())
        if outcome.in_doubt:
            click.echo("hint: changes in doubt are undone with --doubtful", err=True)
    return 3 if outcome.left or missing else 0
