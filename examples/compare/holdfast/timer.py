"""A reminder after a while; a process that dies meanwhile does not begin the wait anew."""

import asyncio

from holdfast import Flow, Hub, Step
from holdfast.store.flows import SqlFlowStore

reminder = Flow("reminder")


@reminder.node
async def remind(step: Step) -> str:
    await step.sleep(0.01)
    return f"remember {step.input}"


print(asyncio.run(Hub(store=SqlFlowStore("compare.db")).run(reminder, "the tide")).outputs["remind"])
