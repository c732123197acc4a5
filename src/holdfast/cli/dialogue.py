"""Conversations at a terminal that walk through items: single keys, nothing lost at any prompt."""

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

from holdfast.base.errors import CannotDoError, ConflictError, InvalidInputError
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


# ── an audit ──────────────────────────────────────────────────────────────────────────────────────

# The conversation of an audit: show an item, take a key, save.

AUDIT_PROMPT = "Rating 1-4, s, u, c, q or ?:"
AUDIT_HELP = {
    **{str(rating): f"{meaning}" for rating, meaning in RATINGS.items()},
    "s": "skip it",
    "u": "undo the last rating",
    "c": "all of the code, or its first lines",
    "q": "stop here; everything is saved",
    "Ctrl-C": "the same",
    "?": "this help",
}


class AuditDialogue:
    def __init__(self, audit: Audit, screen: Screen, command: str) -> None:
        self._audit = audit
        self._screen = screen
        self._command = command

    def run(self) -> None:
        """Until all is rated or the user has had enough; `click.Abort` and Ctrl-C pass through."""
        try:
            with Keys() as keys:
                while (item := self._audit.current) is not None and self._one(item, keys):
                    pass
        except (KeyboardInterrupt, click.Abort):
            self._screen.say("")
            self._tell_how_to_go_on()
            raise
        if self._audit.current is not None:
            self._tell_how_to_go_on()

    def _one(self, item: CodeItem, keys: Keys) -> bool:
        """Show one item and take keys until something was done about it; False to stop."""
        self._show(item)
        while True:
            self._screen.prompt(AUDIT_PROMPT)
            key = keys.read().lower()
            self._screen.answered(key)
            if key in "1234":
                self._audit.rate(item, int(key))
                return True
            if key == "s":
                self._audit.rate(item, None)
                return True
            if key == "q":
                return False
            if key == "u":
                before = self._audit.undo()
                if before is not None:
                    self._screen.say(f"Took back the rating of {before.name}.", "yellow")
                    return True
                self._screen.say("There is no rating to take back.", "yellow")
            elif key == "c":
                complete = self._audit.state.config.get("showCodeMode") != "complete"
                self._audit.configure(showCodeMode="complete" if complete else "truncated")
                self._show(item)
            else:
                self._screen.help(AUDIT_HELP)

    def _show(self, item: CodeItem) -> None:
        audit, config = self._audit, self._audit.state.config
        self._screen.heading(audit.done, len(audit.items), item)
        try:
            source, today = as_it_is(audit, item)
        except SourceError as error:
            self._screen.say(error.message, "red")
            return
        self._screen.documentation(today.documentation)
        self._screen.code(
            today,
            source,
            None if config.get("showCodeMode") == "complete" else int(config.get("maxLines", 20)),
        )

    def _tell_how_to_go_on(self) -> None:
        done, total = self._audit.done, len(self._audit.items)
        self._screen.say(f"Saved: {done}/{total} rated. Go on with: {self._command}")


def as_it_is(audit: Audit, item: CodeItem) -> tuple[Source, CodeItem]:
    """The file and the item in it as they are now: somebody may be editing it meanwhile."""
    source = read_source(audit.sessions.project, item.filepath)
    today = next((one for one in analyse(source) if one.name == item.name), None)
    if today is None:
        raise SourceError(f"{item.name} is no longer in {item.filepath}", hint="start again with --resume")
    return source, today


# ── an improvement run ────────────────────────────────────────────────────────────────────────────

# The conversation of an improvement run: show a proposal, take a key, write, save.

IMPROVE_PROMPT = "a, e, s, r, u, c, q or ?:"
WISH = "What should be different (Enter: just another one):"
IMPROVE_HELP = {
    "a": "accept: write it into the file",
    "e": "edit it in your editor, then look at it again",
    "s": "skip this item",
    "r": "have another one proposed; you may say what should be different",
    "u": "undo the last decision, in the file too",
    "c": "all of the code, or its first lines",
    "q": "stop here; everything is saved",
    "Ctrl-C": "the same",
    "?": "this help",
}
EditText = Callable[[str], str | None]
_REFUSALS = (CannotDoError, ConflictError, InvalidInputError)
"""What is told and leaves the choice open; anything else ends the conversation."""


def in_editor(text: str) -> str | None:
    """None where nothing was saved."""
    edited = click.edit(text + "\n", extension=".txt", require_save=True)
    return None if edited is None else clean(edited)


