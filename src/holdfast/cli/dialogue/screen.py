"""How an item is shown: where one stands, what it is, its documentation, its code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from holdfast.docaudit.items import CodeItem
from holdfast.docaudit.languages import Form, Source, as_docstring, as_jsdoc

_LEXERS = {"python": "python", "javascript": "javascript", "typescript": "typescript", "tsx": "tsx"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BAR = 24


def harmless(text: str) -> str:
    """Nothing in a file of somebody's gets to steer the terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


class Screen:
    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(harmless(text), style=style))

    def notices(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(f"• {line}", "yellow")

    def heading(self, done: int, total: int, item: CodeItem, note: str = "") -> None:
        filled = _BAR * done // total if total else _BAR
        bar = "█" * filled + "░" * (_BAR - filled)
        title = Text.assemble(
            (f" {done + 1}/{total} ", "bold"), (bar, "cyan"), f" {100 * done // max(1, total)} % "
        )
        self.console.print()
        self.console.print(Rule(title, align="left", style="dim"))
        what = Text.assemble((f"{item.kind} ", "dim"), (harmless(item.name), "bold"))
        what.append(f"  {harmless(item.filepath)}:{item.line}", style="dim")
        if note:
            what.append(f"  {harmless(note)}", style="magenta")
        self.console.print(what)

    def documentation(self, text: str | None) -> None:
        if text is None:
            self.console.print(Text("no documentation", style="italic red"))
        else:
            self.console.print(Padding(Text(harmless(text), style="green"), (0, 0, 0, 2)))

    def proposal(self, text: str, language: str) -> None:
        """As it would stand in the file."""
        form = as_docstring if language == "python" else as_jsdoc
        self.console.print(Text("proposal", style="bold cyan"))
        code = harmless(form(text, "", Form()))
        self.console.print(
            Padding(Syntax(code, _LEXERS[language], theme="ansi_dark", word_wrap=True), (0, 0, 0, 2))
        )

    def code(self, item: CodeItem, source: Source, most: int | None) -> None:
        lines = harmless(source.data.decode("utf-8-sig")).split("\n")[item.line - 1 : item.end_line]
        shown = lines if most is None else lines[:most]
        syntax = Syntax(
            "\n".join(shown),
            _LEXERS[item.language],
            theme="ansi_dark",
            line_numbers=True,
            start_line=item.line,
            word_wrap=False,
        )
        self.console.print(syntax)
        if len(shown) < len(lines):
            self.say(f"… {len(lines) - len(shown)} more lines; c shows all", "dim")

    def help(self, keys: Mapping[str, str]) -> None:
        for key, meaning in keys.items():
            self.console.print(Text.assemble("  ", (f"{key:<8}", "bold"), meaning))

    def prompt(self, text: str) -> None:
        self.console.print(Text(text, style="bold"), end=" ", soft_wrap=True)

    def answered(self, key: str) -> None:
        self.console.print(key if key.isprintable() else "")

    def echo(self, typed: str) -> None:
        """What a user types, as it is typed."""
        self.console.file.write(typed)
        self.console.file.flush()
