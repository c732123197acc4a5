"""A failure is read while the run goes on, with workers and without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_TESTS = """
import pathlib, time

def test_wrong():
    assert "sail" == "anchor"

def test_long():
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_failure_is_told_before_the_run_ends(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_ship.py").write_text(_TESTS)
    options = ("-q", "-n", workers, "-p", "early_failures", "-p", "no:randomly", "-p", "no:cacheprovider")
    with subprocess.Popen(
        (sys.executable, "-m", "pytest", *options),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            assert run.stdout
            seen = ""
            for line in run.stdout:
                seen += line
                if "the run goes on" in line:
                    break
            (tmp_path / "go").touch()
            rest = run.stdout.read()
        finally:
            (tmp_path / "go").touch()
    assert "call: test_ship.py::test_wrong" in seen, seen + rest
    assert "assert 'sail' == 'anchor'" in seen
    assert "1 failed, 1 passed" in rest
