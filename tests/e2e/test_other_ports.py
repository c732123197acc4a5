"""A program on another port of this host is another origin, though it shares the host's cookies."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from e2e.browser import PATIENCE, Complaints, Server

expect.set_options(timeout=PATIENCE)

Open = Callable[..., Page]
PLAN = json.dumps({"issue": {"id": "E", "title": "Not yours"}, "tasks": [{"id": "a", "run": "id"}]})

_ATTEMPTS = """async ([url, plan]) => {
  const results = {};
  const attempt = async (name, act) => {
    try { results[name] = await act(); } catch (problem) { results[name] = `failed: ${problem.name}`; }
  };
  const body = JSON.stringify({ plan });
  const json = { "Content-Type": "application/json" };
  const own = { method: "POST", body, credentials: "include" };
  const answer = async (options) => (await fetch(`${url}/api/workflows`, options)).text();
  await attempt("read", () => answer({ credentials: "include" }));
  await attempt("write", () => answer({ ...own, headers: json }));
  await attempt("write unseen", () => answer({ ...own, mode: "no-cors" }));
  await attempt("frame", () => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.onload = () => { try { done(frame.contentWindow.localStorage.length); } catch { done("closed"); } };
    frame.src = url;
    document.body.append(frame);
  }));
  await attempt("socket", () => new Promise((done) => {
    const socket = new WebSocket(`${url.replace("http", "ws")}/ws/events?since=0`);
    socket.onmessage = (message) => done(message.data);
    socket.onclose = () => done("closed");
  }));
  results.storage = localStorage.length;
  return results;
}"""


@dataclass
class OtherProgram:
    """What somebody develops on another port; it notes the cookies it is sent."""

    url: str
    cookies: list[str] = field(default_factory=list[str])


@pytest.fixture
def other_program() -> Iterator[OtherProgram]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            other.cookies += self.headers.get_all("Cookie") or []
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Set-Cookie", "of-the-other=1; Path=/")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>Other</title><body></body>")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - so it is called
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    other = OtherProgram(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield other
    server.shutdown()
    thread.join()
    server.server_close()


def status_of(url: str, headers: dict[str, str], body: bytes | None = None) -> int:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def shows_workflows(page: Page) -> None:
    expect(page.get_by_role("heading", name="Workflows", exact=True)).to_be_visible()
    expect(page.locator(".liveness")).to_have_text("Live")


def test_a_program_on_another_port_can_neither_read_nor_write(
    served: Server, open_page: Open, other_program: OtherProgram
) -> None:
    page = open_page(served)
    shows_workflows(page)
    page.reload()
    shows_workflows(page)

    stranger = page.context.new_page()  # the browser may complain: what fails is looked at
    stranger.goto(other_program.url)
    stranger.reload()
    results = stranger.evaluate(_ATTEMPTS, [served.url, PLAN])
    assert results == {
        "read": "failed: TypeError",
        "write": "failed: TypeError",
        "write unseen": "failed: TypeError",
        "frame": "closed",
        "socket": "closed",
        "storage": 0,
    }

    assert other_program.cookies, "the browser sends cookies of one port to another"
    assert {cookie.get("name") for cookie in page.context.cookies()} == {"of-the-other"}
    sent = {"Cookie": "; ".join(other_program.cookies)}
    for forged in ({}, {"Origin": served.url, "Sec-Fetch-Site": "same-origin"}):
        headers = {**sent, **forged}
        assert status_of(f"{served.url}/api/workflows", headers) == 401
        assert status_of(f"{served.url}/api/workflows", headers, json.dumps({"plan": PLAN}).encode()) == 401
    assert served.ask("/api/workflows")["workflows"] == []


def test_cookies_that_another_port_sets_lock_nobody_out(
    served: Server, open_page: Open, other_program: OtherProgram
) -> None:
    page = open_page(served)
    stranger = page.context.new_page()
    stranger.goto(other_program.url)
    cookies = ['prefs={"theme":"dark"}', f"holdfast-{served.port}=x", "holdfast=x"]
    cookies += [f"large{number}={'x' * 4_000}" for number in range(20)]
    stranger.evaluate(
        "(cookies) => { for (const one of cookies) document.cookie = `${one}; path=/`; }", cookies
    )
    deadline = time.monotonic() + PATIENCE / 1000
    while len(page.context.cookies()) <= len(cookies):  # the browser stores them in its own time
        assert time.monotonic() < deadline
    page.reload()
    shows_workflows(page)
    second = open_page(served)
    shows_workflows(second)


def test_a_wrong_link_locks_nobody_out(
    served: Server, open_page: Open, other_program: OtherProgram, complaints: Complaints
) -> None:
    complaints.expected = ("410",)
    page = open_page(served)
    shows_workflows(page)
    for wrong in ("wrong", "", "%20,", "\u00e9"):
        page.goto(other_program.url)
        page.evaluate("(url) => { location.href = url; }", f"{served.url}/#code={wrong}")
        shows_workflows(page)
        assert page.url == f"{served.url}/"


def test_a_browser_without_the_link_is_told_how_to_get_in(
    served: Server, browser: Browser, complaints: Complaints
) -> None:
    complaints.expected = ("401", "410", "WebSocket")
    with browser.new_context() as context:
        page = context.new_page()
        complaints.watch(page)
        page.goto(served.url)
        expect(page.get_by_role("alert").first).to_contain_text("Open the link that holdfast serve printed")
        page.goto(f"{served.url}/#code=not-the-right-one")
        expect(page.get_by_role("alert").first).to_contain_text("This link has expired")
        page.goto(served.link)  # into the tab that shows the page already: only what follows # differs
        shows_workflows(page)
        assert page.url == f"{served.url}/"
        assert page.evaluate("() => document.cookie") == ""
        kept = {"Authorization": f"Bearer {page.evaluate('() => localStorage.getItem(`holdfast-token`)')}"}
        assert status_of(f"{served.url}/api/health", kept) == 200
        page.get_by_role("link", name="Server").click()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("alert").first).to_contain_text("This browser is not authorised yet.")
        page.reload()
        expect(page.get_by_role("alert").first).to_contain_text("This browser is not authorised yet.")
        assert page.evaluate("() => localStorage.length") == 0
        assert status_of(f"{served.url}/api/health", kept) == 401, "the token that it kept is worth nothing"


def test_a_link_lets_one_browser_in(served: Server, browser: Browser, complaints: Complaints) -> None:
    complaints.expected = ("401", "410", "WebSocket")
    link = served.printed_link
    with browser.new_context() as first, browser.new_context() as second:
        page = first.new_page()
        complaints.watch(page)
        page.goto(link)
        shows_workflows(page)
        late = second.new_page()
        complaints.watch(late)
        late.goto(link)
        alert = late.get_by_role("alert").first
        expect(alert).to_contain_text("This link was already used; it works once.")
        expect(alert).to_contain_text("holdfast serve --link")
        late.goto(served.link)
        shows_workflows(late)
        page.reload()
        shows_workflows(page)
