"""The disk is full, fails, or takes less than it was given: that is told, and what was acknowledged stays."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.harness import IDENTITY, Place
from holdfast.base.errors import HoldfastError
from holdfast.journal import log
from soak import repeated

CALLS = (
    *("mkdir", "rename", "replace", "unlink", "link", "ftruncate", "write", "open", "fsync", "fdatasync"),
    *("pread", "read", "fstat"),
)


class Failing:
    """The `at`-th call that concerns the folder fails; all before and after work."""

    def __init__(self, root: Path, at: int, error: int) -> None:
        self.calls, self._root, self._at, self._error = 0, str(root), at, error
        self._ours: set[int] = set()

    def wrapped(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(first: Any, *rest: Any, **options: Any) -> Any:
            if not self._concerns(first):
                return real(first, *rest, **options)
            self.calls += 1
            if self.calls == self._at:
                if name == "write":
                    short = real(first, bytes(rest[0])[: max(1, len(rest[0]) // 2)])
                    if not self._error:
                        return short
                if self._error:
                    raise OSError(self._error, os.strerror(self._error), str(first))
            done = real(first, *rest, **options)
            if name == "open":
                self._ours.add(done)
            return done

        return call

    def _concerns(self, first: Any) -> bool:
        return first in self._ours if isinstance(first, int) else os.fsdecode(first).startswith(self._root)


@contextmanager
def failing(root: Path, at: int, error: int) -> Generator[Failing]:
    faults = Failing(root, at, error)
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, faults.wrapped(name))
        patch.setattr(log, "_sync_data", os.fdatasync)
        yield faults


@pytest.fixture(autouse=True)
def nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)


def wind_down(place: Place) -> list[str]:
    """What was acknowledged; an error is told as one of ours."""
    done: list[str] = []
    steps: dict[str, Callable[[], object]] = {
        "started": lambda: place.manager().start_incremental_pause(0.9, {}),
        "first": lambda: place.manager().append_action("tool_call", {"tool": "first"}, 0.91),
        "second": lambda: place.manager().append_action("tool_call", {"tool": "second"}, 0.91),
        "paused": lambda: place.manager().finalize_pause(),
    }
    for name, step in steps.items():
        try:
            result = step()
        except HoldfastError:
            continue
        done += [name] if name != "paused" or result else []
    return done


@pytest.mark.some_of("error")
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, 0], ids=["full", "broken", "short write"])
def test_a_wind_down(tmp_path: Path, error: int) -> None:
    (tmp_path / "none").mkdir()
    with failing(tmp_path, 0, error) as faults:
        assert len(wind_down(Place(tmp_path / "none"))) == 4
    for at in random.sample(range(1, faults.calls), min(faults.calls - 1, repeated(100, least=2))):
        (tmp_path / str(at)).mkdir()
        place = Place(tmp_path / str(at))
        with failing(place.root, at, error):
            done = wind_down(place)
        told = {"started"} if place.sessions.is_dir() and any(place.sessions.iterdir()) else set[str]()
        for path in (place.journal, *place.sessions.glob("*-incremental.jsonl")):
            if path.exists():
                told |= {action.data["tool"] for action in log.Reader(path) if action.type == "tool_call"}
        told |= {"paused"} if place.latest() else set()
        assert set(done) <= told, (at, done, told)
        if place.manager().is_pause_active():
            place.manager().finalize_pause()
        assert set(wind_down(place)) == {"started", "first", "second", "paused"}, at
