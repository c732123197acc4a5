"""The conversation of an audit: show an item, take a key, save."""

from __future__ import annotations

import click

from holdfast.cli.dialogue.screen import Keys, Screen
from holdfast.docaudit.audit import RATINGS, Audit
from holdfast.docaudit.items import CodeItem, analyse
from holdfast.docaudit.languages import Source, SourceError, read_source

PROMPT = "Rating 1-4, s, u, c, q or ?:"
HELP = {
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
            self._screen.prompt(PROMPT)
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
                self._screen.help(HELP)

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
