"""Snapshots as JSON text: validated on the way in and on the way out, older shapes brought up."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from holdfast.errors import DamagedDataError
from holdfast.model.base import explain
from holdfast.model.schema import SNAPSHOT_SCHEMA
from holdfast.model.snapshot import SessionSnapshot

_DERIVED = {"tasks_completed", "tasks_remaining"}


def snapshot_to_json(snapshot: SessionSnapshot) -> str:
    return snapshot.model_dump_json(exclude=_DERIVED)


def snapshot_from_json(text: str, *, where: str) -> SessionSnapshot:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DamagedDataError(f"{where} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise DamagedDataError(f"{where} is no snapshot")
    return snapshot_from_document(document, where=where)  # type: ignore[arg-type]


def snapshot_from_document(document: dict[str, Any], *, where: str) -> SessionSnapshot:
    upgraded = SNAPSHOT_SCHEMA.upgrade(document, where=where)
    try:
        return SessionSnapshot.model_validate(upgraded, strict=False)
    except ValidationError as error:
        raise DamagedDataError(f"{where} is damaged: {explain(error)}") from error
