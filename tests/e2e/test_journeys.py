"""What people do with the dashboard, in a real browser against the real program.

Tasks wait for a file before they end, so that a test decides when something happens.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable

import pytest
from playwright.sync_api import Dialog, Page, Route, expect

from e2e.browser import Complaints, Server, faults_by_axe
from holdfast.base.neutral import without_controls
from holdfast.capture.files import LARGEST_FILE
from holdfast.model.task import Task, TaskDAG
from holdfast.project.settings import load_settings
from holdfast.sessions.transitions import Core
from holdfast.store.sql import SqlStore
from sample import make_project
from store.samples import snapshot, workflow

Open = Callable[..., Page]

GATE = "while [ ! -e {0}.go ]; do sleep 0.05; done"
CHAIN = ("first", "second", "third")


def plan_of(*names: str, **more: object) -> str:
    tasks = [
        {"id": name, "run": GATE.format(name), "depends_on": list(names[index - 1 : index])}
        for index, name in enumerate(names)
    ]
    return json.dumps({"issue": {"id": "E2E-1", "title": "A chain of tasks"}, "tasks": tasks, **more})


def let_go(server: Server, *names: str) -> None:
    for name in names:
        (server.project / f"{name}.go").touch()


def sees(page: Page, told: str) -> None:
    expect(page.locator(".tiles .status")).to_have_text(told)


def task_is(page: Page, name: str, status: str) -> None:
    expect(page.locator(f'.react-flow__node[data-id="{name}"] .node')).to_have_class(f"node node-{status}")


def is_live(page: Page) -> None:
    expect(page.locator(".liveness")).to_have_text("Live")


def shown_events(page: Page) -> list[int]:
    return page.evaluate("() => [...document.querySelectorAll('[data-seq]')].map((one) => +one.dataset.seq)")


def recorded_events(server: Server, workflow_id: str) -> list[int]:
    events = server.ask(f"/api/workflows/{workflow_id}/events?limit=2000")["events"]
    return [event["seq"] for event in events if event["entry"]["type"] != "usage_reported"]


def test_create_watch_pause_resume_finish(served: Server, open_page: Open) -> None:
    page = open_page(served)
    page.get_by_role("link", name="New workflow").click()
    page.get_by_label("Plan").fill(plan_of(*CHAIN))
    page.get_by_role("button", name="Create and run").click()

    expect(page.get_by_role("heading", name="A chain of tasks")).to_be_visible()
    task_is(page, "first", "in_progress")
    task_is(page, "second", "pending")
    let_go(served, "first")
    task_is(page, "first", "completed")
    task_is(page, "second", "in_progress")

    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Reason").fill("Lunch, with ümlauts & <tags>")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Pausing…")).to_be_disabled()
    let_go(served, "second")
    sees(page, "Paused")
    task_is(page, "second", "completed")
    expect(page.get_by_text("Lunch, with ümlauts & <tags>")).to_be_visible()

    page.get_by_role("link", name="View snapshot").click()
    expect(page.get_by_role("heading", name="Snapshot of session 1")).to_be_visible()
    expect(page.get_by_text("Lunch, with ümlauts & <tags>").first).to_be_visible()
    expect(page.locator('[data-task="third"] .status')).to_have_text("Pending")
    expect(page.get_by_label("Context text")).to_contain_text("E2E-1")

    page.get_by_role("link", name="Resume from here…").click()
    expect(page.get_by_label("Resume from")).to_have_value(re.compile("snap_"))
    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="A chain of tasks").click()
    page.get_by_role("link", name="Resume…").click()
    expect(page.get_by_label("Context text")).to_contain_text("A chain of tasks")
    expect(page.get_by_text("tokens to read")).to_be_visible()
    page.get_by_label("Estimate the cost for").fill("gpt-5")
    expect(page.get_by_text("with gpt-5")).to_be_visible()
    page.get_by_label("Message to the next session").fill("Now the third one")
    page.get_by_role("button", name="Resume").click()
    sees(page, "In progress")
    let_go(served, "third")
    sees(page, "Completed")
    task_is(page, "third", "completed")
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)

    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_text("Now the third one")).to_be_visible()
    page.get_by_role("tab", name="Sessions").click()
    expect(page.get_by_role("heading", name="Session 2")).to_be_visible()
    expect(page.get_by_text("Paused because a pause was requested")).to_be_visible()


def test_server_killed_and_restarted_under_an_open_page(
    served: Server, open_page: Open, complaints: Complaints
) -> None:
    complaints.expected = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "WebSocket")
    workflow_id = served.create(plan_of(*CHAIN))
    page = open_page(served, f"/workflows/{workflow_id}/events")
    is_live(page)
    expect(page.get_by_text("Task first started")).to_be_visible()
    page.evaluate("() => { window.sameVisit = true }")

    for name in CHAIN[:2]:
        served.kill()
        expect(page.locator(".liveness")).to_have_text("Reconnecting…")
        let_go(served, name)  # its worker goes on; what happens now is heard after the restart
        served.start()
        is_live(page)
        expect(page.get_by_text(f"Task {name} completed")).to_be_visible()
    let_go(served, CHAIN[-1])
    sees(page, "Completed")
    expect(page.get_by_text("Workflow is completed")).to_be_visible()

    assert page.evaluate("() => window.sameVisit"), "the page was loaded again"
    assert shown_events(page) == recorded_events(served, workflow_id)


def test_what_could_not_be_asked_again_is_not_called_well(
    served: Server, open_page: Open, complaints: Complaints
) -> None:
    complaints.expected = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE")
    page = open_page(served, "/server")
    health = page.get_by_role("region", name="Health")
    expect(health).to_contain_text("well")
    served.kill()
    expect(health).to_contain_text("The server cannot be reached. What is shown may have changed since.")
    served.start()
    expect(health.locator(".notice")).to_have_count(0)
    expect(health).to_contain_text("well")


def test_two_tabs(served: Server, open_page: Open, complaints: Complaints) -> None:
    workflow_id = served.create(plan_of(*CHAIN))
    one, other = (open_page(served, f"/workflows/{workflow_id}") for _ in range(2))
    overview = open_page(served)
    expect(overview.locator("tbody .status")).to_have_text("In progress")
    task_is(other, "first", "in_progress")
    one.get_by_role("button", name="Pause").click()
    one.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(other.get_by_role("button", name="Pausing…")).to_be_disabled()
    let_go(served, "first")
    for tab in (one, other):
        sees(tab, "Paused")
    expect(overview.locator("tbody .status")).to_have_text("Paused")

    for tab in (one, other):
        tab.get_by_role("link", name="Resume…").click()
        expect(tab.get_by_label("Context text")).to_be_visible()
    one.set_viewport_size({"width": 390, "height": 860})
    one.get_by_role("button", name="Resume").click()
    task_is(one, "second", "in_progress")
    complaints.expected = ("409",)
    other.get_by_role("button", name="Resume").click()
    expect(other.get_by_role("alert")).to_contain_text("Not resumed")
    expect(other.get_by_role("alert")).to_contain_text("already running")
    let_go(served, "second")
    task_is(one, "third", "in_progress")
    one.locator(".graph").scroll_into_view_if_needed()  # on a phone it ends below the fold
    expect(one.locator('.react-flow__node[data-id="third"]')).to_be_in_viewport(ratio=0.95)
    let_go(served, "third")
    sees(one, "Completed")
    expect(overview.locator("tbody .status")).to_have_text("Completed")


def test_refused_plan(served: Server, open_page: Open, complaints: Complaints) -> None:
    complaints.expected = ("422",)
    page = open_page(served, "/new")
    page.get_by_label("Plan").fill(
        "issue: {id: X, title: Y}\ntasks:\n  - {id: a, run: ls, depends_on: [b]}\n"
    )
    page.get_by_role("button", name="Create and run").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("rejected the plan")
    expect(alert).to_contain_text("plan:3: task 'a' depends on 'b'")
    assert page.get_by_label("Plan").input_value().startswith("issue"), "what was typed is kept"


def test_pause_that_is_refused_is_taken_back(served: Server, open_page: Open, complaints: Complaints) -> None:
    complaints.expected = ("409",)
    page = open_page(served, f"/workflows/{served.create(plan_of(*CHAIN))}")
    task_is(page, "first", "in_progress")

    def refuse(route: Route) -> None:
        error = {"code": "illegal_transition", "message": "It has just ended.", "hint": None, "faults": []}
        route.fulfill(status=409, json={"error": error})

    page.route("**/pause", refuse)
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_text("It has just ended.")).to_be_visible()
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_enabled()


LIE = "Approved already. <b>Nothing</b> will run."
STEERING = "".join(map(chr, (*range(1, 0xA0), 0x61C, *range(0x200E, 0x2070), 0xE0041))).replace("'", "")
"""Every character that could hide or turn others, among some that could not."""


def test_approval_shows_what_will_run(served: Server, open_page: Open) -> None:
    """In the plan's own words, which can do no more than be read."""
    command = f"touch shipped; : '{STEERING}' {'w' * 3_000}"
    tasks = [
        {"id": "build", "run": "printf 'built \\033[31m\\342\\200\\256red'"},
        {"id": "ship\u202e", "description": LIE, "run": command, "depends_on": ["build"], "approval": True},
    ]
    plan = {"issue": {"id": "E2E-2", "title": "Ship it"}, "tasks": tasks}
    workflow_id = served.ask("/api/workflows", {"plan": plan})["id"]
    page = open_page(served, f"/workflows/{workflow_id}")
    card = page.get_by_role("region", name="A task waits for your approval")
    shown = card.get_by_role("region", name="Command")
    assert shown.text_content() == without_controls(command)
    assert shown.evaluate("(box) => box.scrollWidth <= box.clientWidth"), "the long word is cut off"
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    for told in ("ship\ufffd", LIE, "shell", str(served.project), "build"):
        expect(card.locator(".foreign").get_by_text(told, exact=True)).to_have_count(1)
        expect(card.get_by_text(told, exact=True)).to_have_count(1)
    printed = card.get_by_role("region", name="Printed last")
    assert printed.text_content() == "built \ufffd[31m\ufffdred"
    expect(card.get_by_text("No known danger was recognised")).to_be_visible()
    expect(card.get_by_text("No change of files is recorded so far.")).to_be_visible()
    assert faults_by_axe(page) == []

    card.get_by_role("button", name="Reject…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Reject").click()
    dialog.get_by_label("Reason").fill("Not on a Friday \u202e")
    dialog.get_by_role("button", name="Reject").click()
    sees(page, "Failed")
    expect(page.locator(".notice .foreign").first).to_contain_text("Not on a Friday \ufffd")
    served.ask(f"/api/workflows/{workflow_id}/resume", {})
    card.get_by_role("button", name="Approve").press("Enter")
    sees(page, "Completed")
    assert (served.project / "shipped").exists()


