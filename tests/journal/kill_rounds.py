"""Kills an appending process again and again; for `test_many_writers`.

Forks from a process that has everything loaded, so that a round costs milliseconds.
A child says on a pipe that an append has returned; the parent kills it soon after an
acknowledgement of its choice, often in the middle of the next write.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

from holdfast import IncrementalPauseManager


def append_until_killed(manager: IncrementalPauseManager, round_number: int, pipe: int) -> None:
    chance = random.Random(round_number)
    number = 0
    while True:
        length = chance.choice((200, 2_000, 60_000, 1 << 20))
        manager.append_action(
            "tool_call", {"round": round_number, "number": number, "text": "x" * length}, 0.92
        )
        os.write(pipe, b".")
        number += 1


def one_round(manager: IncrementalPauseManager, round_number: int, chance: random.Random) -> int:
    """How many appends the child was told are safe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        append_until_killed(manager, round_number, writing)
    os.close(writing)
    seen = 0
    target = chance.randrange(0, 12)
    while seen < target:
        seen += len(os.read(reading, target - seen))
    until = time.perf_counter() + chance.random() * 0.002
    while time.perf_counter() < until:
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while block := os.read(reading, 4096):
        seen += len(block)
    os.close(reading)
    return seen


def main(project: str, rounds: int) -> None:
    manager = IncrementalPauseManager(project)
    manager.start_incremental_pause(0.90, {})
    chance = random.Random()
    acknowledged: dict[tuple[int, int], None] = {}
    lost = torn = told_in_all = 0
    for number in range(rounds):
        told = one_round(manager, number, chance)
        told_in_all += told
        acknowledged.update(dict.fromkeys((number, index) for index in range(told)))
        torn += not manager.layout.journal.read_bytes().endswith(b"\n")
        summary = manager.get_pause_summary()
        assert summary is not None
        manager.append_action("system_event", {"round": number, "number": -1}, 0.93)
        if number % 10 == 9 or number == rounds - 1:
            recorded = {(a.data.get("round"), a.data.get("number")) for a in manager.get_recorded_actions()}
            lost += len(acknowledged.keys() - recorded)
            acknowledged.clear()
            finalised = manager.finalize_pause(create_full_snapshot=number % 50 == 49)
            assert finalised is not None
            assert finalised.exists()
            manager.start_incremental_pause(0.90, {})
    sys.stdout.write(json.dumps({"rounds": rounds, "acknowledged": told_in_all, "lost": lost, "torn": torn}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
