"""Fix until the tests pass, at most five times."""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph


class State(TypedDict):
    failed: int
    rounds: int


def fix(state: State) -> State:
    return {"failed": state["failed"] - 1, "rounds": state["rounds"] + 1}


def again(state: State) -> str:
    if state["failed"] and state["rounds"] >= 5:
        raise RuntimeError("not done after 5 rounds")
    return "fix" if state["failed"] else END


graph = StateGraph(State)
graph.add_node(fix)
graph.add_edge(START, "fix")
graph.add_conditional_edges("fix", again)
print(graph.compile().invoke({"failed": 3, "rounds": 0}))