def test_approval_shows_what_was_changed_and_what_is_dangerous(served: Server, open_page: Open) -> None:
    tasks = [
        {"id": "edit", "run": "sleep 0.05; echo 'print(2)' >> app.py"},
        {"id": "push", "run": "git push --force origin main", "depends_on": ["edit"], "approval": True},
    ]
    plan = {"issue": {"id": "E2E-2", "title": "Release"}, "tasks": tasks}
    page = open_page(served, f"/workflows/{served.ask('/api/workflows', {'plan': plan})['id']}")
    card = page.get_by_role("region", name="A task waits for your approval")
    expect(card.locator(".notice.bad")).to_contain_text("Dangerous")
    expect(card.get_by_role("region", name="Diff of app.py").locator(".line-added")).to_have_text("+print(2)")
    assert faults_by_axe(page) == []
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the workflow").click()
    sees(page, "Cancelled")


def test_approval_judges_every_command_by_what_will_run(served: Server, open_page: Open) -> None:
    """What is hidden as a secret, too."""
    password = "Tr0ub4dor" + "&9"
    run = f"PASSWORD='{password}' TOKEN=\"8f3a9c2b1d$(git push --force)\" true"
    until = f"PASSWORD='{password}' git push --force origin main"
    tasks = [{"id": "push", "run": run, "until": until, "approval": True}]
    plan = {"issue": {"id": "E2E-2", "title": "Release"}, "tasks": tasks}
    workflow_id = served.ask("/api/workflows", {"plan": plan})["id"]
    page = open_page(served, f"/workflows/{workflow_id}")
    card = page.get_by_role("region", name="A task waits for your approval")
    expect(card.get_by_text("A part of this command cannot be seen here")).to_have_count(2)
    expect(card.get_by_text("Dangerous: ")).to_have_count(2)
    expect(card.get_by_role("region", name="Command", exact=True)).to_contain_text("$(git push --force)")
    expect(card.get_by_text("No known danger was recognised")).to_have_count(0)
    assert password not in page.content()
    assert faults_by_axe(page) == []
    served.ask(f"/api/workflows/{workflow_id}/cancel", {})


