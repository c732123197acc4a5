"""Orders to a run. It cannot be reached while it runs: it stops at each interrupt and is invoked again."""

from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    dishes: list[str]


def cook(state: State) -> State:
    return {"dishes": [interrupt("order"), interrupt("order")]}


graph = StateGraph(State)
graph.add_node(cook)
graph.add_edge(START, "cook")
kitchen = graph.compile(checkpointer=InMemorySaver())

thread = {"configurable": {"thread_id": "tonight"}}
kitchen.invoke({"dishes": []}, thread)
for dish in ("soup", "fish"):
    state = kitchen.invoke(Command(resume=dish), thread)
print(state["dishes"])
