"""`kill -9` at named points of the store's and DBOS's work: each task completes once, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from soak import repeated

SCRIPT = Path(__file__).with_name("kill_points.py")
KILLS = repeated(40, least=4)
ALWAYS = {  # beside many others
    *("store.written", "store.committed", "engine.advanced", "task.starting", "sql.commit", "sql.committed"),
    *("sql.insert workers", "sql.delete workers"),
}


@pytest.mark.timeout(120 + 12 * KILLS)
@pytest.mark.some_of("way")
@pytest.mark.parametrize("way", ["here", "worker"])
def test_a_plan_is_finished_whatever_point_its_process_was_killed_at(
    tmp_path: Path, any_database: str, way: str
) -> None:
    points = points_killed_at(tmp_path, any_database, way)
    assert points >= ALWAYS | ({"engine.enqueued"} if way == "worker" else set()), points
    assert any("operation_outputs" in point for point in points), points  # DBOS's record of a step
    assert len(points) > 25, points


@pytest.mark.timeout(120 + 12 * KILLS)
def test_so_it_is_where_the_first_run_of_all_is_killed(tmp_path: Path) -> None:
    points = points_killed_at(tmp_path, str(tmp_path / "holdfast.db"), "first")
    assert points >= {"sql.create table workflows", "sql.create table workflow_status"}, points


def points_killed_at(folder: Path, database: str, way: str) -> set[str]:
    project = folder / "project"
    project.mkdir()
    done = subprocess.run(
        [sys.executable, SCRIPT, project, database, str(KILLS), way],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen = json.loads(done.stdout)
    assert seen["kills"] == KILLS
    return set(seen["points"])
