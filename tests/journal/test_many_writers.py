"""Real processes, real kills."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from holdfast import IncrementalPauseManager
from soak import repeated

HERE = Path(__file__).parent


def script(name: str, *arguments: object) -> list[str]:
    return [sys.executable, str(HERE / name), *map(str, arguments)]


def test_eight_processes_append_lines_of_any_size_and_none_is_torn_or_lost(tmp_path: Path) -> None:
    manager = IncrementalPauseManager(tmp_path)
    manager.start_incremental_pause(0.90, {})
    writers = [
        subprocess.Popen(script("append_many.py", tmp_path, number, 500), stdout=subprocess.DEVNULL)
        for number in range(8)
    ]
    assert [writer.wait() for writer in writers] == [0] * 8
    written: Counter[tuple[int, int]] = Counter()
    with manager.layout.journal.open("rb") as file:
        next(file)
        for line in file:
            data = json.loads(line)["data"]
            assert data["length"] == len(data["text"])
            written[data["writer"], data["number"]] += 1
    assert written == Counter({(writer, number): 1 for writer in range(8) for number in range(500)})


def test_a_writer_killed_at_any_moment_loses_nothing_it_was_told_is_safe(tmp_path: Path) -> None:
    rounds = repeated(200)
    done = subprocess.run(
        script("kill_rounds.py", tmp_path, rounds), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["rounds"] == rounds
    assert report["acknowledged"] > rounds
    assert report["lost"] == 0
