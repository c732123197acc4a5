"""`watch`: what it shows is what is there, and its keys do what the commands do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import common
from holdfast.cli.watch import WatchScreen, gauge, look
from holdfast.journal.usage import ContextUsageTracker
from holdfast.project.settings import load_settings

from .harness import PATIENCE, Place
from .terminal import Terminal


def watched(
    place: Place, monkeypatch: pytest.MonkeyPatch, use: Callable[[Any, Any], Awaitable[None]]
) -> None:
    """With the program's own environment, as its commands would have it."""
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)

    async def run() -> None:
        app = WatchScreen(load_settings(place.environment, place.project))
        async with app.run_test(size=(120, 40)) as pilot:
            await use(app, pilot)

    asyncio.run(run())


async def shown(app: Any, pilot: Any, part: str, text: str) -> str:
    deadline = time.monotonic() + PATIENCE
    while text not in (content := str(app.query_one(part).render())):
        assert time.monotonic() < deadline, content
        await pilot.pause(0.05)
    return content


def test_a_gauge_for_each_window_and_how_it_filled(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = ContextUsageTracker(place.project, session_id="agent-1")
    tracker.update_usage(input_tokens=100_000)

    async def use(app: Any, pilot: Any) -> None:
        assert "50% of 200,000 tokens, normal" in await shown(app, pilot, "#gauges", "agent-1")
        tracker.update_usage(input_tokens=84_000)
        told = await shown(app, pilot, "#gauges", "92%")
        assert "auto-pause" in told
        assert "▅" in told  # half full, before
        assert "█" in told

    watched(place, monkeypatch, use)


def test_markup_and_control_characters_of_a_project_are_text(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.project / "plan.yaml").write_text(
        'issue: {id: x, title: "[red]Door\\e[2J[/red]"}\ntasks: [{id: a, description: a, run: "true"}]\n'
    )
    assert place.run("run", "plan.yaml").code == 0

    async def use(app: Any, pilot: Any) -> None:
        told = await shown(app, pilot, "#work", "completed")
        assert "[red]Door" in told
        assert "\x1b" not in told

    watched(place, monkeypatch, use)


def test_keys_pause_and_resume(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    go = place.project / "go"
    (place.project / "plan.yaml").write_text(
        "issue: {id: x, title: Door}\ntasks:\n"
        "  - {id: a, description: a, run: 'until test -e go; do sleep 0.05; done'}\n"
        "  - {id: b, description: b, run: 'true', depends_on: [a]}\n"
    )
    assert place.run("run", "plan.yaml", "--detach").code == 0

    async def use(app: Any, pilot: Any) -> None:
        await shown(app, pilot, "#work", "running a")
        await pilot.press("p")
        while not any(one["entry"]["type"] == "pause_requested" for one in place.json("events")):
            await pilot.pause(0.05)
        go.touch()
        assert "1 of 2 tasks" in await shown(app, pilot, "#work", "paused")
        await pilot.press("r")
        await shown(app, pilot, "#work", "completed")

    watched(place, monkeypatch, use)


def test_an_undo_is_shown_before_it_is_done(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.project / "plan.yaml").write_text(
        "issue: {id: x, title: Door}\ntasks: [{id: a, description: a, run: 'echo hinge > made'}]\n"
    )
    assert place.run("run", "plan.yaml").code == 0
    made: Path = place.project / "made"

    async def until(pilot: Any, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline
            await pilot.pause(0.05)

    async def use(app: Any, pilot: Any) -> None:
        for key in ("escape", "enter"):
            await pilot.press("u")
            await until(pilot, lambda: len(app.screen_stack) == 2)
            assert made.exists()
            await pilot.press(key)
            await until(pilot, lambda: len(app.screen_stack) == 1)
        await until(pilot, lambda: not made.exists())

    watched(place, monkeypatch, use)


def test_without_a_terminal_it_says_so_and_ends(place: Place) -> None:
    """It used to draw on the pipe for ever."""
    place.run("watch").failed(1, error="needs a terminal", hint="holdfast status")


def test_it_runs_on_a_terminal_and_q_ends_it(place: Place) -> None:
    place.paused("tool_call")
    with Terminal(place, "watch") as terminal:
        terminal.wait("OPEN THREAD")
        terminal.type("q")
        assert terminal.end() == 0


def test_each_key_on_a_terminal(place: Place) -> None:
    """Pause, resume and undo, as somebody presses them: through the terminal's own bytes."""
    go, made = place.project / "go", place.project / "made"
    (place.project / "plan.yaml").write_text(
        "issue: {id: x, title: Door}\ntasks:\n"
        "  - {id: a, description: a, run: 'until test -e go; do sleep 0.05; done; echo hinge > made'}\n"
        "  - {id: b, description: b, run: 'true', depends_on: [a]}\n"
    )
    place.ok("run", "plan.yaml", "--detach")
    with Terminal(place, "watch") as terminal:
        terminal.wait("running a")
        terminal.type("p")
        terminal.wait("Pause requested")
        go.touch()
        terminal.wait("paused")
        terminal.type("r")
        terminal.wait("completed")
        assert made.read_text() == "hinge\n"
        terminal.type("u")
        terminal.wait("Undo it")
        assert made.exists()
        terminal.type("\r")
        terminal.wait("Undid")
        assert not made.exists()
        terminal.type("q")
        assert terminal.end() == 0


@pytest.mark.parametrize(("share", "bar"), [(-1.0, 0), (0.0, 0), (0.5, 15), (1.0, 30), (7.0, 30)])
def test_a_gauge_is_never_longer_than_its_frame(share: float, bar: int) -> None:
    assert gauge(share) == "█" * bar + "░" * (30 - bar)
    assert len(common.spark_line([share])) == 1


def test_a_damaged_usage_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    ContextUsageTracker(place.project, session_id="a").update_usage(input_tokens=5)
    (file,) = (place.project / ".holdfast/state").glob("usage-*.json")
    file.write_text("{")
    ((name, share, words),) = look(load_settings(place.environment, place.project)).gauges
    assert (name, share) == ("a", 0.0)
    assert "damaged" in words
