"""What a task prints, kept while it runs: of more than fits, the beginning and the end.

    NAME.ATTEMPT       the beginning
    NAME.ATTEMPT.end   the end; its first line tells how many bytes were left out before it, once some were

Nothing is written that did not have its secrets taken out. A log that cannot be written costs nothing
but itself.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from holdfast.base.durable import open_to_append, private_folders, read_file, replace_file
from holdfast.base.errors import StorageError

KEPT_BYTES = 256 << 10
"""Of the beginning, and at least as many of the end."""

_KEY_BEGINS, _KEY_ENDS, _LONGEST_KEY = "-----BEGIN ", "-----END ", 16 << 10
_LEFT_OUT = re.compile(rb"\A\[\xe2\x80\xa6 (\d+) bytes left out\]\n")


@dataclass(frozen=True)
class TaskOutput:
    """A part of what an attempt printed; ask with `next` for what follows."""

    attempt: int
    text: str
    next: int
    is_running: bool


class TaskLog:
    def __init__(self, home: Path, workflow_id: str, task_id: str, attempt: int) -> None:
        name = f"{quote(task_id, safe='')[:80]}-{sha256(task_id.encode()).hexdigest()[:8]}.{attempt}"
        self._beginning = home / "logs" / workflow_id / name
        self._end = self._beginning.with_name(f"{name}.end")

    def begin(self) -> None:
        """An empty log tells that nothing was printed. Only the first task has to make its folder."""
        with contextlib.suppress(OSError, StorageError):
            try:
                self._append(self._beginning, b"")
            except FileNotFoundError:
                # Nothing in it waits for the disk, so it need not either.
                private_folders(self._beginning.parents[1], self._beginning.parent, is_lasting=False)
                self._append(self._beginning, b"")

    def append(self, text: str) -> None:
        if not text:
            return
        data = text.encode("utf-8", "replace")
        with contextlib.suppress(OSError, StorageError):
            room = max(0, KEPT_BYTES - self._beginning.stat().st_size)
            self._append(self._beginning, data[:room])
            if data[room:]:
                self._append(self._end, data[room:])
                self._trim()

    def read(self, since: int = 0) -> tuple[str, int] | None:
        """What follows the byte `since`, and where that ends; None where there is no such log here."""
        try:
            beginning = read_file(self._beginning)
        except FileNotFoundError:
            return None
        left_out, end = self._kept_end()
        total = len(beginning) + left_out + len(end)
        shown = beginning[since:]
        if left_out and since < len(beginning) + left_out:
            shown += f"\n[… {left_out} bytes left out]\n".encode()
        return _text(shown + end[max(0, since - len(beginning) - left_out) :]), total

    def _trim(self) -> None:
        if self._end.stat().st_size > 2 * KEPT_BYTES:
            left_out, end = self._kept_end()
            left_out += len(end) - KEPT_BYTES
            replace_file(self._end, f"[… {left_out} bytes left out]\n".encode() + end[-KEPT_BYTES:])

    def _kept_end(self) -> tuple[int, bytes]:
        try:
            data = read_file(self._end)
        except FileNotFoundError:
            return 0, b""
        found = _LEFT_OUT.match(data)
        return (int(found[1]), data[found.end() :]) if found else (0, data)

    def _append(self, path: Path, data: bytes) -> None:
        with open_to_append(path) as file:
            file.write(data)


class CleanLog:
    """A log that is written without secrets; a key of several lines is waited for to be whole."""

    def __init__(self, log: TaskLog, clean: Callable[[str], str]) -> None:
        self._log, self._clean = log, clean
        self._held = ""
        log.begin()

    def append(self, text: str) -> None:
        text = self._held + text
        begins = text.rfind(_KEY_BEGINS)
        is_open = begins >= 0 and _KEY_ENDS not in text[begins:] and len(text) - begins < _LONGEST_KEY
        self._held = text[begins:] if is_open else ""
        self._log.append(self._clean(text[:begins] if is_open else text))

    def close(self) -> None:
        held, self._held = self._held, ""
        if held:
            self._log.append(self._clean(held))


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
