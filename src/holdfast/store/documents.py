"""Snapshots as JSON text: validated on the way in and on the way out, older shapes brought up.

In a database the tasks, which are nearly all of a large snapshot, are kept beside it in packed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from holdfast.base.errors import DamagedDataError
from holdfast.model.base import explain
from holdfast.model.schema import SNAPSHOT_SCHEMA
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import TaskDAG

_CURRENT = f'{{"schema_version":{SNAPSHOT_SCHEMA.current},'
"""How the text of a snapshot in today's shape begins: that one needs no step in between."""


def snapshot_to_json(snapshot: SessionSnapshot) -> str:
    return snapshot.model_dump_json()


def snapshot_from_json(text: str, *, where: str) -> SessionSnapshot:
    if text.startswith(_CURRENT):
        return _checked(lambda: SessionSnapshot.model_validate_json(text), where)
    return snapshot_from_document(_object(text, where), where=where)


def snapshot_to_columns(snapshot: SessionSnapshot) -> tuple[str, bytes]:
    """The snapshot without its tasks, and they."""
    return snapshot.model_dump_json(exclude={"task_dag"}), snapshot.task_dag.packed()


def snapshot_from_columns(text: str, tasks: bytes | None, *, where: str) -> SessionSnapshot:
    """`tasks` is None in rows from before they had a column of their own."""
    if tasks is None:
        return snapshot_from_json(text, where=where)
    document = _object(text, where)
    if not text.startswith(_CURRENT):
        document = SNAPSHOT_SCHEMA.upgrade(document, where=where)
    try:
        document["task_dag"] = TaskDAG.unpacked(tasks)
    except ValueError as error:
        raise DamagedDataError(f"{where} is damaged: {error}") from error
    return _checked(lambda: SessionSnapshot.model_validate(document), where)


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        document: Any = from_json(text)
    except (ValueError, RecursionError) as error:
        raise DamagedDataError(f"{where} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise DamagedDataError(f"{where} is no snapshot")
    return document  # pyright: ignore[reportUnknownVariableType]


def snapshot_from_document(document: dict[str, Any], *, where: str) -> SessionSnapshot:
    upgraded = SNAPSHOT_SCHEMA.upgrade(document, where=where)
    return _checked(lambda: SessionSnapshot.model_validate(upgraded, strict=False), where)


def _checked(read: Callable[[], SessionSnapshot], where: str) -> SessionSnapshot:
    try:
        return read()
    except ValidationError as error:
        raise DamagedDataError(f"{where} is damaged: {explain(error)}") from error
