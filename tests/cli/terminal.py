"""A conversation with the program on a pseudo terminal, that can be broken off at any prompt."""

from __future__ import annotations

import os
import re
import select
import signal
import time
from collections.abc import Mapping
from types import TracebackType

from .harness import PATIENCE, Place, start_on_terminal

_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Runs a command line; `wait` for what it shows, `type` an answer, `interrupt` or `kill` it."""

    def __init__(self, place: Place, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        self._ours, theirs = os.openpty()
        window = {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
        self._process = start_on_terminal(
            theirs,
            arguments,
            cwd=place.project,
            env={**place.environment, **window, **(env or {})},
            program=place.program,
        )
        os.close(theirs)
        self._raw = b""
        self._read_to = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._ours)

    @property
    def shown(self) -> str:
        return _STYLE.sub("", self._raw.decode(errors="replace")).replace("\r\n", "\n")

    def wait(self, text: str) -> str:
        """Until this is shown after all that was waited for before; what was shown up to it."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.shown.find(text, self._read_to)) < 0:
            assert time.monotonic() < deadline, f"{text!r} was not shown:\n{self.shown[-3000:]}"
            assert self._read(), f"it ended without {text!r}:\n{self.shown[-3000:]}"
        before, self._read_to = self.shown[self._read_to : found], found + len(text)
        return before

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def answer(self, text: str, keys: str) -> None:
        self.wait(text)
        self.type(keys)

    def interrupt(self) -> int:
        """Ctrl-C, as the terminal sends it."""
        self.type("\x03")
        return self.end()

    def kill(self) -> int:
        self._process.send_signal(signal.SIGKILL)
        return self.end()

    def end(self) -> int:
        """The exit code, once it has one."""
        while self._read():
            pass
        return self._process.wait(PATIENCE)

    def _read(self) -> bool:
        if not select.select([self._ours], [], [], PATIENCE)[0]:
            raise AssertionError(f"nothing happened for {PATIENCE} s:\n{self.shown[-3000:]}")
        try:
            block = os.read(self._ours, 1 << 16)
        except OSError:  # Linux says so when the other side is closed
            return False
        self._raw += block
        return bool(block)
