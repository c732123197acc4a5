"""Another process sends orders to a run, which knows each once, and ends it."""

import asyncio

from holdfast import Flow, Hub, Step

kitchen = Flow("kitchen")


@kitchen.node
async def cook(step: Step) -> list[str]:
    return [await step.wait_for("order"), await step.wait_for("order")]


async def main() -> None:
    hub = Hub()
    running = await hub.start(kitchen, session_id="tonight")
    await hub.send("tonight", "order", "soup", "fish")
    print((await running).outputs["cook"])


asyncio.run(main())
