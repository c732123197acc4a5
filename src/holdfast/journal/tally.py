"""The summary of a journal without parsing it: count lines, parse the first and the last.

A tally remembers how far it has read, so asking again costs what was added since.
It trusts what `log.append` guarantees: a line that ends in a newline is whole.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.base.durable import NO_FOLLOW
from holdfast.journal.action import PauseAction
from holdfast.journal.log import last_line, read_head

_BLOCK = 1 << 18


@dataclass
class Tally:
    path: Path
    identity: tuple[int, int, bytes] | None = None
    end: int = 0
    lines: int = 0
    first: PauseAction | None = None
    last: PauseAction | None = None

    def advance(self) -> Tally:
        """Take in what was added; start afresh if the journal is another one, or has shrunk."""
        descriptor = os.open(self.path, os.O_RDONLY | NO_FOLLOW)
        try:
            status = os.fstat(descriptor)
            # The head, too: the number of a file that is gone is soon given to the next one.
            identity = (status.st_dev, status.st_ino, read_head(descriptor))
            if identity != self.identity or status.st_size < self.end:
                self.__init__(self.path, identity)
            if status.st_size > self.end:
                self._count_new_lines(descriptor)
                self._look_at_ends(descriptor)
        finally:
            os.close(descriptor)
        return self

    def _count_new_lines(self, descriptor: int) -> None:
        position = self.end
        while block := os.pread(descriptor, _BLOCK, position):
            found = block.count(b"\n")
            if found:
                self.lines += found
                self.end = position + block.rfind(b"\n") + 1
            position += len(block)

    def _look_at_ends(self, descriptor: int) -> None:
        if self.first is None:
            with os.fdopen(os.dup(descriptor), "rb") as file:
                file.seek(0)
                self.first = PauseAction.try_parse(file.readline())
        if self.end:
            self.last = PauseAction.try_parse(last_line(descriptor, self.end - 1)[1]) or self.last
