from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from holdfast.base.clock import to_datetime
from holdfast.base.errors import HoldfastError, InvalidInputError, SessionNotFoundError
from holdfast.base.text import counted
from holdfast.cli import common
from holdfast.project.formats import SESSIONS, SHARE, SIDECAR, STATE

if TYPE_CHECKING:
    from holdfast.journal.usage import RecordedUsage
    from holdfast.transcripts.discover import FoundSession, SearchReport


@click.group("sessions")
def command() -> None:
    """List the coding agents' sessions in this project, and your own.

    Your own sessions are audits and improvements; only these can be deleted here.

    \b
    Examples:
      holdfast sessions list
      holdfast sessions list --all --search "door hinge"
      holdfast sessions delete --all --force
      holdfast sessions encrypt
    """


@command.command("list")
@click.option(
    "--limit", type=click.IntRange(1), default=20, show_default=True, help="Maximum number to show."
)
@click.option("--all", "everywhere", is_flag=True, help="Those of agents in all projects, without your own.")
@click.option(
    "--search", "words", metavar="WORDS", help="Only agents' sessions in which all these words occur."
)
@click.option("--no-index", is_flag=True, help="Search the session files themselves.")
@common.json_option
def list_sessions(limit: int, everywhere: bool, words: str | None, no_index: bool, as_json: bool) -> None:
    """List the sessions of Claude Code, Codex, Gemini CLI, OpenCode and your own, newest first.

    --search looks at what was said in them, and at what tools were called with and returned. With --all it
    asks an index, which is brought up to date first and holds no secrets; --json says in each session's
    `searched` whether that answered (`index`) or the files were read (`scan`).
    """
    from itertools import islice

    from holdfast.transcripts.discover import SearchReport

    if words is not None and not words.split():
        raise InvalidInputError(
            "there are no words to search for", hint="holdfast sessions list --search door"
        )
    report = SearchReport()
    sessions, searched = _searched(words, report, everywhere=everywhere, no_index=no_index, as_json=as_json)
    # Of many only those shown are looked at, and one to tell whether there are more.
    is_cut = everywhere or words is not None
    found = list(islice(sessions, limit + 1 if is_cut else None))
    own = [] if is_cut else _own_sessions()
    used = _used(found[:limit])
    if as_json:
        described = [_described(one, used) for one in found] + [_own_described(*one) for one in own]
        if searched:
            described = [{**one, "searched": searched} for one in described]
        described.sort(key=lambda one: one["updated"], reverse=True)
        common.print_json(described[:limit])
    elif not found and not own:
        click.echo(_none_found(everywhere, words))
    else:
        if found:
            _print(found, limit, used, everywhere=everywhere, is_cut=is_cut)
        if own:
            _print_own(own[:limit])
    if report.skipped:
        click.echo(f"warning: {report.skipped} files could not be read and were skipped", err=True)


def _searched(
    words: str | None, report: SearchReport, *, everywhere: bool, no_index: bool, as_json: bool
) -> tuple[Iterator[FoundSession], str | None]:
    """The sessions, and by what they were searched."""
    from holdfast.transcripts.discover import find_sessions, mentions

    project = None if everywhere else common.settings().project
    if words is not None and everywhere and not no_index:
        from holdfast.transcripts.search_index import IndexDamagedError, IndexUnusableError

        try:
            try:
                return iter(_by_index(words.split(), report, as_json=as_json)), "index"
            except IndexDamagedError:
                report.skipped = 0
                return iter(_by_index(words.split(), report, as_json=as_json)), "index"
        except IndexUnusableError as error:
            click.echo(f"note: the session files are searched, not the index: {error}", err=True)
            report.skipped = 0
    sessions = find_sessions(project, Path.home(), os.environ, report)
    if words is None:
        return sessions, None
    return filter(lambda one: mentions(one, words.split(), report), sessions), "scan"


def _by_index(words: list[str], report: SearchReport, *, as_json: bool) -> Iterable[FoundSession]:
    from holdfast.transcripts.discover import find_sessions, mentions
    from holdfast.transcripts.search_index import is_sure, key_of, search_index

    with (
        search_index(common.settings().home) as index,
        common.progress(quiet=as_json, worth=_WORTH_A_BAR) as progress,
    ):
        found = list(find_sessions(None, Path.home(), os.environ, report, index))
        index.update(found, report, partial(progress, "Reading sessions into the index"))
        matching = index.matching(words)
    candidates = [one for one in found if key_of(one) in matching]
    return candidates if is_sure(words) else (one for one in candidates if mentions(one, words, report))


_WORTH_A_BAR = 5_000_000  # bytes


