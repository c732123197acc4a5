"""Answers that are still true: what was read is told again for as long as nothing was written.

SQLite says at the cost of a glance whether anybody has committed anything since; where a
database cannot (PostgreSQL), every answer is read anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from holdfast.store.sql import SqlStore

_MOST_COPIES = 256
_LARGEST_COPY = 256 << 10


class Copies:
    """Used in the event loop's thread only."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, bytes], tuple[int, bytes]] = OrderedDict()

    async def answer(self, request: Request, make: Callable[[], BaseModel]) -> Response:
        """`make` is called in another thread, where no copy will do."""
        key = (request.scope["path"], request.scope["query_string"])
        mark = self._store.change_mark()  # before reading: a copy may be newer than its mark, never older
        known = self._kept.get(key)
        if known is not None and known[0] == mark:
            return _json(known[1])
        document = await run_in_threadpool(lambda: make().model_dump_json().encode())
        if mark is not None and len(document) <= _LARGEST_COPY:
            self._kept[key] = (mark, document)
            self._kept.move_to_end(key)
            if len(self._kept) > _MOST_COPIES:
                self._kept.popitem(last=False)
        return _json(document)


def _json(document: bytes) -> Response:
    return Response(document, media_type="application/json")
