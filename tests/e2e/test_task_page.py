"""A task's page as a person uses it: watch it print, search, see what it changed, take it back, try again."""

from __future__ import annotations

import json
from collections.abc import Callable

from playwright.sync_api import Page, expect

from e2e.browser import Complaints, Server, faults_by_axe
from soak import repeated

Open = Callable[..., Page]

GATE = "while [ ! -e {0}.go ]; do sleep 0.05; done"


def created(server: Server, *tasks: dict[str, object]) -> str:
    plan = {"issue": {"id": "E2E-3", "title": "See the work"}, "tasks": list(tasks)}
    return server.ask("/api/workflows", {"plan": plan})["id"]


def log_of(page: Page):
    return page.get_by_role("region", name="Printed lines")


def test_watch_search_undo_redo(served: Server, open_page: Open) -> None:
    printing = (
        "printf '\\033[1;31mred\\033[0m and plain\\n'; seq 1 300; echo half way; "
        f"{GATE.format('more')}; echo the last word; printf 'one\\nTWO\\nthree\\n' > app.txt"
    )
    (served.project / "app.txt").write_text("one\ntwo\nthree\n")
    flow = created(served, {"id": "build/all", "description": "Build", "run": printing})
    page = open_page(served, f"/workflows/{flow}")
    page.get_by_role("link", name="build/all").click()
    expect(page.get_by_role("heading", name="build/all")).to_be_visible()
    lines = log_of(page)
    expect(lines.get_by_text("half way")).to_be_visible()  # while it runs, and the newest in view
    expect(page.locator(".output .status")).to_have_text("Live")
    assert lines.locator(".log-line").count() < 200, "lines out of view are drawn"

    page.get_by_label("Search output").fill("RED")
    expect(page.locator(".search-steps")).to_contain_text("1 of 1")
    expect(lines.locator("mark")).to_have_text("red")
    expect(lines.locator(".ansi-1.ansi-bold")).to_have_text("red")
    assert faults_by_axe(page) == []
    page.get_by_label("Search output").fill("30")
    expect(page.locator(".search-steps")).to_contain_text("1 of 4")
    page.get_by_label("Search output").press("Shift+Enter")
    expect(page.locator(".log-current")).to_have_text("300")
    page.get_by_label("Search output").fill("")
    lines.evaluate("(box) => { box.scrollTop = 0 }")
    (served.project / "more.go").touch()
    expect(page.locator("h1 .status")).to_have_text("Completed")
    expect(lines.get_by_text("red and plain")).to_be_visible()  # nobody was taken away from it
    page.get_by_role("button", name="Follow").click()
    expect(lines.get_by_text("the last word")).to_be_visible()

    diff = page.get_by_role("region", name="Diff of app.txt")
    expect(diff.locator(".line-removed")).to_have_text("-two")
    expect(diff.locator(".line-added")).to_have_text("+TWO")
    page.get_by_role("button", name="Undo…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("app.txt")
    assert (served.project / "app.txt").read_text() == "one\nTWO\nthree\n", "before anybody said so"
    dialog.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Redo…").wait_for()
    assert (served.project / "app.txt").read_text() == "one\ntwo\nthree\n"
    page.get_by_role("button", name="Redo…").press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Redo").press("Enter")
    page.get_by_role("button", name="Undo…").wait_for()
    assert (served.project / "app.txt").read_text() == "one\nTWO\nthree\n"


def test_a_failed_task_is_tried_again_from_its_page(served: Server, open_page: Open) -> None:
    flow = created(
        served,
        {"id": "flaky", "run": "echo trying; test -e fixed"},
        {"id": "after", "run": "true", "depends_on": ["flaky"]},
    )
    page = open_page(served, f"/workflows/{flow}/tasks/flaky")
    expect(page.locator("h1 .status")).to_have_text("Failed")
    expect(log_of(page).get_by_text("trying")).to_be_visible()
    (served.project / "fixed").touch()
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("h1 .status")).to_have_text("Completed")
    expect(page.get_by_role("region", name="Attempts", exact=True).first).to_contain_text("Failed")
    page.get_by_role("combobox").select_option(label="Attempt 1, failed")
    expect(log_of(page).get_by_text("trying")).to_be_visible()
    page.get_by_role("link", name="after").click()
    expect(page.get_by_role("heading", name="after")).to_be_visible()
    expect(page.get_by_text("It printed nothing.")).to_be_visible()


def test_a_task_of_any_name_has_a_page(served: Server, open_page: Open) -> None:
    """Also where an address would step to another folder, or looks like one of a file."""
    names = ("..", ".", "%2e", "a/../../../b", "=..", "setup.py", "w" * 300)
    tasks: list[dict[str, object]] = [{"id": name, "run": "echo ran"} for name in names]
    flow = created(served, *tasks)
    page = open_page(served, f"/workflows/{flow}/tasks")
    page.set_viewport_size({"width": 390, "height": 860})
    for name in names:
        page.get_by_role("link", name=name, exact=True).click()
        for _ in range(2):
            expect(page.get_by_role("heading", name=f"{name} Completed", exact=True)).to_be_visible()
            expect(page.locator("h1 .status")).to_be_in_viewport()
            expect(log_of(page)).to_contain_text("ran")
            assert page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0
            page.reload()
        page.goto(f"{served.url}/workflows/{flow}/tasks")


def test_a_task_that_prints_ten_thousand_lines_a_second(
    served: Server, open_page: Open, complaints: Complaints
) -> None:
    """The page answers at once and keeps no more than it can show."""
    seconds = repeated(3)
    script = (
        "import sys, time\n"
        f"for second in range({seconds * 10}):\n"
        "    sys.stdout.write(''.join(f'{second:04} {n:04} ' + 'x' * 60 + chr(10) for n in range(1000)))\n"
        "    sys.stdout.flush(); time.sleep(0.1)\n"
        "print('that was all')\n"
    )
    (served.project / "flood.py").write_text(script)
    flow = created(served, {"id": "flood", "run": f"{GATE.format('flood')}; python3 flood.py"})
    page = open_page(served, f"/workflows/{flow}/tasks/flood")
    expect(page.locator(".output .status")).to_have_text("Live")
    page.evaluate(
        """() => {
          window.frames_ = [];
          let last = performance.now();
          const tick = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(tick) };
          requestAnimationFrame(tick);
        }"""
    )
    (served.project / "flood.go").touch()
    expect(log_of(page).get_by_text("that was all")).to_be_visible()
    frames = page.evaluate("() => window.frames_")
    slow = [frame for frame in frames if frame > 500]
    assert len(slow) <= len(frames) // 20, json.dumps(slow)
    assert log_of(page).locator(".log-line").count() < 200
    held = page.evaluate("() => performance.memory.usedJSHeapSize")
    assert held < 150 << 20, held
    expect(page.locator("h1 .status")).to_have_text("Completed")
