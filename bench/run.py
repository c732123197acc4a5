"""Run the benchmarks: a table for people, a file in results/ for comparing, status 1 on a missed bar."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, cast

from measure import Figure, scratch_folder

TOPICS = (
    "append",
    "summary",
    "finalise",
    "snapshot",
    "startup",
    "handoff",
    "transcripts",
    "search",
    "hooks",
    "flow",
    "workflows",
    "scale",
    "files",
    "server",
    "sidecar",
    "docs",
)
RESULTS = Path(__file__).parent / "results"
_PACKAGES = (
    "holdfast",
    "pydantic",
    "sqlalchemy",
    "dbos",
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "claude-mpm",
    "click",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.topics if name not in TOPICS]:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(TOPICS)}")
    figures: list[Figure] = []
    with scratch_folder() as home:
        _stay_in(home)
        for topic in options.topics or TOPICS:
            module = importlib.import_module(topic)
            found = cast("list[Figure]", module.run(options.quick))
            figures += found
            if not options.json:
                table = cast("Callable[[Sequence[Figure]], str]", getattr(module, "table", _table))
                print(table(found), flush=True)
    document = _document(figures, options.quick)
    _keep(document)
    if options.json:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    missed = [figure for figure in figures if figure.passed is False]
    if not options.json:
        print(_verdict(figures, missed))
    return 1 if missed and not options.no_fail else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("topics", metavar="NAME", nargs="*", help=f"all, or some of {', '.join(TOPICS)}")
    parser.add_argument("--quick", action="store_true", help="few repetitions: for trying it out")
    parser.add_argument("--json", action="store_true", help="print JSON in place of the table")
    parser.add_argument("--no-fail", action="store_true", help="status 0 even where a bar is missed")
    return parser


def _stay_in(home: Path) -> None:
    """Keep us and our peers out of the user's own folders and settings."""
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        del os.environ[name]
    os.environ.update(HOME=str(home), HOLDFAST_HOME=str(home / "holdfast"))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each start would compile what it imports


def _table(figures: Sequence[Figure]) -> str:
    lines = [_columns(figures[0].topic, "median", "p99", "ratio", "bar")]
    lines += [_row(figure) for figure in figures]
    return "\n".join(lines) + "\n"


def _columns(name: str, value: str, p99: str, ratio: str, bar: str) -> str:
    return f"{name:<54}{value:>11}{p99:>9}{ratio:>7}{bar:>8}"


def _row(figure: Figure) -> str:
    value = f"{figure.value:.3f} ms" if figure.unit == "ms" else f"{figure.value:.1f} {figure.unit}"
    p99 = "" if figure.p99 is None else f"{figure.p99:.3f}"
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    bar = "" if figure.bar is None else f"≤ {figure.bar:g}"
    verdict = {True: "PASS", False: "MISS", None: "    "}[figure.passed]
    against = f"of {figure.against}" if figure.against else ""
    return f"{_columns('  ' + figure.name, value, p99, ratio, bar)}  {verdict}  {against}".rstrip()


def _verdict(figures: Sequence[Figure], missed: Sequence[Figure]) -> str:
    with_bar = sum(figure.bar is not None for figure in figures)
    return f"{with_bar - len(missed)} of {with_bar} bars held"


def _document(figures: Sequence[Figure], quick: bool) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "processors": os.cpu_count(),
            "python": platform.python_version(),
        },
        "packages": {name: _version_of(name) for name in _PACKAGES},
        "figures": [{**asdict(figure), "passed": figure.passed} for figure in figures],
    }


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _keep(document: dict[str, Any]) -> None:
    RESULTS.mkdir(exist_ok=True)
    name = document["at"].replace(":", "").removesuffix("+0000")
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    (RESULTS / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
