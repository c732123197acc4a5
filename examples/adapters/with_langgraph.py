"""A LangGraph graph that pauses at the end of a superstep and goes on from its checkpoint.

    python examples/adapters/with_langgraph.py

The model is scripted, so that this runs without a key. Requires
`pip install 'holdfast[langgraph]' langgraph-checkpoint-sqlite`.
"""

import tempfile
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from holdfast.adapters import PausableSession
from holdfast.adapters.langgraph import import_threads, run

CHAPTERS = ["harbour", "storm", "island"]


def write(state: MessagesState) -> dict[str, Any]:
    """In place of a model: one chapter a call, each a third of the window."""
    done = sum(message.type == "ai" for message in state["messages"])
    usage = {
        "input_tokens": 2_800 * (done + 1),
        "output_tokens": 200,
        "total_tokens": 2_800 * (done + 1) + 200,
    }
    return {"messages": [AIMessage(f"Chapter {CHAPTERS[done]} is written.", usage_metadata=usage)]}


def is_done(state: MessagesState) -> str:
    return END if len(state["messages"]) > len(CHAPTERS) else "write"


builder = StateGraph(MessagesState)
builder.add_node("write", write)
builder.add_edge(START, "write")
builder.add_conditional_edges("write", is_done, ["write", END])


def main(folder: str) -> None:
    with SqliteSaver.from_conn_string(str(Path(folder) / "checkpoints.db")) as checkpointer:
        graph = builder.compile(checkpointer=checkpointer)
        session = PausableSession("book", folder, context_window=6_000)
        ended = run(graph, {"messages": [("user", "Write a book of three chapters")]}, session)
        print(f"Paused: {ended.paused}")
        print(session.handover())

        # Later, perhaps in another process: the graph summarises or trims, or gets a larger window.
        roomier = PausableSession("book", folder, context_window=100_000)
        ended = run(graph, None, roomier)
        print([message.text for message in ended.output["messages"]])

        # Threads that ran without Holdfast become sessions, too: `holdfast threads` lists them.
        graph.invoke({"messages": [("user", "Write a poem")]}, {"configurable": {"thread_id": "poem"}})
        print(import_threads(checkpointer, folder))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
