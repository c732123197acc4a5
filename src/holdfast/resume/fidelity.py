"""How the fidelity report is put into words."""

from __future__ import annotations

from holdfast.model.fidelity import Carried
from holdfast.model.frame import LEFT_OUT
from holdfast.resume.quote import code

_FETCHED_BY = {
    "errors": "errors",
    "error circumstances": "errors",
    "decisions": "decisions",
    "findings": "decisions",
    "open tasks": "tasks",
    "done tasks": "tasks",
    "tests": "tests",
    "git": "git-changes",
    "commits": "git-changes",
    "files": "git-changes",
    "review comments": "reviewer-feedback",
}
_OTHERWISE = "journal"
_LONGER = 60_000
_WORTH_A_WORD = (
    "user messages",
    "recorded user messages",
    "recorded actions",
    "open tasks",
    "decisions",
    "errors",
    "files",
    "commands",
    "review comments",
)


def is_shortened(text: str) -> bool:
    return text.rstrip('"`\n*. ').endswith("…")


def fetch_command(category: str, source: str) -> str:
    """Of a snapshot its history; of a transcript (`--session ID`, `--transcript FILE`) a longer context."""
    if source.startswith("--"):
        return f"holdfast context {source} --max-chars {_LONGER}"
    return f"holdfast history {source} {_FETCHED_BY.get(category, _OTHERWISE)}"


def _counted(number: int, things: str) -> str:
    return f"{number} {things.removesuffix('s') if number == 1 else things}"


def left_out_note(categories: tuple[Carried, ...], source: str, room: int) -> str:
    """One closing line for the reader of the context: what is missing and how to get it."""
    missing = [one for one in categories if one.left_out and one.category in _WORTH_A_WORD]
    while missing:
        counts = ", ".join(_counted(one.left_out, one.category) for one in missing)
        note = f"\n{LEFT_OUT}{counts}. To read them: {code(_fetch_all(missing, source))}.\n"
        if len(note) <= room:
            return note
        missing.pop()  # the last one matters least
    return ""


def _fetch_all(missing: list[Carried], source: str) -> str:
    if source.startswith("--"):
        return missing[0].fetch
    kinds = "|".join(dict.fromkeys(one.fetch.rsplit(" ", 1)[-1] for one in missing))
    return f"holdfast history {source} {kinds}"
