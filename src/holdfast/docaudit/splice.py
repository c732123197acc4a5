"""Put documentation into a file: the new text, and every other byte as it was."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.base.errors import CannotDoError, InvalidInputError, NotFoundError
from holdfast.docaudit.items import documentation_of, find_items
from holdfast.docaudit.languages import (
    BOM,
    Form,
    Found,
    Source,
    as_docstring,
    as_jsdoc,
    checked,
    clean,
    parse,
    text_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

_NEWLINE = re.compile(rb"\r\n|\n")
_INDENTED = re.compile(rb"^([ \t]+)\S", re.MULTILINE)
_QUOTES = re.compile(r"[A-Za-z]*(\"\"\"|''')([ \t]*\r?\n)?")


class SpliceError(CannotDoError):
    default_hint = "nothing was written; document this item by hand"


@dataclass(frozen=True)
class Spliced:
    data: bytes
    start: int
    old_end: int
    new_end: int
    """The bytes from `start` on were exchanged; all others are the old ones."""


@dataclass(frozen=True)
class _Insertion:
    start: int
    end: int
    lead: bytes
    literal: bytes
    tail: bytes


def splice(source: Source, name: str, text: str) -> Spliced:
    """The file with `text` as the documentation of the item of that name."""
    wanted = clean(text)
    if source.language != "python":
        wanted = wanted.replace("*\\/", "*/")  # a comment cannot tell these two apart
    if not wanted:
        raise InvalidInputError("the documentation is empty", hint="skip the item instead")
    checked(source.data, source.language, source.filepath)
    tree = parse(source.data, source.language)
    if tree.root_node.has_error:
        raise SpliceError(
            f"{source.filepath} cannot be parsed (line {_first_error(tree)}) and was left unchanged",
            hint="fix the file first",
        )
    item = find_item(tree, source, name)
    place = _python if source.language == "python" else _javascript
    insertion = place(source, tree, item, wanted)
    new = insertion.lead + insertion.literal + insertion.tail
    result = Spliced(
        source.data[: insertion.start] + new + source.data[insertion.end :],
        insertion.start,
        insertion.end,
        insertion.start + len(new),
    )
    _verify(source, tree, item, insertion, result.data, wanted)
    return result


def find_item(tree: Tree, source: Source, name: str) -> Found:
    for item in find_items(tree, source.language):
        if item.name == name:
            return item
    raise NotFoundError(f"{source.filepath} no longer contains {name}", hint="run the audit again")


# ── where and how ──────────────────────────────────────────────────────────────────────────


def _python(source: Source, tree: Tree, item: Found, text: str) -> _Insertion:
    data, node = source.data, item.node
    body = node.child_by_field_name("body")
    colon = next((one for one in reversed(node.children) if one.type == ":"), None)
    if body is None or colon is None:
        raise SpliceError(f"{item.name} in {source.filepath} has no body")
    form = form_of(source, tree, near=colon.end_byte)
    old = item.documentation
    if old is not None:
        literal = as_docstring(text, _indent_before(data, old.start_byte).decode(), form)
        return _Insertion(old.start_byte, old.end_byte, b"", literal.encode(), b"")
    newline = form.newline.encode()
    rest = _rest_of_line(data, colon.end_byte)
    if rest is not None and body.start_byte >= rest:
        indent = _indent_before(data, body.start_byte)
        literal = as_docstring(text, indent.decode(), form)
        return _Insertion(rest, rest, indent, literal.encode(), newline)
    # The body stands on the line of the colon: it moves to a line of its own.
    indent = _indent_before(data, node.start_byte) + _unit(data)
    literal = as_docstring(text, indent.decode(), form)
    start = body.start_byte
    return _Insertion(start, start, newline + indent, literal.encode(), newline + indent)


def _javascript(source: Source, tree: Tree, item: Found, text: str) -> _Insertion:
    data = source.data
    old = item.documentation
    start = item.anchor.start_byte if old is None else old.start_byte
    form = form_of(source, tree, near=start)
    indent = _indent_before(data, start)
    literal = as_jsdoc(text, indent.decode(), form).encode()
    if old is not None:
        return _Insertion(start, old.end_byte, b"", literal, b"")
    own_line = form.newline.encode() + indent
    shares_line = data[:start].rpartition(b"\n")[2].removeprefix(BOM).strip() != b""
    # On the line of something else, the grammar would take the comment for a part of that.
    return _Insertion(start, start, own_line if shares_line else b"", literal, own_line)


def form_of(source: Source, tree: Tree, near: int) -> Form:
    """The newline of the place, and the quotes that the file's docstrings have."""
    after = _NEWLINE.search(source.data, near) or _NEWLINE.search(source.data)
    newline = after[0].decode() if after else "\n"
    if source.language != "python":
        return Form(newline)
    quotes: Counter[str] = Counter()
    below: Counter[bool] = Counter()
    for item in find_items(tree, "python"):
        literal = text_of(item.documentation)
        if match := _QUOTES.match(literal):
            quotes[match[1]] += 1
            if "\n" in literal:
                below[match[2] is not None] += 1
    first = quotes.most_common(1)
    return Form(newline, first[0][0] if first else '"""', below[True] > below[False])


