"""How an item is shown on the terminal, and single keys from it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from holdfast.docaudit.items import CodeItem
from holdfast.docaudit.languages import Form, Source, as_docstring, as_jsdoc

# ── keys ──────────────────────────────────────────────────────────────────────────────────────────

# Single keys from the terminal.
#
# The terminal stays in this mode for the whole conversation, so that a key pressed while something is drawn
# or saved is not lost. Ctrl-C is a signal all the time, as everywhere; one that comes in the very moment
# before we begin to wait wakes us too.

try:
    import termios
except ImportError:  # Windows
    termios = None

_ENDS_SEQUENCE = b"~ABCDFHPQRS"


class Keys:
    def __init__(self) -> None:
        self._terminal = sys.stdin.fileno()
        self._before: Any = None
        self._woken, self._wake = -1, -1
        self._old_wake = -1

    def __enter__(self) -> Keys:
        if termios is not None:
            self._woken, self._wake = os.pipe()
            os.set_blocking(self._wake, False)
            self._old_wake = signal.set_wakeup_fd(self._wake)
            self._before = termios.tcgetattr(self._terminal)
            self._take_keys()
        return self

    def __exit__(self, *_: object) -> None:
        if termios is not None:
            self._take_lines()
            signal.set_wakeup_fd(self._old_wake)
            os.close(self._woken)
            os.close(self._wake)

    def _take_keys(self) -> None:
        assert termios is not None  # noqa: S101 - for the type checker
        mode = termios.tcgetattr(self._terminal)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, mode)

    def _take_lines(self) -> None:
        assert termios is not None  # noqa: S101 - for the type checker
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)

    @contextlib.contextmanager
    def lines(self) -> Generator[None]:
        """Back to whole lines, for an editor or a question that wants words."""
        if termios is not None:
            self._take_lines()
        try:
            yield
        finally:
            if termios is not None:
                self._take_keys()

    def read(self) -> str:
        """One key. One that sends several characters (an arrow) is an escape, and means nothing."""
        if termios is None:
            return click.getchar()
        self._wait()
        block = os.read(self._terminal, 1)
        if block in (b"", b"\x04"):  # the terminal is gone, or somebody says so
            raise click.Abort
        if block == b"\x1b":
            while select.select([self._terminal], [], [], 0.01)[0]:
                if os.read(self._terminal, 1) in _ENDS_SEQUENCE:
                    break
        return block.decode("latin-1")

    def read_line(self, echo: Callable[[str], None]) -> str:
        """A line of words, up to Enter; backspace takes a character back."""
        typed = b""
        while (key := self.read()) not in "\r\n":
            if key in "\x7f\b":
                before = typed.decode(errors="ignore")[:-1].encode()
                if before != typed:
                    echo("\b \b")
                typed = before
            elif key >= " ":
                typed += key.encode("latin-1")
                if len(typed.decode(errors="ignore").encode()) == len(typed):  # a whole character
                    echo(typed.decode()[-1])
        echo("\n")
        return typed.decode(errors="replace").strip()

    def _wait(self) -> None:
        """Until there is a key. A signal's Python side (KeyboardInterrupt) runs when it has woken us."""
        while True:
            ready, _, _ = select.select([self._terminal, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 512)
            if self._terminal in ready:
                return


# ── items ─────────────────────────────────────────────────────────────────────────────────────────

# How an item is shown: where one stands, what it is, its documentation, its code.

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
