"""What every route needs at hand, made once when the server starts; and answers that are still true."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from fastapi import Depends
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from holdfast.base.clock import Clock, system_clock, to_datetime
from holdfast.base.errors import HoldfastError
from holdfast.journal.usage import RecordedUsage
from holdfast.model.git import decode_path
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.statuses import Lease
from holdfast.model.task import TaskDAG
from holdfast.model.usage import UsageMetrics
from holdfast.model.workflow import Workflow
from holdfast.project.layout import ProjectLayout
from holdfast.project.settings import Settings
from holdfast.server.feed import EventFeed
from holdfast.sessions.contexts import usage_in
from holdfast.sessions.pause import known_projects
from holdfast.store.protocol import snapshot_not_found
from holdfast.store.sql import SqlStore
from holdfast.transcripts.discover import FoundSession
from holdfast.workflows.lease import HeldLease, is_dead, is_gone, start_worker
from holdfast.workflows.service import OrchestratorService

# ── cached answers ────────────────────────────────────────────────────────────────────────────────

# Answers that are still true: what was read is told again for as long as nothing was written.
#
# SQLite says at the cost of a glance whether anybody has committed anything since; where a
# database cannot (PostgreSQL), every answer is read anew.

_MOST_COPIES = 256
_LARGEST_COPY = 256 << 10


class ResponseCache:
    """Used in the event loop's thread only."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, bytes], tuple[int, bytes]] = OrderedDict()

    async def answer(self, request: Request, make: Callable[[], BaseModel]) -> Response:
        """`make` is called in another thread, where no copy will do."""
        key = (request.scope["path"], request.scope["query_string"])
        mark = self._store.change_mark()  # before reading: a copy may be newer than its mark, never older
        known = self._kept.get(key)
        if known is not None and known[0] == mark:
            return _tagged(request, known[1])
        document = await run_in_threadpool(lambda: make().model_dump_json().encode())
        if mark is not None and len(document) <= _LARGEST_COPY:
            self._kept[key] = (mark, document)
            self._kept.move_to_end(key)
            if len(self._kept) > _MOST_COPIES:
                self._kept.popitem(last=False)
        return _tagged(request, document)


def _tagged(request: Request, document: bytes) -> Response:
    """Whoever has it already is told so instead."""
    tag = f'"{sha256(document).hexdigest()[:32]}"'
    known = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
    if tag in known:
        return Response(status_code=304, headers={"etag": tag})
    return Response(document, media_type="application/json", headers={"etag": tag})


# ── what routes need ──────────────────────────────────────────────────────────────────────────────

_KEPT_STANDINGS = 512
_KEPT_OUTLINES = 50_000
_KEPT_USAGES = 512
_LONGEST_RECORD = 128 << 20
"""Bytes: some two seconds of reading."""


@dataclass(frozen=True)
class Standing:
    """Where the tasks of a workflow are, at one of its revisions."""

    tasks: TaskDAG
    current_task_id: str | None
    usage: UsageMetrics


class Outline(NamedTuple):
    """So little of a standing that it is kept of every workflow that is open."""

    has_tasks: bool
    has_failed: bool


