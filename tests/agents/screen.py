"""A terminal that an agent's own interface is drawn on, and what a person would read there."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from agents.workshop import PATIENCE

_ROWS, _COLUMNS = 60, 200
_PIECE = re.compile(
    r"\x1b\[(?P<given>[0-9;:?<>=]*)[ -/]*(?P<does>[@-~])"  # a control sequence
    r"|\x1b[\]P_^][^\x07\x1b]*(?:\x07|\x1b\\)"  # a title, a question about colours
    r"|\x1b[^\[\]P_^]|(?P<text>[^\x00-\x1f]+)|(?P<sign>[\x00-\x1a\x1c-\x1f])"
)
_ANSWERS = (
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[c", b"\x1b[?62;c"),
    (b"\x1b]11;?", b"\x1b]11;rgb:0/0/0\x1b\\"),
)
"""What a terminal is asked at the start, and says."""


class Screen:
    """Keeps what is shown. Just what these interfaces use: places, text, and clearing."""

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environ: dict[str, str],
        questions: Mapping[str, bytes] | None = None,
    ) -> None:
        self._questions = questions or {}
        self._asked_since: dict[str, float] = {}
        self._master, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            list(words),
            cwd=folder,
            env={**environ, "TERM": "xterm-256color"},
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)
        self._cells = [[" "] * _COLUMNS for _ in range(_ROWS)]
        self._row = self._column = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._shown: set[str] = set()
        self.notices: list[str] = []
        """Each time that Holdfast's words came up, in order."""
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        os.close(self._master)

    @property
    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._cells)

    def wait_for(self, is_so: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline, f"waited in vain; on the screen:\n{self.text}"
            time.sleep(0.05)

    def leave(self) -> None:
        """As a person does: Ctrl+C until the program is gone."""
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end; on the screen:\n{self.text}"
            os.write(self._master, b"\x03")
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                continue

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._master], [], [], 0.2)
            if not ready and self._process.poll() is not None:
                return
            try:
                data = os.read(self._master, 1 << 16) if ready else b""
            except OSError:
                return  # the program has closed its side
            for asked, answer in _ANSWERS:
                if asked in data:
                    os.write(self._master, answer)
            self._draw(self._decoder.decode(data))
            self._answer()

    def _answer(self) -> None:
        """Once a question has stood for a while, and again: a key that comes before Codex listens ends it."""
        for question, keys in self._questions.items():
            since = (
                self._asked_since.setdefault(question, time.monotonic()) if question in self.text else None
            )
            if since is None:
                self._asked_since.pop(question, None)
            elif time.monotonic() - since > 5.0:
                del self._asked_since[question]
                os.write(self._master, keys)

    def _draw(self, text: str) -> None:
        text = self._rest + text
        done = 0
        while piece := _PIECE.match(text, done):
            done = piece.end()
            if piece["does"]:
                self._control(piece["does"], piece["given"])
            elif piece["text"]:
                self._write(piece["text"])
            elif piece["sign"]:
                self._move(piece["sign"])
        self._rest = text[done:]  # a sequence that has not come to its end

    def _control(self, does: str, given: str) -> None:
        if does == "H":
            row, _, column = given.partition(";")
            self._row, self._column = int(row or 1) - 1, int(column or 1) - 1
        elif does == "K":
            self._cells[self._row][self._column :] = [" "] * (_COLUMNS - self._column)
        elif does == "J":
            self._cells[:] = [[" "] * _COLUMNS for _ in range(_ROWS)]
        elif does == "l" and given == "?2026":  # a whole picture was drawn
            self._look()

    def _write(self, text: str) -> None:
        for sign in text:
            if self._row < _ROWS and self._column < _COLUMNS:
                self._cells[self._row][self._column] = sign
            self._column += 1

    def _move(self, sign: str) -> None:
        if sign == "\n":
            self._row += 1
        elif sign == "\r":
            self._column = 0

    def _look(self) -> None:
        shown = set(self._words())
        self.notices += sorted(shown - self._shown)
        self._shown = shown

    def _words(self) -> Iterator[str]:
        """Holdfast's sentences, each with the lines below it that its box breaks it into."""
        rows = ["".join(row) for row in self._cells]
        for number, row in enumerate(rows):
            for begin in re.finditer(r"Holdfast: ", row):
                lines = [_until_edge(row[begin.start() :])]
                for below in rows[number + 1 :]:
                    lines.append(_until_edge(below[begin.start() :]))
                    if not lines[-1]:
                        break
                yield " ".join(line for line in lines if line)


def _until_edge(row: str) -> str:
    """Up to the frame of a box, or the empty room after the text."""
    return re.split(r"[┃│|]|\s{2,}", row)[0].strip()