def _none_found(everywhere: bool, words: str | None) -> str:
    where = "" if everywhere else " for this project"
    return f"No agent sessions found{where}{f' with all of: {words}' if words else ''}."


@command.command()
@click.argument("session_ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Delete all of this project's own sessions.")
@click.option("--force", is_flag=True, help="Do not ask for confirmation.")
@common.json_option
def delete(session_ids: tuple[str, ...], everything: bool, force: bool, as_json: bool) -> None:
    """Delete audit and improvement sessions; agents' own sessions are never deleted."""
    if bool(session_ids) == everything:
        raise InvalidInputError("give the sessions to delete, or pass --all")
    own = {state.session_id: kind for kind, state in _own_sessions()}
    if unknown := [name for name in session_ids if name not in own]:
        raise SessionNotFoundError(
            f"no such session of yours here: {unknown[0]}", hint="`holdfast sessions list` shows them"
        )
    chosen = list(own) if everything else list(dict.fromkeys(session_ids))
    if chosen and not force:
        if not common.is_interactive():
            raise InvalidInputError(
                "deleting requires confirmation", hint="pass --force to delete without asking"
            )
        click.confirm(f"Delete {counted(len(chosen), 'session')}?", abort=True, err=True)
    manager = _manager()
    for name in chosen:
        manager.delete_session_state(name, own[name])
    common.tell(as_json, {"deleted": chosen}, f"Deleted: {', '.join(chosen) or 'nothing'}")


@command.command()
def encrypt() -> None:
    """Encrypt audit and improvement sessions, both existing and new ones.

    Uses a passphrase (HOLDFAST_PASSPHRASE, or prompted). It is needed to read sessions, not to keep writing
    them. Files are in age format; without the passphrase nobody can read them again. What else holds
    content and stays unencrypted is listed by name.
    """
    encrypted = counted(_manager().encrypt(common.passphrase(confirm=True)), "session")
    click.echo(f"Encrypted {encrypted}; the key is in .holdfast/key.age, protected by your passphrase")
    for line in _in_clear():
        click.echo(f"not encrypted: {line}", err=True)


def _in_clear() -> list[str]:
    """What still holds content that anybody can read who can read the files, with the path of each."""
    from holdfast.transcripts import search_index

    current = common.settings()
    folder = current.layout.folder
    own = [path for path in _entries(current.layout.sessions) if path.is_file() and not _is_age(path)]
    bundles = [path for path in sorted(current.project.rglob("*.holdfast")) if path.is_file()]
    database = [f"{current.db} (and its -wal and -shm files)" if "://" not in current.db else current.db]
    index = search_index.files_in(current.home)
    places: dict[str, list[Any]] = {
        "session files and journals of pauses": own,
        "copies of your files for undo": [one for one in (current.layout.sidecar,) if one.is_dir()],
        "bundles shared from here, also on the remote": [one for one in (folder / SHARE,) if one.is_dir()],
        "notes about agents' sessions": [one for one in (folder / STATE,) if one.is_dir()],
        "bundles exported earlier": [path for path in bundles if not _is_age(path)],
        "other files of this project": [one for one in _entries(folder) if one.name not in _NAMED],
        "words of all agents' sessions, for searching (`holdfast prune` removes it)": index,
        "the database": database,
        "output of tasks and other data of all your projects": [
            one
            for one in _entries(current.home)
            if one.name not in _NAMED and one not in index and not _is_part_of(one, current.db)
        ],
    }
    named = [f"{what}: {', '.join(map(str, found))}" for what, found in places.items() if found]
    return [*named, "bundles that were exported to other folders, if any"]


_NAMED = frozenset(
    (
        ".gitignore",
        SESSIONS,
        SHARE,
        SIDECAR,
        STATE,
        "key.age",
        "key.pub",
        "mark",
        "projects",
        "server-token",
        "trusted",
    )
)
"""What is told of in another line, or holds no content."""


