from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from e2e.browser import PATIENCE, Complaints, Server, chromium
from sample import make_project

expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """As long as it lives, an event loop runs in this thread: other tests would not get theirs."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Server]:
    server = Server(project=make_project(tmp_path / "project"), home=tmp_path / "home")
    server.start()
    yield server
    server.cancel_all()
    server.stop()


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    """Nothing the browser complains about goes unnoticed; a test says what it expects."""
    complaints = Complaints()
    yield complaints
    assert complaints.found == []


@pytest.fixture
def open_page(browser: Browser, complaints: Complaints) -> Iterator[Callable[..., Page]]:
    """A tab in a browser profile of this test, let in by the printed link."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    context.set_default_timeout(PATIENCE)
    let_in: set[str] = set()

    def open_one(server: Server, path: str = "/") -> Page:
        page = context.new_page()
        complaints.watch(page)
        if server.url not in let_in:
            server.let_in(page)
            let_in.add(server.url)
        if path != "/" or page.url != f"{server.url}/":
            page.goto(f"{server.url}{path}")
        return page

    yield open_one
    context.close()
