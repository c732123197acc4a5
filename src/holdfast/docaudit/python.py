"""Functions, classes and methods of Python; what stands inside of a function is its own business."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.docaudit.languages import Found, number_doubles, text_of

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

_DEFINITIONS = frozenset(("function_definition", "class_definition"))
_BRANCHES = frozenset(
    ("if_statement", "elif_clause", "for_statement", "while_statement", "except_clause", "case_clause")
)
_WALKED = (_DEFINITIONS | _BRANCHES).union(
    (
        "block",
        "decorated_definition",
        "else_clause",
        "except_group_clause",
        "finally_clause",
        "match_statement",
        "try_statement",
        "with_statement",
    )
)
_SPEAKS_FOR_ANOTHER = ("overload", ".setter", ".deleter")


def find_items(tree: Tree) -> list[Found]:
    """In the order they stand in."""
    found: list[Found] = []
    # What is left to look at: the node, the names around it, what it stands in, whose branches count.
    waiting: list[tuple[Node, str, str, Found | None]] = [(tree.root_node, "", "module", None)]
    while waiting:
        node, prefix, inside, owner = waiting.pop()
        kind = node.type
        if kind in _DEFINITIONS:
            if owner is not None:  # inside of a function: only its branches are of interest
                _push(waiting, node, prefix, inside, owner)
                continue
            item = _item(node, prefix, inside)
            if item is None:
                continue
            found.append(item)
            deeper = "class" if kind == "class_definition" else "function"
            within = item if deeper == "function" else None
            _push(waiting, node, f"{item.name}.", deeper, within)
            continue
        if owner is not None and kind in _BRANCHES:
            owner.branches += 1
        _push(waiting, node, prefix, inside, owner)
    return number_doubles(found)


def _push(
    waiting: list[tuple[Node, str, str, Found | None]],
    node: Node,
    prefix: str,
    inside: str,
    owner: Found | None,
) -> None:
    waiting += [
        (child, prefix, inside, owner) for child in reversed(node.named_children) if child.type in _WALKED
    ]


def _item(node: Node, prefix: str, inside: str) -> Found | None:
    anchor = node
    parent = node.parent
    if parent is not None and parent.type == "decorated_definition":
        anchor = parent
        for child in parent.named_children:
            if child.type == "decorator" and text_of(child).strip().endswith(_SPEAKS_FOR_ANOTHER):
                return None
    name = f"{prefix}{text_of(node.child_by_field_name('name'))}"
    if node.type == "class_definition":
        return Found(name, "class", node, anchor, docstring(node))
    return Found(name, "method" if inside == "class" else "function", node, anchor, docstring(node))


def docstring(node: Node) -> Node | None:
    body = node.child_by_field_name("body")
    if body is None:
        return None
    for child in body.named_children:
        if child.type == "comment":
            continue
        if child.type != "expression_statement" or child.named_child_count != 1:
            return None
        value = _without_parentheses(child.named_children[0])
        return value if _is_text(value) else None
    return None


def _without_parentheses(node: Node) -> Node:
    while node.type == "parenthesized_expression":
        inner = [one for one in node.named_children if one.type != "comment"]
        if len(inner) != 1:
            break
        node = inner[0]
    return node


def _is_text(node: Node) -> bool:
    if node.type == "concatenated_string":
        return all(_is_text(part) for part in node.named_children if part.type != "comment")
    if node.type != "string":
        return False
    opening = node.child(0)
    return opening is not None and not {"b", "f", "t"} & set(text_of(opening).lower())
