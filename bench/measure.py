"""What every benchmark shares: interleaved timing, figures with their bars, fresh processes."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def _nothing() -> None:
    """For subjects that need no preparation."""


@dataclass(frozen=True)
class Subject:
    """Something to be timed. `prepare` runs before each repetition, outside the time taken."""

    name: str
    run: Callable[[], object]
    prepare: Callable[[], object] = _nothing


@dataclass
class Timing:
    """How long one subject took, each time, in milliseconds."""

    name: str
    times: list[float] = field(default_factory=list[float])

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def p99(self) -> float:
        return sorted(self.times)[min(len(self.times) - 1, len(self.times) * 99 // 100)]


@dataclass(frozen=True)
class Figure:
    """One line of the table. With a bar it can be missed; without one it is there to compare."""

    topic: str
    name: str
    value: float
    unit: str = "ms"
    p99: float | None = None
    against: str = ""
    ratio: float | None = None
    bar: float | None = None
    """The most the ratio may be; of the value itself where there is no ratio."""

    @property
    def passed(self) -> bool | None:
        if self.bar is None:
            return None
        return (self.value if self.ratio is None else self.ratio) <= self.bar


def interleave(subjects: Sequence[Subject], repetitions: int, warmup: int = 3) -> dict[str, Timing]:
    """Time all subjects in turn, round by round, so that a busy moment of the machine hits them alike."""
    timings = {subject.name: Timing(subject.name) for subject in subjects}
    gc.collect()
    gc.freeze()  # what the peers loaded is not looked through again on a subject's time
    for round_number in range(-warmup, repetitions):
        start = round_number % len(subjects)
        for subject in (*subjects[start:], *subjects[:start]):
            elapsed = _time_once(subject)
            if round_number >= 0:
                timings[subject.name].times.append(elapsed)
    return timings


def _time_once(subject: Subject) -> float:
    subject.prepare()
    begin = time.perf_counter_ns()
    subject.run()
    return (time.perf_counter_ns() - begin) / 1e6


def alone(topic: str, timing: Timing) -> Figure:
    """A figure to compare others with."""
    return Figure(topic, timing.name, timing.median, p99=timing.p99)


def compared(topic: str, timing: Timing, peer: Timing, bar: float | None = None) -> Figure:
    """A figure as a multiple of another one of the same run."""
    return Figure(
        topic,
        timing.name,
        timing.median,
        p99=timing.p99,
        against=peer.name,
        ratio=timing.median / peer.median,
        bar=bar,
    )


@contextlib.contextmanager
def scratch_folder() -> Generator[Path]:
    """A folder on the disk that TMPDIR names, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as name:
        yield Path(name).resolve()


def make_project(folder: Path) -> Path:
    """A git project with one commit."""
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("A project to measure in.\n")
    author = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
    for arguments in (("init", "-q"), ("add", "."), (*author, "commit", "-qm", "Start")):
        subprocess.run(["git", "-C", folder, *arguments], check=True)
    return folder


def in_fresh_process(script: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a script of ours in a Python of its own; it prints one JSON object."""
    done = subprocess.run(
        [sys.executable, script, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout)


def _proc_status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise LookupError(name)


def memory_now() -> float:
    """This process's memory in MB; where the system does not tell, the most it has had."""
    return _proc_status("VmRSS") if sys.platform == "linux" else memory_peak()


def memory_peak() -> float:
    """The most memory this process has had, in MB."""
    if sys.platform == "linux":
        return _proc_status("VmHWM")  # ru_maxrss may still be that of the process that started us
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024  # bytes on macOS
