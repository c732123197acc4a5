"""Every text in the program that somebody may read: messages, hints, warnings, help, what hooks say.

Found in the source, so that none is missing for want of a test that prints it. Whatever holds at least two
words counts; queries, patterns and the like that slip in do no harm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click

import holdfast
from holdfast.cli.main import cli

SOURCE = Path(holdfast.__file__).parent
_NOT_READ = ("store/migrations", "findings/rules", "base/command_line.py")
"""Nobody sees their strings."""


def all_texts() -> str:
    """By module, in the order of the source; what is filled in stands in braces."""
    return "\n".join(
        f"## {name}\n\n" + "".join(f"{text}\n" for text in found)
        for path in sorted(SOURCE.rglob("*.py"))
        if not (name := path.relative_to(SOURCE).as_posix()).startswith(_NOT_READ)
        and (found := list(dict.fromkeys(_texts_of(path))))
    )


def all_help() -> str:
    """`--help` of every command."""
    return "\n".join(f"$ {path} --help\n{text}\n" for path, text in _help_of(cli, click.Context(cli)))


def _help_of(command: click.Command, parent: click.Context) -> Iterator[tuple[str, str]]:
    is_root = command is cli
    context = click.Context(
        command,
        info_name="holdfast" if is_root else command.name,
        parent=None if is_root else parent,
        help_option_names=cli.context_settings["help_option_names"],
    )
    context.terminal_width = 100
    command._help_option = None  # as the first context that asked for it had it, in whichever test that was
    yield context.command_path, "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _help_of(below, context)


def _texts_of(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unread = _explanations(tree) | _parts_of_texts(tree)
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr)]
    for node in sorted(strings, key=lambda node: (node.lineno, node.col_offset)):
        text = _shown(node)
        if id(node) not in unread and _is_read(text):
            yield " ".join(text.split())


def _explanations(tree: ast.AST) -> set[int]:
    """Docstrings, and strings below an assignment. Those of commands are in their help."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _parts_of_texts(tree: ast.AST) -> set[int]:
    filled = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    return {id(part) for node in filled for part in ast.walk(node) if part is not node}


def _shown(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_part(part) for part in node.values)


def _part(part: ast.expr) -> str:
    """What is filled in by its last name: how it is worked out does not change the wording."""
    match part:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return f"{{{name}}}"
        case _:
            return "{…}"


def _is_read(text: str) -> bool:
    return len([word for word in text.split() if word.strip(".,:;!?`'\"()…").isalpha()]) > 1