def test_commands_from_elsewhere_are_read_before_they_run(
    served: Server, open_page: Open, complaints: Complaints
) -> None:
    complaints.expected = ("409",)
    store = SqlStore(load_settings({"HOLDFAST_HOME": str(served.home)}, served.project).db)

    def arrives(number: int, command: str) -> None:
        tasks = TaskDAG(tasks=(Task(id="a", description="Harmless", run=command, until="test -e ran"),))
        flow = workflow(status="paused", worktree=str(served.project), session_count=number)
        assert Core(store).take_in(snapshot(f"snap_{number}", number=number, task_dag=tasks), flow)

    def lists(*commands: str) -> None:
        for number, command in enumerate(commands, start=1):
            shown = alert.get_by_role("region", name=f"{number} of {len(commands)}")
            expect(shown).to_have_text(without_controls(command))

    arrives(1, "echo \u202eharmless")
    page = open_page(served, "/workflows/wf_1/resume")
    alert = page.get_by_role("alert")
    page.get_by_role("button", name="Resume").click()
    lists("echo \u202eharmless", "test -e ran")
    other = f"touch ran {'w' * 200}"
    arrives(2, other)
    store.close()
    page.get_by_role("button", name="Run these commands").click()
    lists(other, "test -e ran")
    assert not (served.project / "ran").exists()
    page.get_by_role("button", name="Run these commands").click()
    sees(page, "Completed")
    assert (served.project / "ran").exists()


