"""Values out of foreign JSON, where any field may be missing or of any type."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from datetime import UTC, datetime
from typing import Any, BinaryIO, Generic, Literal, TypeVar, cast

from holdfast.model.message import ReadReport, TodoItem

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_MOST_TODOS = 1000
_MOST_UNKNOWN_TYPES = 50
_TODO_STATUSES: dict[str, Literal["pending", "in_progress", "completed"]] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
    "blocked": "pending",
}


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def kind_of(value: object) -> str:
    """A type's name to compare and to count by; it may be of any JSON type itself."""
    return value if isinstance(value, str) else f"({type(value).__name__})"


def count_of(value: object) -> int:
    """A count of tokens or the like: never negative, never a boolean."""
    if type(value) is int and 0 <= value < 1e15:
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return 0
    return int(value)


def mapping_of(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []


def mappings_of(value: object) -> list[dict[str, Any]]:
    """The objects in a list; whatever else stands there is passed over."""
    return [cast(dict[str, Any], item) for item in list_of(value) if isinstance(item, dict)]


def joined(texts: Iterable[str]) -> str:
    return "\n".join(text for text in texts if text)


def iso_of_milliseconds(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        moment = datetime.fromtimestamp(value / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def todos_of(entries: object, text_key: str) -> tuple[TodoItem, ...] | None:
    """A whole todo list; cancelled items are left out, since nobody is to do them."""
    if not isinstance(entries, list):
        return None
    items: list[TodoItem] = []
    for entry in mappings_of(cast(list[object], entries)[:_MOST_TODOS]):
        text = text_of(entry.get(text_key)).strip()
        if text and entry.get("status") != "cancelled":
            items.append(TodoItem(text, _TODO_STATUSES.get(text_of(entry.get("status")), "pending")))
    return tuple(items)


def count_unknown(report: ReadReport, kind: str) -> None:
    report.unknown += 1
    name = kind[:60]
    if name in report.unknown_types or len(report.unknown_types) < _MOST_UNKNOWN_TYPES:
        report.unknown_types[name] = report.unknown_types.get(name, 0) + 1


class Recent(Generic[Key, Value]):
    """The latest entries of a mapping that would else grow with the file.

    Two generations in place of an order: when the young one is full it becomes the old one, and
    what was old is forgotten. At least the ``most`` latest entries are kept, at most twice as many,
    and a line of a file costs two lookups.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._young or key in self._old

    def known(self) -> list[Key]:
        return [*(key for key in self._old if key not in self._young), *self._young]

    def put(self, key: Key, value: Value) -> None:
        young = self._young
        young[key] = value
        if len(young) > self._most:
            self._old, self._young = young, {}

    def met(self: Recent[Key, bool], key: Key) -> bool:
        """Whether a key was met lately; it has been from now on."""
        if key in self._young or key in self._old:
            return True
        self.put(key, True)
        return False

    def get(self, key: Key) -> Value | None:
        value = self._young.get(key)
        return self._old.get(key) if value is None else value

    def pop(self, key: Key) -> Value | None:
        old = self._old.pop(key, None)
        young = self._young.pop(key, None)
        return old if young is None else young


class PushedBack:
    """A source whose first bytes were looked at and are to be read again."""

    def __init__(self, head: bytes, source: BinaryIO) -> None:
        self._head = head
        self._source = source
        self.readline = self._first_line if head else source.readline

    def _first_line(self, limit: int = -1) -> bytes:
        self.readline = self._source.readline  # from now on there is nothing between
        head = self._head
        if head.endswith(b"\n"):
            return head
        return head + self._source.readline(max(0, limit - len(head)) if limit >= 0 else -1)
