"""LangGraph's checkpointer on an SQLite file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

_THREAD = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}


class Checkpointer:
    """`allowed` is a class it may build anew when loading; without that it warns each time."""

    def __init__(self, database: Path, allowed: type) -> None:
        self._opened = SqliteSaver.from_conn_string(str(database))
        self._saver = self._opened.__enter__()
        self._saver.serde = JsonPlusSerializer(
            allowed_msgpack_modules=[(allowed.__module__, allowed.__name__)]
        )
        self._saver.setup()

    def put_and_get(self, state: Any) -> Any:
        """Save the state as one channel of a new checkpoint and load that checkpoint."""
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"snapshot": state}
        checkpoint["channel_versions"] = {"snapshot": 1}
        saved = self._saver.put(_THREAD, checkpoint, {"source": "loop", "step": 1}, {"snapshot": 1})
        found = self._saver.get_tuple(saved)
        return found.checkpoint["channel_values"]["snapshot"]

    def close(self) -> None:
        self._opened.__exit__(None, None, None)