def test_cancel(served: Server, open_page: Open) -> None:
    page = open_page(served, f"/workflows/{served.create(plan_of(*CHAIN))}")
    task_is(page, "first", "in_progress")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_label("Reason").fill("Not needed any more")
    page.get_by_role("button", name="Cancel the workflow").click()
    sees(page, "Cancelled")
    expect(page.get_by_role("link", name="Resume…")).to_have_count(0)
    page.goto(f"{page.url}/resume")
    expect(page.get_by_text("This workflow is cancelled and cannot be resumed")).to_be_visible()
    expect(page.get_by_label("Context text")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)


def test_search_and_filter(served: Server, open_page: Open) -> None:
    page = open_page(served)
    for number, title in enumerate(("Mend the roof", "Paint the door")):
        tasks = [{"id": "only", "run": "true"}]
        served.create(json.dumps({"issue": {"id": f"H-{number}", "title": title}, "tasks": tasks}))
        expect(page.locator("tbody tr", has_text=title).locator(".status")).to_have_text("Completed")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    page.keyboard.press("/")
    page.keyboard.type("roof")
    expect(rows).to_have_count(1)
    expect(page).to_have_url(f"{served.url}/?q=roof")
    page.reload()
    expect(page.get_by_label("Search workflows")).to_have_value("roof")
    page.get_by_role("button", name="Failed").click()
    expect(page.get_by_text("No matching workflows.")).to_be_visible()
    page.get_by_role("button", name="Failed").click()
    page.get_by_role("button", name="Completed").click()
    expect(rows).to_have_count(1)


def test_go_to_anything_by_a_few_letters(served: Server, open_page: Open) -> None:
    page = open_page(served)
    flow = paused(served, page)
    snapshot_of = served.ask(f"/api/workflows/{flow}/snapshots")["snapshots"][0]
    page.goto(f"{served.url}/server")
    for letters, kind, heading in (
        ("chain of", "Workflow", "A chain of tasks"),
        (snapshot_of["session_id"], "Snapshot", "Snapshot of session 1"),
        ("agent ses", "Page", "Agent sessions"),
    ):
        expect(page.get_by_role("button", name="Go to")).to_be_visible()  # drawn: it hears keys
        page.keyboard.press("Control+k")
        page.get_by_role("combobox", name="Go to").fill(letters)
        expect(page.get_by_role("option").first).to_contain_text(kind)
        expect(page.get_by_role("option", selected=True)).to_have_count(1)
        if kind == "Workflow":
            assert faults_by_axe(page) == []
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
        expect(page.get_by_role("combobox", name="Go to")).to_have_count(0)
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_several_at_once_and_a_fork(served: Server, open_page: Open) -> None:
    flows: list[str] = []
    for name in ("one", "two"):
        folder = make_project(served.project.parent / name)
        flows.append(served.ask("/api/workflows", {"plan": plan_of(*CHAIN), "worktree": str(folder)})["id"])
    page = open_page(served)
    for flow in flows:  # paused earlier, they would have no task that is done
        page.goto(f"{served.url}/workflows/{flow}")
        task_is(page, "first", "in_progress")
    page.goto(served.url)
    expect(page.locator(".workflows tbody tr")).to_have_count(2)
    page.get_by_label("Select all workflows").press("Space")
    bulk = page.get_by_role("region", name="Selected workflows")
    expect(bulk).to_contain_text("2 workflows selected")
    assert faults_by_axe(page) == []
    bulk.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("2 workflows asked to pause.")).to_be_visible()
    for name in ("one", "two"):
        (served.project.parent / name / "first.go").touch()
    expect(page.locator(".workflows .status-paused")).to_have_count(2)
    page.set_viewport_size({"width": 390, "height": 860})
    page.locator(".workflows tbody").get_by_role("checkbox").first.click()
    bulk.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel them").click()
    expect(page.locator(".workflows .status-cancelled")).to_have_count(1)
    page.set_viewport_size({"width": 1280, "height": 860})

    page.goto(f"{served.url}/workflows/{flows[0]}/tasks?status=completed")
    expect(page.locator(".task")).to_have_count(1)
    page.get_by_label("Search tasks").fill("first")
    expect(page).to_have_url(re.compile("q=first"))
    page.get_by_role("button", name="Fork", exact=True).click()
    expect(page.get_by_text("Forked: this is the copy")).to_be_visible()
    sees(page, "Paused")
    assert flows[0] not in page.url


