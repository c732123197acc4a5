"""claude-mpm's `append_action`: its own class where it can be imported, else the calls it makes."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol


class Peer(Protocol):
    name: str

    def append(self, data: dict[str, Any]) -> None: ...


def open_peer(folder: Path) -> Peer:
    """A wind-down of claude-mpm in that folder. It does not wait for the disk."""
    logging.disable(logging.INFO)
    try:
        from claude_mpm.services.cli.incremental_pause_manager import IncrementalPauseManager
    except ImportError:
        return _SameCalls.start(folder)
    finally:
        logging.disable(logging.NOTSET)
    logging.getLogger("claude_mpm").setLevel(logging.WARNING)
    folder.mkdir(parents=True)
    manager = IncrementalPauseManager(folder)
    manager.start_incremental_pause(0.90, {"model": "bench"})
    return _TheirClass(manager)


@dataclass
class _TheirClass:
    manager: Any
    name: str = "claude-mpm append_action (no sync)"

    def append(self, data: dict[str, Any]) -> None:
        self.manager.append_action("tool_call", data, 0.91)


@dataclass
class _SameCalls:
    """Look for the file, read the id from its first line, open, write, flush, close."""

    path: Path
    name: str = "the calls of claude-mpm (no sync)"

    @classmethod
    def start(cls, folder: Path) -> _SameCalls:
        folder.mkdir(parents=True)
        path = folder / "ACTIVE-PAUSE.jsonl"
        path.write_text(json.dumps({"type": "pause_started", "session_id": "session-20260106-120000"}) + "\n")
        return cls(path)

    def append(self, data: dict[str, Any]) -> None:
        assert self.path.exists()
        with self.path.open("r") as file:
            session_id = json.loads(file.readline())["session_id"]
        document = {
            "type": "tool_call",
            "timestamp": datetime.now(UTC).isoformat(),
            "session_id": session_id,
            "data": data,
            "context_percentage": 0.91,
        }
        with self.path.open("a") as file:
            file.write(json.dumps(document) + "\n")
            file.flush()
