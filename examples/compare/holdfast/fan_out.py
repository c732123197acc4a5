"""Ten pages, at most three at a time."""

import asyncio

from holdfast import Flow, Hub, Step

pages = Flow("pages")


@pages.foreach(over=lambda step: range(step.input), at_most=3)
async def fetch(step: Step) -> int:
    await asyncio.sleep(0)
    return step.item**2


print(asyncio.run(Hub().run(pages, 10)).outputs["fetch"])
