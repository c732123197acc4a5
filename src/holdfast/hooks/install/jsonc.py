"""JSON as people write it, with the place of everything: so that a change leaves the rest as it was.

A settings file belongs to its owner. It is never printed anew from what was parsed; entries
are put in and taken out of the text itself, so comments, order and spacing stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_DEPTH = 200


class NotJsonError(ValueError):
    """Where the text stops being JSON, counted from 1."""

    def __init__(self, text: str, offset: int, what: str) -> None:
        self.line, self.column = place(text, offset)
        self.what = what
        super().__init__(f"line {self.line}, column {self.column}: {what}")


def place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


@dataclass
class JsonNode:
    start: int
    end: int = 0
    value: Any = None
    """What a scalar says; None for containers."""
    items: list[JsonNode] | None = None
    members: list[JsonMember] | None = None

    def get(self, name: str) -> JsonMember | None:
        """The member of that name; of doubled ones the last, as every reader takes it."""
        return next((one for one in reversed(self.members or []) if one.name == name), None)

    @property
    def plain(self) -> Any:
        if self.members is not None:
            return {one.name: one.node.plain for one in self.members}
        if self.items is not None:
            return [item.plain for item in self.items]
        return self.value

    @property
    def children(self) -> list[tuple[int, int]]:
        """Where each element stands, from its key on if it has one."""
        if self.members is not None:
            return [(one.start, one.node.end) for one in self.members]
        return [(item.start, item.end) for item in self.items or []]


@dataclass
class JsonMember:
    name: str
    start: int
    node: JsonNode = field(repr=False)


def parse(text: str, *, comments: bool) -> JsonNode:
    """The whole document; `comments` also lets a comma stand after the last element."""
    reader = _Reader(text, comments)
    reader.at = 1 if text.startswith("\ufeff") else 0
    reader.skip()
    root = reader.node(0)
    reader.skip()
    if reader.at != len(text):
        raise reader.wrong("unexpected content after the end")
    return root


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self.text = text
        self.at = 0
        self._comments = comments

    def wrong(self, what: str) -> NotJsonError:
        return NotJsonError(self.text, self.at, what)

    def skip(self) -> None:
        while True:
            self.at = _end(_SPACE, self.text, self.at)
            found = _COMMENT.match(self.text, self.at) if self._comments else None
            if found is None:
                return
            self.at = found.end()

    def node(self, depth: int) -> JsonNode:
        if depth > _DEPTH:
            raise self.wrong("too deeply nested")
        node = JsonNode(self.at)
        first = self.text[self.at : self.at + 1]
        if first == "{":
            node.members = list(self._members(depth))
        elif first == "[":
            node.items = list(self._items(depth))
        elif first == '"':
            node.value = self._string()
        else:
            found = _SCALAR.match(self.text, self.at)
            if found is None:
                raise self.wrong("expected a value" if first else "unexpected end of file")
            self.at = found.end()
            node.value = json.loads(found[0])
        node.end = self.at
        return node

    def _string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.wrong("expected a string in double quotes")
        self.at = found.end()
        return json.loads(found[0])

    def _items(self, depth: int) -> Iterator[JsonNode]:
        for _ in self._elements("]"):
            yield self.node(depth + 1)

    def _members(self, depth: int) -> Iterator[JsonMember]:
        for _ in self._elements("}"):
            start = self.at
            name = self._string()
            self.skip()
            self._expect(":")
            self.skip()
            yield JsonMember(name, start, self.node(depth + 1))

    def _elements(self, closing: str) -> Iterator[None]:
        """Stops at the start of each element, up to and including the closing bracket."""
        self.at += 1
        self.skip()
        after_comma = False
        while not self._took(closing):
            yield
            self.skip()
            after_comma = self._took(",")
            self.skip()
            ends = self.text.startswith(closing, self.at)
            if not after_comma and not ends:
                raise self.wrong(f"expected a comma or {closing}")
            if after_comma and ends and not self._comments:
                raise self.wrong("trailing comma before the closing bracket")

    def _took(self, mark: str) -> bool:
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        return True

    def _expect(self, mark: str) -> None:
        if not self._took(mark):
            raise self.wrong(f"expected {mark}")


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


# --- changing the text


def insert(text: str, container: JsonNode, element: str) -> str:
    """Put an element last into a container; `element` is one line, or has two spaces a level."""
    inside = container.children
    unit = _indent_unit(text)
    if inside:
        start, end = inside[-1]
        line_start = text.rfind("\n", 0, start) + 1
        own_line = not text[line_start:start].strip()
        if own_line:
            indent = text[line_start:start]
            return (
                text[:end] + f",{_newline(text)}{indent}" + _shaped(text, element, indent, unit) + text[end:]
            )
        return text[:end] + ", " + _on_one_line(element) + text[end:]
    indent = _indent_at(text, container.start)
    inner = indent + unit
    newline = _newline(text)
    filled = f"{newline}{inner}{_shaped(text, element, inner, unit)}"
    before, after = container.start + 1, container.end - 1
    rest = text[before:after]
    closing = rest.rstrip(" \t\r\n") + (f"{newline}{indent}")
    return text[:before] + filled + closing + text[after:]


def remove(text: str, container: JsonNode, index: int, *, comments: bool) -> str:
    """Take one element out, with its comma and the space before it; comments around it stay."""
    inside = container.children
    start, end = inside[index]
    if len(inside) == 1:
        return _emptied(text, container, start, end)
    cut = start - (len(text[:start]) - len(text[:start].rstrip(" \t\r\n")))
    if index + 1 < len(inside):
        comma = _comma(text, end, comments)
        return text[:cut] + text[end:comma] + text[comma + 1 :]
    comma = _comma(text, inside[index - 1][1], comments)
    return text[:comma] + text[comma + 1 : max(cut, comma + 1)] + text[end:]


def _emptied(text: str, container: JsonNode, start: int, end: int) -> str:
    before = text[container.start + 1 : start].rstrip(" \t\r\n")
    after = text[end : container.end - 1].lstrip(" \t\r\n").removeprefix(",")
    inner = before + after if before or after.strip() else ""
    return text[: container.start + 1] + inner + text[container.end - 1 :]


def _comma(text: str, at: int, comments: bool) -> int:
    reader = _Reader(text, comments)
    reader.at = at
    reader.skip()
    return reader.at


def _shaped(text: str, element: str, indent: str, unit: str) -> str:
    """An element printed with two spaces a level, in the file's own indentation."""
    newline = _newline(text)
    lines = element.split("\n")
    shaped = [lines[0]]
    for line in lines[1:]:
        depth = (len(line) - len(line.lstrip(" "))) // 2
        shaped.append(indent + unit * depth + line.lstrip(" "))
    return newline.join(shaped)


def _on_one_line(element: str) -> str:
    return " ".join(line.strip() for line in element.split("\n"))


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, offset: int) -> str:
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    if found is None:
        return "  "
    return "\t" if found[1][0] == "\t" else found[1][:8]
