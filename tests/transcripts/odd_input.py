"""Input that no agent would write, and ways to look at what a reader makes of it."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from hypothesis import strategies as st

from holdfast.model.message import Message, ReadReport

Reader = Callable[[BinaryIO, ReadReport], Iterator[Message]]


def lines(*objects: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in objects)


def read_all(read: Reader, data: bytes) -> tuple[list[Message], ReadReport]:
    report = ReadReport()
    messages = list(read(io.BytesIO(data), report))
    assert [message.index for message in messages] == list(range(len(messages)))
    return messages, report


def json_values(keys: Iterable[str], words: Iterable[str]) -> st.SearchStrategy[Any]:
    """Any JSON, made of the words of a format, so that it gets past the first check."""
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.sampled_from(sorted(words)),
    )
    names = st.one_of(st.sampled_from(sorted(keys)), st.text(max_size=3))
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=6),
        max_leaves=12,
    )


def json_objects(keys: Iterable[str], words: Iterable[str]) -> st.SearchStrategy[dict[str, Any]]:
    known = sorted(keys)
    return st.dictionaries(st.sampled_from(known), json_values(known, words), max_size=8)


class LongStream(io.RawIOBase):
    """A file that is never held in memory: the same chunk again and again, then an end."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._pieces, b"")
        taken, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def streamed(pieces: Iterable[bytes]) -> BinaryIO:
    return io.BufferedReader(LongStream(pieces))  # pyright: ignore[reportArgumentType]


def peak_memory(action: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def drained(read: Reader, source: BinaryIO, report: ReadReport) -> int:
    return sum(1 for _ in read(source, report))
