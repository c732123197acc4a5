"""Cursors: where a page ended, in a form that means nothing to anybody else."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated

from fastapi import Query

from holdfast.base.errors import InvalidInputError
from holdfast.model.workflow import Workflow

LARGEST_NUMBER = 2**63 - 1

Limit = Annotated[int, Query(ge=1, le=500, description="How many at most")]
Cursor = Annotated[str | None, Query(max_length=400, description="`next_cursor` of the page before")]
Since = Annotated[int, Query(ge=0, le=LARGEST_NUMBER, description="Only events with a higher number")]


def cursor_after(workflow: Workflow) -> str:
    return _packed(workflow.updated_at.isoformat(), workflow.id)


def workflow_position(cursor: str) -> tuple[datetime, str]:
    moment, name = _unpacked(cursor)
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        raise _not_ours() from None
    if at.tzinfo is None:
        raise _not_ours()
    return at, name


def offset_cursor(offset: int) -> str:
    return _packed("offset", str(offset))


def offset_of(cursor: str | None) -> int:
    if cursor is None:
        return 0
    kind, number = _unpacked(cursor)
    if kind != "offset" or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise _not_ours()
    return int(number)


def _packed(first: str, second: str) -> str:
    return base64.urlsafe_b64encode(f"{first}\n{second}".encode()).decode().rstrip("=")


def _unpacked(cursor: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        first, second = text.split("\n")
    except (binascii.Error, ValueError):
        raise _not_ours() from None
    return first, second


def _not_ours() -> InvalidInputError:
    return InvalidInputError(
        "the cursor is none of ours", hint="take `next_cursor` of the page before, or leave it out"
    )
