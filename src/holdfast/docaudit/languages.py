"""Source files as bytes, the languages that are understood, and their grammars."""

from __future__ import annotations

import ast
import inspect
import os
import re
import stat
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast.base.errors import CannotDoError, require_installed
from holdfast.model.git import decode_path

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree


# ── source files ──────────────────────────────────────────────────────────────────────────────────

# Source files as bytes, and which of them are not for us.

LARGEST = 8 << 20
BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_UTF8_NAMES = frozenset(("utf-8", "utf8", "utf-8-sig", "utf_8", "u8", "ascii", "us-ascii", "utf-8-unix"))


class SourceError(CannotDoError):
    """A file that is not read, and why."""

    default_hint = "convert it to UTF-8 text, or exclude it"


@dataclass(frozen=True)
class Source:
    filepath: str
    """Below the project's folder, as `encode_path` writes it."""
    language: str
    data: bytes


def read_source(project: Path, filepath: str) -> Source:
    language = language_of(filepath.rstrip('"'))
    if language is None:
        raise SourceError(f"{filepath} is in an unsupported language", hint="Python, JavaScript, TypeScript")
    location = os.fsencode(project) + b"/" + decode_path(filepath)
    try:
        status = os.lstat(location)
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{filepath} is not a regular file", hint="give the target of the link")
        if status.st_size > LARGEST:
            raise SourceError(f"{filepath} is larger than {LARGEST >> 20} MB", hint="exclude it")
        with open(location, "rb") as file:  # noqa: PTH123 - bytes
            data = file.read()
    except OSError as error:
        raise SourceError(
            f"{filepath} cannot be read: {error.strerror or error}", hint="check its permissions"
        ) from error
    return Source(filepath, language, checked(data, language, filepath))


def checked(data: bytes, language: str, filepath: str) -> bytes:
    """The bytes themselves, if they are UTF-8 text (a byte order mark may stand before it)."""
    if data.startswith(_UTF16):
        raise SourceError(f"{filepath} is UTF-16, not UTF-8")
    if b"\0" in data:
        raise SourceError(f"{filepath} contains NUL bytes: not UTF-8 text")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{filepath} is not UTF-8 (line {line})") from None
    if language == "python" and (declared := _declared(data)) and declared.lower() not in _UTF8_NAMES:
        raise SourceError(f"{filepath} declares the encoding {declared}, not UTF-8")
    return data


def _declared(data: bytes) -> str | None:
    """The encoding that one of a Python file's first two lines names."""
    for line in data.removeprefix(BOM).split(b"\n", 2)[:2]:
        if match := _COOKIE.match(line):
            return match[1].decode("ascii", "replace")
        if line.strip() and not line.lstrip().startswith(b"#"):
            return None
    return None


# ── languages ─────────────────────────────────────────────────────────────────────────────────────

# The languages that are understood, and their grammars; tree-sitter is loaded with the first file parsed.

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
    require_installed("reading source code", "tree_sitter")
    import tree_sitter

    module, function = _GRAMMARS[language]
    grammar: Any = getattr(import_module(module), function)()
    return tree_sitter.Parser(tree_sitter.Language(grammar))  # pyright: ignore[reportDeprecated] - a capsule


# ── literals ──────────────────────────────────────────────────────────────────────────────────────

# Documentation as text, and the same as a docstring or a JSDoc comment of a file's own style.

_STRING = re.compile(r"([A-Za-z]*)(\"\"\"|'''|\"|')(.*)\2", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ufeff\ud800-\udfff]")
_STAR = re.compile(r"^[ \t]*\*?(?: |$)?")


@dataclass(frozen=True)
class Form:
    """How a file writes documentation."""

    newline: str = "\n"
    quotes: str = '"""'
    summary_below: bool = False
    """Whether the text of a docstring of several lines begins below its quotes."""


def clean(text: str) -> str:
    """As documentation is compared: no control characters, no common indentation, no blank ends."""
    plain = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    while (cleaned := _dedented(plain)) != plain:  # a first line that was blank changes what is common
        plain = cleaned
    return cleaned


def _dedented(text: str) -> str:
    return "\n".join(line.rstrip() for line in inspect.cleandoc(text).split("\n")).strip()


def text_of_docstring(literal: str) -> str:
    """What a string literal of a Python file says."""
    match = _STRING.fullmatch(literal)
    if match is None or ("\\" in literal and "r" not in match[1].lower()) or match[3].count(match[2]):
        return clean(_evaluated(literal))
    return clean(match[3])


def _evaluated(literal: str) -> str:
    """Escapes and joined strings; what Python cannot make out is taken as it stands."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a wrong escape is not ours to complain about
            value = ast.literal_eval(f"({literal})")
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return literal
    return value if isinstance(value, str) else literal


def text_of_jsdoc(comment: str) -> str:
    lines = comment.removeprefix("/**").removesuffix("*/").replace("\r\n", "\n").split("\n")
    lines = [lines[0].strip(), *(_STAR.sub("", line, count=1) for line in lines[1:])]
    return clean("\n".join(lines)).replace("*\\/", "*/")


def as_docstring(text: str, indent: str, form: Form) -> str:
    """Without the indentation of its first line."""
    quotes = form.quotes
    alone = "\n" not in text  # then the closing quotes follow on the same line
    raw = "\\" in text and quotes not in text and not (alone and text.endswith(("\\", quotes[0])))
    if not raw:
        text = text.replace("\\", "\\\\").replace(quotes, "\\" + "\\".join(quotes))
        if alone and text.endswith(quotes[0]) and not _is_escaped(text):
            text = f"{text[:-1]}\\{quotes[0]}"
    lines = text.split("\n")
    opening = ("r" if raw else "") + quotes
    if len(lines) == 1:
        return f"{opening}{text}{quotes}"
    first = [opening, lines[0]] if form.summary_below else [opening + lines[0]]
    every = [*first, *lines[1:], quotes]
    return form.newline.join([every[0], *(indent + line if line else line for line in every[1:])])


def _is_escaped(text: str) -> bool:
    """Whether an odd number of backslashes stands before the last character."""
    before = text[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def as_jsdoc(text: str, indent: str, form: Form) -> str:
    """Without the indentation of its first line."""
    lines = text.replace("*/", "*\\/").split("\n")
    if len(lines) == 1:
        return f"/** {lines[0]} */"
    body = [f"{indent} * {line}".rstrip(" ") for line in lines]
    return form.newline.join(["/**", *body, f"{indent} */"])


# ── items in a syntax tree ────────────────────────────────────────────────────────────────────────

# One function, class or method in a syntax tree, with the places that matter for its documentation.

ItemKind = Literal["function", "class", "method", "interface", "type", "enum"]


@dataclass(slots=True)
class Found:
    name: str
    """With the names of what it stands in: `Store.save`."""
    kind: ItemKind
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
