"""Waiting for something slow, and never longer than was said.

A coroutine that may block, hang or refuse to be cancelled runs on a thread and an event
loop of its own, so that whoever waits for it can simply stop waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from typing import Any, Generic, ParamSpec, TypeVar

_T = TypeVar("_T")
_P = ParamSpec("_P")

# How long something that was cancelled may take to close its connections, before it is left to itself.
_GRACE = 0.5


class OwnThread(Generic[_T]):
    """A coroutine running on a daemon thread with its own event loop, from the start.

    To wait for it gives its result, or none if it has none in time.
    """

    def __init__(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(_DaemonThreads())
        self._task = self._loop.create_task(work())
        self._result: Future[_T] = Future()
        self._thread = threading.Thread(target=self._run, name="holdfast-model", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # The loop runs until the task has ended, also after it was cancelled: a loop that stops earlier
        # leaves coroutines behind that were never started, and Python warns of each on the terminal.
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            try:
                self._result.set_result(runner.get_loop().run_until_complete(self._task))
            except asyncio.CancelledError:
                self._result.cancel()
                self._result.set_running_or_notify_cancel()  # only now is whoever waits woken
            except BaseException as error:  # noqa: BLE001 - whoever waits for the result is told
                self._result.set_exception(error)

    def wait(self, deadline: float) -> _T | None:
        done, _ = wait_for_futures([self._result], _left(deadline))
        if done:
            return None if self._result.cancelled() else self._result.result()
        self.cancel()
        self._thread.join(_GRACE)
        return None

    async def wait_async(self, deadline: float) -> _T | None:
        result = asyncio.wrap_future(self._result)
        await asyncio.wait({result}, timeout=_left(deadline))
        if result.done():
            return None if result.cancelled() else result.result()
        self.cancel()
        await asyncio.to_thread(self._thread.join, _GRACE)
        return None

    def cancel(self) -> None:
        """Ask it to end; nothing happens if it has."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._task.cancel)


class ThisLoop(Generic[_T]):
    """The same for a coroutine that must run on the caller's loop: it can be left, unless it blocks."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        self._task = asyncio.ensure_future(work())

    async def wait_async(self, deadline: float) -> _T | None:
        # Not `wait_for`: that waits for the cancelled one to end, which is what may never happen.
        await asyncio.wait({self._task}, timeout=_left(deadline))
        if self._task.done():
            return None if self._task.cancelled() else self._task.result()
        self.cancel()
        await asyncio.wait({self._task}, timeout=_GRACE)
        if self._task.done() and not self._task.cancelled():
            self._task.exception()  # looked at, so that asyncio does not report it as overlooked
        return None

    def cancel(self) -> None:
        self._task.cancel()


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


class _DaemonThreads(ThreadPoolExecutor):
    """Threads that nobody waits for.

    The interpreter joins the threads of an ordinary pool when it exits, and the event
    loop when it closes; a look-up of a host name in one of them can hang for minutes.
    """

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - the thread ends here; the future tells
                with contextlib.suppress(Exception):
                    future.set_exception(error)

        threading.Thread(target=run, name="holdfast-model-io", daemon=True).start()
        return future
