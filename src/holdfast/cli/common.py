"""What commands share: settings, the store, and how things are shown."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from holdfast.base.errors import InvalidInputError, NotFoundError
from holdfast.base.text import Progress, counted, untold
from holdfast.project.formats import FOLDER
from holdfast.project.settings import Settings, load_settings
from holdfast.project.trust import passed_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.client.service import RemoteService, RemoteStore, There
    from holdfast.sessions.reindex import LeftOut
    from holdfast.store.protocol import SnapshotSummary, Store
    from holdfast.store.reader import QuickReader
    from holdfast.store.sql import SqlStore
    from holdfast.workflows.service import OrchestratorService
    from holdfast.workflows.worker import Here

    Service = OrchestratorService | RemoteService
    Runner = Here | There

_NARROWEST = 8
_WORDS = frozenset(
    (
        "BRANCH",
        "COVERAGE",
        "FIRST MESSAGE",
        "ITEM",
        "PROJECT",
        "REASON",
        "STATE",
        "TITLE",
        "WHERE",
        "WHY",
        "WORKTREE",
    )
)
"""Columns that a narrow terminal may cut."""
INSTALL_STEP = "holdfast install claude-code, or codex, gemini or opencode"

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def yes_option(function: F) -> F:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")(function)


def settings() -> Settings:
    current = load_settings()
    if reason := current.layout.foreign_because:
        _warn_of_foreign_folder(str(current.project / FOLDER), reason)
    elif not os.environ.get("HOLDFAST_PROJECT") and (
        found := passed_over(str(Path.cwd()), str(current.project))
    ):
        _warn_of_foreign_folder(*found)
    return current


@functools.cache
def _warn_of_foreign_folder(where: str, reason: str) -> None:
    """Once in a command, however often it asks for the settings."""
    click.echo(f"warning: ignoring {where}: {reason}; run `holdfast trust` to inspect it", err=True)


def show_warnings() -> None:
    """What is logged goes to stderr as warnings. Called once what logs is loaded: the other commands need not
    load logging for it."""
    import logging

    root = logging.getLogger("holdfast")
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("warning: %(message)s"))
        root.addHandler(handler)
        root.propagate = False


@contextlib.contextmanager
def store_for(current: Settings) -> Generator[SqlStore | RemoteStore]:
    """The database, with what it missed of this project's sessions added first; or the server's."""
    if current.server is not None:
        with service_for(current) as service:
            yield service.store
        return
    from holdfast.sessions.pause import open_store
    from holdfast.sessions.reindex import take_in_waiting

    show_warnings()
    with open_store(current) as store:
        take_in_waiting(store, current)
        yield store


def answered(
    current: Settings, quickly: Callable[[QuickReader], T], by_store: Callable[[SqlStore | RemoteStore], T]
) -> T:
    """A question to the database: both ways give the same answer, and the quick one loads a tenth for it."""
    for answer in answered_quickly(current, quickly):
        return answer
    with store_for(current) as store:
        return by_store(store)


def answered_quickly(current: Settings, quickly: Callable[[QuickReader], T]) -> list[T]:
    """The answer, or nothing where it takes the store."""
    # Only the store adds the sessions that the database missed.
    if current.server is None and not current.layout.has_waiting:
        from holdfast.store.reader import open_reader

        # Whatever stands in the way, the store copes with it or tells what is wrong.
        with contextlib.suppress(Exception), open_reader(current.db) as reader:
            return [quickly(reader)]
    return []


def left_out(current: Settings) -> LeftOut | None:
    """What of the folder's own sessions is not used in it."""
    named = {path.stem for path in current.layout.sessions.glob("session-*.json")}
    if current.server is not None or not named:
        return None
    here = current.worktree
    if named <= answered(current, lambda reader: reader.session_names(here), lambda _: set[str]()):
        return None
    from holdfast.sessions import reindex

    with store_for(current) as store:
        return reindex.left_out(store, current)


def warn_of_left_out(current: Settings) -> None:
    if found := left_out(current):
        click.echo(f"warning: {found.told}; {_what_helps(found)}", err=True)


def warn_of_abandoned(current: Settings) -> None:
    """What it recorded is newer than every handover, and in none of them."""
    if not current.layout.journal.exists():
        return
    from holdfast.sessions.winddown import IncrementalPauseManager

    manager = IncrementalPauseManager(settings=current)
    if manager.is_orphaned() and (found := manager.get_pause_summary()):
        held = counted(found["action_count"], "action")
        click.echo(
            f"warning: the wind-down {found['session_id']} ({held}) was left behind by a process that ended, "
            "and is not in this; `holdfast winddown recover` adds it",
            err=True,
        )


def _what_helps(found: LeftOut) -> str:
    them = "it" if len(found.sessions) == 1 else "them"
    return f"`{found.command}` " + (
        f"adds {them}" if found.command.endswith("reindex") else "prints the newest"
    )


def service_for(current: Settings) -> Service:
    """What workflows are paused, resumed and asked about with: here, or through `--server`."""
    if current.server is not None:
        from holdfast.client.service import RemoteService

        return RemoteService(current)
    from holdfast.workflows.service import OrchestratorService

    show_warnings()
    return OrchestratorService(current)


