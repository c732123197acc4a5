"""Before a commit: were the project's checks run?"""

import os

from holdfast.hooks import notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.hooks.event import Event

KIND = "nudge"

_CHECKS = (
    ("Makefile", "make test / make check"),
    ("pyproject.toml", "the tests and linters configured in pyproject.toml"),
    ("package.json", "npm test"),
    ("Cargo.toml", "cargo test"),
    ("go.mod", "go test ./..."),
)


def is_commit(command: str) -> bool:
    words = command.split()
    return any(word == "git" and "commit" in words[index + 1 : index + 6] for index, word in enumerate(words))


def check(event: "Event") -> str | None:
    if not is_commit(event.command()):
        return None
    prompts = notes.read(event.note("prompts"), 32) or b"0"
    if notes.read(event.note("qa-told"), 32) == prompts:
        return None  # once a prompt is enough, however many commits it makes
    notes.write(event.note("qa-told"), prompts)
    named = [words for name, words in _CHECKS if os.path.exists(os.path.join(event.project, name))]
    what = named[0] if named else "the project's tests"
    return f"[holdfast] About to commit: make sure that {what} passed on what is being committed."
