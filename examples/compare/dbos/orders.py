"""Another process sends orders to a run, which knows each once, and ends it."""

from dbos import DBOS, DBOSConfig, SetWorkflowID

DBOS(config=DBOSConfig(name="compare", system_database_url="sqlite:///compare.sqlite"))


@DBOS.workflow()
def cook() -> list[str]:
    return [DBOS.recv("order", timeout_seconds=60), DBOS.recv("order", timeout_seconds=60)]


DBOS.launch()
with SetWorkflowID("tonight"):
    running = DBOS.start_workflow(cook)
for dish in ("soup", "fish"):
    DBOS.send("tonight", dish, "order")
print(running.get_result())
DBOS.destroy()
