"""Paths as text that is always valid UTF-8.

A path is text. Git's own names are bytes, so one that is not valid UTF-8 is written the way
git prints it: in double quotes with C escapes (`"caf\\351.txt"`). `encode_path` and
`decode_path` are exact inverses.
"""

from __future__ import annotations

import re

from holdfast.base.errors import InvalidInputError

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
