"""Notices to wherever the user wants them, through apprise. Off unless `notify` is set.

Sent after the commit they tell of, from a thread of their own: a service that is slow or away
holds nothing up and costs only its notice.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from typing import Protocol, cast

from holdfast.base.errors import require_installed
from holdfast.base.redact import redact
from holdfast.model.entry import Entry, WorkflowPaused, WorkflowStatusChanged
from holdfast.model.usage import UsageMetrics
from holdfast.workflows.runner_context import Listener

log = logging.getLogger("holdfast.notices")

_LAST_WORDS_SECONDS = 5.0


class Notices:
    """A listener that tells of pauses and ends, and passes everything on."""

    def __init__(self, urls: Sequence[str], then: Listener) -> None:
        self._urls, self.then = tuple(urls), then
        self._waiting: queue.SimpleQueue[tuple[str, str] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send_all, name="holdfast-notices", daemon=True)
        if self._urls:
            _apprise()  # a missing package is said at once, not when the first notice is due
            self._thread.start()

    def __call__(self, workflow_id: str, what: Entry | UsageMetrics | str) -> None:
        told = _told(workflow_id, what)
        if told is not None and self._urls:
            self._waiting.put(told)
        self.then(workflow_id, what)

    def close(self) -> None:
        """Give what is under way a moment."""
        if self._urls:
            self._waiting.put(None)
            self._thread.join(_LAST_WORDS_SECONDS)

    def _send_all(self) -> None:
        sender = _apprise()
        for number, url in enumerate(self._urls, start=1):
            if not sender.add(url):
                log.warning("address %d of `notify` is not a valid apprise URL", number)
        while (notice := self._waiting.get()) is not None:
            title, body = notice
            try:
                if not sender.notify(title=title, body=body):
                    log.warning("a notification was not delivered: %s", title)
            except Exception as error:  # noqa: BLE001 - a hundred services, each with its own ways to fail
                log.warning("a notification was not delivered: %s", type(error).__name__)


class _Sender(Protocol):
    """The part of apprise we use."""

    def add(self, services: str) -> bool: ...

    def notify(self, body: str, title: str = "") -> object: ...


def _apprise() -> _Sender:
    require_installed("the setting `notify`", "apprise")
    import apprise

    return cast("_Sender", apprise.Apprise())


def _told(workflow_id: str, what: Entry | UsageMetrics | str) -> tuple[str, str] | None:
    if isinstance(what, WorkflowPaused) and what.trigger != "failure":
        body = f"{what.reason or what.trigger}\nResume with: holdfast resume {workflow_id}"
        return f"Workflow {workflow_id} paused", redact(body)[0]
    if isinstance(what, WorkflowStatusChanged) and what.status == "failed":
        body = f"{what.reason or what.status}\nTry again with: holdfast retry --workflow {workflow_id}"
        return f"Workflow {workflow_id} failed", redact(body)[0]
    if isinstance(what, WorkflowStatusChanged) and what.status in ("completed", "blocked"):
        return f"Workflow {workflow_id} {what.status}", redact(what.reason or what.status)[0]
    return None
