"""Crashes and full disks at a chosen step, without ending the test process.

Every call that changes the disk is counted. A *crash* is an exception nobody catches by accident,
and from then on every such call fails: a dead process tidies nothing up. A *full disk* refuses
what needs room and goes on allowing what does not. A write that is hit puts half its bytes down.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

CHANGES = ("mkdir", "rmdir", "rename", "replace", "unlink", "remove", "link", "ftruncate", "write", "open")
NEEDS_ROOM = ("mkdir", "write", "open")


class Crash(BaseException):
    """The process is gone."""


class Faults:
    """Fails at the `at`-th step (from 1); `steps` tells how many there were."""

    def __init__(self, at: int, fail: Callable[[], BaseException], *, stays_dead: bool) -> None:
        self.steps = 0
        self.happened = False
        self._at = at
        self._fail = fail
        self._stays_dead = stays_dead

    def is_due(self) -> bool:
        self.steps += 1
        return self.steps == self._at or (self.happened and self._stays_dead)

    def strike(self) -> BaseException:
        self.happened = True
        return self._fail()


@contextmanager
def crash_at(step: int) -> Generator[Faults]:
    """Die at that step; the block is left at once, and all that follows finds a dead process's disk."""
    faults = Faults(step, Crash, stays_dead=True)
    with _patched(faults, CHANGES), suppress(Crash):
        yield faults


@contextmanager
def disk_full_at(step: int) -> Generator[Faults]:
    faults = Faults(step, lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), stays_dead=True)
    with _patched(faults, NEEDS_ROOM):
        yield faults


@contextmanager
def _patched(faults: Faults, names: tuple[str, ...]) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # What a power cut keeps is not simulated, so the waiting for the disk can be left out.
        patch.setattr(os, "fsync", lambda _descriptor: None)  # type: ignore[misc]
        for name in names:
            real = getattr(os, name)
            wrapper = {"write": _write, "open": _open}.get(name, _call)
            patch.setattr(os, name, wrapper(faults, real))
        yield


def _call(faults: Faults, real: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if faults.is_due():
            raise faults.strike()
        return real(*arguments, **options)

    return wrapped


def _open(faults: Faults, real: Callable[..., int]) -> Callable[..., int]:
    def wrapped(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        makes_a_name = bool(flags & os.O_CREAT) and not os.path.exists(path)  # noqa: PTH110
        if makes_a_name and faults.is_due():
            raise faults.strike()
        return real(path, flags, *arguments, **options)

    return wrapped


def _write(faults: Faults, real: Callable[..., int]) -> Callable[..., int]:
    def wrapped(descriptor: int, data: Any) -> int:
        if not faults.is_due():
            return real(descriptor, data)
        if not faults.happened:
            real(descriptor, bytes(data)[: len(data) // 2])
        raise faults.strike()

    return wrapped
