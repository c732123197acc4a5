"""Keep the agent from running some other copy of Holdfast than the one that was installed.

A copy fetched on the fly (`uvx holdfast`) or lying about (`./holdfast`) may be of any version, or of anybody.
"""

import os
import sys

from holdfast.hooks.guards.dangerous_commands import all_programs, program_of
from holdfast.hooks.shell import DYNAMIC, Simple, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "guard"

_NAMES = ("holdfast", "holdfast-hook")
_ONLY_PRINT = ("echo", "printf", "grep", "rg")
_FETCHING = (
    ("uvx",),
    ("uv", "tool", "run"),
    ("uv", "x"),
    ("pipx", "run"),
    ("npx",),
    ("bunx",),
    ("pnpm", "dlx"),
)


def check(event: "Event") -> str | None:
    command = event.command()
    if any(_trusts_a_folder(simple) for simple in all_programs(command)):
        return "holdfast: this command was not run: only the user may trust a folder. Ask them to."
    why = unpinned(command, event.text("cwd") or event.project)
    if why is None:
        return None
    return f"holdfast: this command was not run: {why}. Run the installed program: `holdfast …`."


def _trusts_a_folder(simple: Simple) -> bool:
    """In doubt it does: `$(which holdfast) trust` names a program that only the shell will know."""
    names = [os.path.basename(word) for word in program_of(simple)]
    if "trust" not in names or "--show" in names or names[0] in _ONLY_PRINT:
        return False
    return names[0] == DYNAMIC or any(name in _NAMES for name in names)


def unpinned(command: str, cwd: str) -> str | None:
    for simple in parse(command):
        words = simple.words
        for start in _FETCHING:
            if tuple(words[: len(start)]) == start and any(word in _NAMES for word in words[len(start) :]):
                return "it fetches Holdfast anew, of no certain version"
        if words and "/" in words[0] and os.path.basename(words[0]) in _NAMES:
            path = os.path.realpath(os.path.join(cwd, os.path.expanduser(words[0])))
            if os.path.dirname(path) not in _known_places(cwd):
                return f"{words[0]} is not the Holdfast that is installed"
    return None


def _known_places(cwd: str) -> tuple[str, ...]:
    """Beside our own interpreter, and a project's own environment, which its lock file pins."""
    environment = [os.path.realpath(os.path.join(cwd, name, "bin")) for name in (".venv", "venv")]
    return (os.path.dirname(os.path.abspath(sys.executable)), os.path.dirname(sys.executable), *environment)
