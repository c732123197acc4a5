"""One JSON document with a long ``messages`` array, read a message at a time.

Agents write such documents with ``JSON.stringify(value, null, 2)``. JSON strings hold no
raw line breaks, so the indentation of a line tells its depth, and a message is what
stands between two lines that hold nothing but a brace at the depth of the array. Any
other layout is parsed whole, as long as it fits into the size of the longest line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Literal, cast

import orjson

from holdfast.model.message import ReadReport
from holdfast.transcripts.fields import mapping_of, mappings_of
from holdfast.transcripts.lines import MAX_LINE_BYTES

Piece = tuple[Literal["about", "message"], dict[str, Any]]

_ARRAY_OPENS = b'  "messages": ['
_ARRAY_CLOSES = (b"  ]", b"  ],")
_MESSAGE_OPENS = b"    {"
_MESSAGE_CLOSES = (b"    }", b"    },")


def document_pieces(source: BinaryIO, report: ReadReport) -> Iterator[Piece]:
    """``about``: the document's other fields (in up to two pieces); ``message``: each message."""
    collected = _Collected()
    while line := source.readline(MAX_LINE_BYTES + 1):
        collected.add(line)
        if line.rstrip() == _ARRAY_OPENS:
            collected.add(b"]}")
            yield from _about(collected, report)
            yield from _messages(source, report)
            return
    yield from _whole(collected, report)


class _Collected:
    """Lines of one piece, up to a size; what is larger is known to be so, and not kept."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> None:
        self._size += len(line)
        if self.too_large:
            self._lines.clear()
        else:
            self._lines.append(line)

    @property
    def too_large(self) -> bool:
        return self._size > MAX_LINE_BYTES

    def parsed(self, report: ReadReport) -> dict[str, Any] | None:
        report.lines += 1
        if self.too_large:
            report.oversized += 1
            return None
        try:
            value: object = orjson.loads(b"".join(self._lines).rstrip().removesuffix(b","))
        except (orjson.JSONDecodeError, RecursionError):
            value = None
        if not isinstance(value, dict):
            report.torn += 1
            return None
        return cast(dict[str, Any], value)


def _about(collected: _Collected, report: ReadReport) -> Iterator[Piece]:
    if fields := collected.parsed(report):
        yield "about", {name: value for name, value in fields.items() if name != "messages"}


def _messages(source: BinaryIO, report: ReadReport) -> Iterator[Piece]:
    current: _Collected | None = None
    while line := source.readline(MAX_LINE_BYTES + 1):
        bare = line.rstrip()
        if current is None and bare in _ARRAY_CLOSES:
            yield from _rest(source, report)
            return
        if bare == _MESSAGE_OPENS:
            current = _Collected()
        if current is None:
            continue
        current.add(line)
        if bare in _MESSAGE_CLOSES:
            if message := current.parsed(report):
                yield "message", message
            current = None
    # The document ends inside its array: its writer was stopped.
    report.torn += 1


def _rest(source: BinaryIO, report: ReadReport) -> Iterator[Piece]:
    collected = _Collected()
    collected.add(b"{")
    lines = 0
    while line := source.readline(MAX_LINE_BYTES + 1):
        lines += 1
        collected.add(line)
    if lines > 1:
        yield from _about(collected, report)


def _whole(collected: _Collected, report: ReadReport) -> Iterator[Piece]:
    fields = collected.parsed(report)
    if fields is None:
        return
    yield "about", {name: value for name, value in fields.items() if name != "messages"}
    for message in mappings_of(fields.get("messages")):
        yield "message", mapping_of(message)
