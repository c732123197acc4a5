"""Write the reference from the code: every command, every name of the package, and the man page.

python scripts/reference.py FOLDER MAN-FOLDER
python scripts/reference.py MAN-FOLDER          the man page alone, which takes click and no other package
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import holdfast
from holdfast.cli.main import COMMANDS, cli


def program() -> click.Context:
    """As wide in every terminal, so that the same code makes the same files."""
    return click.Context(cli, info_name="holdfast", terminal_width=78)


def contexts() -> Iterator[click.Context]:
    """Of every command, groups before what is in them."""
    top = program()
    for name in COMMANDS:
        command = cli.get_command(top, name)
        assert command is not None
        yield from below(click.Context(command, info_name=name, parent=top))


def below(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from below(click.Context(command, info_name=name, parent=context))


def commands() -> str:
    parts = ["# Commands\n\nAs `--help` prints them.\n"]
    for context in contexts():
        parts.append(f"\n## {context.command_path}\n\n```text\n{context.get_help().rstrip()}\n```\n")
    return "".join(parts)


def python() -> str:
    parts = ["# Python\n\nWhat `from holdfast import …` offers.\n"]
    for name in sorted(holdfast.__all__):
        value = getattr(holdfast, name)
        if not inspect.isclass(value):
            continue
        parts.append(f"\n## {name}\n\n{value.__dict__.get('__doc__') or ''}\n")
        for method, function in inspect.getmembers(value, inspect.isfunction):
            ours = function.__module__.startswith("holdfast") and "](" not in (function.__doc__ or "")
            if method.startswith("_") or not ours:
                continue
            told = (inspect.getdoc(function) or "").strip()
            parts.append(
                f"\n### {name}.{method}\n\n```text\n{method}{inspect.signature(function)}\n```\n\n{told}\n"
            )
    return "".join(parts)


def manual() -> str:
    """In the man format; every command with its own section."""
    top = program()
    parts = [
        f'.TH HOLDFAST 1 "" "holdfast {holdfast.__version__}" "User Commands"\n',
        ".SH NAME\nholdfast \\- pause, snapshot and resume the work of AI agents\n",
        ".SH SYNOPSIS\n.B holdfast\n[OPTIONS] COMMAND [ARGUMENTS]\n.SH DESCRIPTION\n.nf\n",
        escaped(top.get_help()),
        "\n.fi\n",
    ]
    for context in contexts():
        parts.append(f'.SH "{context.command_path.upper()}"\n.nf\n{escaped(context.get_help())}\n.fi\n')
    return "".join(parts)


def escaped(text: str) -> str:
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in lines)


def main(man: Path, folder: Path | None = None) -> None:
    man.mkdir(parents=True, exist_ok=True)
    (man / "holdfast.1").write_text(manual(), encoding="utf-8")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "commands.md").write_text(commands(), encoding="utf-8")
        (folder / "python.md").write_text(python(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, reversed(sys.argv[1:])))