def runner_for(current: Settings) -> Runner:
    """What runs a session while somebody watches: this process, or a worker of the server."""
    if current.server is not None:
        from holdfast.client.service import There

        return There(current)
    from holdfast.workflows.worker import Here

    show_warnings()
    return Here(current)


@contextlib.contextmanager
def starting(current: Settings, *, detach: bool) -> Generator[tuple[Service, Runner | None]]:
    """What a workflow is started with, and what runs it while somebody watches: with `detach`, nothing."""
    if detach:
        with service_for(current) as service:
            yield service, None
        return
    with runner_for(current) as here:
        yield here.service, here


def terminal() -> TextIO:
    """Where pictures with colours are drawn: every other text goes through a filter of control sequences."""
    return getattr(sys.stderr, "unfiltered", sys.stderr)


@contextlib.contextmanager
def progress(*, quiet: bool = False, worth: int = 100) -> Generator[Progress]:
    """How much is done, in a line of the terminal that is gone at the end; of less than `worth`, nothing."""
    if quiet or not sys.stderr.isatty():
        yield untold
        return
    screen, shown = terminal(), ""

    def show(doing: str, done: int, total: int) -> None:
        nonlocal shown
        if total >= worth and (line := f"{doing}: {done / total:4.0%}") != shown:
            shown = line
            screen.write(f"\r\x1b[K{line}")
            screen.flush()

    try:
        yield show
    finally:
        if shown:
            screen.write("\r\x1b[K")
            screen.flush()


def first_step() -> str:
    """What to do where nothing is recorded yet."""
    found = sorted(agent for agent, current in recorded_agents().items() if current)
    return f"a new session of {' or '.join(found)} in this folder; it is recorded" if found else INSTALL_STEP


def recorded_agents() -> dict[str, bool]:
    import os
    from pathlib import Path

    from holdfast.hooks import install

    return install.recorded_agents(Path.home(), os.environ, settings().project)


def is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def passphrase(*, confirm: bool = False) -> str | None:
    """From HOLDFAST_PASSPHRASE, else asked for on a terminal; None where there is neither."""
    import os

    given = os.environ.get("HOLDFAST_PASSPHRASE")
    if given is not None or not is_interactive():
        if given is None and confirm:
            raise InvalidInputError("no passphrase given", hint="set HOLDFAST_PASSPHRASE")
        return given
    return click.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True)


def print_json(document: Any, *, in_a_line: bool = False) -> None:
    from holdfast.base.neutral import neutral_json

    indent = None if in_a_line else 2
    text = json.dumps(document, ensure_ascii=False, indent=indent, default=_json_text)
    click.echo(neutral_json(text))


def echo_contents(text: str) -> None:
    """Lines of a file, or what a task printed, with whatever tags they hold."""
    write = getattr(sys.stdout, "write_contents", sys.stdout.write)
    write(text)
    sys.stdout.flush()


def _json_text(value: object) -> str:
    """A time as pydantic writes it in all other documents; of anything else its text."""
    from datetime import UTC, datetime

    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value)


def tell(as_json: bool, document: Any, *lines: str) -> None:
    """The document for programs, the lines for people."""
    if as_json:
        print_json(document)
        return
    for line in lines:
        click.echo(line)


def tell_table(
    as_json: bool,
    documents: Sequence[Any],
    empty: str,
    headings: Sequence[str],
    row: Callable[[Any], Sequence[object]],
) -> None:
    """All documents for programs; for people a table with a row of each, or that there is none."""
    if as_json:
        print_json(documents)
    elif not documents:
        click.echo(empty)
    else:
        print_table(headings, [row(one) for one in documents])


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as their content; where a terminal has no room, words are cut, and never an id."""
    texts = [[_cell(value) for value in row] for row in (headings, *rows)]
    widths = [max(_width(row[column]) for row in texts) for column in range(len(headings))]
    if sys.stdout.isatty():
        _fit(widths, [column for column, heading in enumerate(headings) if heading in _WORDS])
    for row in texts:
        cells = [_cut(text, width) for text, width in zip(row, widths, strict=True)]
        parts = [text + " " * (width - _width(text)) for text, width in zip(cells, widths, strict=True)]
        parts[-1] = parts[-1].rstrip()
        between = ["", *(["  "] * (len(parts) - 1))]
        print_line(*(space + part for space, part in zip(between, parts, strict=True)))


def _fit(widths: list[int], columns: Sequence[int]) -> None:
    room = shutil.get_terminal_size().columns - 2 * (len(widths) - 1)
    while sum(widths) > room and columns:
        widest = max(columns, key=widths.__getitem__)
        if widths[widest] <= _NARROWEST:
            return
        widths[widest] -= 1


def print_line(*parts: str) -> None:
    """A line of which on a terminal each part that begins with a status has its colour."""
    raw = getattr(sys.stdout, "unfiltered", sys.stdout)
    if not _in_colour():
        click.echo("".join(parts))
        return
    for part in parts:
        style = _STYLES.get(part.strip(" ").partition(" ")[0].rstrip(",:"))
        if style is None:
            sys.stdout.write(part)
        else:  # only our own sequences go past the filter
            raw.write(style)
            sys.stdout.write(part)
            raw.write("\x1b[0m")
    click.echo()


def _in_colour() -> bool:
    import os

    asked = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return asked and os.name == "posix" and sys.stdout.isatty()


_RED, _YELLOW, _GREEN, _CYAN = (f"\x1b[{number}m" for number in (31, 33, 32, 36))
_STYLES = {
    **dict.fromkeys(("failed", "crash", "failure", "critical", "auto-pause"), _RED),
    **dict.fromkeys(("paused", "blocked", "warning", "caution", "rolled-back"), _YELLOW),
    **dict.fromkeys(("completed", "committed", "finished"), _GREEN),
    **dict.fromkeys(("in_progress", "in-progress", "running"), _CYAN),
}


def _cut(text: str, width: int) -> str:
    """With the end, which says most of a path."""
    if _width(text) <= width:
        return text
    for kept in range(min(len(text), width) - 1, 0, -1):
        cut = text[: kept // 3] + "…" + text[len(text) - (kept - kept // 3) :]
        if _width(cut) <= width:
            return cut
    return "…"


def _width(text: str) -> int:
    """Columns of a terminal: signs of some scripts take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(one) in "FW" else 1 for one in text)


