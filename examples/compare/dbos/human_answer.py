"""An agent asks the user, and goes on with the answer; the process may end in between."""

from dbos import DBOS, DBOSConfig, SetWorkflowID

DBOS(config=DBOSConfig(name="compare", system_database_url="sqlite:///compare.sqlite"))


@DBOS.workflow()
def agent() -> list[str]:
    said = ["Tabs or spaces?"]
    DBOS.set_event("question", said[-1])
    answer = DBOS.recv("answer", timeout_seconds=86_400)
    return [*said, f"Then {answer}."]


DBOS.launch()
with SetWorkflowID("talk-1"):
    running = DBOS.start_workflow(agent)
assert DBOS.get_event("talk-1", "question") == "Tabs or spaces?"
DBOS.send("talk-1", "spaces", "answer")
print(running.get_result())
DBOS.destroy()
