"""Ten pages, at most three at a time."""

import operator
from typing import Annotated, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import Send


class State(TypedDict):
    count: int
    pages: Annotated[list[int], operator.add]


def fetch(number: int) -> dict[str, list[int]]:
    return {"pages": [number**2]}


graph = StateGraph(State)
graph.add_node("fetch", fetch)
graph.add_conditional_edges(START, lambda state: [Send("fetch", number) for number in range(state["count"])])
print(graph.compile().invoke({"count": 10, "pages": []}, {"max_concurrency": 3})["pages"])
