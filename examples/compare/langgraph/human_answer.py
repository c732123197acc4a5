"""An agent asks the user, and goes on with the answer; the process may end in between."""

from typing import TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt


class State(TypedDict, total=False):
    said: list[str]


def agent(state: State) -> State:
    question = "Tabs or spaces?"
    answer = interrupt(question)
    return {"said": [question, f"Then {answer}."]}


graph = StateGraph(State)
graph.add_node(agent)
graph.add_edge(START, "agent")
talk = graph.compile(checkpointer=InMemorySaver())

thread = {"configurable": {"thread_id": "talk-1"}}
talk.invoke({"said": []}, thread)
print(talk.invoke(Command(resume="spaces"), thread)["said"])
