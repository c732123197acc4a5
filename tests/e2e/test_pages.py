"""Every page in both themes and on a phone: axe finds nothing serious, and a picture is taken to look at.

A quick run has some of the pages, each in one of these looks or two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from e2e.browser import PATIENCE, ROOT, Complaints, Server, faults_by_axe
from holdfast.model.entry import WorkflowCreated
from holdfast.model.findings import Evidence
from holdfast.model.task import Task, TaskDAG
from holdfast.model.workflow import Issue, Workflow
from holdfast.project.settings import load_settings
from holdfast.store.sql import SqlStore
from sample import PLAN, History, make_project
from sample import _second_decision as second_decision
from store.samples import NOON, new

PICTURES = ROOT / ".cache" / "pictures"


@dataclass(frozen=True)
class Sample:
    """The sample of `make run`: a past, and a workflow that is held at its second task."""

    server: Server
    history: str
    running: str
    snapshots: list[str]
    paused_at: str = ""

    @property
    def paths(self) -> dict[str, str]:
        past, now = f"/workflows/{self.history}", f"/workflows/{self.running}"
        return {
            "workflows": "/",
            "workflows-none": "/?q=nothing-has-this-name",
            "new": "/new",
            "graph": past,
            "running": now,
            "tasks": f"{past}/tasks",
            "task": f"{past}/tasks/api",
            "task-running": f"{now}/tasks/test",
            "events": f"{past}/events",
            "sessions": f"{past}/sessions",
            "replay": f"{past}/sessions?at={quote(self.paused_at)}",
            "snapshots": f"{past}/snapshots",
            "usage": f"{past}/usage",
            "usage-none": f"{now}/usage",
            "resume": f"{past}/resume",
            "snapshot": f"{past}/snapshots/{self.snapshots[2]}",
            "snapshot-journal": f"{past}/snapshots/{self.snapshots[1]}",
            "diff": f"{past}/diff/{self.snapshots[0]}/{self.snapshots[2]}",
            "agent-sessions": "/sessions",
            "agent-sessions-all": "/sessions?everywhere=1",
            "agent-sessions-none": f"/sessions?project={self.server.project.parent}",
            "server": "/server",
            "no-workflow": "/workflows/no-such-one",
            "no-page": "/no/such/page",
        }


PAGES = tuple(Sample(Server(Path(), Path()), "", "", ["", "", ""]).paths)
READY = {
    "graph": ".react-flow__node",
    "running": ".react-flow__node",
    "usage": ".uplot canvas",
    "task": ".attempts li",
    "task-running": ".log-line",
    "events": ".event",
    "tasks": ".task",
    "sessions": ".lane-bar",
    "replay": ".mark-detail",
    "resume": "pre.context",
    "snapshot": "pre.context",
    "snapshot-journal": ".journal li",
    "diff": ".diff",
    "server": ".facts dd code",
    "agent-sessions": ".session-list .gauge",
    "agent-sessions-all": ".session-list .gauge",
    "workflows": ".newest-sessions .gauge",
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    folder = tmp_path_factory.mktemp("sample")
    project = make_project(folder / "health")
    settings = load_settings({"HOLDFAST_HOME": str(folder / "home")}, project)
    history = History(settings, make_project(folder / "shop")).write()
    server = Server(project=project, home=folder / "home")
    server.start()
    running = server.create(PLAN.replace("sleep 4", "sleep 600"))
    found = server.ask(f"/api/workflows/{history}/snapshots")["snapshots"]
    write_agent_session(folder / "home", project)
    # Somebody touched a file since the pause: the resume must warn of it.
    (folder / "shop" / "refunds.py").write_text("class Refund: ...\n")
    yield Sample(server, history, running, [one["id"] for one in found], found[-1]["created_at"])
    server.cancel_all()
    server.stop()


def write_agent_session(home: Path, project: Path) -> None:
    """As Claude Code keeps one."""
    usage = {"input_tokens": 42_000, "output_tokens": 3_000, "cache_read_input_tokens": 95_000}
    said = [
        ("user", "Add a health endpoint. Never touch the public API."),
        ("assistant", "I decided to answer from a cache, because the checks are slow."),
    ]
    lines = [
        {
            "type": who,
            "sessionId": "0b8f5c1e-6a4f-4a53-9f0e-0d6f3a1c2b4d",
            "cwd": str(project),
            "timestamp": f"2026-01-06T12:00:0{number}Z",
            "uuid": f"m{number}",
            "message": {"role": who, "content": [{"type": "text", "text": text}]}
            | ({"model": "claude-sonnet-4-5", "usage": usage, "id": "m"} if who == "assistant" else {}),
        }
        for number, (who, text) in enumerate(said)
    ]
    folder = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project))
    folder.mkdir(parents=True)
    path = folder / "0b8f5c1e-6a4f-4a53-9f0e-0d6f3a1c2b4d.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.fixture(scope="session")
def pictures() -> Path:
    PICTURES.mkdir(parents=True, exist_ok=True)
    return PICTURES


def shown(page: Page, name: str) -> None:
    """Until the page is there: its heading, its main part, and nothing that still loads."""
    expect(page.locator("h1, .state-title").first).to_be_attached(timeout=PATIENCE)
    page.locator(READY.get(name, "main")).first.wait_for(timeout=PATIENCE)
    expect(page.locator(".liveness-connecting")).to_have_count(0, timeout=PATIENCE)
    expect(page.get_by_text("…", exact=True)).to_have_count(0, timeout=PATIENCE)
    expect(page.get_by_text("Loading")).to_have_count(0, timeout=PATIENCE)


@pytest.fixture(scope="module", params=["light", "dark", "phone"])
def tab(request: pytest.FixtureRequest, sample: Sample, browser: Browser) -> Iterator[tuple[str, Page]]:
    """A look and a tab that has it, let in by the link."""
    look = request.param
    with browser.new_context(
        viewport={"width": 390 if look == "phone" else 1280, "height": 860},
        color_scheme="dark" if look == "dark" else "light",
    ) as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        sample.server.let_in(page)
        yield look, page


@pytest.mark.some_of("tab", "name", number=7)
@pytest.mark.parametrize("name", PAGES)
def test_page(
    name: str, tab: tuple[str, Page], sample: Sample, complaints: Complaints, pictures: Path
) -> None:
    look, page = tab
    if name in ("no-workflow", "task"):  # what that one printed is not on this machine
        complaints.expected = ("404",)
    complaints.watch(page)
    page.goto(f"{sample.server.url}{sample.paths[name]}")
    shown(page, name)
    page.screenshot(path=pictures / f"{name}-{look}.png")
    assert faults_by_axe(page) == []
    wider = page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
    assert wider <= 0, "the page is wider than the screen"


@pytest.mark.some_of("tab")
def test_dialog(tab: tuple[str, Page], sample: Sample, complaints: Complaints, pictures: Path) -> None:
    look, page = tab
    complaints.watch(page)
    page.goto(f"{sample.server.url}/workflows/{sample.running}")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.screenshot(path=pictures / f"pause-{look}.png")
    assert faults_by_axe(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_command_that_is_not_recorded_is_not_shown_as_an_empty_one(
    sample: Sample, browser: Browser, complaints: Complaints
) -> None:
    complaints.expected = ("404",)
    with browser.new_context() as context:
        page = context.new_page()
        complaints.watch(page)
        sample.server.let_in(page)
        page.goto(f"{sample.server.url}{sample.paths['task']}")
        runs = page.get_by_role("region", name="What it runs")
        expect(runs).to_contain_text("Its command is not recorded.", timeout=PATIENCE)
        expect(runs.locator("pre")).to_have_count(0)


MOST_TRANSFERRED = 100_000


def transferred(server: Server, browser: Browser, complaints: Complaints, rows: int) -> float:
    """All of the first page, headers and data too, by a browser that has been let in."""
    with browser.new_context(viewport={"width": 390, "height": 860}) as context:
        page = context.new_page()
        complaints.watch(page)
        server.let_in(page)
        protocol = context.new_cdp_session(page)
        protocol.send("Network.enable")
        protocol.send("Network.clearBrowserCache")
        first: dict[str, str] = {}  # of each address: what is asked again is news that came meanwhile

        def begun(told: dict[str, Any]) -> None:
            first.setdefault(told["request"]["url"], told["requestId"])

        protocol.on("Network.requestWillBeSent", begun)
        ended: list[tuple[str, float]] = []  # also what the page before it had asked for
        protocol.on(
            "Network.loadingFinished",
            lambda told: ended.append((told["requestId"], told["encodedDataLength"])),
        )
        page.goto(f"{server.url}/")
        shown(page, "main")
        expect(page.locator(".workflows .row-progress")).to_have_count(rows, timeout=PATIENCE)
        expect(page.locator(".work-item").first).to_be_visible(timeout=PATIENCE)
        sizes = [size for request, size in ended if request in first.values()]
        assert len(sizes) > 5
        return sum(sizes)


def test_first_page_is_light_on_a_phone(sample: Sample, browser: Browser, complaints: Complaints) -> None:
    assert transferred(sample.server, browser, complaints, rows=2) < MOST_TRANSFERRED


def test_first_page_of_many_workflows_is_as_light(
    served: Server, browser: Browser, complaints: Complaints
) -> None:
    """Each with a title, a folder and tasks of its own: what is alike is compressed to nothing."""
    store = SqlStore(load_settings({"HOLDFAST_HOME": str(served.home)}, served.project).db)
    chance = Random(1)
    for number in range(300):
        said = [" ".join(chance.choices(WORDS, k=4)) for _ in range(8)]
        tasks = TaskDAG(
            tasks=tuple(Task(id=one.replace(" ", "-"), description=one, run="true") for one in said[2:])
        )
        flow = Workflow(
            id=f"wf_{chance.getrandbits(128):032x}",
            issue=Issue(id=f"SHOP-{number}", title=said[0]),
            worktree=f"/srv/{said[1].replace(' ', '/')}/{number}",
            status=chance.choice(("paused", "failed", "pending", "completed")),
            created_at=NOON,
            updated_at=NOON,
            pause_reason=said[1],
        )
        store.apply(
            new(flow, WorkflowCreated(issue=flow.issue, worktree=flow.worktree, task_dag=tasks, runs=True))
        )
    store.close()
    assert transferred(served, browser, complaints, rows=25) < MOST_TRANSFERRED


WORDS = re.findall(
    r"\w+",
    """add mend write remove trace parse check rename split merge cache test ship guard retry queue render
    parser login invoice router schema worker stream editor graph ledger report import export refund order
    stock price label when because without between slowly early broken empty large foreign signed unused""",
)


ROUND_TRIP, BYTES_A_SECOND = 0.15, 1_600_000 / 8
"""Of the network that Lighthouse gives a mid-range phone."""
MOST_SCRIPT = 330_000
"""Bytes to read and run before anything is drawn: such a phone reads a megabyte a second."""


def test_first_page_is_drawn_within_a_second_on_a_phone(
    sample: Sample, browser: Browser, complaints: Complaints
) -> None:
    """By what has to arrive before, not by a clock: no answer of the API is among it."""
    with browser.new_context(viewport={"width": 390, "height": 860}) as context:
        page = context.new_page()
        complaints.watch(page)
        sample.server.let_in(page)
        held: list[str] = []

        def hold(route: Route) -> None:
            held.append(route.request.url)

        page.route("**/api/**", hold)
        protocol = context.new_cdp_session(page)
        protocol.send("Network.enable")
        protocol.send("Network.clearBrowserCache")
        wave: dict[str, int] = {}  # how many round trips after the address was entered
        kinds: dict[str, str] = {}
        sizes: dict[str, float] = {}

        def begun(told: dict[str, Any]) -> None:
            asked_by = told["initiator"].get("url", "")
            wave[told["request"]["url"]] = wave.get(asked_by, 0) + 1
            kinds[told["requestId"]] = told.get("type", "")

        protocol.on("Network.requestWillBeSent", begun)
        protocol.on(
            "Network.loadingFinished",
            lambda told: sizes.update({told["requestId"]: told["encodedDataLength"]}),
        )
        page.goto(f"{sample.server.url}/")
        expect(page.get_by_label("Search workflows")).to_be_visible(timeout=PATIENCE)
        drawn = "() => performance.getEntriesByName('first-contentful-paint').length"
        page.wait_for_function(drawn)
        scripts = page.evaluate(
            "() => performance.getEntriesByType('resource')"
            ".filter((one) => one.name.endsWith('.js')).map((one) => one.decodedBodySize)"
        )
        own = [sizes[one] for one, kind in kinds.items() if kind in ("Document", "Script", "Stylesheet")]
        depth = max(times for url, times in wave.items() if "/api/" not in url)
        assert len(own) >= 5
        assert held
        connecting = ROUND_TRIP
        assert connecting + depth * ROUND_TRIP + sum(own) / BYTES_A_SECOND < 1
        assert sum(scripts) < MOST_SCRIPT
        page.unroute_all(behavior="ignoreErrors")


def test_graph_has_a_map(sample: Sample, browser: Browser, complaints: Complaints) -> None:
    """Of all tasks, in the colours of their statuses; beside few tasks there is none."""
    with browser.new_context(viewport={"width": 1280, "height": 860}) as context:
        page = context.new_page()
        complaints.watch(page)
        sample.server.let_in(page)
        page.goto(f"{sample.server.url}/workflows/{sample.running}")
        graph_map = page.get_by_role("img", name="All tasks")
        expect(graph_map).to_be_visible(timeout=PATIENCE)
        expect(graph_map.locator(".react-flow__minimap-node")).to_have_count(11, timeout=PATIENCE)
        # Laid out by the worker, which the policy lets in: with lines of their own around the tasks.
        expect(page.locator(".react-flow__edge-laid").first).to_be_attached(timeout=PATIENCE)
        expect(graph_map.locator(".mini-in_progress")).to_have_count(1, timeout=PATIENCE)
        assert faults_by_axe(page) == []


def test_graph_on_a_phone_goes_down_and_shows_more_than_one_task(
    sample: Sample, browser: Browser, complaints: Complaints, pictures: Path
) -> None:
    with browser.new_context(
        viewport={"width": 390, "height": 860}, has_touch=True, is_mobile=True
    ) as context:
        page = context.new_page()
        complaints.watch(page)
        sample.server.let_in(page)
        page.goto(f"{sample.server.url}/workflows/{sample.running}")
        graph = page.locator(".graph")
        graph.scroll_into_view_if_needed(timeout=PATIENCE)
        running = page.locator(".node-in_progress")
        running.wait_for(timeout=PATIENCE)
        box = graph.bounding_box()
        assert box is not None
        # A task at the edge is drawn, too: those that can be read whole are counted.
        whole = [
            at
            for node in page.locator(".react-flow__node .node").all()
            if (at := node.bounding_box())
            and at["x"] >= box["x"]
            and at["x"] + at["width"] <= box["x"] + box["width"]
            and at["y"] >= box["y"]
            and at["y"] + at["height"] <= box["y"] + box["height"]
        ]
        assert len(whole) >= 4
        assert min(at["height"] for at in whole) > 40  # so that a thumb finds it
        page.screenshot(path=pictures / "graph-on-a-phone.png")
        running.tap()
        expect(page.get_by_role("link", name="Output, changes, attempts")).to_be_in_viewport()
        page.screenshot(path=pictures / "graph-on-a-phone-task.png")
        assert faults_by_axe(page) == []


AGENT_SESSION = "0b8f5c1e-6a4f-4a53-9f0e-0d6f3a1c2b4d"


def test_a_session_is_replayed_with_its_decisions_and_what_they_rest_on(
    served: Server, browser: Browser, complaints: Complaints, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By keyboard: from the time line to a decision, to the words it rests on, and to its task."""
    made = second_decision("d2", datetime.now(UTC))
    cited = made.model_copy(update={"evidence": (Evidence(source=AGENT_SESSION, messages=(1,)),)})
    monkeypatch.setattr("sample._second_decision", lambda _, at: cited.model_copy(update={"timestamp": at}))
    shop = make_project(served.project.parent / "shop")
    flow = History(load_settings({"HOLDFAST_HOME": str(served.home)}, served.project), shop).write()
    write_agent_session(served.home, shop)
    with browser.new_context(viewport={"width": 390, "height": 860}) as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        complaints.watch(page)
        served.let_in(page)
        page.goto(f"{served.url}/workflows/{flow}/sessions")
        newest = page.locator(".session").first
        newest.get_by_role("button", name="Replay").press("Enter")
        replay = newest.get_by_role("region", name="Replay of session")
        moment = replay.get_by_role("slider", name="Moment")
        expect(moment).to_have_attribute("aria-valuetext", re.compile("nothing running, 0 completed"))
        shown = replay.locator('[aria-current="true"]')
        replay.get_by_role("button", name="idempotency key").press("Enter")
        expect(moment).to_have_attribute("aria-valuetext", re.compile("1 completed"))
        replay.get_by_role("button", name="Previous").press("Enter")
        expect(shown).not_to_contain_text("idempotency key")
        replay.get_by_role("button", name="Next").press("Enter")
        expect(shown).to_contain_text("Clients retry on a timeout")
        expect(shown.get_by_role("link", name="Task api")).to_be_visible()
        shown.get_by_role("button", name="Evidence: 1 message").press("Enter")
        expect(shown.locator(".said")).to_contain_text("I decided to answer from a cache")
        page.screenshot(path=pictures / "replay-phone.png", full_page=True)
        assert faults_by_axe(page) == []
        assert page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth") <= 0
        page.set_viewport_size({"width": 1280, "height": 860})
        page.screenshot(path=pictures / "replay-wide.png", full_page=True)
        moment.press("End")
        expect(moment).to_have_attribute("aria-valuetext", re.compile("nothing running, 3 completed"))
        moment.press("Home")
        replay.get_by_role("button", name="Play").press("Enter")
        expect(moment).not_to_have_attribute("aria-valuetext", re.compile("nothing running, 0 completed"))
        replay.get_by_role("button", name="Stop").press("Enter")
        # And back from where the decision is listed.
        last = served.ask(f"/api/workflows/{flow}/snapshots")["snapshots"][-1]["id"]
        page.goto(f"{served.url}/workflows/{flow}/snapshots/{last}")
        decision = page.get_by_role("listitem").filter(has_text="idempotency key")
        decision.get_by_role("link", name="In the replay").click()
        expect(page.locator('.mark[aria-current="true"]')).to_contain_text("idempotency key")
        page.get_by_role("button", name="Close the replay").press("Enter")
        expect(page.locator(".mark")).to_have_count(0)
        page.goto(f"{served.url}/workflows/{flow}/sessions?at=2999-01-01T00:00:00Z")  # found after the pause
        expect(page.locator('.mark[aria-current="true"]')).to_contain_text("Paused, session 3")


