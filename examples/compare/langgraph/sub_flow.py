"""A flow inside a flow."""

from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    text: str


inner = StateGraph(State)
inner.add_node("read", lambda state: {"text": f"{state['text']}, read"})
inner.add_node("judge", lambda state: {"text": f"{state['text']}, judged"})
inner.add_edge(START, "read")
inner.add_edge("read", "judge")

book = StateGraph(State)
book.add_node("write", lambda state: {"text": "a chapter"})
book.add_node("review", inner.compile())
book.add_edge(START, "write")
book.add_edge("write", "review")
print(book.compile().invoke({})["text"])
