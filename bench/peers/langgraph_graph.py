"""The same graphs in LangGraph, with its checkpointers."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    done: Annotated[int, operator.add]


async def nothing(_state: State) -> dict[str, int]:
    return {"done": 1}


def layered(layers: int, width: int) -> StateGraph:
    """Layers of nodes side by side, a joint after each."""
    graph = StateGraph(State)
    before = START
    for layer in range(layers):
        names = [f"n{layer}_{number}" for number in range(width)]
        for name in names:
            graph.add_node(name, nothing)
            graph.add_edge(before, name)
        if width > 1:
            before = f"join{layer}"
            graph.add_node(before, nothing)
            graph.add_edge(names, before)
        else:
            (before,) = names
    graph.add_edge(before, END)
    return graph


class Peer:
    """A compiled graph with one of LangGraph's checkpointers; each run is a thread of its own."""

    def __init__(self, graph: StateGraph, saver: Any, nodes: int) -> None:
        self._compiled = graph.compile(checkpointer=saver)
        self._nodes = nodes
        self._runs = 0

    async def run(self, durability: str | None = None) -> int:
        self._runs += 1
        config = {"configurable": {"thread_id": str(self._runs)}, "recursion_limit": 2 * self._nodes + 10}
        options = {} if durability is None else {"durability": durability}
        state = await self._compiled.ainvoke({"done": 0}, config, **options)
        return state["done"]


def in_memory() -> Any:
    return InMemorySaver()


def on_sqlite(database: Path) -> Any:
    return AsyncSqliteSaver.from_conn_string(str(database))
