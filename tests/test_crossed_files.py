"""The six journeys of docs/architecture.md stay as short as they are, as scripts/journeys.py counts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.some_of("journey", number=3)
@pytest.mark.parametrize("journey", ["hook", "finalize", "context", "resume", "pause", "undo"])
def test_a_journey_goes_through_few_files(journey: str) -> None:
    walked = subprocess.run(
        (sys.executable, ROOT / "scripts" / "journeys.py", journey, "--files"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert walked.returncode == 0, walked.stdout + walked.stderr
    assert len(walked.stdout.splitlines()) > 10
