"""The program and a browser, both real, for tests that look at the dashboard as its users do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Error, Page, sync_playwright

from cli.harness import start_program
from fork_server import READ_AT_START
from holdfast.project.server_token import read_token

ROOT = Path(__file__).parents[2]
AXE = ROOT / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE = 60_000.0
"""Milliseconds for anything to appear: far more than it needs, for a machine that is busy."""

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Generator[Browser]:
    found = subprocess.run(
        [ROOT / "scripts" / "find-chromium"], stdout=subprocess.PIPE, text=True, check=False
    ).stdout.strip()
    assert found, "there is no Chromium: scripts/ensure-tools chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, headless=True, args=_FLAGS)
        yield browser
        browser.close()


@dataclass
class Server:
    """`holdfast serve` in a process of its own, that can be killed and started again at the same place."""

    project: Path
    home: Path
    port: int = 0
    url: str = ""
    printed_link: str = ""
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> None:
        own = {"HOLDFAST_HOME": str(self.home), "HOME": str(self.home)}
        self._process = start_program(
            ["serve", "--json", "--port", str(self.port)],
            cwd=self.project,
            env=os.environ | READ_AT_START | own,
            stderr=None,
            text=True,
        )
        assert self._process.stdout is not None
        told = self._process.stdout.readline()
        assert told, f"the server did not start: exit code {self._process.wait()}"
        address = json.loads(told)
        self.url, self.printed_link = address["url"], address["link"]
        self.port = int(self.url.rpartition(":")[2])

    def holdfast(self, *words: str) -> None:
        """Another command of the same user, in the project."""
        own = {"HOLDFAST_HOME": str(self.home), "HOME": str(self.home)}
        environ = os.environ | READ_AT_START | own
        with start_program(words, cwd=self.project, env=environ, text=True) as process:
            _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err

    @property
    def link(self) -> str:
        """A new one each time: a link lets one browser in."""
        return self.ask("/api/links", {})["link"]

    def let_in(self, page: Page) -> None:
        """Open a link; the page is drawn once its code is exchanged, which who leaves earlier ends."""
        page.goto(self.link)
        page.locator("#root > *").first.wait_for(state="attached")

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(number)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {
            "Authorization": f"Bearer {read_token(self.home)}",
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers)  # noqa: S310 - our own
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)

    def create(self, plan: str) -> str:
        return self.ask("/api/workflows", {"plan": plan})["id"]

    def cancel_all(self) -> None:
        """So that workers come to an end and nothing writes into the folder any more."""
        for workflow in self.ask("/api/workflows?status=in_progress&status=blocked")["workflows"]:
            self.ask(f"/api/workflows/{workflow['id']}/cancel", {"reason": "the test is over"})


@dataclass
class Complaints:
    """What the browser had to complain about: faults in the page, and what the policy forbade."""

    expected: tuple[str, ...] = ()
    found: list[str] = field(default_factory=list[str])

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", self._fault)

    def _fault(self, error: Error) -> None:
        self.found.append(str(error))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(part in message.text for part in self.expected):
            self.found.append(message.text)


def faults_by_axe(page: Page) -> list[str]:
    """Serious and critical faults that axe-core finds on the page as it is."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text())
    results = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{found['id']} ({found['impact']}): {node['html'][:200]} {node['failureSummary']}"
        for found in results["violations"]
        if found["impact"] in ("serious", "critical")
        for node in found["nodes"]
    ]