@pytest.mark.some_of("tab")
def test_axe_would_complain(tab: tuple[str, Page], sample: Sample) -> None:
    """The judge is awake: a button without a name and grey on grey are found."""
    _, page = tab
    page.goto(f"{sample.server.url}/no/such/page")
    page.get_by_text("Page not found.").wait_for()
    page.evaluate(
        """() => {
          const button = document.body.appendChild(document.createElement("button"));
          const text = document.body.appendChild(document.createElement("p"));
          text.textContent = "Hardly to be read";
          Object.assign(text.style, { color: "#777", background: "#888" });
        }"""
    )
    found = " ".join(faults_by_axe(page))
    assert "button-name" in found
    assert "color-contrast" in found


def test_no_link_no_entry(sample: Sample, browser: Browser, complaints: Complaints, pictures: Path) -> None:
    """Without the link the page says how to get in, and shows nothing else."""
    complaints.expected = ("401",)
    with browser.new_context() as context:
        page = context.new_page()
        complaints.watch(page)
        page.goto(sample.server.url)
        expect(page.get_by_role("alert")).to_contain_text("holdfast serve", timeout=PATIENCE)
        page.screenshot(path=pictures / "not-let-in.png")
        assert faults_by_axe(page) == []


def test_a_part_that_did_not_arrive_is_loaded_again(
    sample: Sample, browser: Browser, complaints: Complaints
) -> None:
    complaints.expected = ("ERR_FAILED", "could not be loaded")
    with browser.new_context() as context:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        complaints.watch(page)
        sample.server.let_in(page)
        for part, link, shown in (
            ("ServerPage", page.get_by_role("link", name="Server"), "h1"),
            ("TaskGraph", page.locator(".workflows").get_by_role("link", name="health").first, ".graph"),
        ):
            page.route(f"**/assets/{part}-*", lambda route: route.abort())
            link.click()
            alert = page.get_by_role("alert")
            expect(alert).to_contain_text("A part of this page could not be loaded.", timeout=PATIENCE)
            page.unroute_all()
            alert.get_by_role("button", name="Try again").click()
            page.locator(shown).wait_for()
            expect(alert).to_have_count(0)
            page.get_by_role("link", name="Workflows", exact=True).click()
