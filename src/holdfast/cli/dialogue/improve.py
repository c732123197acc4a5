"""The conversation of an improvement run: show a proposal, take a key, write, save."""

from __future__ import annotations

from collections.abc import Callable

import click

from holdfast.base.errors import CannotDoError, ConflictError, InvalidInputError
from holdfast.cli.dialogue.screen import Keys, Screen
from holdfast.docaudit.improve import Improvement, Proposing
from holdfast.docaudit.items import CodeItem
from holdfast.docaudit.languages import Source, clean
from holdfast.docaudit.ranking import PlanItem

PROMPT = "a, e, s, r, u, c, q or ?:"
WISH = "What should be different (Enter: just another one):"
HELP = {
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
Edit = Callable[[str], str | None]
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
        proposer: Proposing,
        screen: Screen,
        command: str,
        *,
        edit: Edit = in_editor,
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
            self._screen.prompt(PROMPT)
            key = keys.read().lower()
            self._screen.answered(key)
            item = self._newest(item)
            if key == "q":
                return False
            action = self._actions.get(key)
            if action is None:
                self._screen.help(HELP)
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
