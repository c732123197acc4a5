"""The same promises where the next stretch runs in another process, and where processes are killed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pysqlite3 import dbapi2 as sqlite  # type: ignore[import-untyped]

from flow.harness import play
from flow.random_flows import Description, World, build, describe
from holdfast.base.errors import SessionAlreadyRunningError
from holdfast.flow.graph import Flow
from holdfast.flow.hub import Hub
from holdfast.flow.step import Step
from holdfast.store.flows import SqlFlowStore
from soak import repeated

TESTS = Path(__file__).parents[1]
INPUT = {"topic": "tides"}


class Elsewhere:
    """A flow that goes on in other processes, one after the other."""

    def __init__(self, helper: subprocess.Popen[str], folder: Path, description: Description) -> None:
        self._helper = helper
        self._world = folder / "world.json"
        self._world.write_text(json.dumps(World().to_json()))
        self.database = folder / "flows.db"
        self._request = {
            "flow": description,
            "database": str(self.database),
            "world": str(self._world),
            "answer": str(folder / "answer.json"),
            "input": INPUT,
        }

    def go_on(self, **when: Any) -> dict[str, Any]:
        assert self._helper.stdin is not None
        assert self._helper.stdout is not None
        self._helper.stdin.write(json.dumps({**self._request, **when}) + "\n")
        self._helper.stdin.flush()
        return json.loads(self._helper.stdout.readline())

    @property
    def world(self) -> World:
        return World.from_json(json.loads(self._world.read_text()))

    def completed(self) -> dict[str, str]:
        """What is on record: each node with its output."""
        connection = sqlite.connect(self.database)  # pyright: ignore[reportAttributeAccessIssue]
        try:
            return dict(
                connection.execute("SELECT path, value_json FROM flow_records WHERE kind = 'completed'")
            )
        finally:
            connection.close()


@pytest.fixture(scope="module")
def helper() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "flow.other_process"],
        cwd=TESTS,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process
    process.communicate()


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where the system has such a place: a kill loses nothing that was written, on no disk."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


def undisturbed(description: Description) -> dict[str, Any]:
    return play(Hub().run(build(description, World(fails=False)), INPUT)).outputs


def elsewhere(
    helper: subprocess.Popen[str], template: Path, place: Path, description: Description
) -> Elsewhere:
    place.mkdir()
    shutil.copy(template, place / "flows.db")
    return Elsewhere(helper, place, description)


@pytest.mark.parametrize("batch", range(2))
def test_every_stretch_of_a_run_may_be_another_process(
    batch: int, helper: subprocess.Popen[str], empty_sqlite_file: Path, folder: Path
) -> None:
    chance = random.Random()
    for number in range(repeated(6)):
        seed, size = chance.randrange(2**32), chance.choice((5, 30, 100, 200))
        there = elsewhere(helper, empty_sqlite_file, folder / str(number), describe(seed, size))
        answer = {"status": "paused"}
        while answer["status"] == "paused":
            answer = there.go_on(pause_at=chance.randrange(1, 5 * size))
        assert answer == {"status": "complete", "outputs": undisturbed(describe(seed, size))}, (seed, size)
        assert set(there.world.ended.values()) <= {1}, (seed, size)


RUNS_THAT_ARE_KILLED = 200


@pytest.mark.parametrize("batch", range(4))
def test_a_run_that_is_killed_goes_on_to_the_right_result(
    batch: int, helper: subprocess.Popen[str], empty_sqlite_file: Path, folder: Path
) -> None:
    """Killed one to three times, in the middle of a node or at any moment. What is on record stays."""
    chance = random.Random()
    for number in range(repeated(RUNS_THAT_ARE_KILLED // 4)):
        seed, size = chance.randrange(2**32), chance.choice((2, 6, 14))
        there = elsewhere(helper, empty_sqlite_file, folder / str(number), describe(seed, size))
        on_record: dict[str, str] = {}
        answer: dict[str, Any] = {"status": "new"}
        kills = chance.randint(1, 3)
        while answer["status"] != "complete":
            answer = there.go_on(**(_some_death(chance, size) if kills > 0 else {}))
            assert answer["status"] in ("killed", "paused", "complete"), (seed, size, answer)
            kills -= 1
            now = there.completed()
            assert {path: now[path] for path in on_record} == on_record, (seed, size)
            on_record = now
        assert answer["outputs"] == undisturbed(describe(seed, size)), (seed, size)
        shutil.rmtree(folder / str(number))


def _some_death(chance: random.Random, size: int) -> dict[str, Any]:
    if chance.random() < 0.5:
        return {"die_at": chance.randrange(1, 3 * size)}
    return {"killed_within": 0.05}


def test_a_node_on_record_is_not_run_again_after_a_kill(
    helper: subprocess.Popen[str], empty_sqlite_file: Path, folder: Path
) -> None:
    """A chain that dies in its 30th node: 29 are on record, and the next process runs none of them."""
    nodes = [
        {
            "name": f"n{number}",
            "kind": "coroutine",
            "after": [[f"n{number - 1}", None]] if number else [],
            "spins": 0,
            "fails": 0,
            "inner": None,
        }
        for number in range(60)
    ]
    there = elsewhere(helper, empty_sqlite_file, folder / "run", {"name": "chain", "nodes": nodes})
    assert there.go_on(die_at=59)["status"] == "killed"
    assert set(there.completed()) == {f"n{number}" for number in range(29)}
    assert there.go_on()["status"] == "complete"
    assert there.world.ended == {f"n{number}": 1 for number in range(29, 60)}


def test_a_session_is_not_taken_from_a_process_that_lives(empty_sqlite_file: Path, folder: Path) -> None:
    database = folder / "flows.db"
    shutil.copy(empty_sqlite_file, database)
    program = """
import asyncio, sys
from holdfast import Flow, Hub
from holdfast.store.flows import SqlFlowStore
flow = Flow("wait")
@flow.node
async def hold(step):
    print("running", flush=True)
    await asyncio.Event().wait()
asyncio.run(Hub(store=SqlFlowStore(sys.argv[1])).run(flow, session_id="s1"))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(database)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"

    async def scene() -> None:
        flow = Flow("wait")

        @flow.node
        def hold(step: Step) -> str:
            return "done"

        store = SqlFlowStore(str(database))
        hub = Hub(flow, store=store)
        with pytest.raises(SessionAlreadyRunningError, match=str(process.pid)):
            await hub.resume("s1", "go on")
        process.kill()
        process.wait()
        assert (await hub.resume("s1", "go on")).outputs == {"hold": "done"}
        store.close()

    play(scene())
    process.stdout.close()
