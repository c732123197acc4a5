"""The small programs of `examples/compare`, as far as they are ours."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from holdfast.workflows.plan import read_plan

PROGRAMS = Path(__file__).parents[2] / "examples" / "compare" / "holdfast"
PRINTED = {
    "approval": "deployed build of v7",
    "fan_out": "[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]",
    "human_answer": "['Tabs or spaces?', 'Then spaces.']",
    "loop": "{'failed': 0}",
    "migration": "a text, translated",
    "orders": "['soup', 'fish']",
    "saga": "['hotel booked', 'flight booked', False, 'flight cancelled', 'hotel cancelled']",
    "sub_flow": "a chapter, read, judged",
    "timer": "remember the tide",
}


def test_every_program_prints_what_it_should(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert {path.stem for path in PROGRAMS.glob("*.py")} == set(PRINTED)
    for name, expected in PRINTED.items():
        runpy.run_path(str(PROGRAMS / f"{name}.py"))
        assert capsys.readouterr().out == f"{expected}\n", name
    (task,) = read_plan(PROGRAMS / "nightly.yaml").tasks.tasks
    assert task.run == "date > report.txt"
