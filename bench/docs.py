"""Finding all that can be documented in CPython's `Lib`, against tree-sitter parsing it and nothing else.

The tree is the standard library of the Python that runs this. The bar is the least that a second must
do; the ratio says how much of the time is not the parser's. `holdfast docs` shares large trees out to a
process for each processor, and that is what has the bar; the floor and the other line are of one process.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from measure import Figure, Subject, Timing, interleave

from holdfast.docaudit.languages import SourceError, parse, read_source
from holdfast.docaudit.search import analyse_files, find_files

TOPIC = "docs"
BAR = 5.0


@dataclass(frozen=True)
class Speed(Figure):
    """In MB a second; its bar is the least it may be."""

    @property
    def passed(self) -> bool | None:
        return None if self.bar is None else self.value >= self.bar


def run(quick: bool) -> list[Figure]:
    library = Path(sysconfig.get_path("stdlib"))
    files = [name for name in find_files(library, ".") if name.endswith(".py")]
    if quick:
        files = files[::5]
    size = sum((library / name).stat().st_size for name in files) / 1e6

    def bare() -> None:
        for name in files:
            try:
                source = read_source(library, name)
            except SourceError:
                continue  # a few of them are there to be no UTF-8
            parse(source.data, source.language)

    subjects = [
        Subject("tree-sitter alone, reading included", bare),
        Subject("analyse, one process", lambda: analyse_files(library, files, processes=1)),
        Subject("analyse, as `docs audit` does", lambda: analyse_files(library, files)),
    ]
    floor, alone, audit = interleave(subjects, 3 if quick else 5, warmup=1).values()
    return [
        _speed(floor, size),
        _speed(alone, size, floor),
        _speed(audit, size, floor, BAR),
    ]


def _speed(timing: Timing, size: float, floor: Timing | None = None, bar: float | None = None) -> Speed:
    return Speed(
        TOPIC,
        f"{timing.name} ({size:.1f} MB)",
        size / (timing.median / 1000),
        "MB/s",
        against=floor.name if floor else "",
        ratio=timing.median / floor.median if floor else None,
        bar=bar,
    )


def table(figures: Sequence[Figure]) -> str:
    lines = [f"{TOPIC:<54}{'median':>11}{'ratio':>16}{'bar':>10}"]
    for one in figures:
        ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
        bar = "" if one.bar is None else f"≥ {one.bar:g}"
        verdict = {True: "PASS", False: "MISS", None: "    "}[one.passed]
        against = f"of the time of {one.against}" if one.against else ""
        line = f"{'  ' + one.name:<54}{one.value:>6.1f} MB/s{ratio:>16}{bar:>10}  {verdict}  {against}"
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"
