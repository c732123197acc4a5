"""An agent asks the user, and goes on with the answer; the process may end in between."""

import asyncio
from collections.abc import AsyncIterator

from holdfast import Flow, Hub, Step

talk = Flow("talk")


@talk.node
async def agent(step: Step) -> AsyncIterator[str]:
    if not step.messages:
        yield "Tabs or spaces?"
        step.pause("a question")
    yield f"Then {step.messages[-1]}."


async def main() -> None:
    hub = Hub()
    asked = await hub.run(talk)
    print((await hub.resume(asked.session_id, "spaces")).outputs["agent"])


asyncio.run(main())
