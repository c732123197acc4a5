"""Conversations at a terminal that walk through items: single keys, nothing lost at any prompt."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import click
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from holdfast.base.errors import CannotDoError, ConflictError, InvalidInputError
from holdfast.base.neutral import without_controls
from holdfast.cli import common
from holdfast.docaudit.audit import RATINGS, Audit, PlanItem
from holdfast.docaudit.improve import Improvement
from holdfast.docaudit.items import CodeItem, analyse
from holdfast.docaudit.languages import Form, Source, SourceError, as_docstring, as_jsdoc, clean, read_source
from holdfast.docaudit.propose import Proposer

# ── the terminal ──────────────────────────────────────────────────────────────────────────────────

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
        import termios
        import tty

        tty.setcbreak(self._terminal, termios.TCSADRAIN)

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
_BAR = 24


def harmless(text: str) -> str:
    """Nothing in a file of somebody's gets to steer the terminal."""
    return without_controls(text.replace("\r\n", "\n"))


class Screen:
    def __init__(self) -> None:
        self.console = Console(file=common.terminal(), highlight=False)

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
            self.say(f"… {len(lines) - len(shown)} more lines; press c to show all", "dim")

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


# ── any of the two ────────────────────────────────────────────────────────────────────────────────

_T = TypeVar("_T", CodeItem, PlanItem)
_SHOWN_LINES = 20
_REFUSALS = (CannotDoError, ConflictError, InvalidInputError)
"""What is told and leaves the choice open; anything else ends the conversation."""


class Dialogue(ABC, Generic[_T]):
    """Shows an item, takes a key, saves what it means; the next item."""

    question: ClassVar[str]
    help: ClassVar[Mapping[str, str]]
    counted: ClassVar[str]
    """What was done with items, in a word."""

    def __init__(self, screen: Screen, command: str) -> None:
        self._screen = screen
        self._command = command
        self._keys = Keys()
        self._actions: dict[str, Callable[[_T], bool]] = {}
        """What keys do; true where the item is decided."""

    @property
    @abstractmethod
    def _item(self) -> _T | None:
        """The one to decide about now; None when all are."""

    @abstractmethod
    def _progress(self) -> tuple[int, int]:
        """How many are decided, of how many."""

    @abstractmethod
    def _present(self, item: _T) -> bool:
        """Show the item; false where nothing is left to decide about it."""

    def run(self) -> None:
        """Until all is decided or the user has had enough; `click.Abort` and Ctrl-C pass through."""
        try:
            with self._keys:
                while (item := self._item) is not None and self._one(item):
                    pass
        except (KeyboardInterrupt, click.Abort):
            self._screen.say("")
            self._tell_how_to_go_on()
            raise
        if self._item is not None:
            self._tell_how_to_go_on()

    def _one(self, item: _T) -> bool:
        """Take keys until something was done about it; False to stop."""
        if not self._present(item):
            return True
        while True:
            self._screen.prompt(self.question)
            key = self._keys.read().lower()
            self._screen.answered(key)
            if key == "q":
                return False
            action = self._actions.get(key)
            if action is None:
                self._screen.help(self.help)
            elif action(self._newest(item)):
                return True

    def _newest(self, item: _T) -> _T:
        """The item as it is now."""
        return item

    def _tell_how_to_go_on(self) -> None:
        done, total = self._progress()
        self._screen.say(f"Saved: {done}/{total} {self.counted}. Continue with: {self._command}")


# ── an audit ──────────────────────────────────────────────────────────────────────────────────────


class AuditDialogue(Dialogue[CodeItem]):
    question = "Rating 1-4, s, u, c, q or ?:"
    help: ClassVar[Mapping[str, str]] = {
        **{str(rating): meaning for rating, meaning in RATINGS.items()},
        "s": "skip this item",
        "u": "undo the last rating",
        "c": "show all of the code, or only the first lines",
        "q": "quit; everything is saved",
        "Ctrl-C": "the same",
        "?": "this help",
    }
    counted = "rated"

    def __init__(self, audit: Audit, screen: Screen, command: str) -> None:
        super().__init__(screen, command)
        self._audit = audit
        ratings = {str(rating): partial(self._rate, rating) for rating in RATINGS}
        self._actions = {**ratings, "s": partial(self._rate, None), "u": self._undo, "c": self._code}

    @property
    def _item(self) -> CodeItem | None:
        return self._audit.current

    def _progress(self) -> tuple[int, int]:
        return self._audit.done, len(self._audit.items)

    def _rate(self, rating: int | None, item: CodeItem) -> bool:
        self._audit.rate(item, rating)
        return True

    def _undo(self, item: CodeItem) -> bool:  # noqa: ARG002
        before = self._audit.undo()
        told = f"Undid the rating of {before.name}." if before else "There is no rating to undo."
        self._screen.say(told, "yellow")
        return before is not None

    def _code(self, item: CodeItem) -> bool:
        complete = self._audit.state.config.get("showCodeMode") != "complete"
        self._audit.configure(showCodeMode="complete" if complete else "truncated")
        self._present(item)
        return False

    def _present(self, item: CodeItem) -> bool:
        audit, config = self._audit, self._audit.state.config
        self._screen.heading(audit.done, len(audit.items), item)
        try:
            source, today = as_it_is(audit, item)
        except SourceError as error:
            self._screen.say(error.message, "red")
            return True
        most = None if config.get("showCodeMode") == "complete" else int(config.get("maxLines", _SHOWN_LINES))
        self._screen.documentation(today.documentation)
        self._screen.code(today, source, most)
        return True


