"""How a briefing is written down: quotations, paths, and the outline of sections, blocks and items."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from holdfast.base.text import clipped, one_line
from holdfast.model.gathered import Gathered
from holdfast.resume import weights

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


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────

# Paths short enough for a briefing, long enough to be told apart.

_FEWEST_PARTS = 2
_MOST_PARTS = 12


def short_paths(paths: Iterable[str]) -> dict[str, str]:
    """Each path's last two parts, or as many as make it unlike the others."""
    labels: dict[str, str] = {}
    waiting: list[str] = list(dict.fromkeys(paths))
    for parts in range(_FEWEST_PARTS, _MOST_PARTS):
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for path in waiting:
            groups[_tail(path, parts)].append(path)
        waiting = []
        for label, alike in groups.items():
            if len(alike) == 1 or parts == _MOST_PARTS - 1:
                labels.update((path, label) for path in alike)
            else:
                waiting += alike
    return labels


def short_path(path: str) -> str:
    return _tail(path, _FEWEST_PARTS)


def _tail(path: str, parts: int) -> str:
    clean = one_line(visible(path)).replace("`", "'").replace("\\", "/").rstrip("/")
    return "/".join(clean.split("/")[-parts:])[-160:] or "/"


# ── the outline ───────────────────────────────────────────────────────────────────────────────────

# The outline of a briefing: sections of blocks of items, and how they are written down.
#
# An item may carry details (a file and its names, a request and its outcome). The length of
# the written text is the sum of its parts, so the budget can be spent without rendering.


@dataclass(slots=True, eq=False)
class Item:
    """One piece of knowledge. ``worth`` is what it is worth to the reader, in points."""

    category: str
    text: str
    worth: float
    details: list[Item] = field(default_factory=list["Item"])
    before_details: str = ": "
    between_details: str = ", "
    after_details: str = ""
    # A name that already stands in what was chosen is carried without being written again.
    once: bool = False


@dataclass(slots=True, eq=False)
class Block:
    label: str
    items: list[Item]
    bullets: bool = True
    between: str = ", "
    end: str = ""


@dataclass(slots=True, eq=False)
class Section:
    title: str
    blocks: list[Block]


@dataclass(slots=True, eq=False)
class Outline:
    head: str
    sections: list[Section]
    roomy: bool

    def items(self) -> Iterable[tuple[Section, Block, Item, Item | None]]:
        """Every item with where it stands; a detail comes with its parent."""
        for section in self.sections:
            for block in section.blocks:
                for item in block.items:
                    yield section, block, item, None
                    for detail in item.details:
                        yield section, block, detail, item

    def section_cost(self, section: Section) -> int:
        return len(_title(section)) if self.roomy and section.title else 0

    def block_cost(self, block: Block) -> int:
        return len(self._opening(block)) + len(self._closing(block))

    def item_cost(self, block: Block, item: Item, first: bool) -> int:
        if self.bulleted(block):
            return len(item.text) + len("- \n")
        return len(item.text) + (0 if first else len(block.between))

    @staticmethod
    def detail_cost(parent: Item, detail: Item, first: bool) -> int:
        around = len(parent.before_details) + len(parent.after_details)
        return len(detail.text) + (around if first else len(parent.between_details))

    def bulleted(self, block: Block) -> bool:
        return block.bullets and self.roomy

    def written(self, kept: Callable[[Item], bool]) -> str:
        parts = [self.head]
        for section in self.sections:
            blocks = [self._block(block, kept) for block in section.blocks]
            body = "".join(blocks)
            if body:
                parts.append(_title(section) + body if self.roomy and section.title else body)
        return "".join(parts)

    def _block(self, block: Block, kept: Callable[[Item], bool]) -> str:
        lines = [self._item(item, kept) for item in block.items if kept(item)]
        if not lines:
            return ""
        bulleted = self.bulleted(block)
        body = "".join(f"- {line}\n" for line in lines) if bulleted else block.between.join(lines)
        opening = self._opening(block)
        return (opening.rstrip() if body.startswith("\n") else opening) + body + self._closing(block)

    @staticmethod
    def _item(item: Item, kept: Callable[[Item], bool]) -> str:
        details = [detail.text for detail in item.details if kept(detail)]
        if not details:
            return item.text
        return item.text + item.before_details + item.between_details.join(details) + item.after_details

    def _opening(self, block: Block) -> str:
        if not block.label:
            return ""
        if self.bulleted(block):
            return f"{block.label}:\n"
        return f"{block.label}: "

    def _closing(self, block: Block) -> str:
        return "" if self.bulleted(block) else block.end + "\n"


def _title(section: Section) -> str:
    return f"\n## {section.title}\n"


# ── what all parts share ──────────────────────────────────────────────────────────────────────────

# What all parts of a briefing share.

# Below this many characters every block is one paragraph with a label.
ROOMY_FROM = 4500


@dataclass(frozen=True, slots=True)
class Setting:
    """The findings, the room there is, and how things are written in it."""

    found: Gathered
    room: int
    labels: dict[str, str]

    @property
    def roomy(self) -> bool:
        return self.room >= ROOMY_FROM

    def label(self, roomy: str, compact: str) -> str:
        return roomy if self.roomy else compact

    def path(self, path: str) -> str:
        label = self.labels.get(path) or short_path(path)
        return f"`{label}`" if self.roomy else label

    def age(self, index: int) -> int:
        """How many messages ago."""
        return self.found.messages - index


def ranked(category: str, texts: Iterable[str], value: float, half: float) -> list[Item]:
    """Items in order of rank, the worth halved every ``half`` of them."""
    return [Item(category, text, weights.falling(value, rank, half)) for rank, text in enumerate(texts)]


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
