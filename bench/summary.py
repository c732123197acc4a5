"""`get_pause_summary` on a long journal against reading that file once."""

from __future__ import annotations

from pathlib import Path

from journals import start_with
from measure import Figure, Subject, alone, compared, interleave, make_project, scratch_folder

from holdfast.sessions.winddown import IncrementalPauseManager

TOPIC = "summary"
BAR = 2.0
ACTIONS = 10_000


def run(quick: bool) -> list[Figure]:
    with scratch_folder() as folder:
        return _measure(make_project(folder / "project"), repetitions=20 if quick else 200)


class _Cold:
    """A manager that has read nothing yet, each time."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._manager = IncrementalPauseManager(project)

    def prepare(self) -> None:
        self._manager = IncrementalPauseManager(self._project)

    def ask(self) -> None:
        summary = self._manager.get_pause_summary()
        assert summary is not None
        assert summary["action_count"] == ACTIONS


def _read_lines(path: Path) -> None:
    with path.open("rb") as file:
        for _ in file:
            pass


def _measure(project: Path, repetitions: int) -> list[Figure]:
    warm = start_with(project, ACTIONS)
    journal = warm.layout.journal
    cold = _Cold(project)
    subjects = [
        Subject("read the file, line by line", lambda: _read_lines(journal)),
        Subject("read the file, read_bytes()", journal.read_bytes),
        Subject(f"get_pause_summary, {ACTIONS:,} actions", cold.ask, cold.prepare),
        Subject("get_pause_summary, asked again", warm.get_pause_summary),
    ]
    lines, block, first, again = interleave(subjects, repetitions).values()
    return [
        alone(TOPIC, lines),
        alone(TOPIC, block),
        compared(TOPIC, first, lines, BAR),
        compared(TOPIC, first, block),
        compared(TOPIC, again, lines),
    ]