def test_by_keyboard_alone(served: Server, open_page: Open) -> None:
    page = open_page(served, f"/workflows/{served.create(plan_of(*CHAIN))}")
    task_is(page, "first", "in_progress")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.get_by_role("tab", name="Graph").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Tasks")).to_be_focused()
    expect(page.locator('[data-task="first"]')).to_be_visible()
    page.keyboard.press("ArrowLeft")
    node = page.locator('.react-flow__node[data-id="second"]')
    node.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Task second")).to_be_visible()
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def paused(server: Server, page: Page) -> str:
    """A workflow that pauses after its first task."""
    workflow_id = server.create(plan_of("first", "second", pause_every=1))
    let_go(server, "first")
    page.goto(f"{server.url}/workflows/{workflow_id}")
    sees(page, "Paused")
    return workflow_id


def test_work_that_agents_left_open_is_on_the_first_page(served: Server, open_page: Open) -> None:
    words = ("winddown", "start", "--percent", "0.9", "--state", '{"task": "mend the parser"}')
    served.holdfast(*words)
    served.holdfast("winddown", "finalize", "--reason", "Mend the parser tomorrow")
    page = open_page(served)
    work = page.get_by_role("region", name="Open work")
    expect(work).to_contain_text("Mend the parser tomorrow")
    expect(work).to_contain_text("holdfast resume session-")
    work.get_by_role("link", name="Mend the parser tomorrow").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Snapshot of session")


def test_first_page_leads_to_what_waits_and_what_failed(served: Server, open_page: Open) -> None:
    """By keyboard alone, from the numbers to the task that has to be decided."""
    flow = served.create(
        json.dumps(
            {
                "issue": {"id": "E2E-2", "title": "Ship it"},
                "tasks": [{"id": "release", "run": "true", "approval": True}],
            }
        )
    )
    page = open_page(served)
    work = page.get_by_role("region", name="Open work")
    waiting = work.get_by_role("button", name="1 Waiting for you")
    expect(waiting).to_be_enabled()
    expect(work.get_by_role("button", name="0 Failed")).to_be_disabled()
    waiting.press("Enter")
    expect(waiting).to_have_attribute("aria-pressed", "true")
    expect(page).to_have_url(f"{served.url}/?state=waiting")
    page.reload()
    expect(waiting).to_have_attribute("aria-pressed", "true")
    expect(work.locator(".work-item")).to_contain_text("release waits for approval")
    assert faults_by_axe(page) == []
    work.get_by_role("link", name="Ship it").press("Enter")
    expect(page.get_by_role("heading", name="release")).to_be_visible()
    page.get_by_role("button", name="Reject…").press("Enter")
    page.get_by_label("Reason").fill("Not on a Friday")
    page.get_by_role("dialog").get_by_role("button", name="Reject").press("Enter")
    expect(page.get_by_role("button", name="Reject")).to_have_count(0)
    page.goto(f"{served.url}/")
    expect(work.get_by_role("button", name="1 Failed")).to_be_enabled()
    served.ask(f"/api/workflows/{flow}/cancel", {"reason": "seen enough"})
    expect(work).to_contain_text("Nothing is open")  # without a reload


