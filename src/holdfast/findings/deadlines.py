"""Waiting for something slow, and never longer than was said.

A coroutine that may block, hang or refuse to be cancelled runs on a thread and an event
loop of its own, so that whoever waits for it can simply stop waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from functools import partial
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
        self._work = work
        self._result: Future[_T] = Future()
        self._lock = threading.Lock()
        self._cancelled = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(self._run,), name="holdfast-model", daemon=True).start()

    def wait(self, deadline: float) -> _T | None:
        done, _ = wait_for_futures([self._result], _left(deadline))
        if done:
            return None if self._result.cancelled() else self._result.result()
        self.cancel()
        wait_for_futures([self._result], _GRACE)
        return None

    async def wait_async(self, deadline: float) -> _T | None:
        return await _wait(asyncio.wrap_future(self._result), deadline, self.cancel)

    def cancel(self) -> None:
        """Ask it to end; nothing happens if it has."""
        with self._lock:
            self._cancelled = True
            if self._running is not None and not self._result.done():
                loop, task = self._running
                loop.call_soon_threadsafe(task.cancel)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            self._settle(self._give_up)
        except BaseException as error:  # noqa: BLE001 - the thread ends here; whoever waits is told
            self._settle(partial(self._result.set_exception, error))

    async def _main(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(_DaemonThreads())
        task = asyncio.ensure_future(self._work())
        with self._lock:
            self._running = (loop, task)
            if self._cancelled:
                task.cancel()
        value = await task
        # Said before the loop closes, which may wait for what the work left behind.
        self._settle(partial(self._result.set_result, value))

    def _give_up(self) -> None:
        self._result.cancel()
        self._result.set_running_or_notify_cancel()  # only this wakes a thread that waits

    def _settle(self, settle: Callable[[], object]) -> None:
        with self._lock:
            self._running = None  # its loop is about to close
            if not self._result.done():
                settle()


class ThisLoop(Generic[_T]):
    """The same for a coroutine that must run on the caller's loop: it can be left, unless it blocks."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        self._task = asyncio.ensure_future(work())

    async def wait_async(self, deadline: float) -> _T | None:
        return await _wait(self._task, deadline, self.cancel)

    def cancel(self) -> None:
        self._task.cancel()


async def _wait(result: asyncio.Future[_T], deadline: float, cancel: Callable[[], object]) -> _T | None:
    # Not `wait_for`: that waits for the cancelled one to end, which is what may never happen.
    await asyncio.wait({result}, timeout=_left(deadline))
    if result.done():
        return None if result.cancelled() else result.result()
    cancel()
    await asyncio.wait({result}, timeout=_GRACE)
    if result.done() and not result.cancelled():
        result.exception()  # looked at, so that asyncio does not report it as overlooked
    return None


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
