"""Book a journey; where a step cannot be had, those before it are undone."""

import asyncio

from holdfast import Flow, Hub, Step

journey = Flow("journey")
journey.node(lambda step: "hotel booked", name="hotel")
journey.node(lambda step: "flight booked", name="flight", after="hotel")


@journey.node(after="flight")
def car(step: Step) -> bool:
    return step.input["cars"] > 0


journey.node(lambda step: "flight cancelled", name="no_flight", after="car", when=lambda had: not had)
journey.node(lambda step: "hotel cancelled", name="no_hotel", after="no_flight")

print(list(asyncio.run(Hub().run(journey, {"cars": 0})).outputs.values()))
