"""Book a journey; where a step cannot be had, those before it are undone."""

import operator
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    cars: int
    done: Annotated[list[object], operator.add]


graph = StateGraph(State)
graph.add_node("hotel", lambda state: {"done": ["hotel booked"]})
graph.add_node("flight", lambda state: {"done": ["flight booked"]})
graph.add_node("car", lambda state: {"done": [state["cars"] > 0]})
graph.add_node("no_flight", lambda state: {"done": ["flight cancelled"]})
graph.add_node("no_hotel", lambda state: {"done": ["hotel cancelled"]})
graph.add_edge(START, "hotel")
graph.add_edge("hotel", "flight")
graph.add_edge("flight", "car")
graph.add_conditional_edges("car", lambda state: END if state["done"][-1] else "no_flight")
graph.add_edge("no_flight", "no_hotel")
print(graph.compile().invoke({"cars": 0, "done": []})["done"])
