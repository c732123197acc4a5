"""A writer for `test_many_writers`: appends lines from 200 B to 1 MiB."""

from __future__ import annotations

import random
import sys

from holdfast import IncrementalPauseManager


def main(project: str, writer: int, count: int) -> None:
    manager = IncrementalPauseManager(project)
    chance = random.Random(writer)
    for number in range(count):
        # Mostly small, as in life; one in fifty up to a mebibyte.
        length = chance.randrange(1 << 20) if number % 50 == 0 else chance.randrange(200, 4000)
        text = chr(97 + writer) * length
        manager.append_action(
            "tool_call", {"writer": writer, "number": number, "length": length, "text": text}, 0.91
        )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
