"""Signals, answered outside of what they interrupted.

A handler runs between two instructions of the main thread, which may be in the midst of writing to
the stream, or hold the lock of the event, that an answer needs: it would fail or wait for itself.
So a handler only notes its number in a pipe, and a thread of its own reads that and answers.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager


def _never() -> bool:
    return False


@contextmanager
def answering(
    answers: Mapping[signal.Signals, Callable[[], object]],
    *,
    out_now: Callable[[], bool] = _never,
    deaf_after: Callable[[], bool] = _never,
) -> Generator[None]:
    """Within this, each of these signals is answered by its function, one after the other.

    A Ctrl-C is KeyboardInterrupt, right where the program is, once `out_now` says so (it is asked
    in the handler: it may look at a flag and no more). Whatever came is answered when this ends;
    afterwards the signals do what they did before, or nothing if `deaf_after` says so.
    """
    noted, note = os.pipe()

    def handler(number: int, _frame: object) -> None:
        if number == signal.SIGINT and out_now():
            raise KeyboardInterrupt
        os.write(note, bytes([number]))

    def answer() -> None:
        while number := os.read(noted, 1):
            answers[signal.Signals(number[0])]()

    answerer = threading.Thread(target=answer, name="holdfast-signals", daemon=True)
    answerer.start()
    before = {number: signal.signal(number, handler) for number in answers}
    try:
        yield
    finally:
        for number in answers:
            signal.signal(number, signal.SIG_IGN)
        os.close(note)
        answerer.join()
        os.close(noted)
        if not deaf_after():
            for number, previous in before.items():
                signal.signal(number, previous)
