"""Fix until the tests pass, at most five times."""

import asyncio

from holdfast import Flow, Hub, Step

green = Flow("green")


@green.repeat(until=lambda report: report["failed"] == 0, at_most=5)
def fix(step: Step) -> dict[str, int]:
    return {"failed": step.item["failed"] - 1}


print(asyncio.run(Hub().run(green, {"failed": 3})).outputs["fix"])
