"""A run is paused; the next version of the graph has a node more, and goes on with it."""

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    text: str
    proof: str
    translated: str


def publish(version: int, saver: InMemorySaver) -> Any:
    graph = StateGraph(State)
    graph.add_node("write", lambda state: {"text": "a text"})
    graph.add_node("proof_read", lambda state: {"proof": interrupt("look at it")})
    graph.add_edge(START, "write")
    graph.add_edge("write", "proof_read")
    if version == 2:
        graph.add_node("translate", lambda state: {"translated": f"{state['text']}, translated"})
        graph.add_edge("proof_read", "translate")
    return graph.compile(checkpointer=saver)


saver, thread = InMemorySaver(), {"configurable": {"thread_id": "1"}}
publish(1, saver).invoke({}, thread)
print(publish(2, saver).invoke(Command(resume="fine"), thread)["translated"])
