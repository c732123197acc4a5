"""Small questions about text that several rooms ask."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from holdfast.base.errors import InvalidInputError

T = TypeVar("T")
Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is, and how much there is."""

_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z`*\"'(\[])")
_LIST_MARK = re.compile(r"^(?:[-*•]|\d+[.)])\s+")
_EMPHASIS = re.compile(r"\*\*([^*]+)\*\*")
_PIPE_TAIL = re.compile(
    r" ?(?:2>&1|2>/dev/null|>/dev/null|\|\s*(?:head|tail|grep|cat|less|sed|awk|sort|wc)\b.*$)"
)
_COMMAND_COMPARED = 1000
_LEADING_CD = re.compile(r"^cd\s+\S+\s*(?:&&|;)\s*")


def head_and_tail(text: str, most: int) -> str:
    """Errors say what they are about at the top, and how it ended at the bottom."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n{text[-half:]}"


def start_of(text: str, most: int) -> str:
    """The beginning, no word cut in two: half a secret does not look like one."""
    if len(text) <= most:
        return text
    cut = text[:most]
    return cut.rstrip() if text[most].isspace() else cut[: max(cut.rfind(" "), cut.rfind("\n"), 0)].rstrip()


def end_of(text: str, most: int) -> str:
    """The end, no word cut in two."""
    if len(text) <= most:
        return text
    cut = text[-most:]
    if text[-most - 1].isspace():
        return cut.lstrip()
    parts = cut.split(None, 1)
    return parts[1] if len(parts) > 1 and not cut[0].isspace() else cut.lstrip() if cut[0].isspace() else ""


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def untold(_doing: str, _done: int, _total: int) -> None:
    """Progress that nobody is shown."""


def each(items: Sequence[T], doing: str, progress: Progress) -> Iterator[T]:
    for done, item in enumerate(items):
        progress(doing, done, len(items))
        yield item
    progress(doing, len(items), len(items))


def parsed_with_lone_surrogates(document: str | bytes) -> Any:
    """JSON in which half of a pair of surrogates stands, as a text that was cut leaves it.

    No file and no database takes such a character: it becomes a question mark. Raises as `json.loads` does.
    """
    import json

    return json.loads(json.dumps(json.loads(document), ensure_ascii=False).encode("utf-8", "replace"))


def one_line(text: str) -> str:
    return " ".join(text.split())


def clipped(text: str, most: int) -> str:
    """At most ``most`` characters, cut between words where one is near."""
    if len(text) <= most:
        return text
    if most <= 1:
        return text[:most]
    cut = text[: most - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > most - 20 else cut).rstrip() + "…"


def sentences(text: str) -> list[str]:
    """Sentences of prose; code blocks, tables and headings are left out."""
    found: list[str] = []
    in_code = False
    for line in text.split("\n"):
        stripped = one_line(line)
        if stripped.startswith(("```", "~~~")):
            in_code = not in_code
        elif not in_code and stripped and not stripped.startswith(("#", "|", "<", ">")):
            prose = _LIST_MARK.sub("", _EMPHASIS.sub(r"\1", _LIST_MARK.sub("", stripped)))
            found.extend(part for part in _SENTENCE_END.split(prose) if part)
    return found


def unglued(text: str) -> str:
    """Thoughts as some agents record them have lost line breaks: "is in place.Let me look"."""
    return _GLUED.sub("\n", text)


_GLUED = re.compile(
    r"(?<=[a-z0-9)`])(?=(?:Let me|Let's|Actually,|Looking at|But wait|Now let|Wait,) )"
    r"|(?<=[a-z0-9)`\]][.:?!])(?=(?:The|This|That|These|Those|It|I|So|But|Let|Now|Then|If|Actually|However|And"
    r"|Also|Looking|We|There|First|Since|For|In|When|Wait|What|Or|Since|Because|To|My|Given),? )"
    r"|(?<=[a-z)`.:])(?=\d\. [A-Z*`])|(?<=[a-z)`.:])(?=- [A-Z*`])"
)


def is_list_item(line: str) -> bool:
    return _LIST_MARK.match(line) is not None


@lru_cache(maxsize=4)  # several ask about one command before the next comes
def same_command(command: str) -> str:
    """What two runs of one command have in common, whatever was done with the output."""
    line = one_line(command[:_COMMAND_COMPARED])
    return _LEADING_CD.sub("", _PIPE_TAIL.sub("", line)).strip()


# ── paths ───────────────────────────────────────────────────────────────────────────────────────────

# A path is text that is always valid UTF-8. Git's own names are bytes, so one that is not valid UTF-8 is
# written the way git prints it: in double quotes with C escapes (`"caf\\351.txt"`). `encode_path` and
# `decode_path` are exact inverses.

_LETTERS = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_ESCAPES = {byte: f"\\{letter}" for letter, byte in _LETTERS.items()}
# Compiled at their first use: every command comes through here, and hardly one meets such a name.
_QUOTED = r'(?as)"((?:[^"\\]|\\[abtnvfr"\\]|\\[0-3][0-7]{2})*)"'
_ESCAPE = r"(?s)\\([0-3][0-7]{2}|.)"


def encode_path(name: bytes) -> str:
    """The name itself where it is UTF-8, else as git quotes it."""
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return _quote(name)
    # A leading quote marks the quoted form, so a name that has one must be quoted too.
    return _quote(name) if text.startswith('"') else text


def shown_path(text: str) -> str:
    """An encoded path for a terminal: as git quotes it where it holds what a terminal would obey or hide."""
    return text if text.isprintable() else _quote(decode_path(text))


def decode_path(text: str) -> bytes:
    """The bytes that `encode_path` was given."""
    try:
        return _unquote(text) if text.startswith('"') else text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"not a path: {text!r}") from error


def _quote(name: bytes) -> str:
    return '"' + "".join(_escape(byte) for byte in name) + '"'


def _escape(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}"


def _unquote(text: str) -> bytes:
    quoted = re.fullmatch(_QUOTED, text)
    if quoted is None:
        raise InvalidInputError(f"not a quoted path: {text!r}")
    pieces = re.split(_ESCAPE, quoted[1])
    # split() alternates plain text and what stood behind a backslash.
    return b"".join(
        bytes([_LETTERS.get(piece) or int(piece, 8)]) if index % 2 else piece.encode()
        for index, piece in enumerate(pieces)
    )
