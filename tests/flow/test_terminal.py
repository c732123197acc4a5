"""Ctrl-C in a real terminal, through a pty; and the example, which is paused, killed and resumed."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.base.errors import CannotDoError
from holdfast.flow.hub import Hub, pause_on_interrupt

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "flow.py"
PATIENCE = 60.0

HOLDS_ON = """
import asyncio, os, signal, sys, time
from holdfast import Flow, Hub
from holdfast.flow.hub import pause_on_interrupt

flow = Flow("terminal")

@flow.node
async def waits(step):
    print("begun", flush=True)
    while not os.path.exists("go"):
        await asyncio.sleep(0.01)
    return "first"

@flow.node(after="waits")
def then(step):
    return "second"

@flow.node
def blocks(step):
    if sys.argv[1] == "blocks":
        handle = signal.getsignal(signal.SIGINT)
        # Not by `print`: the signal may come while that writes the next line.
        signal.signal(signal.SIGINT, lambda *what: (os.write(1, b"pressed\\n"), handle(*what)))
        print("blocking", flush=True)
        time.sleep(600)

async def main():
    hub = Hub()
    with pause_on_interrupt(hub, tell=lambda line: os.write(1, f"{line}\\n".encode())):
        state = await hub.run(flow)
    print(state.status, sorted(state.outputs), state.reason, flush=True)

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("KeyboardInterrupt", flush=True)
"""


class Terminal:
    """A program at a terminal of its own, and hands to type with."""

    def __init__(self, process: subprocess.Popen[bytes], keyboard: int) -> None:
        self.process = process
        self._keyboard = keyboard
        self.seen = ""

    def press_ctrl_c(self) -> None:
        os.write(self._keyboard, b"\x03")

    def wait_for(self, pattern: str, times: int = 1) -> None:
        deadline = time.monotonic() + PATIENCE
        while len(re.findall(pattern, self.seen)) < times:
            left = deadline - time.monotonic()
            assert left > 0, f"no {pattern!r} in {self.seen!r}"
            assert self.read(left), f"ended without {pattern!r}: {self.seen!r}"

    def end(self) -> str:
        """All that was printed, once the program has ended."""
        while self.read(PATIENCE):
            pass
        self.process.wait(PATIENCE)
        return self.seen

    def read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._keyboard], [], [], seconds)
        if not ready:
            return False
        try:
            block = os.read(self._keyboard, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self.seen += block.decode()
        return bool(block)


@contextmanager
def at_a_terminal(*words: str, folder: Path, **environ: str) -> Generator[Terminal]:
    keyboard, screen = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        stdin=screen,
        stdout=screen,
        stderr=screen,
        env={**os.environ, **environ},
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 - no thread of ours is in the midst of anything here
    )
    os.close(screen)
    try:
        yield Terminal(process, keyboard)
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)


def _take_terminal() -> None:
    """So that the terminal's Ctrl-C goes to this program."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def test_once_pauses_after_the_step(tmp_path: Path) -> None:
    with at_a_terminal("-c", HOLDS_ON, "waits", folder=tmp_path) as terminal:
        terminal.wait_for("begun")
        terminal.press_ctrl_c()
        terminal.wait_for("pausing")
        (tmp_path / "go").touch()
        assert "paused ['blocks', 'waits'] Ctrl-C" in terminal.end()


def test_twice_aborts_at_once(tmp_path: Path) -> None:
    with at_a_terminal("-c", HOLDS_ON, "waits", folder=tmp_path) as terminal:
        terminal.wait_for("begun")
        terminal.press_ctrl_c()
        terminal.wait_for("pausing")
        terminal.press_ctrl_c()
        terminal.wait_for("aborting")
        assert "aborted ['blocks'] Ctrl-C twice" in terminal.end()


def test_three_times_ends_even_a_node_that_blocks_everything(tmp_path: Path) -> None:
    with at_a_terminal("-c", HOLDS_ON, "blocks", folder=tmp_path) as terminal:
        terminal.wait_for("blocking")
        for number in range(1, 4):
            terminal.press_ctrl_c()
            terminal.wait_for("pressed", times=number)
        assert "KeyboardInterrupt" in terminal.end()


def test_afterwards_ctrl_c_is_as_it_was() -> None:
    async def scene() -> None:
        before = signal.getsignal(signal.SIGINT)
        with pause_on_interrupt(Hub()):
            assert signal.getsignal(signal.SIGINT) is not before
        assert signal.getsignal(signal.SIGINT) is before

    asyncio.run(scene())


def test_another_thread_is_told_that_ctrl_c_does_not_get_there() -> None:
    errors: list[BaseException] = []

    async def scene() -> None:
        with pytest.raises(CannotDoError, match="main thread") as raised, pause_on_interrupt(Hub()):
            pass
        errors.append(raised.value)

    thread = threading.Thread(target=lambda: asyncio.run(scene()))
    thread.start()
    thread.join()
    assert len(errors) == 1


def test_the_example_is_paused_killed_and_resumed_by_other_processes(tmp_path: Path) -> None:
    # A step takes long enough for us to be late by seconds, as on a busy machine.
    with at_a_terminal(str(EXAMPLE), folder=tmp_path, FLOW_SECONDS="1") as first:
        first.wait_for("writing Chapter 2")
        first.press_ctrl_c()
        assert "paused" in first.end()
    with at_a_terminal(str(EXAMPLE), "resume", folder=tmp_path, FLOW_SECONDS="1") as second:
        second.wait_for("reviewing 2")
        second.process.kill()
    with at_a_terminal(str(EXAMPLE), "resume", folder=tmp_path, FLOW_SECONDS="0.05") as third:
        shown = third.end()
    written = re.findall(r"writing Chapter (\d)", first.seen + second.seen + third.seen)
    assert sorted(written) == [str(number) for number in range(1, 7)], "a chapter was written twice"
    assert "writing" not in third.seen
    assert "complete" in shown
    assert "Chapter 6: gale is done, and reviewed" in shown
    assert shown.count("you said: please go on") == 2


def test_the_example_reviews_each_chapter_once_after_ctrl_c(tmp_path: Path) -> None:
    with at_a_terminal(str(EXAMPLE), folder=tmp_path, FLOW_SECONDS="0.3") as first:
        first.wait_for("reviewing 2")
        first.press_ctrl_c()
        assert "paused" in first.end()
    with at_a_terminal(str(EXAMPLE), "resume", folder=tmp_path, FLOW_SECONDS="0.01") as second:
        shown = second.end()
    reviewed = re.findall(r"Chapter (\d): \w+ is done, and reviewed", shown)
    assert reviewed == [str(number) for number in range(1, 7)]
