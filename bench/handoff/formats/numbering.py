"""Ids and times that grow from one line to the next, the same on every run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_START = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)


class Numbering:
    def __init__(self) -> None:
        self._number = 0

    def next(self) -> int:
        self._number += 1
        return self._number

    def uuid(self) -> str:
        number = self.next()
        return f"{number:08x}-5c1e-4d2a-9b7f-{number * 2654435761 % (1 << 48):012x}"

    def id(self, prefix: str) -> str:
        return f"{prefix}_{self.next():024x}"

    def at(self) -> str:
        moment = _START + timedelta(milliseconds=731 * self._number)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"

    def milliseconds(self) -> int:
        return int(_START.timestamp() * 1000) + 731 * self._number