def _cell(value: object) -> str:
    return "-" if value is None else " ".join(str(value).split())


def parse_json_object(text: str, option: str) -> dict[str, Any]:
    """An option's JSON object; `-` reads it from stdin."""
    try:
        document = json.loads(sys.stdin.buffer.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{option} is not valid JSON: {error}", hint=f'{option} \'{{"tool": "Read"}}\''
        ) from None
    if not isinstance(document, dict):
        raise InvalidInputError(f"{option} must be a JSON object", hint=f'{option} \'{{"tool": "Read"}}\'')
    return document  # type: ignore[return-value]


def find_snapshot(store: Store, current: Settings, name: str) -> SnapshotSummary:
    """By id, unique beginning of one, session name, or `latest` in this worktree."""
    if not name:  # the beginning of every id, and what an unset variable leaves on a command line
        raise InvalidInputError("the snapshot name is empty", hint="`holdfast snapshot list` shows them")
    if name == "latest":
        from holdfast.sessions.contexts import newest_with_work, open_before
        from holdfast.store.protocol import SnapshotSummary

        named = _named_by_folder(store, current)
        if named is not None:
            before = open_before(store, store.snapshot(named.id))
            return SnapshotSummary.of(before) if before else named
        latest = newest_with_work(store, (flow.id for flow in store.workflows(worktree=current.worktree)))
        if latest is not None:
            return SnapshotSummary.of(latest)
        if ignored := left_out(current):
            raise NotFoundError(ignored.told, hint=_what_helps(ignored))
        raise NotFoundError("nothing has been paused in this folder yet", hint=f"start with: {first_step()}")
    found = store.find_snapshots(name)
    exact = [line for line in found if line.id == name]
    if not exact and len(found) > 1:  # the same session name in several projects: ours is meant
        ours = {workflow.id for workflow in store.workflows(worktree=current.worktree, limit=1000)}
        exact = [line for line in found if line.workflow_id in ours]
    chosen = exact or found
    if not chosen:
        raise NotFoundError(f"no such snapshot: {name}", hint="`holdfast snapshot list` shows them")
    if len(chosen) > 1:
        raise InvalidInputError(
            f"{name} is ambiguous: it matches {len(chosen)} snapshots: "
            f"{', '.join(line.id for line in chosen[:3])}, …",
            hint="give more characters of the id",
        )
    return chosen[0]


def _named_by_folder(store: Store, current: Settings) -> SnapshotSummary | None:
    """The last pause in this folder that had work to keep: as they came, whatever the clock said then."""
    from holdfast.store.session_files import SessionFiles

    name = SessionFiles(current.layout.sessions).latest()
    if name is None:
        return None
    ours = {workflow.id for workflow in store.workflows(worktree=current.worktree, limit=1000)}
    found = [line for line in store.find_snapshots(name) if line.workflow_id in ours]
    return found[0] if len(found) == 1 and found[0].session_id == name else None


_SPARKS = "▁▂▃▄▅▆▇█"


def spark_line(shares: Sequence[float]) -> str:
    """How a window filled: a bar a look, of eight heights; a full window and beyond is the highest."""
    return "".join(_SPARKS[min(7, max(0, int(share * 8)))] for share in shares)


def in_a_line(text: str, most: int = 300) -> str:
    """Of what is longer the beginning and the end: a program says at the end what went wrong."""
    line = " ".join(text.split())
    head = most // 3
    return line if len(line) <= most else f"{line[:head]} … {line[head - most :]}"


def ago(seconds: float) -> str:
    """`5 min ago`."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


def duration(seconds: float) -> str:
    """`1 h 05 min`, `3 min 20 s`, `12 s`."""
    whole = int(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class AgentName(click.Choice[str]):
    """An agent as people call it; older names are understood, too."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from holdfast.project.formats import agent_called

        return super().convert(agent_called(value), param, ctx)
