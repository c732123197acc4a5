"""Stands in for Claude Code's program: says recorded lines, and notes how it was called.

    stream_player.py NOTES LINES WAIT_AFTER

After WAIT_AFTER lines it waits until it is ended, like an agent at work. NOTES gets its words and
its input, and at a polite end the word `ended`.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from types import FrameType


def main() -> None:
    notes, lines, wait_after = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])

    def note(what: object) -> None:
        with notes.open("a") as file:
            file.write(json.dumps(what) + "\n")

    def ended(_number: int, _frame: FrameType | None) -> None:
        note("ended")
        sys.exit(143)

    signal.signal(signal.SIGTERM, ended)
    note({"words": sys.argv[4:], "input": sys.stdin.read()})
    for number, line in enumerate(lines.read_text().splitlines()):
        if number == wait_after:
            signal.pause()
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


main()
