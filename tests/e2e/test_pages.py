"""Every page in both themes and on a phone: axe finds nothing serious, and a picture is taken to look at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e.browser import PATIENCE, ROOT, Complaints, Server, faults_by_axe
from playwright.sync_api import Browser, Page, expect
from sample import PLAN, History, make_project

from holdfast.config import load_settings

PICTURES = ROOT / ".cache" / "pictures"


@dataclass(frozen=True)
class Sample:
    """The sample of `make run`: a past, and a workflow that is held at its second task."""

    server: Server
    history: str
    running: str
    snapshots: list[str]

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
            "events": f"{past}/events",
            "sessions": f"{past}/sessions",
            "snapshots": f"{past}/snapshots",
            "usage": f"{past}/usage",
            "usage-none": f"{now}/usage",
            "resume": f"{past}/resume",
            "snapshot": f"{past}/snapshots/{self.snapshots[2]}",
            "snapshot-journal": f"{past}/snapshots/{self.snapshots[1]}",
            "diff": f"{past}/diff/{self.snapshots[0]}/{self.snapshots[2]}",
            "agent-sessions": "/sessions",
            "server": "/server",
            "no-workflow": "/workflows/no-such-one",
            "no-page": "/no/such/page",
        }


PAGES = tuple(Sample(Server(Path(), Path()), "", "", ["", "", ""]).paths)
READY = {
    "graph": ".react-flow__node",
    "running": ".react-flow__node",
    "usage": ".uplot canvas",
    "events": ".event",
    "tasks": ".task",
    "sessions": ".lane-bar",
    "resume": "pre.context",
    "snapshot": "pre.context",
    "snapshot-journal": ".journal li",
    "diff": ".diff",
    "server": ".facts dd code",
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
    # Somebody touched a file since the pause: the resume must warn of it.
    (folder / "shop" / "refunds.py").write_text("class Refund: ...\n")
    yield Sample(server, history, running, [one["id"] for one in found])
    server.cancel_all()
    server.stop()


@pytest.fixture(scope="session")
def pictures() -> Path:
    PICTURES.mkdir(parents=True, exist_ok=True)
    return PICTURES


def shown(page: Page, name: str) -> None:
    """Until the page is there: its heading, its main part, and nothing that still loads."""
    expect(page.locator("h1, .state-title").first).to_be_attached(timeout=PATIENCE)
    page.locator(READY.get(name, "main")).first.wait_for(timeout=PATIENCE)
    expect(page.get_by_text("Loading")).to_have_count(0, timeout=PATIENCE)


@pytest.mark.parametrize("theme", ["light", "dark", "phone"])
@pytest.mark.parametrize("name", PAGES)
def test_page(
    name: str, theme: str, sample: Sample, browser: Browser, complaints: Complaints, pictures: Path
) -> None:
    if name == "no-workflow":
        complaints.expected = ("404",)
    width = 390 if theme == "phone" else 1280
    with browser.new_context(
        viewport={"width": width, "height": 860}, color_scheme="dark" if theme == "dark" else "light"
    ) as context:
        page = context.new_page()
        complaints.watch(page)
        page.goto(sample.server.link)
        page.goto(f"{sample.server.url}{sample.paths[name]}")
        shown(page, name)
        page.screenshot(path=pictures / f"{name}-{theme}.png")
        assert faults_by_axe(page) == []
        wider = page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, "the page is wider than the screen"


def test_dialogs(sample: Sample, browser: Browser, complaints: Complaints, pictures: Path) -> None:
    for theme in ("light", "dark"):
        with browser.new_context(
            viewport={"width": 1280, "height": 860}, color_scheme="dark" if theme == "dark" else "light"
        ) as context:
            page = context.new_page()
            complaints.watch(page)
            page.goto(sample.server.link)
            page.goto(f"{sample.server.url}/workflows/{sample.running}")
            page.get_by_role("button", name="Pause").click(timeout=PATIENCE)
            expect(page.get_by_role("dialog")).to_be_visible()
            page.screenshot(path=pictures / f"pause-{theme}.png")
            assert faults_by_axe(page) == []
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_have_count(0)


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