class AppState:
    def __init__(
        self,
        settings: Settings,
        service: OrchestratorService,
        feed: EventFeed,
        *,
        home: Path,
        environ: Mapping[str, str],
        workers: Workers,
    ) -> None:
        self.settings, self.service, self.feed = settings, service, feed
        self.store = service.store
        self.home, self.environ = home, environ
        """Where agents keep their sessions."""
        self.workers = workers
        self.copies = ResponseCache(self.store)
        self._standings: OrderedDict[tuple[str, int], Standing] = OrderedDict()
        self._outlines: OrderedDict[tuple[str, int], Outline] = OrderedDict()
        self._usages: OrderedDict[FoundSession, RecordedUsage | None] = OrderedDict()
        self._lock = threading.Lock()

    def standing(self, workflow: Workflow) -> Standing:
        """Folded once a revision: every event of a workflow makes a new one."""
        key = (workflow.id, workflow.revision)
        with self._lock:
            known = self._standings.get(key)
        if known is None:
            fold = self.service.core.fold(workflow)
            known = Standing(fold.tasks(), fold.current_task_id, fold.usage)
            with self._lock:
                self._standings[key] = known
                while len(self._standings) > _KEPT_STANDINGS:
                    self._standings.popitem(last=False)
        return known

    def outline(self, workflow: Workflow) -> Outline:
        key = (workflow.id, workflow.revision)
        with self._lock:
            known = self._outlines.get(key)
        if known is None:
            tasks = self.standing(workflow).tasks
            known = Outline(bool(tasks.tasks), tasks.count("failed") > 0)
            with self._lock:
                self._outlines[key] = known
                while len(self._outlines) > _KEPT_OUTLINES:
                    self._outlines.popitem(last=False)
        return known

    def usage_of(self, session: FoundSession) -> RecordedUsage | None:
        """Read once, until the agent writes on. None where the record is too long or cannot be read."""
        with self._lock:
            if session in self._usages:
                return self._usages[session]
        used = None
        if (session.size or 0) <= _LONGEST_RECORD:
            with contextlib.suppress(HoldfastError):
                used = usage_in(session.path, session.agent, session.session_id, self.settings.prices)
        with self._lock:
            self._usages[session] = used
            while len(self._usages) > _KEPT_USAGES:
                self._usages.popitem(last=False)
        return used

    def snapshot_of(self, workflow_id: str, snapshot_id: str) -> SessionSnapshot:
        """Only where it is one of that workflow."""
        snapshot = self.store.snapshot(snapshot_id)
        if snapshot.workflow_id != workflow_id:
            raise snapshot_not_found(snapshot_id)
        return snapshot

    def layout_of(self, workflow: Workflow) -> ProjectLayout:
        return ProjectLayout(Path(os.fsdecode(decode_path(workflow.worktree))), self.settings.home)

    def projects(self) -> list[Path]:
        return sorted({self.settings.project, *known_projects(self.settings)})

    def see_to_it(self) -> None:
        """Something was queued: have it run."""
        self.workers.ensure()


class Workers:
    """Starts a worker where work waits and nobody is there to take it up.

    Its own lease says that somebody will: what is queued is not taken for forgotten.
    """

    def __init__(
        self, service: OrchestratorService, *, starts_any: bool, clock: Clock = system_clock
    ) -> None:
        self._service, self._starts_any, self._clock = service, starts_any, clock
        self._lock = threading.Lock()
        self._started: subprocess.Popen[bytes] | None = None
        self._presence = HeldLease(service.store.leases, "server")

    def __enter__(self) -> Self:
        if self._starts_any:
            self._presence.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """What was started goes on with what it has and ends by itself."""
        if self._starts_any:
            self._presence.__exit__()
        with self._lock:
            if self._started is not None and self._started.poll() is None:
                self._started.returncode = 0  # not ours to wait for any more
            self._started = None

    def present(self) -> list[Lease]:
        """Those that run work themselves."""
        return [
            lease
            for lease in self._service.store.leases.all()
            if lease.kind == "worker" and not is_dead(lease)
        ]

    def ensure(self) -> None:
        if not self._starts_any:
            return
        with self._lock:
            if self._started is not None and self._started.poll() is None:
                return  # it ends only when nothing is left to do
            self._started = None
            if self._work_waits() and not self.present():
                self._started = start_worker(self._service.settings)

    def _work_waits(self) -> bool:
        store = self._service.store
        if store.queued(limit=1) or store.due(to_datetime(self._clock()), limit=1):
            return True
        claims = [flow.claim for flow in store.claimed() if flow.claim and flow.claim.startswith("worker-")]
        leases = store.leases.all() if claims else ()
        return any(is_gone(claim, leases) for claim in claims)


async def _desk(connection: HTTPConnection) -> AppState:
    return connection.app.state.desk


AtDesk = Annotated[AppState, Depends(_desk)]