def test_context_is_edited_and_kept(served: Server, open_page: Open) -> None:
    """By keyboard: add a pin, drop a line, see the tokens and what differs, save."""
    page = open_page(served)
    flow = paused(served, page)
    page.goto(f"{served.url}/workflows/{flow}/resume")
    expect(page.get_by_label("Context text")).to_contain_text("A chain of tasks")
    page.get_by_role("button", name="Edit", exact=True).press("Enter")
    editor = page.get_by_role("region", name="Edit the context")
    page.get_by_label("Add a pin").fill("The staging database is shared: never drop it.")
    page.get_by_label("Add a pin").press("Enter")
    expect(editor.get_by_text("The staging database is shared")).to_be_visible()
    expect(editor.get_by_role("status")).to_contain_text("with your changes")
    editor.get_by_role("button", name="Compare").press("Enter")
    expect(editor.locator(".line-added").filter(has_text="The staging database is shared")).to_have_count(1)
    assert faults_by_axe(page) == []
    editor.get_by_role("button", name="Compare").press("Enter")
    editor.get_by_role("button", name="Drop: The staging").press("Enter")
    expect(editor.get_by_text("The staging database is shared")).to_have_count(0)
    page.get_by_label("Add a pin").fill("The staging database is shared: never drop it.")
    page.get_by_label("Add a pin").press("Enter")
    expect(editor.get_by_text("The staging database is shared")).to_be_visible()
    assert faults_by_axe(page) == []
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("alert")).to_contain_text("Your changes to the context are not saved")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.once("dialog", stay)
    page.get_by_role("link", name="Back").click()
    assert asked == ["Leave without saving your changes to the context?"]
    editor.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_label("Context text")).to_contain_text("The staging database is shared")
    assert "The staging database is shared" in served.ask(f"/api/workflows/{flow}/resume/preview")["context"]


def test_resume_page_tells_whether_the_folder_changed(served: Server, open_page: Open) -> None:
    page = open_page(served)
    workflow_id = paused(served, page)
    page.goto(f"{served.url}/workflows/{workflow_id}/resume")
    expect(page.get_by_text("The folder is unchanged since the pause.")).to_be_visible()
    expect(page.get_by_text("Files that git ignores were not compared.")).to_be_visible()
    (served.project / "app.py").write_text("rewritten\n")
    page.reload()
    drift = page.get_by_label("Drift")
    expect(drift).to_contain_text("The folder has changed since the pause.")
    expect(drift).to_contain_text("Changed on disk since the pause: app.py.")
    page.get_by_label("Fail unless").check()
    expect(page.get_by_text("It has changed: resuming now would fail.")).to_be_visible()

    page.get_by_label("Fail unless").uncheck()
    (served.project / "later.py").write_text("1\n")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("alert")).to_contain_text("The folder is not as this page showed it.")
    expect(drift).to_contain_text("later.py")
    page.get_by_role("button", name="Resume").click()
    toast = page.locator(".toast")
    expect(toast).to_contain_text("Resumed as session 2.")
    expect(toast).to_contain_text("later.py")


def test_resuming_several_tells_whose_folder_changed(served: Server, open_page: Open) -> None:
    page = open_page(served)
    paused(served, page)
    (served.project / "app.py").write_text("rewritten\n")
    page.goto(served.url)
    page.get_by_label("Select all workflows").press("Space")
    page.get_by_role("region", name="Selected workflows").get_by_role("button", name="Resume").click()
    toast = page.locator(".toast")
    expect(toast).to_contain_text("1 workflow resumed.")
    expect(toast).to_contain_text("Changed on disk since the pause: app.py.")


def test_resume_page_tells_when_nobody_can_tell(
    served: Server, open_page: Open, complaints: Complaints
) -> None:
    complaints.expected = ("409", "400")
    shutil.rmtree(served.project / ".git")
    (served.project / "large").touch()
    os.truncate(served.project / "large", LARGEST_FILE + 1)
    page = open_page(served)
    workflow_id = paused(served, page)
    (served.project / "app.py").write_text("rewritten\n")
    page.goto(f"{served.url}/workflows/{workflow_id}/resume")
    drift = page.get_by_label("Drift")
    expect(drift).to_contain_text("Cannot tell whether the folder has changed since the pause.")
    expect(drift).to_contain_text("no git state was recorded at the pause")
    expect(page.locator(".notice.good")).to_have_count(0)
    page.get_by_label("Fail unless").check()
    expect(page.get_by_text("That is unknown: resuming now would fail.")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("alert")).to_contain_text("Cannot tell whether the files changed")


