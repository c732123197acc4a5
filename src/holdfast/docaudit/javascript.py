"""Functions, classes and methods of JavaScript and TypeScript, with the JSDoc comment before each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.docaudit.languages import Found, ItemKind, number_doubles, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

_FUNCTIONS = frozenset(("function_declaration", "generator_function_declaration", "function_signature"))
_CLASSES = frozenset(("class_declaration", "abstract_class_declaration"))
_METHODS = frozenset(("method_definition", "method_signature", "abstract_method_signature"))
_FIELDS = frozenset(("field_definition", "public_field_definition"))
_SIGNATURES = frozenset(("function_signature", "method_signature"))
_TYPES: dict[str, ItemKind] = {
    "enum_declaration": "enum",
    "interface_declaration": "interface",
    "type_alias_declaration": "type",
}
_AROUND = frozenset(("as_expression", "parenthesized_expression", "satisfies_expression"))
_WRAPPERS = frozenset(("forwardRef", "memo", "observer"))
"""Functions of React and its like that give back the component they are given."""
_VALUES: dict[str, ItemKind] = {
    "arrow_function": "function",
    "class": "class",
    "function_expression": "function",
    "generator_function": "function",
}
_BRANCHES = frozenset(
    (
        "if_statement",
        "for_statement",
        "for_in_statement",
        "while_statement",
        "do_statement",
        "switch_case",
        "catch_clause",
        "ternary_expression",
    )
)
_WALKED_FOR_BRANCHES = _BRANCHES | {
    "statement_block",
    "else_clause",
    "expression_statement",
    "finally_clause",
    "return_statement",
    "switch_body",
    "switch_default",
    "switch_statement",
    "try_statement",
}
# A comment with one of these speaks of the file, or of a type of its own.
_OF_SOMETHING_ELSE = re.compile(
    rb"@(?:file|fileoverview|license|module|packageDocumentation|typedef|callback)\b"
)


@dataclass
class _Before:
    """What stood between the last statement and this one."""

    comment: Node | None = None
    decorator: Node | None = None
    signature: Found | None = None
    """The item before, if it was a mere signature: those that follow under its name are the same one."""


def find_items(tree: Tree) -> list[Found]:
    found: list[Found] = []
    _container(tree.root_node, "", found)
    return number_doubles(found)


def _container(node: Node, prefix: str, found: list[Found]) -> None:
    """A file, a namespace or the body of a class, one member after the other."""
    before = _Before()
    for child in node.named_children:
        if child.type == "comment":
            if _is_jsdoc(child):
                before.comment = child
            continue
        if child.type == "decorator":
            before.decorator = before.decorator or child
            continue
        before.signature = _member(child, before, prefix, found)
        before.comment = before.decorator = None


def _member(node: Node, before: _Before, prefix: str, found: list[Found]) -> Found | None:
    """Adds what the member holds; returns it where more of the same may follow."""
    inner = _unwrapped(node)
    if inner.type in ("internal_module", "module"):
        body = inner.child_by_field_name("body")
        if body is not None:
            _container(body, f"{prefix}{text_of(inner.child_by_field_name('name'))}.", found)
        return None
    literal = _object(inner)
    if literal is not None:
        _container(literal[1], f"{prefix}{literal[0]}.", found)
        return None
    named = _named(inner)
    if named is None:
        return None
    name, kind, code = named
    name = f"{prefix}{name}"
    if before.signature is not None and before.signature.name == name:
        before.signature.branches += _branches(code)
        return before.signature if inner.type in _SIGNATURES else None
    item = Found(name, kind, code, before.decorator or node, before.comment)
    found.append(item)
    if kind == "class":
        body = code.child_by_field_name("body")
        if body is not None:
            _container(body, f"{name}.", found)
    else:
        item.branches = _branches(code)
    return item if inner.type in _SIGNATURES else None


def _unwrapped(node: Node) -> Node:
    """What is exported, declared or stands as a statement."""
    if node.type == "export_statement":
        inner = node.child_by_field_name("declaration") or node.child_by_field_name("value")
        return node if inner is None else _unwrapped(inner)
    if node.type in ("ambient_declaration", "expression_statement"):
        inner = next((one for one in node.named_children if one.type != "comment"), None)
        return node if inner is None else inner
    return node


def _named(node: Node) -> tuple[str, ItemKind, Node] | None:
    kind = node.type
    if kind in _FUNCTIONS:
        return text_of(node.child_by_field_name("name")) or "default", "function", node
    if kind in _CLASSES:
        return text_of(node.child_by_field_name("name")) or "default", "class", node
    if kind in _METHODS:
        return text_of(node.child_by_field_name("name")), "method", node
    if kind in _TYPES:
        return text_of(node.child_by_field_name("name")), _TYPES[kind], node
    name, given = _given(node)
    value = given and _unwrapped_value(given)
    if name is None or value is None or value.type not in _VALUES:
        return None
    is_member = kind in _FIELDS or kind == "pair"
    if name == "default":  # a function in it may have a name of its own
        name = text_of(value.child_by_field_name("name")) or name
    return name, "method" if is_member else _VALUES[value.type], value


def _given(node: Node) -> tuple[str | None, Node | None]:
    """A name and the value it is given, as the first part of a statement or as a member does."""
    kind = node.type
    if kind in ("lexical_declaration", "variable_declaration"):
        # By the first name, since that is what a comment before it speaks of.
        first = next((one for one in node.named_children if one.type == "variable_declarator"), None)
        name = first and first.child_by_field_name("name")
        if first is None or name is None or name.type != "identifier":
            return None, None
        return text_of(name), first.child_by_field_name("value")
    if kind in _FIELDS:
        name = node.child_by_field_name("property") or node.child_by_field_name("name")
        return name and text_of(name), node.child_by_field_name("value")
    if kind == "pair":
        return text_of(node.child_by_field_name("key")), node.child_by_field_name("value")
    if kind == "assignment_expression":
        left = node.child_by_field_name("left")
        is_name = left is not None and left.type in ("member_expression", "identifier")
        return text_of(left) if is_name else None, node.child_by_field_name("right")
    is_exported = node.parent is not None and node.parent.type == "export_statement"
    return ("default", node) if is_exported else (None, None)


def _unwrapped_value(node: Node) -> Node:
    """Without parentheses, `as const` and its like; the component in `memo(function …)`."""
    around: Node | None = node if node.type in _AROUND else None
    if node.type == "call_expression":
        called = text_of(node.child_by_field_name("function")).rpartition(".")[2]
        around = node.child_by_field_name("arguments") if called in _WRAPPERS else None
    inner = [one for one in around.named_children if one.type != "comment"] if around else []
    return _unwrapped_value(inner[0]) if inner else node


def _object(node: Node) -> tuple[str, Node] | None:
    """An object in braces with its name: what is in it is looked at one by one."""
    name, given = _given(node)
    value = given and _unwrapped_value(given)
    return (name, value) if name is not None and value is not None and value.type == "object" else None


def _branches(node: Node) -> int:
    body = node.child_by_field_name("body")
    waiting = [] if body is None else [body]
    count = 0
    while waiting:
        current = waiting.pop()
        count += current.type in _BRANCHES
        waiting += [child for child in current.named_children if child.type in _WALKED_FOR_BRANCHES]
    return count


def _is_jsdoc(node: Node) -> bool:
    text = node.text or b""
    return text.startswith(b"/**") and text != b"/**/" and _OF_SOMETHING_ELSE.search(text) is None
