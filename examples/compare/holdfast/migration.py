"""A run is paused; the next version of the flow has a node more, and goes on with it."""

import asyncio

from holdfast import Flow, Hub
from holdfast.flow.store import MemoryFlowStore


def publish(version: int) -> Flow:
    flow = Flow("publish")
    flow.node(lambda step: "a text", name="write")
    flow.node(lambda step: step.messages or step.pause("look at it"), name="proof", after="write")
    if version == 2:
        flow.node(lambda step: f"{step.outputs['write']}, translated", name="translate", after="proof")
    return flow


async def main() -> None:
    store = MemoryFlowStore()
    paused = await Hub(store=store).run(publish(1))
    print((await Hub(publish(2), store=store).resume(paused.session_id, "fine")).outputs["translate"])


asyncio.run(main())
