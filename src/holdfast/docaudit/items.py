"""What can be documented in a file: the items, in the order they stand in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.docaudit import javascript, python
from holdfast.docaudit.languages import (
    Found,
    ItemKind,
    Source,
    parse,
    text_of,
    text_of_docstring,
    text_of_jsdoc,
)

if TYPE_CHECKING:
    from tree_sitter import Tree

_DOUBLE = re.compile(r"#\d+$")


@dataclass(frozen=True, slots=True)
class CodeItem:
    filepath: str
    name: str
    kind: ItemKind
    language: str
    line: int
    end_line: int
    branches: int
    documentation: str | None

    @property
    def public(self) -> bool:
        """Nothing on the way to it begins with an underscore or a hash; `__init__` and its like count."""
        parts = _DOUBLE.sub("", self.name).split(".")
        return not any(part[:1] == "#" or (part[:1] == "_" and part[-2:] != "__") for part in parts)

    @property
    def lines(self) -> int:
        return self.end_line - self.line + 1


def find_items(tree: Tree, language: str) -> list[Found]:
    return (python if language == "python" else javascript).find_items(tree)


def analyse(source: Source) -> list[CodeItem]:
    found = find_items(parse(source.data, source.language), source.language)
    return [as_item(one, source) for one in found]


def as_item(found: Found, source: Source) -> CodeItem:
    return CodeItem(
        source.filepath,
        found.name,
        found.kind,
        source.language,
        found.anchor.start_point[0] + 1,
        found.node.end_point[0] + 1,
        found.branches,
        documentation_of(found, source.language),
    )


def documentation_of(found: Found, language: str) -> str | None:
    if found.documentation is None:
        return None
    read = text_of_docstring if language == "python" else text_of_jsdoc
    return read(text_of(found.documentation)) or None
