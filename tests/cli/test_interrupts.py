"""Signals that arrive while the program is in the midst of something."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

import pytest

from .harness import PATIENCE

MUCH = 1_000_000
"""More than a pipe holds, so that whoever writes it waits for a reader."""

BUSY_WRITING = f"""
import signal
import click
from holdfast.cli.running import answering

with answering({{signal.SIGUSR1: lambda: click.echo("heard", err=True)}}):
    print("ready", flush=True)
    click.echo("x" * {MUCH}, err=True)
print("done", flush=True)
"""

ENDING = """
import signal, sys, threading
from holdfast.cli.running import answering

pressed = threading.Event()
quit = threading.Event()
def answer():
    if pressed.is_set():
        quit.set()
    pressed.set()
    print("answered", flush=True)

with answering({signal.SIGINT: answer}, out_now=quit.is_set, deaf_after=lambda: "deaf" in sys.argv):
    print("ready", flush=True)
    # In pieces: a signal that comes just before a wait is answered only after it.
    while "stay" in sys.argv or not pressed.is_set():
        threading.Event().wait(0.05)
print("after", flush=True)
sys.stdin.readline()
print("end", flush=True)
"""


@contextmanager
def program(text: str, *arguments: str, stderr: int | None = None) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        # Without a buffer, Python itself loses the rest of a write that a signal cuts short.
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as running:
        try:
            assert said(running) == "ready"
            yield running
        finally:
            running.kill()


def said(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline().strip()


def waiting_in(pipe: IO[str]) -> int:
    """How many bytes were written into it that nobody has read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_answers_do_not_meet_what_they_interrupted() -> None:
    with program(BUSY_WRITING, stderr=subprocess.PIPE) as running:
        assert running.stderr is not None
        while not waiting_in(running.stderr):
            pass
        running.send_signal(signal.SIGUSR1)
        out, err = running.communicate(timeout=PATIENCE)
        assert (out, running.returncode) == ("done\n", 0)
        assert err.count("heard") == 1
        assert err.count("x") == MUCH


def test_the_one_that_is_too_many_ends_the_program_where_it_is() -> None:
    with program(ENDING, "stay", stderr=subprocess.DEVNULL) as running:
        for _ in range(2):
            running.send_signal(signal.SIGINT)
            assert said(running) == "answered"
        running.send_signal(signal.SIGINT)
        assert running.wait(PATIENCE) == -signal.SIGINT


@pytest.mark.parametrize(
    ("arguments", "code"), [((), -signal.SIGINT), (("deaf",), 0)], ids=["as before", "deaf"]
)
def test_what_signals_do_afterwards(arguments: tuple[str, ...], code: int) -> None:
    with program(ENDING, *arguments, stderr=subprocess.DEVNULL) as running:
        running.send_signal(signal.SIGINT)
        assert {said(running), said(running)} == {"answered", "after"}
        running.send_signal(signal.SIGINT)
        if not code:
            running.communicate("go on\n", timeout=PATIENCE)
        assert running.wait(PATIENCE) == code
