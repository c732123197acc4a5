"""LangGraph: a graph of as many no-op nodes in a row, each checkpointed before the next."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph


class _State(TypedDict):
    done: int


def _nothing(state: _State) -> _State:
    return {"done": state["done"] + 1}


class Chain:
    def __init__(self, database: str, folder: Path, nodes: int) -> None:
        self._database, self._folder, self._nodes = database, folder, nodes
        self._stack = contextlib.ExitStack()
        self._number = 0

    def __enter__(self) -> Chain:
        self._graph = self._built(self._stack.enter_context(self._saver()))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _saver(self) -> Any:
        if "://" in self._database:
            from langgraph.checkpoint.postgres import PostgresSaver

            return PostgresSaver.from_conn_string(self._database.replace("+psycopg", ""))
        from langgraph.checkpoint.sqlite import SqliteSaver

        self._folder.mkdir(parents=True, exist_ok=True)
        return SqliteSaver.from_conn_string(str(self._folder / "langgraph.db"))

    def _built(self, saver: Any) -> Any:
        saver.setup()
        graph = StateGraph(_State)
        names = [f"n{number}" for number in range(self._nodes)]
        for name in names:
            graph.add_node(name, _nothing)
        for before, after in zip([START, *names], [*names, END], strict=True):
            graph.add_edge(before, after)
        return graph.compile(checkpointer=saver)

    def run(self) -> None:
        self._number += 1
        config = {"configurable": {"thread_id": str(self._number)}, "recursion_limit": self._nodes + 5}
        ended = self._graph.invoke({"done": 0}, config, durability="sync")
        assert ended["done"] == self._nodes