def test_what_was_undone_is_told_and_the_plan_goes_on_without_it(served: Server, open_page: Open) -> None:
    plan = {
        "issue": {"id": "E2E-2", "title": "Two files"},
        "tasks": [
            {"id": "first", "run": "sleep 0.05; echo one > made"},
            {"id": "second", "run": "sleep 0.05; echo two > other", "depends_on": ["first"]},
        ],
        "pause_every": 1,
    }
    flow = served.ask("/api/workflows", {"plan": plan})["id"]
    page = open_page(served, f"/workflows/{flow}")
    sees(page, "Paused")
    served.holdfast("tx", "rollback", "last", "--yes")
    assert not (served.project / "made").exists()
    page.goto(f"{served.url}/workflows/{flow}/resume")
    undone = page.get_by_role("region", name="Undone")
    expect(undone).to_contain_text("What completed tasks had changed was undone: first")
    expect(undone.get_by_role("link", name="first")).to_have_attribute(
        "href", f"/workflows/{flow}/tasks/first"
    )
    expect(undone).to_contain_text("holdfast tx undo ")
    resume = page.get_by_role("button", name="Resume", exact=True)
    resume.click()
    without = page.get_by_label("Continue without it")
    assert without.evaluate("(box) => box.validity.valueMissing"), "it is to be decided first"
    assert served.ask(f"/api/workflows/{flow}")["status"] == "paused"
    assert faults_by_axe(page) == []
    without.check()
    resume.click()
    sees(page, "Completed")
    assert not (served.project / "made").exists()
    assert (served.project / "other").read_text() == "two\n"


def asks(server: Server, page: Page) -> str:
    """A workflow that waits for approval of its second task."""
    tasks = [
        {"id": "edit", "run": "sleep 0.05; echo one > made"},
        {"id": "ship", "run": GATE.format("ship"), "depends_on": ["edit"], "approval": True},
    ]
    plan = {"issue": {"id": "E2E-2", "title": "Ship it"}, "tasks": tasks}
    flow = server.ask("/api/workflows", {"plan": plan})["id"]
    page.goto(f"{server.url}/workflows/{flow}")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    return flow


def has_kept_focus(page: Page) -> bool:
    return page.evaluate("() => document.activeElement?.closest('main') !== null")


def test_a_reason_outlives_the_decision_of_somebody_else(served: Server, open_page: Open) -> None:
    page = open_page(served)
    flow = asks(served, page)
    page.get_by_role("button", name="Reject…").press("Enter")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Reject…")).to_be_focused()
    page.keyboard.press("Enter")
    reason = page.get_by_label("Reason")
    reason.fill("The changelog is missing")
    served.ask(f"/api/workflows/{flow}/approve", {})
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("alert")).to_contain_text("This was decided elsewhere meanwhile.")
    expect(dialog.get_by_role("alert")).to_contain_text("The workflow is in progress.")
    expect(reason).to_have_value("The changelog is missing")
    expect(dialog.get_by_role("button", name="Reject")).to_be_disabled()
    assert faults_by_axe(page) == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.get_by_text("No task waits for your approval any more.")).to_be_visible()
    assert has_kept_focus(page)

    page.get_by_role("button", name="Cancel").press("Enter")
    reason.fill("Not needed")
    let_go(served, "ship")
    expect(dialog.get_by_role("alert")).to_contain_text("The workflow is completed.")
    expect(reason).to_have_value("Not needed")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)
    assert has_kept_focus(page)


def test_what_was_undone_is_told_where_it_is_approved_and_retried(
    served: Server, open_page: Open, complaints: Complaints
) -> None:
    """By keyboard: the page offers what a resume offers, and keeps the place afterwards."""
    complaints.expected = ("409",)
    page = open_page(served)
    flow = asks(served, page)
    served.holdfast("tx", "undo", "last")
    page.get_by_role("button", name="Approve").press("Enter")
    dialog = page.get_by_role("dialog", name="Approve without what was undone?")
    expect(dialog).to_contain_text("What completed tasks had changed was undone: edit.")
    link = dialog.get_by_role("link", name="edit")
    expect(link).to_have_attribute("href", f"/workflows/{flow}/tasks/edit")
    assert faults_by_axe(page) == []
    dialog.get_by_role("button", name="Back").press("Enter")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Continue without it").press("Enter")
    sees(page, "In progress")
    expect(dialog).to_have_count(0)
    assert has_kept_focus(page)
    let_go(served, "ship")
    sees(page, "Completed")
    assert not (served.project / "made").exists()

    tasks = [
        {"id": "edit", "run": "sleep 0.05; echo one > made"},
        {"id": "flaky", "run": "test -e fixed", "depends_on": ["edit"]},
    ]
    plan = {"issue": {"id": "E2E-3", "title": "Fails once"}, "tasks": tasks}
    flow = served.ask("/api/workflows", {"plan": plan})["id"]
    page.goto(f"{served.url}/workflows/{flow}/tasks/flaky")
    expect(page.locator("h1 .status")).to_have_text("Failed")
    served.holdfast("tx", "undo", "last")
    (served.project / "fixed").touch()
    page.get_by_role("button", name="Retry").press("Enter")
    dialog = page.get_by_role("dialog", name="Retry without what was undone?")
    dialog.get_by_role("button", name="Continue without it").press("Enter")
    expect(page.locator("h1 .status")).to_have_text("Completed")
    assert not (served.project / "made").exists()


