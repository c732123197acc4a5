"""Memory that `finalize_pause` takes on a long journal: it must not grow with the journal.

Run as a script it is the fresh process: it finalises and prints its memory before and at the most.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from measure import Figure, in_fresh_process, make_project, memory_now, memory_peak, scratch_folder

TOPIC = "finalise"
BAR_MB = 50.0
ACTIONS = 10_000


def run(quick: bool) -> list[Figure]:
    repetitions = 1 if quick else 5
    cases = [
        ("10 actions", 10, False, None),
        (f"{ACTIONS:,} actions", ACTIONS, False, BAR_MB),
        ("10 actions, new database", 10, True, None),
        (f"{ACTIONS:,} actions, new database", ACTIONS, True, BAR_MB),
    ]
    return [figure for case in cases for figure in _figures(*case, repetitions)]


def _figures(name: str, actions: int, new: bool, bar: float | None, repetitions: int) -> list[Figure]:
    runs = [_one_run(actions, new) for _ in range(repetitions)]
    grown = max(done["peak"] - done["start"] for done in runs)
    memory = Figure(TOPIC, f"memory over the start, {name}", grown, unit="MB", bar=bar)
    times = sorted(done["milliseconds"] for done in runs)
    took = Figure(TOPIC, f"finalize_pause, {name}", times[len(times) // 2])
    return [memory, took]


def _one_run(actions: int, new_database: bool) -> dict[str, float]:
    with scratch_folder() as folder:
        project, home = make_project(folder / "project"), str(folder / "home")
        if not new_database:
            _finalise_apart(project, 2, home)
        return _finalise_apart(project, actions, home)


def _finalise_apart(project: Path, actions: int, home: str) -> dict[str, float]:
    from journals import start_with

    start_with(project, actions)
    return in_fresh_process(Path(__file__), str(project), HOLDFAST_HOME=home)


def _finalise_here(project: str) -> dict[str, float]:
    from holdfast import IncrementalPauseManager

    manager = IncrementalPauseManager(project)
    start, begin = memory_now(), time.perf_counter()
    written = manager.finalize_pause()
    took = (time.perf_counter() - begin) * 1000
    assert written is not None
    assert written.exists()
    return {"start": start, "peak": memory_peak(), "milliseconds": took}


if __name__ == "__main__":
    print(json.dumps(_finalise_here(sys.argv[1])))
