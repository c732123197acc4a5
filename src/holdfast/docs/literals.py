"""Documentation as text, and the same as a docstring or a JSDoc comment of a file's own style."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from dataclasses import dataclass

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
