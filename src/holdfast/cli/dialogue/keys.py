"""Single keys from the terminal.

The terminal stays in this mode for the whole conversation, so that a key pressed while something is drawn
or saved is not lost. Ctrl-C is a signal all the time, as everywhere; one that comes in the very moment
before we begin to wait wakes us too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Generator
from typing import Any

import click

try:
    import termios
except ImportError:  # Windows
    termios = None

_ENDS_SEQUENCE = b"~ABCDFHPQRS"


class Keys:
    def __init__(self) -> None:
        self._terminal = sys.stdin.fileno()
        self._before: Any = None
        self._woken, self._wake = -1, -1
        self._old_wake = -1

    def __enter__(self) -> Keys:
        if termios is not None:
            self._woken, self._wake = os.pipe()
            os.set_blocking(self._wake, False)
            self._old_wake = signal.set_wakeup_fd(self._wake)
            self._before = termios.tcgetattr(self._terminal)
            self._take_keys()
        return self

    def __exit__(self, *_: object) -> None:
        if termios is not None:
            self._take_lines()
            signal.set_wakeup_fd(self._old_wake)
            os.close(self._woken)
            os.close(self._wake)

    def _take_keys(self) -> None:
        assert termios is not None  # noqa: S101 - for the type checker
        mode = termios.tcgetattr(self._terminal)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, mode)

    def _take_lines(self) -> None:
        assert termios is not None  # noqa: S101 - for the type checker
        termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)

    @contextlib.contextmanager
    def lines(self) -> Generator[None]:
        """Back to whole lines, for an editor or a question that wants words."""
        if termios is not None:
            self._take_lines()
        try:
            yield
        finally:
            if termios is not None:
                self._take_keys()

    def read(self) -> str:
        """One key. One that sends several characters (an arrow) is an escape, and means nothing."""
        if termios is None:
            return click.getchar()
        self._wait()
        block = os.read(self._terminal, 1)
        if block in (b"", b"\x04"):  # the terminal is gone, or somebody says so
            raise click.Abort
        if block == b"\x1b":
            while select.select([self._terminal], [], [], 0.01)[0]:
                if os.read(self._terminal, 1) in _ENDS_SEQUENCE:
                    break
        return block.decode("latin-1")

    def read_line(self, echo: Callable[[str], None]) -> str:
        """A line of words, up to Enter; backspace takes a character back."""
        typed = b""
        while (key := self.read()) not in "\r\n":
            if key in "\x7f\b":
                before = typed.decode(errors="ignore")[:-1].encode()
                if before != typed:
                    echo("\b \b")
                typed = before
            elif key >= " ":
                typed += key.encode("latin-1")
                if len(typed.decode(errors="ignore").encode()) == len(typed):  # a whole character
                    echo(typed.decode()[-1])
        echo("\n")
        return typed.decode(errors="replace").strip()

    def _wait(self) -> None:
        """Until there is a key. A signal's Python side (KeyboardInterrupt) runs when it has woken us."""
        while True:
            ready, _, _ = select.select([self._terminal, self._woken], [], [])
            if self._woken in ready:
                os.read(self._woken, 512)
            if self._terminal in ready:
                return
