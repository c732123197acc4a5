"""A release waits until somebody says yes."""

from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    version: str
    built: str
    approved: bool
    deployed: str


def build(state: State) -> State:
    return {"built": f"build of {state['version']}"}


def approval(state: State) -> State:
    return {"approved": interrupt("May I deploy?")}


def deploy(state: State) -> State:
    return {"deployed": f"deployed {state['built']}"}


graph = StateGraph(State)
graph.add_node(build)
graph.add_node(approval)
graph.add_node(deploy)
graph.add_edge(START, "build")
graph.add_edge("build", "approval")
graph.add_conditional_edges("approval", lambda state: "deploy" if state["approved"] else END)
release = graph.compile(checkpointer=InMemorySaver())

thread = {"configurable": {"thread_id": "release-7"}}
release.invoke({"version": "v7"}, thread)
print(release.invoke(Command(resume=True), thread)["deployed"])
