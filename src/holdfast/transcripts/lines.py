"""JSON lines out of a file that may be torn, huge or not JSON at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

import orjson

from holdfast.model.message import ReadReport

# A longer line is skipped and counted: parsing it could cost four bytes a character,
# and memory must not depend on what a tool once printed.
MAX_LINE_BYTES = 16 * 1024 * 1024
_SKIP_CHUNK = 1024 * 1024
_NOISE_WITHIN = 1500


def json_objects(
    source: BinaryIO,
    report: ReadReport,
    noise: bytes | None = None,
    is_noise: Callable[[bytes], bool] | None = None,
) -> Iterator[dict[str, Any]]:
    """Each line that holds a JSON object; every other line is counted in ``report``.

    ``noise`` near the start of a line marks one that says nothing: it is not even parsed.
    Where one mark does not tell, ``is_noise`` is asked about each whole line.
    """
    loads = orjson.loads
    while line := source.readline(MAX_LINE_BYTES + 1):
        report.lines += 1
        if len(line) > MAX_LINE_BYTES:
            _skip_rest_of_line(source, line)
            report.oversized += 1
            continue
        if noise is not None and line.find(noise, 0, _NOISE_WITHIN) >= 0:
            continue
        if is_noise is not None and line.endswith(b"}\n") and is_noise(line):
            continue
        try:
            value = loads(line)
        except (orjson.JSONDecodeError, RecursionError):
            if line.strip():
                report.torn += 1
            continue
        if isinstance(value, dict):
            yield cast(dict[str, Any], value)
        else:
            report.torn += 1


def _skip_rest_of_line(source: BinaryIO, line: bytes) -> None:
    while line and not line.endswith(b"\n"):
        line = source.readline(_SKIP_CHUNK)
