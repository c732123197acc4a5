"""`kill -9` at any moment: what is recorded as completed stays so, and what was in flight is marked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from soak import repeated

SCRIPT = Path(__file__).with_name("kill_rounds.py")
KILLS = repeated(10, least=3)


@pytest.mark.timeout(120 + 12 * KILLS)
def test_a_plan_of_thirty_tasks_survives_kills_at_random_moments(tmp_path: Path, any_database: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    done = subprocess.run(
        [sys.executable, SCRIPT, project, any_database, str(KILLS)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout)
    assert seen["kills"] == KILLS
    assert seen["workflows"] >= 1
    if KILLS >= 10:  # of a few, all may come before a workflow has begun, or after its end
        assert seen["sessions"] > seen["workflows"]
