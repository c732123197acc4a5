"""One setting for when the window counts as full: `run`, `status`, `usage` and the level that was not set."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from workflows.harness import wait_for

from .harness import Place
from .terminal import Terminal

HALF = {"HOLDFAST_LEVELS_AUTO_PAUSE": ".5"}
USAGE = {"input_tokens": 10, "cache_read_input_tokens": 110_000, "output_tokens": 1}
CALL = {"id": "msg_1", "model": "claude-sonnet-4-5", "usage": USAGE}
EVENTS = (
    {"type": "stream_event", "event": {"type": "message_start", "message": CALL}},
    {"type": "stream_event", "event": {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}},
)
ENDED = {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}
_AGENT = """#!{python}
import os, sys, time
sys.stdin.read()
print({events!r}, flush=True)
deadline = time.monotonic() + 60
while os.path.exists({hold!r}) and time.monotonic() < deadline:
    time.sleep(0.01)
print({ended!r}, flush=True)
"""


@pytest.fixture
def hold(place: Place) -> Path:
    """An agent on the PATH that fills 55 % of its window, and works for as long as this file is there."""
    path = place.root / "hold"
    programs = place.root / "bin"
    programs.mkdir()
    events = "\n".join(map(json.dumps, EVENTS))
    agent = programs / "claude"
    agent.write_text(
        _AGENT.format(python=sys.executable, events=events, ended=json.dumps(ENDED), hold=str(path))
    )
    agent.chmod(0o755)
    place.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    return path


def plan(place: Place, head: str = "") -> Path:
    path = place.root / "plan.yaml"
    tasks = "  - {id: t1, prompt: Do it}\n  - {id: t2, prompt: Go on, depends_on: [t1]}\n"
    path.write_text(f"{head}driver: claude-code\nissue: {{id: D, title: Demo}}\ntasks:\n{tasks}")
    return path


LIMITS: dict[str, tuple[str, str, Mapping[str, str], int]] = {
    "nothing set": ("", "", {}, 85),
    "a variable": ("", "", HALF, 50),
    "a settings file": ("", "[levels]\nauto_pause = 0.5\n", {}, 50),
    "another level": ("", "[levels]\ncaution = 0.5\n", {}, 85),
    "the default, but said": ("", "[levels]\nauto_pause = 0.9\n", {}, 90),
    "the plan's own": ("exhaustion_at: 0.6\n", "", HALF, 60),
}


@pytest.mark.some_of("anywhere", "head", "file", "env", "limit", number=6)
@pytest.mark.usefixtures("hold", "anywhere")
@pytest.mark.parametrize(("head", "file", "env", "limit"), LIMITS.values(), ids=LIMITS.keys())
def test_a_workflow_pauses_where_the_plan_or_the_user_says(
    place: Place, head: str, file: str, env: Mapping[str, str], limit: int
) -> None:
    (place.home / "config.toml").write_text(file)
    done = place.ok("run", plan(place, head), env=env)
    assert done.lines[1] == f"  Pauses when the context window is {limit}% full"
    paused = f"context is 55% full (limit {limit}%)" in done.out
    assert paused == (limit <= 55), done
    status = place.ok("status").out
    shown = f"pauses at {limit}%" if paused else "55% of the window"  # the next session begins empty
    assert f"Context:   {shown}" in status.splitlines()
    assert place.json("status")["workflow"]["options"]["exhaustion_at"] == limit / 100


def test_the_live_display_shows_the_limit_in_force(place: Place, hold: Path) -> None:
    hold.touch()
    place.environment.update(HALF)
    with Terminal(place, "run", str(plan(place))) as terminal:
        terminal.wait("55% (pauses at 50%)")
        assert "pauses at 50%\n" in place.ok("status").out
        hold.unlink()
        terminal.wait("Workflow paused")
    assert place.json("list")[0]["status"] == "paused"


@pytest.mark.usefixtures("hold")
def test_a_background_run_shows_the_limit_too(place: Place) -> None:
    started = place.ok("run", plan(place), "--detach", env=HALF)
    assert started.lines[1] == "  Pauses when the context window is 50% full"
    wait_for(lambda: place.json("list")[0]["status"] == "paused")
