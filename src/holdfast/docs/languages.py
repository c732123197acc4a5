"""The languages that are understood, and their grammars; tree-sitter is loaded with the first file parsed."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.base.errors import CannotDoError

if TYPE_CHECKING:
    from tree_sitter import Parser, Tree

SUFFIXES = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "tsx",
}

_GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
}


def language_of(path: str) -> str | None:
    """By the ending of a file's name; none for what is not understood."""
    dot = path.rfind(".")
    return SUFFIXES.get(path[dot:].lower()) if dot > path.rfind("/") else None


def parse(data: bytes, language: str) -> Tree:
    return _parser(language).parse(data)


@cache
def _parser(language: str) -> Parser:
    module, function = _GRAMMARS[language]
    try:
        import tree_sitter

        grammar: Any = getattr(import_module(module), function)()
    except ImportError as error:
        raise CannotDoError(
            f"reading source code needs a library that is not here: {error.name}",
            hint="pip install 'holdfast[docs]'",
        ) from error
    return tree_sitter.Parser(tree_sitter.Language(grammar))  # pyright: ignore[reportDeprecated] - a capsule
