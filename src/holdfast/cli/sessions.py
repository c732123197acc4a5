from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from holdfast.cli import common


@click.group("sessions")
def command() -> None:
    """The sessions that coding agents keep of this project.

    \b
    Examples:
      holdfast sessions list
      holdfast sessions list --json
    """


@command.command("list")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many at most.")
@common.json_option
def list_sessions(limit: int, as_json: bool) -> None:
    """List the sessions of Claude Code, Codex, Gemini CLI and OpenCode, newest first."""
    from holdfast.transcripts.discover import SearchReport, find_sessions

    report = SearchReport()
    project = common.settings().project
    found = sorted(
        find_sessions(project, Path.home(), os.environ, report), key=lambda one: one.updated, reverse=True
    )
    if as_json:
        common.print_json([_described(one) for one in found[:limit]])
    elif not found:
        click.echo("No agent keeps a session of this project.")
    else:
        _print(found, limit)
    if report.skipped:
        click.echo(f"warning: {report.skipped} files could not be read and were passed over", err=True)


def _described(session: Any) -> dict[str, Any]:
    return {
        "agent": session.agent,
        "session_id": session.session_id,
        "path": os.fsencode(session.path).decode(errors="replace"),
        "started": session.started,
        "updated": session.updated,
        "size": session.size,
        "title": _harmless(session.title),
    }


def _harmless(title: str | None) -> str | None:
    """A prompt may hold a secret."""
    from holdfast.redact import redact

    return redact(title)[0] if title else None


def _print(found: list[Any], limit: int) -> None:
    common.print_table(
        ("AGENT", "SESSION", "UPDATED", "SIZE", "BEGAN WITH"),
        [
            (
                one.agent,
                one.session_id,
                common.ago(time.time() - one.updated.timestamp()),
                None if one.size is None else f"{one.size / 1_000_000:.1f} MB",
                _harmless(one.title),
            )
            for one in found[:limit]
        ],
    )
    if len(found) > limit:
        click.echo(f"… and {len(found) - limit} more; --limit {len(found)} shows all")
    click.echo(f"Read one with: holdfast context --session {found[0].session_id}")