def as_it_is(audit: Audit, item: CodeItem) -> tuple[Source, CodeItem]:
    """The file and the item in it as they are now: somebody may be editing it meanwhile."""
    source = read_source(audit.sessions.project, item.filepath)
    today = next((one for one in analyse(source) if one.name == item.name), None)
    if today is None:
        raise SourceError(
            f"{item.name} is no longer in {item.filepath}", hint="run the command again with --resume"
        )
    return source, today


# ── an improvement run ────────────────────────────────────────────────────────────────────────────


class ImproveDialogue(Dialogue[PlanItem]):
    question = "a, e, s, r, u, c, q or ?:"
    help: ClassVar[Mapping[str, str]] = {
        "a": "accept: write it into the file",
        "e": "edit it in your editor, then review it again",
        "s": "skip this item",
        "r": "request another proposal; you can say what should be different",
        "u": "undo the last decision, including in the file",
        "c": "show all of the code, or only the first lines",
        "q": "quit; everything is saved",
        "Ctrl-C": "the same",
        "?": "this help",
    }
    counted = "decided"

    def __init__(self, improvement: Improvement, proposer: Proposer, screen: Screen, command: str) -> None:
        super().__init__(screen, command)
        self._improvement = improvement
        self._proposer = proposer
        self._most_lines: int | None = _SHOWN_LINES
        self._actions = {
            "a": self._accept,
            "e": self._edited,
            "s": self._skip,
            "r": self._another,
            "u": self._undo,
            "c": self._code,
        }

    @property
    def _item(self) -> PlanItem | None:
        return self._improvement.current

    def _progress(self) -> tuple[int, int]:
        return self._improvement.done, len(self._improvement.plan)

    def _newest(self, item: PlanItem) -> PlanItem:
        here = (item.filepath, item.name)
        return next(one for one in self._improvement.plan if (one.filepath, one.name) == here)

    def _present(self, item: PlanItem) -> bool:
        if not self._show(item):
            self._improvement.skip(item)
            return False
        if item.proposal is None:
            self._ask(item)
        else:
            self._show_proposal(item)
        return True

    def _accept(self, item: PlanItem) -> bool:
        if item.proposal is None:
            self._screen.say(
                "There is no proposal yet. Press r to request one, or e to write it yourself.", "yellow"
            )
            return False
        try:
            self._improvement.accept(item, item.proposal)
        except _REFUSALS as error:
            self._refused(error)
            return False
        self._screen.say(f"Written to {item.filepath}.", "green")
        return True

    def _edited(self, item: PlanItem) -> bool:
        start = item.proposal or self._improvement.look(item)[1].documentation or ""
        with self._keys.lines():
            edited = click.edit(start + "\n", extension=".txt", require_save=True)
        text = clean(edited) if edited else None
        if not text:
            self._screen.say("Nothing was changed.", "yellow")
            return False
        self._show_proposal(self._improvement.keep(item, text))
        return False

    def _skip(self, item: PlanItem) -> bool:
        self._improvement.skip(item)
        return True

    def _another(self, item: PlanItem) -> bool:
        wish = ""
        if item.proposal is not None:
            self._screen.prompt("What should be different (Enter: just try again):")
            wish = self._keys.read_line(self._screen.echo)
        self._ask(item, wish)
        return False

    def _undo(self, item: PlanItem) -> bool:  # noqa: ARG002
        try:
            before = self._improvement.undo()
        except _REFUSALS as error:
            self._refused(error)
            return False
        if before is None:
            self._screen.say("There is nothing to undo.", "yellow")
            return False
        self._screen.say(f"Undid the decision about {before.name}.", "yellow")
        return True

    def _code(self, item: PlanItem) -> bool:
        self._most_lines = None if self._most_lines else _SHOWN_LINES
        if self._show(item):
            self._show_proposal(item)
        return False

    # ── showing ────────────────────────────────────────────────────────────────────────────

    def _ask(self, item: PlanItem, wish: str = "") -> None:
        try:
            with self._screen.console.status("waiting for the model …"):
                found = self._improvement.propose(item, self._proposer, wish)
        except _REFUSALS as error:
            self._refused(error)
            return
        if found.text is None:
            self._screen.say(f"No proposal: {found.failure}", "red")
        else:
            self._show_proposal(self._newest(item))

    def _show(self, item: PlanItem) -> bool:
        """False where there is nothing left to show."""
        improvement = self._improvement
        try:
            source, today = improvement.look(item)
        except _REFUSALS as error:
            self._refused(error)
            return False
        self._screen.heading(improvement.done, len(improvement.plan), today, item.reason)
        if today.documentation is not None:
            self._screen.documentation(today.documentation)
        self._screen.code(today, source, self._most_lines)
        return True

    def _show_proposal(self, item: PlanItem) -> None:
        if item.proposal is not None:
            self._screen.proposal(item.proposal, item.language)

    def _refused(self, error: CannotDoError | ConflictError | InvalidInputError) -> None:
        self._screen.say(f"{error.message}" + (f" ({error.hint})" if error.hint else ""), "red")
