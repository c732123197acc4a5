"""What it costs to start: the commands that must be instant, and the import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from measure import Figure, Subject, alone, compared, interleave, make_project, scratch_folder

TOPIC = "startup"
BAR_COMMAND = 1.5
BAR_IMPORT = 1.3

_COMMANDS = (("--version",), ("--help",), ("quiet", "status"))


def run(quick: bool) -> list[Figure]:
    with scratch_folder() as folder:
        return _measure(make_project(folder / "project"), repetitions=15 if quick else 100)


def _measure(project: Path, repetitions: int) -> list[Figure]:
    program = Path(sys.executable).with_name("holdfast")
    commands = [
        Subject(" ".join(("holdfast", *words)), _start(project, program, *words)) for words in _COMMANDS
    ]
    subjects = [
        Subject("python -c pass", _start(project, sys.executable, "-c", "pass")),
        Subject('python -c "import click"', _start(project, sys.executable, "-c", "import click")),
        Subject('python -c "import holdfast"', _start(project, sys.executable, "-c", "import holdfast")),
        *commands,
    ]
    nothing, click, imported, *started = interleave(subjects, repetitions).values()
    return [
        alone(TOPIC, nothing),
        compared(TOPIC, imported, nothing, BAR_IMPORT),
        alone(TOPIC, click),
        *(compared(TOPIC, command, click, BAR_COMMAND) for command in started),
    ]


def _start(project: Path, *command: str | Path) -> Callable[[], object]:
    def start() -> None:
        subprocess.run(command, check=True, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    return start
