"""What it costs to start: the commands that must be instant, those that only look, and the import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from measure import Figure, Subject, alone, compared, interleave, make_project, scratch_folder

from holdfast import ContextUsageTracker

TOPIC = "startup"
BAR_COMMAND = 1.5
BAR_IMPORT = 1.3
BAR_READING = 10
BAR_TELLING = 20

_PROGRAM = Path(sys.executable).with_name("holdfast")
_INSTANT = (("--version",), ("--help",), ("quiet", "status"))
_READING = (("status",), ("list",), ("snapshot", "list"), ("usage",), ("stats",), ("events",))
_TELLING = (("threads",), ("context", "latest"), ("history", "latest", "tasks"))
"""They read what sessions held, and ask git."""
_PLAN = """\
issue: {id: sail, title: Mend the sail}
tasks:
  - {id: cut, description: Cut the canvas, run: "true"}
  - {id: sew, description: Sew it, run: "false"}
"""


def run(quick: bool) -> list[Figure]:
    with scratch_folder() as folder:
        project = make_project(folder / "project")
        _fill(project)
        return _measure(project, repetitions=15 if quick else 100)


def _fill(project: Path) -> None:
    """What the commands that look have to show: a plan with a failed task, and an agent's usage."""
    (project / "plan.yaml").write_text(_PLAN)
    subprocess.run((_PROGRAM, "run", "plan.yaml"), check=False, cwd=project, capture_output=True)
    ContextUsageTracker(project, session_id="agent-1").update_usage(input_tokens=1_000)


def _measure(project: Path, repetitions: int) -> list[Figure]:
    subjects = [
        Subject("python -c pass", _start(project, sys.executable, "-c", "pass")),
        Subject('python -c "import click"', _start(project, sys.executable, "-c", "import click")),
        Subject('python -c "import holdfast"', _start(project, sys.executable, "-c", "import holdfast")),
        *(
            Subject(" ".join(("holdfast", *words)), _start(project, _PROGRAM, *words))
            for words in (*_INSTANT, *_READING, *_TELLING)
        ),
    ]
    nothing, click, imported, *started = interleave(subjects, repetitions).values()
    instant, looking = started[: len(_INSTANT)], started[len(_INSTANT) :]
    reading, telling = looking[: len(_READING)], looking[len(_READING) :]
    return [
        alone(TOPIC, nothing),
        compared(TOPIC, imported, nothing, BAR_IMPORT),
        *(compared(TOPIC, command, nothing, BAR_READING) for command in reading),
        *(compared(TOPIC, command, nothing, BAR_TELLING) for command in telling),
        alone(TOPIC, click),
        *(compared(TOPIC, command, click, BAR_COMMAND) for command in instant),
    ]


def _start(project: Path, *command: str | Path) -> Callable[[], object]:
    def start() -> None:
        subprocess.run(command, check=True, cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    return start
