"""What a session did before it came to its point: other requests, done and committed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from handoff.filler import listing, log, source
from handoff.story import Asked, Changed, Event, Looked, Ran, Said, Searched

_TROUBLE = ("a missing import", "an off-by-one in the loop", "a stale fixture", "a wrong default")
_WHY = (
    "because the caller cannot know it",
    "since two places would have to agree otherwise",
    "to keep the public surface as it is",
    "because the old form is still on disk somewhere",
)


def earlier_work(language: str, check: str, tasks: Sequence[tuple[str, str]]) -> Iterator[Event]:
    """One task for each pair of a file and a request: read, change, check, commit."""
    for number, (path, request) in enumerate(tasks):
        rng = random.Random(f"{path} {request}")
        folder, _, name = path.rpartition("/")
        stem = name.split(".")[0]
        verb, noun = rng.choice(("apply", "read", "make", "drop")), rng.choice(("rows", "state", "names"))
        function = f"{verb}_{stem.lower()}_{noun}"
        yield Asked(request)
        yield Said(f"Let me see where {stem} is used.")
        yield Searched(stem, listing(folder or ".", f".{language}:7: {stem}", 60))
        yield Looked(path, source(language, path, 60))
        yield Ran(f"ls {folder or '.'}", listing(folder or ".", f".{language}", 20))
        yield Looked(f"{folder}/notes-{stem}.md", source(language, f"notes {path}", 20))
        thought = f"{stem} has no tests of its own."
        yield Said(f"I'll put it into `{function}` {rng.choice(_WHY)}.", thought)
        yield Changed(path, f"# {stem}", f"# {stem}: {function}\n{source(language, function, 3)}")
        if number == 1:  # most checks pass
            yield from _broken(check, path, function, rng)
        yield Ran(check, f"{log(stem, 120, 1)}\nall checks passed")
        yield Ran("git status --short", f" M {path}")
        yield Ran("git diff", f"+++ b/{path}\n{source(language, function, 3)}")
        commit = f"{rng.randrange(16**7):07x}"
        yield Ran(f"git commit -am 'Change {stem}'", f"[main {commit}] Change {stem}\n 1 file changed")
        yield Said(f"Done: `{function}` is in place.")


def _broken(check: str, path: str, function: str, rng: random.Random) -> Iterator[Event]:
    line, trouble = rng.randint(10, 400), rng.choice(_TROUBLE)
    yield Ran(check, f"{log(function, 6)}\n{path}:{line}: error: {function} fails: {trouble}", 1)
    yield Said(f"It was {trouble}.")
    yield Changed(path, f"{function}(values)", f"{function}(values, limit={line})")
