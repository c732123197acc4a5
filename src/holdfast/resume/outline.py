"""The outline of a briefing: sections of blocks of items, and how they are written down.

An item may carry details (a file and its names, a request and its outcome). The length of
the written text is the sum of its parts, so the budget can be spent without rendering.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


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