@pytest.mark.some_of("theme")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_theme_is_kept(theme: str, served: Server, open_page: Open) -> None:
    page = open_page(served)
    for _ in range(("system", "light", "dark").index(theme)):
        page.get_by_role("button", name="Theme").click()
    page.reload()
    assert page.evaluate("() => document.documentElement.dataset.theme") == theme


_TURNS = """() => {
  const texts = [document.title, document.body.textContent];
  for (const one of document.querySelectorAll("[title], [aria-label]"))
    texts.push(one.getAttribute("title"), one.getAttribute("aria-label"));
  return texts.filter((text) => /[\u202a-\u202e\u2066-\u2069]/.test(text ?? ""));
}"""
"""What on the page could make other text read backwards, or hide it."""


def is_readable(page: Page) -> None:
    assert page.evaluate(_TURNS) == []
    assert page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0


def test_odd_texts_leave_every_page_readable(served: Server, open_page: Open) -> None:
    """And what has ended still says how far it came."""
    word, turn = "w" * 3_000, "\u202e\u2066turned"
    for number, (title, command) in enumerate((("Short", f"echo {turn}; exit 3"), (word, "true"))):
        folder = make_project(served.project.parent / f"{'x' * 200}{turn}-{number}")
        plan = {
            "issue": {"id": f"L-{number}" * 50 + turn, "title": title + turn},
            "tasks": [
                {"id": f"task-{'t' * 150}{turn}", "run": command, "description": turn + word},
                {"id": "other", "run": "true"},
            ],
            "constraints": [word + turn],
        }
        served.ask("/api/workflows", {"plan": plan, "worktree": str(folder)})
    page = open_page(served)
    rows = page.locator(".workflows tbody tr")
    expect(rows.filter(has_text="Completed").locator(".row-progress")).to_have_text("2/2")
    expect(rows.filter(has_text="Failed").locator(".row-progress")).to_have_text("0/2")
    for width in (1280, 900, 390):
        page.set_viewport_size({"width": width, "height": 860})
        is_readable(page)
        for row in rows.all():
            box = row.bounding_box()
            assert box is not None
            assert box["height"] < 150, "a line fills the list"

    rows.get_by_role("link", name="Short").click()
    node = page.locator(".react-flow__node").first
    node.click()
    page.get_by_role("link", name="Output, changes, attempts").click()
    expect(page.get_by_role("region", name="Printed lines")).to_contain_text("turned")
    is_readable(page)
    page.go_back()
    for tab, ready in (
        ("Tasks", ".task"),
        ("Events", ".event"),
        ("Sessions", ".session"),
        ("Snapshots", ".title"),
    ):
        is_readable(page)
        page.get_by_role("tab", name=tab).click()
        expect(page.locator(ready).first).to_be_visible()
    is_readable(page)
    page.get_by_role("button", name="Skip").click()
    dialog = page.get_by_role("dialog")
    assert dialog.evaluate("(box) => box.scrollWidth <= box.clientWidth"), "its title is cut off"
    dialog.get_by_role("button", name="Back").click()
    page.get_by_role("tab", name="Graph").click()
    page.locator(".react-flow__node", has_text="task-ttt").click()
    panel = page.get_by_role("complementary", name="Task task-ttt")
    assert panel.evaluate("(box) => box.scrollWidth <= box.clientWidth"), "its title is cut off"
    page.get_by_role("link", name="Resume…").click()
    expect(page.get_by_label("Context text")).to_contain_text("turned")
    is_readable(page)
    page.go_back()
    page.get_by_role("link", name="View snapshot").click()
    expect(page.get_by_label("Context text")).to_contain_text("turned")
    is_readable(page)

    page.get_by_role("link", name="Workflows", exact=True).first.click()
    rows.get_by_role("link", name="www").click()
    heading = page.get_by_role("heading", level=1).bounding_box()
    assert heading is not None
    assert heading["height"] < 80
    assert page.evaluate("() => window.scrollY") == 0, "the page does not begin at its top"
