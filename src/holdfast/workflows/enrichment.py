"""After a pause is safe: what the agent's own transcript tells is added to the snapshot, in its own time."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from pathlib import Path

from holdfast.base.errors import HoldfastError
from holdfast.model.snapshot import SessionSnapshot
from holdfast.project.settings import Settings

log = logging.getLogger("holdfast.runner")


def enrich_later(settings: Settings, snapshot: SessionSnapshot, worktree: Path) -> threading.Thread | None:
    """Nobody waits for it, and what fails in it costs only the findings. None without a transcript."""
    session = snapshot.agent_session
    if session is None or session.transcript is None:
        return None
    transcript, agent = Path(session.transcript), session.agent

    def enrich() -> None:
        from holdfast.sessions.enrich import enrich_snapshot

        try:
            enrich_snapshot(replace(settings, project=worktree), snapshot.id, transcript, agent)
        except HoldfastError as error:
            log.warning("nothing was added from the transcript: %s", error.message)

    thread = threading.Thread(target=enrich, name="holdfast-enrich")
    thread.start()
    return thread
