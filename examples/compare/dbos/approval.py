"""A release waits until somebody, in any process, says yes."""

from dbos import DBOS, DBOSConfig, SetWorkflowID

DBOS(config=DBOSConfig(name="compare", system_database_url="sqlite:///compare.sqlite"))


@DBOS.step()
def build(version: str) -> str:
    return f"build of {version}"


@DBOS.step()
def deploy(built: str) -> str:
    return f"deployed {built}"


@DBOS.workflow()
def release(version: str) -> str | None:
    built = build(version)
    return deploy(built) if DBOS.recv("approval", timeout_seconds=86_400) else None


DBOS.launch()
with SetWorkflowID("release-7"):
    running = DBOS.start_workflow(release, "v7")
DBOS.send("release-7", True, "approval")
print(running.get_result())
DBOS.destroy()
