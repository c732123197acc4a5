"""`append_action` against the least that a durable append can do, and against claude-mpm's."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

from journals import action_data, line
from measure import Figure, Subject, alone, compared, interleave, make_project, scratch_folder
from peers.claude_mpm_pause import open_peer

from holdfast.sessions.winddown import IncrementalPauseManager

TOPIC = "append"
BAR = 1.5


def run(quick: bool) -> list[Figure]:
    with scratch_folder() as folder:
        return _measure(folder, repetitions=200 if quick else 2000)


def _measure(folder: Path, repetitions: int) -> list[Figure]:
    rng = random.Random(7)
    payloads = [action_data(rng, rng.randint(200, 500)) for _ in range(64)]

    manager = IncrementalPauseManager(make_project(folder / "project"))
    session_id = manager.start_incremental_pause(0.90, {"model": "bench"})
    lines = [line(data, session_id) for data in payloads]
    peer = open_peer(folder / "peer")

    ours, theirs = cycle(payloads), cycle(payloads)
    descriptor = os.open(folder / "bare.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    subjects = [
        Subject("bare write + fdatasync", _bare_append(descriptor, lines)),
        Subject("append_action", lambda: manager.append_action("tool_call", next(ours), 0.91)),
        Subject(peer.name, lambda: peer.append(next(theirs))),
    ]
    try:
        timings = interleave(subjects, repetitions)
    finally:
        os.close(descriptor)
    bare, append, other = timings.values()
    return [alone(TOPIC, bare), compared(TOPIC, append, bare, BAR), compared(TOPIC, other, bare)]


def _bare_append(descriptor: int, lines: list[bytes]) -> Callable[[], None]:
    sync = getattr(os, "fdatasync", os.fsync)
    following = cycle(lines)

    def append() -> None:
        os.write(descriptor, next(following))
        sync(descriptor)

    return append
