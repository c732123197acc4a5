"""Real processes, real kills."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from fork_server import start_script
from holdfast import IncrementalPauseManager
from soak import QUICK, repeated

HERE = Path(__file__).parent


def test_eight_processes_append_lines_of_any_size_and_none_is_torn_or_lost(tmp_path: Path) -> None:
    manager = IncrementalPauseManager(tmp_path)
    manager.start_incremental_pause(0.90, {})
    lines = 150 if QUICK else 500
    writers = [start_script(str(HERE / "append_many.py"), tmp_path, number, lines) for number in range(8)]
    assert [writer.wait() for writer in writers] == [0] * 8
    written: Counter[tuple[int, int]] = Counter()
    with manager.layout.journal.open("rb") as file:
        next(file)
        for line in file:
            data = json.loads(line)["data"]
            assert data["length"] == len(data["text"])
            written[data["writer"], data["number"]] += 1
    assert written == Counter({(writer, number): 1 for writer in range(8) for number in range(lines)})


def test_a_writer_killed_at_any_moment_loses_nothing_it_was_told_is_safe(tmp_path: Path) -> None:
    rounds = repeated(200)
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with start_script(str(HERE / "kill_rounds.py"), tmp_path, rounds, **pipes) as process:
        out, err = process.communicate()
    assert process.returncode == 0, err[-3000:]
    report = json.loads(out)
    assert report["rounds"] == rounds
    assert report["acknowledged"] > rounds
    assert report["lost"] == 0
