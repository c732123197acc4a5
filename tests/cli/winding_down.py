"""A wind-down with so many actions in it, by a process that waits to be killed; for `Place.orphaned`."""

from __future__ import annotations

import sys

from holdfast import IncrementalPauseManager

if __name__ == "__main__":
    manager = IncrementalPauseManager()
    print(manager.start_incremental_pause(0.9, {}), flush=True)  # noqa: T201 - its answer
    for _ in range(int(sys.argv[1])):
        manager.append_action("tool_call", {"tool": "Read"}, 0.91)
    print("ready", flush=True)  # noqa: T201
    sys.stdin.read()