def _rest_of_line(data: bytes, start: int) -> int | None:
    """Where the next line begins, if nothing but a comment stands on this one."""
    match = re.compile(rb"[ \t\f]*(?:#[^\r\n]*)?(?:\r\n|\n)").match(data, start)
    return match.end() if match else None


def _indent_before(data: bytes, start: int) -> bytes:
    """The white space that the line of this place begins with."""
    line = max(data.rfind(b"\n", 0, start) + 1, len(BOM) if data.startswith(BOM) else 0)
    match = re.compile(rb"[ \t\f]*").match(data, line, start)
    return match[0] if match else b""


def _unit(data: bytes) -> bytes:
    """One step of indentation, as this file has it."""
    steps = [match[1] for match in _INDENTED.finditer(data)]
    if not steps:
        return b"    "
    return b"\t" if all(one[:1] == b"\t" for one in steps) else min(steps, key=len)


# ── proof ──────────────────────────────────────────────────────────────────────────────────


def _verify(source: Source, tree: Tree, item: Found, put: _Insertion, data: bytes, wanted: str) -> None:
    again = Source(source.filepath, source.language, data)
    after = parse(data, source.language)
    if after.root_node.has_error:
        raise _refused(source, item, f"it would not parse (line {_first_error(after)})")
    before_items, after_items = find_items(tree, source.language), find_items(after, source.language)
    if [(one.name, one.kind) for one in before_items] != [(one.name, one.kind) for one in after_items]:
        raise _refused(source, item, "the file would contain different items")
    for old, new in zip(before_items, after_items, strict=True):
        said = documentation_of(new, source.language)
        if said != (wanted if old.name == item.name else documentation_of(old, source.language)):
            raise _refused(source, item, f"the documentation of {old.name} would change")
    written = find_item(after, again, item.name).documentation
    start = put.start + len(put.lead)
    if written is None or (written.start_byte, written.end_byte) != (start, start + len(put.literal)):
        raise _refused(source, item, "the text would be split")
    if list(_shape(tree, item.documentation)) != list(_shape(after, written)):
        raise _refused(source, item, "the surrounding code would change")


def _shape(tree: Tree, left_out: Node | None) -> Iterator[tuple[int, str]]:
    """Depth and type of every node, without comments and without the documentation in question."""
    skipped = None if left_out is None else _statement_of(left_out)
    cursor = tree.walk()
    depth, deeper = 0, True
    while True:
        node = cursor.node
        if deeper and node is not None:
            ours = skipped is not None and node.id == skipped.id
            if node.type not in ("comment", "line_continuation") and not ours:
                yield depth, node.type
                if cursor.goto_first_child():
                    depth += 1
                    continue
        if cursor.goto_next_sibling():
            deeper = True
        elif cursor.goto_parent():
            depth, deeper = depth - 1, False
        else:
            return


def _statement_of(node: Node) -> Node:
    """A docstring is all of its statement; a comment stands by itself."""
    parent = node.parent
    return parent if parent is not None and parent.type == "expression_statement" else node


def _first_error(tree: Tree) -> int:
    waiting = [tree.root_node]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            return node.start_point[0] + 1
        waiting += [child for child in reversed(node.children) if child.has_error or child.is_missing]
    return 1


def _refused(source: Source, item: Found, reason: str) -> SpliceError:
    return SpliceError(f"{item.name} in {source.filepath} cannot be documented: {reason}")
