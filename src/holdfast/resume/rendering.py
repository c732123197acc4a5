"""How a briefing is written down: quotations, paths, lists, long texts cut in the middle."""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast.base.text import clipped, end_of, one_line, start_of

# ── quotations ────────────────────────────────────────────────────────────────────────────────────

# Text of others, put into the context so that it stays a quotation.
#
# Tool output and file content may hold anything, a forged heading or an order to the next
# agent among it. Whatever is quoted here cannot end its own quotation: an inline quotation
# has no line breaks, and a mark is always longer than any run of marks inside it.

_TICKS = re.compile(r"`+")
# Invisible or direction-changing characters make a text look like another one.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


# What ends a line for some readers, though not for us: inside a quotation it is a blank.
_OTHER_LINE_ENDS = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def visible(text: str) -> str:
    return _UNSEEN.sub("", _OTHER_LINE_ENDS.sub(" ", text))


def code(text: str, most: int = 100_000) -> str:
    """One line as an inline code span that its content cannot close."""
    line = clipped(one_line(visible(text)), most)
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    if not longest:
        return f"`{line}`"
    marks = "`" * (longest + 1)
    return (
        f"{marks} {line} {marks}" if line.startswith("`") or line.endswith("`") else f"{marks}{line}{marks}"
    )


def fenced(text: str) -> str:
    """Several lines as a code block that its content cannot close."""
    body = visible(text).replace("\r", "")
    longest = max((len(run) for run in _TICKS.findall(body)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}text\n{body}\n{marks}"


def quoted(text: str, most: int = 100_000) -> str:
    """Words of a person, verbatim but for line breaks."""
    return f'"{balanced(clipped(one_line(visible(text)), most))}"'


def prose(text: str, most: int = 100_000) -> str:
    """A sentence of the agent, on one line."""
    return balanced(clipped(one_line(visible(text)), most))


def balanced(text: str) -> str:
    """A code mark that was cut in two must not swallow what follows."""
    return text + "`" if text.count("`") % 2 else text


# ── paths and lists ───────────────────────────────────────────────────────────────────────────────

_TEMPORARY = ("/tmp/", "/private/tmp/", "/var/folders/", "/dev/")  # noqa: S108
_PROSE_FILES = (".md", ".txt", ".rst", ".adoc")


class Paths:
    """Paths as the repository has them; what is outside of it keeps its whole path."""

    def __init__(self, root: str | None) -> None:
        self._root = f"{root.rstrip('/')}/" if root else ""

    def __call__(self, path: str) -> str:
        return code(self.short(path), 200)

    def short(self, path: str) -> str:
        clean = path.replace("\\", "/")
        return clean.removeprefix(self._root) if self._root else clean

    def is_inside(self, path: str) -> bool:
        """Whether it belongs to the work: a scratch file and another folder's file do not."""
        if path.startswith(_TEMPORARY) or "/.claude/" in path:
            return False
        return not path.startswith(("/", "~")) or not self._root or path.startswith(self._root)

    def is_code(self, path: str) -> bool:
        return self.is_inside(path) and not path.endswith(_PROSE_FILES)


def listed(texts: Iterable[str], most: int = 12) -> str:
    every = list(dict.fromkeys(texts))
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return "; ".join(every[:most]) + more


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


# ── long texts ────────────────────────────────────────────────────────────────────────────────────

_GAP = "[…]"
_TOO_SHORT_FOR_AN_OUTLINE = 700
_HEADING = re.compile(r"^\s*(?:#{1,6} |\*\*[^*]+\*\*:?\s*$|[A-Z][\w ,'-]{2,60}:\s*$)")
_ORDERS = re.compile(
    r"\b(?:must|never|always|don'?t|do not|only|make sure|ensure|should|please|your task|need to"
    r"|needs to|instead"
    r"|implement|fix|add|remove|rename|update|write|create|use|keep|avoid|can you|could you)\b",
    re.IGNORECASE,
)


def condensed(text: str, most: int) -> str:
    """A long text cut in the middle: beginning, end, headings and orders stay as long as there is room."""
    if len(text) <= most:
        return text
    lines = [line.rstrip() for line in text.split("\n")]
    if len(lines) < 6 or most < _TOO_SHORT_FOR_AN_OUTLINE:
        half = (most - len(_GAP) - 2) // 2
        return f"{start_of(text, half)} {_GAP} {end_of(text, half)}"
    kept: set[int] = set()
    left = most
    for place in _by_weight(lines):
        cost = len(lines[place]) + 1 + len(_GAP) + 1
        if cost <= left:
            kept.add(place)
            left -= cost
    return _with_gaps(lines, kept) or clipped(text, most)


def _by_weight(lines: list[str]) -> list[int]:
    last = len(lines) - 1

    coded = _in_code(lines)

    def weight(place: int) -> tuple[int, int]:
        line = lines[place]
        edge = min(place, last - place)
        if edge < 3:
            return 0, edge
        if place in coded:
            return 4, edge
        if _HEADING.match(line):
            return 1, edge
        return (2 if _ORDERS.search(line) else 3), edge

    return sorted((place for place, line in enumerate(lines) if line.strip()), key=weight)


def _in_code(lines: list[str]) -> set[int]:
    found: set[int] = set()
    inside = False
    for place, line in enumerate(lines):
        mark = line.lstrip().startswith("```")
        if inside or mark:
            found.add(place)
        inside = inside != mark
    return found


def _with_gaps(lines: list[str], kept: set[int]) -> str:
    out: list[str] = []
    for place, line in enumerate(lines):
        if place in kept:
            out.append(line)
        elif line.strip() and (not out or out[-1] != _GAP):
            out.append(_GAP)
    return "\n".join(out)
