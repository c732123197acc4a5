"""Goes on with a flow in a process of its own, again and again; for the tests with processes and kills.

Reads one request a line and answers with one line. Each request is done by a fresh child,
forked from a process that has everything loaded, so that it costs milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from flow.harness import run_or_resume
from flow.random_flows import World, build, describe
from holdfast.base.durable import replace_file
from holdfast.flow.hub import Hub
from holdfast.store.flows import SqlFlowStore


def go_on(request: dict[str, Any]) -> None:
    """In the child: on with the session, until it ends or is paused; or until a tick at which we die."""
    world = World.from_json(json.loads(Path(request["world"]).read_text()))
    flow = build(request["flow"], world)
    store = SqlFlowStore(request["database"])
    hub = Hub(flow, store=store)

    def on_tick(tick: int) -> None:
        if tick == request.get("pause_at"):
            hub.pause("by the test")
        if tick == request.get("die_at"):
            os.kill(os.getpid(), signal.SIGKILL)

    world.on_tick = on_tick
    state = asyncio.run(run_or_resume(hub, flow, "the-session", request["input"]))
    store.close()
    replace_file(Path(request["world"]), json.dumps(world.to_json()).encode())  # a kill may come here, too
    Path(request["answer"]).write_text(json.dumps({"status": state.status, "outputs": state.outputs}))


def one(request: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    answer = Path(request["answer"])
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            go_on(request)
            status = 0
        except BaseException:  # noqa: BLE001 - what went wrong is the answer
            answer.write_text(traceback.format_exc())
        finally:
            os._exit(status)
    if (most := request.get("killed_within")) is not None:
        until = time.perf_counter() + chance.random() * most
        while time.perf_counter() < until:
            time.sleep(0.0002)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    if not killed and os.WEXITSTATUS(status):
        return {"status": "broken", "why": answer.read_text()}
    return {"status": "killed"} if killed else json.loads(answer.read_text())


def warm_up() -> None:
    """Load all that is loaded when it is first used, once and for all children."""
    with tempfile.TemporaryDirectory() as name:
        world = Path(name, "world.json")
        world.write_text(json.dumps(World().to_json()))
        paths = {"world": str(world), "answer": str(Path(name, "answer.json"))}
        go_on({"flow": describe(1, 20), "database": str(Path(name, "flows.db")), "input": None, **paths})
    gc.collect()
    gc.freeze()


def main() -> None:
    chance = random.Random()
    warm_up()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(one(json.loads(line), chance)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
