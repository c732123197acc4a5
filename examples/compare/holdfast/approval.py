"""A release waits until somebody, in any process, says yes."""

import asyncio

from holdfast import Flow, Hub, Step

release = Flow("release")
release.node(lambda step: f"build of {step.input}", name="build")


@release.node(after="build")
async def approval(step: Step) -> bool:
    return await step.wait_for("approval")


release.node(lambda step: f"deployed {step.outputs['build']}", name="deploy", after="approval", when=bool)


async def main() -> None:
    hub = Hub()
    running = await hub.start(release, "v7", session_id="release-7")
    await hub.send("release-7", "approval", True)
    print((await running).outputs["deploy"])


asyncio.run(main())
