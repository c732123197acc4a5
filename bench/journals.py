"""Actions as agents make them, and journals full of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from holdfast.base.clock import iso
from holdfast.journal.log import PauseAction
from holdfast.sessions.winddown import IncrementalPauseManager

_FILES = ("src/parser/lexer.py", "src/store/index.py", "tests/test_resume.py", "docs/formats.md")
_WORDS = ("checked", "the", "lock", "before", "writing", "and", "found", "two", "callers", "that", "wait")


def words(rng: random.Random, length: int) -> str:
    """Text of about that many characters."""
    text = ""
    while len(text) < length:
        text += rng.choice(_WORDS) + " "
    return text[:length].rstrip()


def action_data(rng: random.Random, length: int) -> dict[str, Any]:
    """A tool call whose line in the journal has about `length` bytes."""
    return {
        "tool": rng.choice(("Read", "Edit", "Bash")),
        "path": rng.choice(_FILES),
        "duration_ms": rng.randint(3, 4000),
        "summary": words(rng, max(8, length - 230)),
    }


def line(data: dict[str, Any], session_id: str) -> bytes:
    """A line as `append_action` writes it for this data."""
    action = PauseAction("tool_call", iso(1_767_700_800.25), session_id, data, 0.91)
    return action.to_json_line().encode() + b"\n"


def start_with(project: Path, actions: int, length: int = 400) -> IncrementalPauseManager:
    """A wind-down with that many actions in its journal, written without waiting for the disk."""
    manager = IncrementalPauseManager(project)
    session_id = manager.start_incremental_pause(0.90, {"model": "bench"})
    rng = random.Random(1)
    with manager.layout.journal.open("ab") as journal:
        journal.writelines(line(action_data(rng, length), session_id) for _ in range(actions - 1))
    return manager
