"""Processes that use one database at once: `python store/writers.py ROLE DATABASE …`.

One interpreter loads everything and forks: each worker opens the database for itself, and all
of them start at the same moment.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

from fork_server import start_script
from holdfast.base.errors import ConflictError, HeldElsewhereError
from holdfast.sessions.transitions import Core
from holdfast.store.sql import SqlStore
from holdfast.testing import FixedClock
from store.samples import new, next_of, numbered, workflow


def start(role: str, database: str, *arguments: object) -> subprocess.Popen[str]:
    """From a test: such a process, whose answer is JSON on its output."""
    return start_script(__file__, role, database, *arguments, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> list[object]:
    said, _ = process.communicate()
    assert process.returncode == 0
    return json.loads(said)


def crowd(size: int, work: Callable[[int], object]) -> list[object]:
    """What each of `size` processes that start at once comes back with."""
    gate_out, gate_in = os.pipe()
    workers: list[tuple[int, int]] = []
    for number in range(size):
        result_out, result_in = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(gate_in)
            os.read(gate_out, 1)  # returns when the parent closes the gate
            with os.fdopen(result_in, "w") as result:
                json.dump(work(number), result)
            os._exit(0)
        os.close(result_in)
        workers.append((child, result_out))
    os.close(gate_in)
    results: list[object] = []
    for child, result_out in workers:
        with os.fdopen(result_out) as result:
            results.append(json.loads(result.read() or "null"))
        os.waitpid(child, 0)
    return results


def own_workflows(database: str, size: int, changes: int) -> list[object]:
    """Each writes a workflow of its own; returns the numbers its changes got."""

    def work(number: int) -> list[int]:
        store = SqlStore(database)
        change = new(workflow(f"wf_{number}"), numbered(0))
        numbers = [event.seq for event in store.apply(change)]
        for count in range(1, changes):
            change = next_of(change.workflow, numbered(count))
            numbers += [event.seq for event in store.apply(change)]
        return numbers

    return crowd(size, work)


def one_workflow(database: str, size: int, revisions: int) -> list[object]:
    """All write the same workflow; returns the revisions each of them won."""

    def work(number: int) -> list[int]:
        store = SqlStore(database)
        won: list[int] = []
        while (now := store.workflow("wf_1")).revision < revisions:
            try:
                store.apply(next_of(now, numbered(number)))
            except ConflictError:
                continue
            won.append(now.revision + 1)
        return won

    return crowd(size, work)


def claim(database: str, size: int, workflow_id: str) -> list[object]:
    """All resume the same workflow at once."""

    def work(_number: int) -> str:
        store = SqlStore(database)
        try:
            Core(store, FixedClock()).claim(workflow_id)
        except HeldElsewhereError as error:
            return type(error).__name__
        return "won"

    return crowd(size, work)


def open_fresh(database: str, size: int) -> list[object]:
    """All open a database that is not there yet, and write to it."""

    def work(number: int) -> str:
        SqlStore(database).apply(new(workflow(f"wf_{number}")))
        return "ok"

    return crowd(size, work)


def killed(database: str, rounds: int) -> list[object]:
    """A writer that is killed after so many acknowledged changes, again and again.

    Returns, of each round, the workflow and how many of its changes had been acknowledged.
    """
    acknowledged: list[object] = []
    for number in range(rounds):
        name = f"wf_{number}"
        said, saying = os.pipe()
        child = os.fork()
        if child == 0:
            _write_until_killed(database, name, saying)
        os.close(saying)
        with os.fdopen(said) as lines:
            for _ in range(1 + number % 7):
                assert lines.readline().startswith("ok ")
            os.kill(child, signal.SIGKILL)
            # What it said before it died was said after the change was safe.
            more = [line for line in lines if line.endswith("\n")]
        os.waitpid(child, 0)
        acknowledged.append([name, 1 + number % 7 + len(more)])
    return acknowledged


def _write_until_killed(database: str, name: str, saying: int) -> None:
    store = SqlStore(database)
    change = new(workflow(name), numbered(0))
    for count in range(1, 1_000_000):
        store.apply(change)
        os.write(saying, f"ok {count}\n".encode())
        change = next_of(change.workflow, numbered(count))


ROLES: dict[str, Callable[..., list[object]]] = {
    "own_workflows": own_workflows,
    "one_workflow": one_workflow,
    "claim": claim,
    "open_fresh": open_fresh,
    "killed": killed,
}

if __name__ == "__main__":
    role, database, *rest = sys.argv[1:]
    arguments = [int(word) if word.isdigit() else word for word in rest]
    print(json.dumps(ROLES[role](database, *arguments)))  # noqa: T201 - the answer
