"""`holdfast sessions list --all --search` with its index, beside reading every session file.

The sessions are one long session of each of two agents, kept again and again with a number of its own in each
copy. The files are in the memory of the system when the scan begins, which is to its advantage.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measure import Figure, scratch_folder

from transcripts import MB, long_session

TOPIC = "search"
BAR_QUERY_MS = 200.0
_PROGRAM = Path(sys.executable).with_name("holdfast")
_KEPT = {
    "claude-code": ".claude/projects/-bench/{}.jsonl",
    "codex": ".codex/sessions/2026/01/01/rollout-2026-{}.jsonl",
}
_RARE = "zebrawood"
_REPETITIONS = 5


def run(quick: bool) -> list[Figure]:
    count = 100 if quick else 1000
    with scratch_folder() as home:
        _keep_sessions(home, count)
        first = _milliseconds(home, _RARE)
        query = min(_milliseconds(home, _RARE) for _ in range(_REPETITIONS))
        scan = min(_milliseconds(home, _RARE, "--no-index") for _ in range(2))
        index = (home / "data" / "search.sqlite").stat().st_size / MB
    name = f"{count:,} sessions of 1 MB"
    return [
        Figure(TOPIC, f"{name}: first search, which builds the index", first),
        Figure(TOPIC, f"{name}: a search, nothing new", query, bar=BAR_QUERY_MS),
        Figure(TOPIC, f"{name}: reading the files", scan),
        Figure(TOPIC, f"{name}: size of the index", index, unit="MB"),
    ]


def _keep_sessions(home: Path, count: int) -> None:
    for agent, pattern in _KEPT.items():
        folder = home / agent
        folder.mkdir()
        data = long_session(agent, folder, 1).read_bytes()
        data = data[: data.rfind(b"\n", 0, MB) + 1]
        for number in range(count // len(_KEPT)):
            path = home / pattern.format(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.replace(b"test", b"test%d" % number))


def _milliseconds(home: Path, *words: str) -> float:
    return _timed(
        lambda: subprocess.run(
            (_PROGRAM, "sessions", "list", "--all", "--json", "--search", *words),
            check=True,
            cwd=home,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "HOLDFAST_HOME": str(home / "data")},
            stdout=subprocess.DEVNULL,
        )
    )


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000
