"""A plan of thousands of tasks: the page shows what is in view, answers to input, and follows along."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from e2e.browser import Server

TASKS = 5_000
MOST_DRAWN = 600
"""Nodes in view at any zoom; far fewer than there are."""

_MOVED = "(before) => document.querySelector('.react-flow__viewport').style.transform !== before"
_SMALLEST = "document.querySelector('.react-flow__viewport').style.transform.includes('scale(0.3)')"


def large_plan() -> str:
    """Layers of fifty, each task after two or three of the layer before; the first waits for a file."""
    chance = random.Random(7)
    tasks: list[dict[str, Any]] = [
        {"id": "start", "run": "while [ ! -e start.go ]; do sleep 0.05; done"},
    ]
    before = ["start"]
    while len(tasks) < TASKS:
        layer = [f"task-{len(tasks) + index}" for index in range(min(50, TASKS - len(tasks)))]
        for name in layer:
            needed = sorted({chance.choice(before) for _ in range(3)})
            tasks.append({"id": name, "description": f"Work on {name}", "run": "true", "depends_on": needed})
        before = layer
    return json.dumps({"issue": {"id": "LARGE", "title": "Thousands of tasks"}, "tasks": tasks})


def where(page: Page) -> str:
    return page.locator(".react-flow__viewport").evaluate("(one) => one.style.transform")


@pytest.mark.whole_sample
def test_only_what_is_in_view_of_a_large_graph_is_drawn(
    served: Server, open_page: Callable[..., Page]
) -> None:
    workflow_id = served.create(large_plan())
    page = open_page(served)
    page.locator(".workflows").get_by_role("link", name="Thousands of tasks").click()
    nodes = page.locator(".react-flow__node")
    expect(page.locator('.react-flow__node[data-id="start"] .node')).to_have_class("node node-in_progress")

    graph = page.locator(".graph")
    graph.hover()
    for _ in range(10):
        before = where(page)
        page.mouse.wheel(0, 200)  # zooms out
        page.wait_for_function(f"{_MOVED} || {_SMALLEST}", arg=before)
        assert nodes.count() <= MOST_DRAWN
    box = graph.bounding_box()
    assert box is not None
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for _ in range(5):
        before = where(page)
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.move(middle[0] - 300, middle[1], steps=5)
        page.mouse.up()
        page.wait_for_function(_MOVED, arg=before)
        assert 0 < nodes.count() <= MOST_DRAWN

    page.get_by_role("tab", name="Tasks").click()
    expect(page.locator(".task").first).to_be_visible()
    assert page.locator(".task").count() < 100
    page.get_by_label("Search tasks").fill("task-1432")
    expect(page.locator(".task")).to_have_count(1)
    page.get_by_label("Search tasks").fill("")
    (served.project / "start.go").touch()
    expect(page.locator('[data-task="task-1"] .status')).to_have_text("Completed")

    served.ask(f"/api/workflows/{workflow_id}/cancel", {"reason": "seen enough"})
