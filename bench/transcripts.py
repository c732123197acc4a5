"""The context of long session files, against the least it takes to read them.

The files are made of the sessions in `handoff`, told again and again under new ids. The floor is
`wc -l` and a process that parses each line with orjson once; for a database, one that parses each
row once. What counts is the time of the processor, since runs of seconds are seldom left alone on a
machine; nothing here waits for anything else.

Run as a script this is the fresh process that tells its memory.
"""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

from measure import Figure, in_fresh_process, memory_now, memory_peak, scratch_folder

TOPIC = "transcripts"
BAR_TIME = 3.0
BAR_MEMORY_MB = 150.0
BAR_GROWTH = 1.3
MB = 1_000_000
_CALM = 60  # events
_FLOOR = "read and parse once"
_Work = Callable[[], None]

_PARSE_LINES = """
import sys, orjson
with open(sys.argv[1], "rb", buffering=1 << 20) as source:
    for line in source:
        orjson.loads(line)
"""
_PARSE_ROWS = """
import sqlite3, sys, orjson
rows = sqlite3.connect(sys.argv[1])
for table in ("message", "part"):
    for (data,) in rows.execute(f"SELECT data FROM {table}"):
        orjson.loads(data)
"""


def run(quick: bool) -> list[Figure]:
    repetitions = 3 if quick else 5
    figures: list[Figure] = []
    by_megabyte: dict[int, float] = {}
    for size in (10, 100) if quick else (10, 100, 1000):
        # A small file tells what starting and ranking cost, whatever the size: no bar on its time.
        bar = BAR_TIME if size >= 100 else None
        found, by_megabyte[size] = _figures("claude-code", size, bar, 3 if size > 100 else repetitions)
        figures += found
    if 1000 in by_megabyte:
        growth = by_megabyte[1000] / by_megabyte[100]
        figures.append(Figure(TOPIC, "time per MB, 1 GB to 100 MB", growth, unit="x", bar=BAR_GROWTH))
    for agent in ("codex", "gemini", "opencode"):
        figures += _figures(agent, 100, BAR_TIME, repetitions)[0]
    return figures


def _figures(agent: str, size: int, bar: float | None, repetitions: int) -> tuple[list[Figure], float]:
    name = f"{agent}, {size} MB" if size < 1000 else f"{agent}, {size // 1000} GB"
    with scratch_folder() as folder:
        transcript = long_session(agent, folder, size)
        floor, context = _least_times(
            _floor(transcript, rows=agent == "opencode"), _context(transcript), repetitions
        )
        megabytes = transcript.stat().st_size / MB
        used = in_fresh_process(Path(__file__), str(transcript))
    grown = used["peak"] - used["start"]
    return [
        Figure(TOPIC, f"{name}: {_FLOOR}", floor),
        Figure(TOPIC, f"{name}: holdfast context", context, against=_FLOOR, ratio=context / floor, bar=bar),
        Figure(TOPIC, f"{name}: memory over the start", grown, unit="MB", bar=BAR_MEMORY_MB),
    ], context / megabytes


def long_session(agent: str, folder: Path, size: int) -> Path:
    from handoff.cases import ALL
    from handoff.formats import SUFFIX, write_long

    # The point of each case is where things fail; a long session is mostly calm.
    calm = [replace(case, before=case.before[:_CALM]) for case in ALL]
    transcript = folder / f"session{SUFFIX[agent]}"
    write_long(agent, [*ALL, *calm, *calm], transcript, size * MB)
    return transcript


def _least_times(first: _Work, second: _Work, repetitions: int) -> tuple[float, float]:
    """Processor time of both in turn, in milliseconds; the least of each was disturbed least."""
    both = [(_processor_time(first), _processor_time(second)) for _ in range(repetitions + 1)][1:]
    return min(one for one, _ in both), min(other for _, other in both)


def _processor_time(work: _Work) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def _floor(transcript: Path, *, rows: bool) -> _Work:
    def read() -> None:
        if not rows:
            _silently("wc", "-l", transcript)
        _silently(sys.executable, "-c", _PARSE_ROWS if rows else _PARSE_LINES, transcript)

    return read


def _context(transcript: Path) -> _Work:
    program = Path(sys.executable).with_name("holdfast")
    return lambda: _silently(program, "context", "--transcript", transcript, "--max-chars", "9500")


def _silently(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _memory_of_context(transcript: str) -> dict[str, float]:
    start = memory_now()
    from holdfast.__main__ import main

    sys.argv = ["holdfast", "context", "--transcript", transcript, "--max-chars", "9500"]
    with redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise
    return {"start": start, "peak": memory_peak()}


if __name__ == "__main__":
    print(json.dumps(_memory_of_context(sys.argv[1])))
