from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from holdfast.base.errors import CannotDoError, NotFoundError
from holdfast.cli import common
from holdfast.project import formats
from holdfast.project.formats import FOLDER
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import load_settings
from holdfast.project.trust import Trust
from holdfast.store.session_files import SessionFiles

_PARTS = {
    formats.CONFIG: "project settings",
    formats.SESSIONS: "sessions: context for the next agent, and task commands",
    formats.STATE: "reminders, notes and usage of agent sessions",
    formats.SIDECAR: "recorded file changes, for undo",
    formats.SHARE: "the local copy of shared sessions",
}
_LISTED = 20


@dataclass(frozen=True)
class Contents:
    """What stands in a `.holdfast` folder, seen without following a link or reading a file as ours."""

    folder: str
    trusted: bool
    reason: str | None
    files: int
    size: int
    by_part: dict[str, int]
    links: list[str]
    settings: list[str]


@click.command("trust")
@click.option("--show", is_flag=True, help="Only show the contents of the folder.")
@click.option("--revoke", is_flag=True, help="Ignore the folder from now on.")
@common.yes_option
@common.json_option
def command(show: bool, revoke: bool, yes: bool, as_json: bool) -> None:
    """Inspect a .holdfast folder from elsewhere, and trust it.

    A folder that came with a clone or an archive, is tracked by git, or is owned by another user is ignored
    until you trust it. Trusting it means: its sessions are offered to agents as your own, and `holdfast
    resume` runs the commands of their tasks.

    \b
    Examples:
      holdfast trust --show
      holdfast trust
      holdfast trust --revoke
    """
    project = _project()
    if revoke:
        _revoke(project)
        return
    contents = _contents(project)
    if as_json:
        common.print_json(asdict(contents))
    else:
        _print(contents)
    if not show and not contents.trusted:
        _accept(project, contents, yes)


def _project() -> Path:
    """The nearest folder upwards with a `.holdfast`, whoever owns it."""
    given = os.environ.get("HOLDFAST_PROJECT")
    start = load_settings(project_file=False).project if given else Path.cwd()
    for candidate in (start, *start.parents):
        if os.path.lexists(candidate / FOLDER):
            return candidate
    raise NotFoundError("no .holdfast folder here", hint="there is nothing to trust")


def _revoke(project: Path) -> None:
    where = project / FOLDER
    if not Trust().revoke(str(project)):
        raise CannotDoError(f"{where} was not trusted", hint="it is already ignored")
    click.echo(f"{_shown(where)} is ignored from now on.")


def _accept(project: Path, contents: Contents, yes: bool) -> None:
    if contents.links:
        raise CannotDoError(
            "a folder with symbolic links in it cannot be trusted",
            hint=f"remove them first: {', '.join(contents.links[:3])}",
        )
    if not yes and not _agreed():
        raise CannotDoError(
            "the folder is still ignored", hint="`holdfast trust --yes` accepts it without asking"
        )
    Trust().accept(str(project))
    reason = Trust().foreign_because(str(project))
    if reason:
        raise CannotDoError(f"the folder is still ignored: {reason}")
    sessions = ProjectLayout(project).sessions
    if sessions.is_dir():
        SessionFiles(sessions).accept_waiting()
    click.echo("Trusted.", err=True)


def _agreed() -> bool:
    try:
        return click.confirm("Trust this folder?", err=True)
    except click.Abort:  # nobody there to answer
        return False


def _contents(project: Path) -> Contents:
    folder = project / FOLDER
    parts: Counter[str] = Counter()
    size = 0
    links = [_shown(folder)] if folder.is_symlink() else []
    for place, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            path = Path(place, name)
            if path.is_symlink():
                links.append(_shown(path.relative_to(project)))
            elif name in files:
                parts[path.relative_to(folder).parts[0]] += 1
                size += path.lstat().st_size
    reason = Trust().foreign_because(str(project))
    return Contents(
        folder=_shown(folder),
        trusted=reason is None,
        reason=reason,
        files=sum(parts.values()),
        size=size,
        by_part=dict(sorted((_shown(name), number) for name, number in parts.items())),
        links=links,
        settings=_settings(folder / formats.CONFIG),
    )


def _settings(path: Path) -> list[str]:
    """The lines of the settings file, as text only."""
    try:
        if path.is_symlink():
            return []
        lines = path.read_bytes()[:65_536].decode(errors="replace").splitlines()
    except OSError:
        return []
    return [_shown(line) for line in lines if line.strip()][:_LISTED]


def _shown(text: str | Path) -> str:
    """Names from elsewhere may hold control characters, which a terminal would obey."""
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in str(text))


def _print(contents: Contents) -> None:
    click.echo(contents.folder)
    click.echo(f"  {'trusted' if contents.trusted else f'ignored: {contents.reason}'}")
    for name, number in contents.by_part.items():
        meaning = f"  {_PARTS[name]}" if name in _PARTS else ""
        click.echo(f"  {name:12} {number:5} {'file' if number == 1 else 'files'}{meaning}")
    for link in contents.links:
        click.echo(f"  symbolic link: {link}")
    for line in contents.settings:
        click.echo(f"    {line}")
