"""Claude Code's todo list, folded from the calls that change it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, cast

from holdfast.model.message import TodoItem, ToolCall, ToolResult

_Status = Literal["pending", "in_progress", "completed"]
_STATUSES: dict[object, _Status] = {
    "pending": "pending",
    "in_progress": "in_progress",
    "completed": "completed",
}
_CREATED = re.compile(r"[Tt]ask #(\w+) created")
_MOST_ITEMS = 1000


class TodoList:
    """Answers with the whole list after a change, and with ``None`` where nothing changed."""

    def __init__(self) -> None:
        self._items: dict[str, TodoItem] = {}
        self._awaiting_id: dict[str, TodoItem] = {}

    def after_calls(self, calls: Iterable[ToolCall]) -> tuple[TodoItem, ...] | None:
        changed = False
        for call in calls:
            if call.name == "TodoWrite":
                changed |= self._replace(call.arguments.get("todos"))
            elif call.name == "TaskCreate":
                self._await(call)
            elif call.name == "TaskUpdate":
                changed |= self._update(call.arguments)
        return self._whole() if changed else None

    def after_results(self, results: Iterable[ToolResult], structured: object) -> tuple[TodoItem, ...] | None:
        """TaskCreate learns its number only from its result; TaskList tells all of them."""
        changed = False
        for result in results:
            item = self._awaiting_id.pop(result.call_id, None)
            if item is not None and result.outcome == "ok":
                identifier = _created_id(structured, result.text) or f"?{len(self._items)}"
                self._items[identifier] = item
                changed = True
        if isinstance(structured, dict):
            changed |= self._relist(cast(dict[str, Any], structured).get("tasks"))
        return self._whole() if changed else None

    def _replace(self, todos: object) -> bool:
        if not isinstance(todos, list):
            return False
        items = [_item(entry, "content") for entry in cast(list[object], todos)[:_MOST_ITEMS]]
        self._items = {str(number): item for number, item in enumerate(items, 1) if item}
        return True

    def _relist(self, tasks: object) -> bool:
        if not isinstance(tasks, list):
            return False
        listed: dict[str, TodoItem] = {}
        for entry in cast(list[object], tasks)[:_MOST_ITEMS]:
            item = _item(entry, "subject")
            if item:
                listed[str(cast(dict[str, Any], entry).get("id"))] = item
        if not listed:
            return False
        self._items = listed
        return True

    def _await(self, call: ToolCall) -> None:
        item = _item(call.arguments, "subject")
        if item and len(self._items) + len(self._awaiting_id) < _MOST_ITEMS:
            self._awaiting_id[call.id] = item

    def _update(self, change: dict[str, Any]) -> bool:
        identifier = str(change.get("taskId"))
        item = self._items.get(identifier)
        if item is None:
            return False
        if change.get("status") == "deleted":
            del self._items[identifier]
            return True
        subject = change.get("subject")
        self._items[identifier] = TodoItem(
            subject if isinstance(subject, str) and subject else item.text,
            _STATUSES.get(_hashable(change.get("status")), item.status),
        )
        return True

    def _whole(self) -> tuple[TodoItem, ...]:
        return tuple(self._items.values())


def _item(entry: object, text_key: str) -> TodoItem | None:
    if not isinstance(entry, dict):
        return None
    fields = cast(dict[str, Any], entry)
    text = fields.get(text_key)
    if not isinstance(text, str) or not text.strip():
        return None
    return TodoItem(text.strip(), _STATUSES.get(_hashable(fields.get("status")), "pending"))


def _hashable(value: object) -> object:
    return value if isinstance(value, str) else None


def _created_id(structured: object, text: str) -> str | None:
    if isinstance(structured, dict):
        task: Any = cast(dict[str, Any], structured).get("task")
        if isinstance(task, dict) and (identifier := cast(dict[str, Any], task).get("id")):
            return str(identifier)
    found = _CREATED.search(text, 0, 500)
    return found[1] if found else None
