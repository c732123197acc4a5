"""The dashboard with something in it: a past to look at, and a workflow to pause and resume.

Everything is kept in `.cache/sample`; delete that folder to start afresh.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from holdfast.project.server_token import read_token
from holdfast.project.settings import load_settings
from sample import PLAN, History, make_project

PROGRAM = Path(sys.executable).with_name("holdfast")
FOLDER = Path(__file__).resolve().parents[2] / ".cache" / "sample"


def main() -> None:
    os.environ["HOLDFAST_HOME"] = str(FOLDER / "home")
    os.environ.pop("HOLDFAST_DB", None)
    project = FOLDER / "health"
    if not project.is_dir():
        print(f"Making a sample in {FOLDER}", flush=True)
        make_project(project)
        History(load_settings(cwd=project), make_project(FOLDER / "shop")).write()
    port = os.environ.get("PORT", "8421")
    server = subprocess.Popen(
        [PROGRAM, "serve", "--json", "--port", port], cwd=project, stdout=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the server; we end with it
    assert server.stdout is not None  # noqa: S101 - said to the type checker
    line = server.stdout.readline()
    if line:
        address = json.loads(line)
        start_sample(address)
        print(f"\n  {address['link']}\n\nOpen it in a browser. Ctrl-C ends the server.", flush=True)
    sys.exit(server.wait())


def start_sample(address: dict[str, str]) -> None:
    """The sample runs as soon as somebody can look at it; one that is still open is left as it is."""
    url = address["url"] + "/api/workflows"
    still_open = "&".join(f"status={name}" for name in ("pending", "in_progress", "blocked", "paused"))
    workflows = ask(f"{url}?search=DEMO-1&{still_open}")["workflows"]
    if not workflows:
        ask(url, {"plan": PLAN})


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    token = read_token(load_settings().home)  # the link is for a browser: it works once
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)  # noqa: S310 - our own server
    # Never through a proxy of the user's, which would see the token.
    here = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with here.open(request, timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
