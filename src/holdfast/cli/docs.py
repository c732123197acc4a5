from __future__ import annotations

import functools
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from holdfast.base.errors import InvalidInputError, SessionNotFoundError
from holdfast.base.text import counted
from holdfast.cli import common

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.docaudit.improve import Improvement
    from holdfast.docaudit.search import Analysis
    from holdfast.docaudit.sessions import ItemSessions
    from holdfast.model.item_session import SessionType

STYLES = ("google", "numpy", "sphinx", "tags", "plain")
NOT_GIVEN = None
LATEST = ""
"""`--resume` without an id."""


@click.group("docs")
def command() -> None:
    """Rate, rank and improve the documentation of your code.

    Covers functions, classes and methods in Python, JavaScript and TypeScript. Every answer is
    saved immediately: quit with q or Ctrl-C at any time and continue later.

    \b
    Examples:
      holdfast docs audit src
      holdfast docs plan src --limit 10
      holdfast docs improve src
      holdfast tx undo last
    """


def _on_sessions(kind: SessionType) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command with the options of a session, told which sessions and which one of them is meant."""
    options = (
        click.argument("path", metavar="PATH", required=False),
        click.option(
            "--resume",
            metavar="[ID]",
            is_flag=False,
            flag_value=LATEST,
            default=NOT_GIVEN,
            help="Resume session ID, or the latest one.",
        ),
        click.option("--new", is_flag=True, help="Start a new session, even if there are others."),
        click.option("--clear-session", is_flag=True, help="Delete the sessions of PATH and exit."),
        common.json_option,
    )

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(body)
        def run(
            path: str | None, resume: str | None, new: bool, clear_session: bool, as_json: bool, **rest: Any
        ) -> None:
            sessions, resume = _sessions(kind, path, resume)
            if clear_session:
                deleted = sessions.delete(resume or None)
                common.tell(as_json, {"deleted": deleted}, f"Deleted: {', '.join(deleted) or 'nothing'}")
                return
            if new and resume is not NOT_GIVEN:
                raise InvalidInputError("--new and --resume cannot be combined", hint="give one of them")
            body(sessions, resume, new, as_json, **rest)

        for option in reversed(options):  # the last one stands on top
            run = option(run)
        return run

    return decorate


@command.command()
@_on_sessions("audit")
@click.option(
    "--max-lines",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Maximum lines of code to show.",
)
def audit(sessions: ItemSessions, resume: str | None, new: bool, as_json: bool, max_lines: int) -> None:
    """Rate the documentation of every function, class and method in PATH.

    On a terminal, items are shown one at a time. Press 1 (missing or misleading) to 4 (excellent),
    s to skip, u to undo, ? for help. Items in changed files are shown again. With --json, or without
    a terminal, the items and their ratings are only listed.

    \b
    Examples:
      holdfast docs audit src
      holdfast docs audit src --resume
      holdfast docs audit src --json
    """
    if as_json or not common.is_interactive():
        _list_items(sessions, resume, new, as_json)
        return
    from holdfast.cli.dialogue import AuditDialogue, Screen
    from holdfast.docaudit.audit import Audit

    screen = Screen()
    state = _chosen(sessions, resume, new, "rated")
    if state is None:
        with common.progress() as progress:
            session = Audit.start(sessions, {"showCodeMode": "truncated", "maxLines": max_lines}, progress)
    else:
        with common.progress() as progress:
            session, notices = Audit.resume(sessions, state, progress)
        screen.say(f"Resuming session {state.session_id[:8]}…")
        screen.notices(notices)
    _tell_skipped(session.analysis.skipped)
    AuditDialogue(session, screen, _again(sessions, session.state.session_id)).run()
    _print_summary(session.summary())
    if session.current is None and session.items:
        click.echo(f"Next: holdfast docs plan {shlex.quote(sessions.scope)}")


@command.command()
@_on_sessions("audit")
@click.option("--limit", type=click.IntRange(1), help="Show only the first N items.")
def plan(sessions: ItemSessions, resume: str | None, new: bool, as_json: bool, limit: int | None) -> None:
    """Rank what to document first in PATH: important code with missing or low-rated documentation.

    Uses the ratings of the latest audit, or of audit ID with --resume. With --new it ignores
    ratings and ranks only what has no documentation.

    \b
    Examples:
      holdfast docs plan src
      holdfast docs plan src --limit 10 --json
    """
    state, analysis, ranked = _ranked(sessions, resume, new, as_json=as_json)
    shown = ranked[:limit]
    if as_json:
        common.print_json(
            {
                "path": sessions.scope,
                "audit_session_id": state.session_id if state else None,
                "total": len(ranked),
                "items": [
                    one.model_dump(
                        include={"filepath", "name", "kind", "language", "line", "score", "reason"}
                    )
                    for one in shown
                ],
                "skipped": analysis.skipped,
            }
        )
        return
    _tell_skipped(analysis.skipped)
    if not ranked:
        click.echo("Nothing to improve: everything is documented, and nothing is rated below 4.")
        return
    common.print_table(
        ("SCORE", "KIND", "ITEM", "WHERE", "WHY"),
        [(one.score, one.kind, one.name, f"{one.filepath}:{one.line}", one.reason) for one in shown],
    )
    if len(shown) < len(ranked):
        click.echo(f"… and {len(ranked) - len(shown)} more; use --limit {len(ranked)} to show all")
    if state is None:
        click.echo(
            f"Ranked without ratings. To rate first, run: holdfast docs audit {shlex.quote(sessions.scope)}"
        )


@command.command()
@_on_sessions("improve")
@click.option("--limit", type=click.IntRange(1), help="Process only the first N items of the plan.")
@click.option("--style", type=click.Choice(STYLES), help="Docstring style. Default: the project's own.")
@click.option("--tone", help="Tone, for example: terse and technical.")
@click.option("--yes", "-y", is_flag=True, help="Accept every proposal without asking.")
def improve(
    sessions: ItemSessions,
    resume: str | None,
    new: bool,
    as_json: bool,
    limit: int | None,
    yes: bool,
    **preferences: str | None,
) -> None:
    """Let a model propose documentation for PATH; you accept, edit, skip or undo.

    Works through the plan (see `holdfast docs plan`). The model is set by HOLDFAST_MODEL; it writes in the
    style of your project. A file is only written if the result parses and every other byte is unchanged.
    `holdfast tx` lists and undoes what was written.

    \b
    Examples:
      holdfast docs improve src
      holdfast docs improve src --limit 5 --style google
      holdfast docs improve src --resume
      holdfast docs improve src --yes --json
    """
    if not yes and (as_json or not common.is_interactive()):
        raise InvalidInputError(
            "this command asks about every proposal, and there is no terminal",
            hint="pass --yes to accept all, or run `holdfast docs plan` to see what would be improved",
        )
    from holdfast.docaudit.propose import Proposer
    from holdfast.docaudit.search import find_callers
    from holdfast.undo.transactions import SideCar

    with SideCar(sessions.project) as sidecar:
        state = _chosen(sessions, resume, new, "decided", ask=not yes)
        wanted = {name: value for name, value in preferences.items() if value is not None}
        session = _improvement(sessions, sidecar, state, limit, wanted, as_json=as_json)
        if session is None:
            _nothing_to_improve(as_json)
            return
        proposer = Proposer(
            common.settings(),
            tone=session.state.user_preferences.get("tone"),
            callers=lambda item: find_callers(sessions.project, session.analysis.files, item),
        )
        failures: dict[str, str] = {}
        if yes:
            from holdfast.docaudit.improve import accept_all

            failures = accept_all(session, proposer)
        else:
            from holdfast.cli.dialogue import ImproveDialogue, Screen

            ImproveDialogue(session, proposer, Screen(), _again(sessions, session.state.session_id)).run()
        session.finish()
    _report_improvement(session, failures, as_json)


def _improvement(
    sessions: ItemSessions,
    sidecar: Any,
    state: Any,
    limit: int | None,
    preferences: dict[str, Any],
    *,
    as_json: bool,
) -> Improvement | None:
    """The session to work in; None where there is nothing to do."""
    from holdfast.docaudit.improve import Improvement
    from holdfast.docaudit.sessions import ItemSessions as Sessions

    if state is not None:
        with common.progress(quiet=as_json) as progress:
            session, notices = Improvement.resume(sessions, sidecar, state, progress)
        click.echo(f"Resuming session {state.session_id[:8]}…", err=True)
        for line in notices:
            click.echo(f"• {line}", err=True)
        return session
    audits = Sessions(sessions.project, "audit", sessions.scope)
    _, analysis, ranked = _ranked(audits, NOT_GIVEN, new=False, as_json=as_json)
    _tell_skipped(analysis.skipped)
    if not ranked:
        return None
    return Improvement.start(sessions, sidecar, analysis, ranked[:limit], preferences)


def _nothing_to_improve(as_json: bool) -> None:
    if as_json:
        common.print_json({"session_id": None, "accepted": 0, "skipped": 0, "items": []})
    else:
        click.echo("Nothing to improve: everything is documented, and nothing is rated below 4.")


def _report_improvement(session: Improvement, failures: dict[str, str], as_json: bool) -> None:
    state = session.state
    if as_json:
        common.print_json(
            {
                "session_id": state.session_id,
                "transaction_id": state.transaction_id,
                "completed": state.completed_at is not None,
                "accepted": session.count("accepted"),
                "skipped": session.count("skipped"),
                "items": [
                    one.model_dump(include={"filepath", "name", "kind", "outcome", "change_id", "proposal"})
                    for one in session.plan
                ],
                "failures": failures,
            }
        )
        return
    for where, reason in failures.items():
        click.echo(f"warning: {where}: {reason}", err=True)
    accepted, skipped = session.count("accepted"), session.count("skipped")
    click.echo(f"{accepted} written, {skipped} skipped, {len(session.plan) - accepted - skipped} left")
    if accepted:
        click.echo(f"See it with: holdfast tx show {state.transaction_id}")


def _ranked(
    audits: ItemSessions, resume: str | None, new: bool, *, as_json: bool
) -> tuple[Any, Any, list[Any]]:
    """The audit that was taken into account, the analysis, and the plan."""
    from holdfast.docaudit.audit import rank

    state, ratings = _ratings(audits, resume, new)
    analysis = _analysed(audits, as_json)
    return state, analysis, rank(analysis.items, ratings)


def _analysed(sessions: ItemSessions, as_json: bool) -> Analysis:
    from holdfast.docaudit.search import analyse_files, find_files

    files = find_files(sessions.project, sessions.scope)
    with common.progress(quiet=as_json) as progress:
        return analyse_files(sessions.project, files, progress=progress)


def _sessions(kind: SessionType, path: str | None, resume: str | None) -> tuple[ItemSessions, str | None]:
    from holdfast.docaudit.search import scope_of
    from holdfast.docaudit.sessions import ItemSessions

    if path is None and resume and Path(resume).exists():
        path, resume = resume, LATEST  # `--resume src`: the path was taken for an id
    if path is None:
        raise click.UsageError("Missing argument 'PATH'.")
    project = common.settings().project
    return ItemSessions(project, kind, scope_of(project, path)), resume


def _chosen(
    sessions: ItemSessions, resume: str | None, new: bool, word: str, *, ask: bool = True
) -> Any | None:
    """The session to go on with: named, the latest, or the one found and agreed to."""
    if new:
        return None
    if resume is not NOT_GIVEN:
        return sessions.named(resume) if resume else sessions.latest()
    found = sessions.unfinished()
    if found is None:
        return None
    total = found.total_items if hasattr(found, "total_items") else len(found.plan_items)
    age = common.ago(time.time() - found.started_at.timestamp())
    told = f"Found session {found.session_id[:8]} ({found.current_index}/{total} {word}, started {age})."
    if ask and not _agreed(f"{told} Resume? [Y/n]"):
        return None
    return sessions.load(found.session_id)


def _agreed(question: str) -> bool:
    """A single key; Enter is yes."""
    from holdfast.cli.dialogue import Keys

    click.echo(f"{question} ", nl=False, err=True)
    with Keys() as keys:
        while True:
            key = keys.read().lower()
            if key in "yn\r\n":
                click.echo("n" if key == "n" else "y", err=True)
                return key != "n"


def _again(sessions: ItemSessions, session_id: str) -> str:
    return f"holdfast docs {sessions.kind} {shlex.quote(sessions.scope)} --resume {session_id[:8]}"


def _tell_skipped(skipped: dict[str, str]) -> None:
    for reason in list(skipped.values())[:5]:
        click.echo(f"warning: skipped: {reason}", err=True)
    if len(skipped) > 5:
        click.echo(f"warning: and {len(skipped) - 5} more files were skipped", err=True)


def _list_items(sessions: ItemSessions, resume: str | None, new: bool, as_json: bool) -> None:
    from holdfast.docaudit.audit import summarise

    analysis = _analysed(sessions, as_json)
    state, ratings = _ratings(sessions, resume, new)
    summary = summarise(analysis.items, ratings)
    if as_json:
        common.print_json(
            {
                "path": sessions.scope,
                "session_id": state.session_id if state else None,
                "completed": bool(state and state.completed_at),
                "summary": vars(summary),
                "items": [
                    {**asdict(item), "rating": ratings.get(item.filepath, {}).get(item.name)}
                    for item in analysis.items
                ],
                "skipped": analysis.skipped,
            }
        )
        return
    _tell_skipped(analysis.skipped)
    _print_summary(summary)
    click.echo("Rating requires a terminal.", err=True)


def _ratings(sessions: ItemSessions, resume: str | None, new: bool) -> tuple[Any, Any]:
    """An audit session and what still holds of its ratings."""
    from holdfast.docaudit.audit import ratings_of

    if new:
        return None, {}
    if resume:
        state = sessions.named(resume)
    else:
        found = sessions.found()
        if resume == LATEST and not found:
            raise SessionNotFoundError(f"no audit found for {sessions.scope}", hint=sessions.hint_new)
        state = found[0] if found else None
    return state, ratings_of(sessions, state) if state else {}


def _print_summary(summary: Any) -> None:
    share = 100 * summary.documented // summary.total if summary.total else 100
    click.echo(f"{counted(summary.total, 'item')}, {summary.documented} documented ({share} %)")
    if summary.rated or summary.skipped:
        average = f", {summary.average:.1f} on average" if summary.average is not None else ""
        click.echo(f"{summary.rated} rated{average}, {summary.skipped} skipped")
    sys.stdout.flush()