class ImproveDialogue:
    def __init__(
        self,
        improvement: Improvement,
        proposer: Proposer,
        screen: Screen,
        command: str,
        *,
        edit: EditText = in_editor,
        most_lines: int = 20,
    ) -> None:
        self._improvement = improvement
        self._proposer = proposer
        self._screen = screen
        self._command = command
        self._edit = edit
        self._most_lines: int | None = most_lines
        self._usual_lines = most_lines
        self._actions: dict[str, Callable[[PlanItem, Keys], bool]] = {
            "a": self._accept,
            "e": self._edited,
            "s": self._skip,
            "r": self._another,
            "u": self._undo,
            "c": self._code,
        }

    def run(self) -> None:
        try:
            with Keys() as keys:
                while (item := self._improvement.current) is not None and self._one(item, keys):
                    pass
        except (KeyboardInterrupt, click.Abort):
            self._screen.say("")
            self._tell_how_to_go_on()
            raise
        if self._improvement.current is not None:
            self._tell_how_to_go_on()

    def _one(self, item: PlanItem, keys: Keys) -> bool:
        """One item until something was decided about it; False to stop."""
        if not self._show(item):
            self._improvement.skip(item)
            return True
        if item.proposal is None:
            self._ask(item)
        else:
            self._show_proposal(item)
        while True:
            self._screen.prompt(IMPROVE_PROMPT)
            key = keys.read().lower()
            self._screen.answered(key)
            item = self._newest(item)
            if key == "q":
                return False
            action = self._actions.get(key)
            if action is None:
                self._screen.help(IMPROVE_HELP)
            elif action(item, keys):
                return True

    def _newest(self, item: PlanItem) -> PlanItem:
        """The item as it is in the plan now."""
        here = (item.filepath, item.name)
        return next(one for one in self._improvement.plan if (one.filepath, one.name) == here)

    # ── what keys do; True where the item is decided ───────────────────────────────────────

    def _accept(self, item: PlanItem, keys: Keys) -> bool:  # noqa: ARG002
        if item.proposal is None:
            self._screen.say("There is no proposal yet; r asks for one, e writes it by hand.", "yellow")
            return False
        try:
            self._improvement.accept(item, item.proposal)
        except _REFUSALS as error:
            self._refused(error)
            return False
        self._screen.say(f"Written to {item.filepath}.", "green")
        return True

    def _edited(self, item: PlanItem, keys: Keys) -> bool:
        start = item.proposal or self._improvement.look(item)[1].documentation or ""
        with keys.lines():
            text = self._edit(start)
        if not text:
            self._screen.say("Nothing was changed.", "yellow")
            return False
        self._show_proposal(self._improvement.keep(item, text))
        return False

    def _skip(self, item: PlanItem, keys: Keys) -> bool:  # noqa: ARG002
        self._improvement.skip(item)
        return True

    def _another(self, item: PlanItem, keys: Keys) -> bool:
        wish = ""
        if item.proposal is not None:
            self._screen.prompt(WISH)
            wish = keys.read_line(self._screen.echo)
        self._ask(item, wish)
        return False

    def _undo(self, item: PlanItem, keys: Keys) -> bool:  # noqa: ARG002
        try:
            before = self._improvement.undo()
        except _REFUSALS as error:
            self._refused(error)
            return False
        if before is None:
            self._screen.say("There is nothing to undo.", "yellow")
            return False
        self._screen.say(f"Took back what was decided about {before.name}.", "yellow")
        return True

    def _code(self, item: PlanItem, keys: Keys) -> bool:  # noqa: ARG002
        self._most_lines = None if self._most_lines else self._usual_lines
        if self._show(item):
            self._show_proposal(item)
        return False

    # ── showing ────────────────────────────────────────────────────────────────────────────

    def _ask(self, item: PlanItem, wish: str = "") -> None:
        try:
            with self._screen.console.status("asking the model …"):
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
        self._shown(today, source)
        return True

    def _shown(self, today: CodeItem, source: Source) -> None:
        if today.documentation is not None:
            self._screen.documentation(today.documentation)
        self._screen.code(today, source, self._most_lines)

    def _show_proposal(self, item: PlanItem) -> None:
        if item.proposal is not None:
            self._screen.proposal(item.proposal, item.language)

    def _refused(self, error: CannotDoError | ConflictError | InvalidInputError) -> None:
        self._screen.say(f"{error.message}" + (f" ({error.hint})" if error.hint else ""), "red")

    def _tell_how_to_go_on(self) -> None:
        improvement = self._improvement
        self._screen.say(
            f"Saved: {improvement.done}/{len(improvement.plan)} decided. Go on with: {self._command}"
        )
