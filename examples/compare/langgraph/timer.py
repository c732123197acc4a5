"""A reminder after a while. The library has no durable timer: a process that dies begins the wait anew."""

import time
from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    what: str
    reminder: str


def remind(state: State) -> State:
    time.sleep(0.01)
    return {"reminder": f"remember {state['what']}"}


graph = StateGraph(State)
graph.add_node(remind)
graph.add_edge(START, "remind")
app = graph.compile(checkpointer=InMemorySaver())
print(app.invoke({"what": "the tide"}, {"configurable": {"thread_id": "1"}})["reminder"])
