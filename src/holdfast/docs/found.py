"""One function, class or method in a syntax tree, with the places that matter for its documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tree_sitter import Node

Kind = Literal["function", "class", "method"]


@dataclass(slots=True)
class Found:
    name: str
    """With the names of what it stands in: `Store.save`."""
    kind: Kind
    node: Node
    anchor: Node
    """Where it begins, decorators and `export` included."""
    documentation: Node | None
    branches: int = 0
    """How many ways there are through it, beyond the first."""


def text_of(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


def number_doubles(found: list[Found]) -> list[Found]:
    """A second item of one name ends in `#2`, and so on: names tell the items of a file apart."""
    seen: dict[str, int] = {}
    for item in found:
        count = seen[item.name] = seen.get(item.name, 0) + 1
        if count > 1:
            item.name = f"{item.name}#{count}"
    return found
