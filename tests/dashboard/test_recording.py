"""The recorded terminal of the documentation is what the commands print."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]


def test_the_recording_shows_what_the_program_prints(tmp_path: Path) -> None:
    made = tmp_path / "recording.svg"
    script = ROOT / "scripts" / "recording.py"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, script, made], check=True, env=environment, stdout=subprocess.DEVNULL)
    frames = [
        ["".join(text.itertext()) for text in frame]
        for frame in ElementTree.parse(made).iter("{http://www.w3.org/2000/svg}g")  # noqa: S314 - our own
    ]
    lines = [line for frame in frames for line in frame]
    for shown in ("$ holdfast status", "Killed", "Tasks:     1 done, 2 remaining", "✓ Workflow resumed"):
        assert shown in lines
    assert "✓ Workflow completed (3 tasks)" in frames[-1]
    assert frames[-1][-1].strip() == "fr.txt"
    kept = ElementTree.parse(ROOT / "docs" / "pictures" / "recording.svg")  # noqa: S314 - our own
    assert "✓ Workflow completed (3 tasks)" in "".join(kept.getroot().itertext())
