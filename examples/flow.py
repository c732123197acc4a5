"""A flow that survives Ctrl-C and kill -9.

    python examples/flow.py            start it; Ctrl-C pauses it, Ctrl-C twice aborts it
    python examples/flow.py resume     go on with it, in this process, wherever the last one stopped

It keeps its place in flow.db in the current folder; FLOW_SECONDS sets how long a step takes.
Try `kill -9` from another terminal, too: the chapters that were written stay written.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from holdfast import Flow, Hub, SessionState
from holdfast.flow.hub import pause_on_interrupt
from holdfast.flow.step import Step
from holdfast.store.flows import SqlFlowStore

SECONDS = float(os.environ.get("FLOW_SECONDS", "0.5"))

book = Flow("book")


@book.node
def outline(step: Step) -> list[str]:
    return [f"Chapter {number}: {word}" for number, word in enumerate(step.input["words"], start=1)]


@book.foreach(over="outline", at_most=2)
async def write(step: Step) -> str:
    print(f"writing {step.item}", flush=True)
    await asyncio.sleep(SECONDS)
    return f"{step.item} is done"


@book.node(after="write")
async def review(step: Step) -> AsyncIterator[str]:
    """An agent: it can be paused between two messages, and hears what you say on resume."""
    for said in step.messages:
        yield f"you said: {said}"
    reviewed = sum(piece.endswith("and reviewed") for piece in step.partial)
    for number in range(reviewed, len(step.received)):
        print(f"reviewing {number + 1}", flush=True)
        await asyncio.sleep(SECONDS)
        yield f"{step.received[number]}, and reviewed"


async def start(hub: Hub) -> SessionState:
    words = ["tide", "anchor", "rope", "knot", "harbour", "gale"]
    return await hub.run(book, {"words": words})


async def resume(hub: Hub) -> SessionState:
    """The newest session that is paused, or whose process is gone."""
    sessions = await hub.sessions({"paused", "running"}, limit=1)
    if not sessions:
        sys.exit("nothing to resume: start one with `python examples/flow.py`")
    return await hub.resume(sessions[0].id, "please go on")


async def main(verb: str) -> None:
    store = SqlFlowStore("flow.db")
    hub = Hub(book, store=store)
    try:
        with pause_on_interrupt(hub, tell=lambda line: print(line, flush=True)):
            state = await (resume(hub) if verb == "resume" else start(hub))
    finally:
        store.close()
    print(state.status, flush=True)
    if state.status == "paused":
        print("go on with: python examples/flow.py resume")
    if state.status == "complete":
        print("\n".join(state.outputs["review"]))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "start"))
