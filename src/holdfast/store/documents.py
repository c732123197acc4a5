"""Snapshots as JSON text: validated on the way in and on the way out, older shapes brought up."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from holdfast.errors import DamagedDataError
from holdfast.model.base import explain
from holdfast.model.schema import SNAPSHOT_SCHEMA
from holdfast.model.snapshot import SessionSnapshot

_CURRENT = f'{{"schema_version":{SNAPSHOT_SCHEMA.current},'
"""How the text of a snapshot in today's shape begins: that one needs no step in between."""


def snapshot_to_json(snapshot: SessionSnapshot) -> str:
    return snapshot.model_dump_json()


def snapshot_from_json(text: str, *, where: str) -> SessionSnapshot:
    if text.startswith(_CURRENT):
        return _checked(lambda: SessionSnapshot.model_validate_json(text), where)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedDataError(f"{where} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise DamagedDataError(f"{where} is no snapshot")
    return snapshot_from_document(document, where=where)  # type: ignore[arg-type]


def snapshot_from_document(document: dict[str, Any], *, where: str) -> SessionSnapshot:
    upgraded = SNAPSHOT_SCHEMA.upgrade(document, where=where)
    return _checked(lambda: SessionSnapshot.model_validate(upgraded, strict=False), where)


def _checked(read: Callable[[], SessionSnapshot], where: str) -> SessionSnapshot:
    try:
        return read()
    except ValidationError as error:
        raise DamagedDataError(f"{where} is damaged: {explain(error)}") from error
