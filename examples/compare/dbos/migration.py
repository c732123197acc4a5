"""A run waits; the next version of the code has a step more, and goes on with it.

`DBOS.patch` tells a run which version it began with. Without it the new step would not fit what is recorded.
"""

from dbos import DBOS, DBOSConfig, SetWorkflowID

DBOS(config=DBOSConfig(name="compare", system_database_url="sqlite:///compare.sqlite", enable_patching=True))


@DBOS.step()
def note(what: str) -> str:
    return what


@DBOS.workflow()
def publish() -> str:
    text = note("a text")
    DBOS.recv("proof", timeout_seconds=60)
    return note(f"{text}, translated") if DBOS.patch("translate") else text


DBOS.launch()
with SetWorkflowID("publish-1"):
    running = DBOS.start_workflow(publish)
DBOS.send("publish-1", "fine", "proof")
print(running.get_result())
DBOS.destroy()
