"""What the recorded actions of a project tell, over all its journals."""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.base.clock import seconds_between
from holdfast.journal.log import Reader
from holdfast.journal.summary import Digest, archives
from holdfast.journal.usage import seconds_until_full
from holdfast.project.layout import ProjectLayout

_NEWEST_SAMPLES = 10_000


@dataclass
class JournalStats:
    journals: int = 0
    actions: int = 0
    skipped_lines: int = 0
    by_type: Counter[str] = field(default_factory=Counter[str])
    by_tool: Counter[str] = field(default_factory=Counter[str])
    context_per_action: float | None = None
    mean_duration_seconds: float | None = None
    seconds_to_exhaustion: float | None = None
    """Of the active wind-down, judging by its own pace."""
    active_session: str | None = None


def journal_stats(layout: ProjectLayout) -> JournalStats:
    stats = JournalStats()
    rises: list[float] = []
    durations: list[float] = []
    for path in archives(layout.sessions):
        digest = _take(path, stats)
        durations.append(digest.duration_seconds)
        if digest.context_per_action is not None:
            rises.append(digest.context_per_action)
    if layout.journal.exists():
        digest, samples = _take_sampled(layout.journal, stats)
        stats.active_session = digest.first.session_id if digest.first else None
        stats.seconds_to_exhaustion = seconds_until_full(samples)
        if digest.context_per_action is not None:
            rises.append(digest.context_per_action)
    stats.context_per_action = sum(rises) / len(rises) if rises else None
    stats.mean_duration_seconds = sum(durations) / len(durations) if durations else None
    return stats


def _take(path: Path, stats: JournalStats) -> Digest:
    reader = Reader(path)
    return _added(Digest().take(reader), reader, stats)


def _take_sampled(path: Path, stats: JournalStats) -> tuple[Digest, deque[tuple[float, float]]]:
    reader, digest = Reader(path), Digest()
    samples: deque[tuple[float, float]] = deque(maxlen=_NEWEST_SAMPLES)
    for action in reader:
        digest.add(action)
        first = digest.first or action
        with contextlib.suppress(ValueError):  # a timestamp of another program, which we cannot read
            samples.append((seconds_between(first.timestamp, action.timestamp), action.context_percentage))
    return _added(digest, reader, stats), samples


def _added(digest: Digest, reader: Reader, stats: JournalStats) -> Digest:
    stats.journals += 1
    stats.actions += digest.action_count
    stats.skipped_lines += reader.skipped
    stats.by_type += digest.by_type
    stats.by_tool += digest.by_tool
    return digest
