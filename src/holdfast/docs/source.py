"""Source files as bytes, and which of them are not for us."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from holdfast.base.errors import CannotDoError
from holdfast.docs.languages import language_of
from holdfast.model.git import decode_path

LARGEST = 8 << 20
BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_UTF8_NAMES = frozenset(("utf-8", "utf8", "utf-8-sig", "utf_8", "u8", "ascii", "us-ascii", "utf-8-unix"))


class SourceError(CannotDoError):
    """A file that is not read, and why."""

    default_hint = "convert it to UTF-8 text, or leave it out"


@dataclass(frozen=True)
class Source:
    filepath: str
    """Below the project's folder, as `encode_path` writes it."""
    language: str
    data: bytes


def read_source(project: Path, filepath: str) -> Source:
    language = language_of(filepath.rstrip('"'))
    if language is None:
        raise SourceError(f"{filepath} is in no language known here", hint="Python, JavaScript, TypeScript")
    location = os.fsencode(project) + b"/" + decode_path(filepath)
    try:
        status = os.lstat(location)
        if not stat.S_ISREG(status.st_mode):
            raise SourceError(f"{filepath} is no regular file", hint="name the file it stands for")
        if status.st_size > LARGEST:
            raise SourceError(f"{filepath} is larger than {LARGEST >> 20} MB", hint="leave it out")
        with open(location, "rb") as file:  # noqa: PTH123 - bytes
            data = file.read()
    except OSError as error:
        raise SourceError(
            f"{filepath} cannot be read: {error.strerror or error}", hint="look at its permissions"
        ) from error
    return Source(filepath, language, checked(data, language, filepath))


def checked(data: bytes, language: str, filepath: str) -> bytes:
    """The bytes themselves, if they are UTF-8 text (a byte order mark may stand before it)."""
    if data.startswith(_UTF16):
        raise SourceError(f"{filepath} is UTF-16, not UTF-8")
    if b"\0" in data:
        raise SourceError(f"{filepath} holds zero bytes: no text in UTF-8")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{filepath} is not UTF-8 (line {line})") from None
    if language == "python" and (declared := _declared(data)) and declared.lower() not in _UTF8_NAMES:
        raise SourceError(f"{filepath} says it is written in {declared}, not in UTF-8")
    return data


def _declared(data: bytes) -> str | None:
    """The encoding that one of a Python file's first two lines names."""
    for line in data.removeprefix(BOM).split(b"\n", 2)[:2]:
        if match := _COOKIE.match(line):
            return match[1].decode("ascii", "replace")
        if line.strip() and not line.lstrip().startswith(b"#"):
            return None
    return None
