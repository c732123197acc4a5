"""A report every night at three. The library has no schedules (its platform has): cron calls this.

0 3 * * * cd /path/to/project && python nightly.py
"""

from datetime import datetime
from pathlib import Path
from typing import TypedDict

from langgraph.graph import START, StateGraph


class State(TypedDict, total=False):
    written: str


def report(state: State) -> State:
    Path("report.txt").write_text(str(datetime.now()))
    return {"written": "report.txt"}


graph = StateGraph(State)
graph.add_node(report)
graph.add_edge(START, "report")
graph.compile().invoke({})