def _entries(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*")) if path.suffix != ".lock" and path.name != ".lock"]


def _is_part_of(path: Path, database: str) -> bool:
    return str(path).removesuffix("-wal").removesuffix("-shm") == database


def _is_age(path: Path) -> bool:
    from holdfast.store.encryption import is_encrypted

    with path.open("rb") as file:
        return is_encrypted(file.read(64))


@command.command()
def decrypt() -> None:
    """Store audit and improvement sessions unencrypted again."""
    click.echo(f"Decrypted {counted(_manager().decrypt(), 'session')}")


def _manager() -> Any:
    from holdfast.store.item_sessions import SessionStateManager

    return SessionStateManager(common.settings().project, passphrase=common.passphrase)


def _own_sessions() -> list[tuple[Any, Any]]:
    """Kind and state, newest first; the values' library is loaded only where there are any."""
    if not any(common.settings().layout.sessions.glob("*-session-*.json")):
        return []
    manager = _manager()
    found = [(kind, state) for kind in ("audit", "improve") for state in manager.list_sessions(kind)]
    return sorted(found, key=lambda one: one[1].started_at, reverse=True)


def _progress(state: Any) -> str:
    total = state.total_items if hasattr(state, "total_items") else len(state.plan_items)
    return f"{state.current_index}/{total}"


def _own_described(kind: str, state: Any) -> dict[str, Any]:
    path = common.settings().layout.sessions / f"{kind}-session-{state.session_id}.json"
    status = path.stat()
    return {
        "agent": kind,
        "session_id": state.session_id,
        "path": str(path),
        "started": state.started_at,
        "updated": to_datetime(status.st_mtime),
        "size": status.st_size,
        "title": f"{'completed' if state.completed_at else 'in progress'}, {_progress(state)}",
        "project": common.settings().worktree,
    }


def _print_own(own: list[tuple[Any, Any]]) -> None:
    common.print_table(
        ("KIND", "SESSION", "STARTED", "PROGRESS", "STATE"),
        [
            (
                kind,
                state.session_id,
                common.ago(time.time() - state.started_at.timestamp()),
                _progress(state),
                "completed" if state.completed_at else "in progress",
            )
            for kind, state in own
        ],
    )


def _used(found: list[FoundSession]) -> dict[Any, RecordedUsage]:
    """By the index's key; without those that would take long to read, or while another process reads them."""
    from holdfast.base.durable import is_held
    from holdfast.transcripts import search_index as index
    from holdfast.transcripts.discover import SearchReport

    current = common.settings()
    try:
        if not found or is_held(index.lock_of(current.home)):
            return {}
        with index.search_index(current.home) as opened:
            tallies = opened.usage_of(found, SearchReport(), _READ_AT_ONCE)
    except (index.IndexUnusableError, HoldfastError):
        return {}
    return {key: one.recorded(current.prices, current.context_window) for key, one in tallies.items()}


_READ_AT_ONCE = 4_000_000
"""Bytes of sessions that a list reads to tell their use; of the others it is told once a search read them."""


def _described(session: Any, used: dict[Any, RecordedUsage]) -> dict[str, Any]:
    from holdfast.transcripts.search_index import key_of

    usage = used.get(key_of(session))
    return {
        "agent": session.agent,
        "session_id": session.session_id,
        "path": _readable(session.path),
        "started": session.started,
        "updated": session.updated,
        "size": session.size,
        "title": _harmless(session.title),
        "project": _readable(session.project),
        "usage": {**asdict(usage), "context_share": usage.share} if usage else None,
    }


def _readable(path: Path | str | None) -> str | None:
    """A path may hold any bytes."""
    return None if path is None else os.fsencode(path).decode(errors="replace")


def _harmless(title: str | None) -> str | None:
    """A prompt may hold a secret."""
    from holdfast.base.redact import redact

    return redact(title)[0] if title else None


def _print(
    found: list[Any], limit: int, used: dict[Any, RecordedUsage], *, everywhere: bool, is_cut: bool
) -> None:
    from holdfast.transcripts.search_index import key_of

    project = ("PROJECT",) if everywhere else ()
    common.print_table(
        ("AGENT", "SESSION", "UPDATED", "SIZE", "WINDOW", "COST", *project, "FIRST MESSAGE"),
        [
            (
                one.agent,
                one.session_id,
                common.ago(time.time() - one.updated.timestamp()),
                None if one.size is None else f"{one.size / 1_000_000:.1f} MB",
                *_figures(used.get(key_of(one))),
                *((_readable(one.project),) if everywhere else ()),
                _harmless(one.title),
            )
            for one in found[:limit]
        ],
    )
    if len(found) > limit and is_cut:
        click.echo(f"… and more; use --limit {10 * limit} to show more of them")
    elif len(found) > limit:
        click.echo(f"… and {len(found) - limit} more; use --limit {len(found)} to show all")
    there = f"--project {shlex.quote(found[0].project)} " if everywhere and found[0].project else ""
    click.echo(f"Read one with: holdfast {there}context --session {shlex.quote(found[0].session_id)}")


def _figures(used: RecordedUsage | None) -> tuple[str | None, str | None]:
    if used is None:
        return None, None
    share = None if used.share is None else f"{used.share:.0%}"
    least = "≥ " if used.cost_is_partial else ""
    return share, None if used.cost_usd is None else f"{least}${used.cost_usd:.2f}"
