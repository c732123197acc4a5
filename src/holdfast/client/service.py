"""`OrchestratorService` over HTTP: the connection, the reading half of a store, the verbs.

The connection needs the standard library only.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

from pydantic import TypeAdapter

from holdfast.base.errors import (
    CannotDoError,
    HoldfastError,
    IllegalTransitionError,
    InvalidInputError,
    StorageError,
    kinds,
)
from holdfast.model.entry import Entry, Event, UsageReported
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import Task, TaskDAG
from holdfast.model.usage import ModelCall, UsageMetrics
from holdfast.model.workflow import Workflow, WorkflowOptions, WorkflowStatus
from holdfast.project.settings import Settings
from holdfast.sessions.standing import JournalStats
from holdfast.store.protocol import Change, SnapshotSummary
from holdfast.workflows.experience import DriverRecord
from holdfast.workflows.plan import TASK_KEYS, Plan
from holdfast.workflows.service import Resumed, WorkflowService, check_resumable
from holdfast.workflows.task_log import TaskOutput

# ── the connection ────────────────────────────────────────────────────────────────────────────────

_SECONDS = 90.0
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ServerConnection:
    """Opened with the first request; several threads take turns."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise InvalidInputError(f"{url} is not a server address", hint="--server http://127.0.0.1:8421")
        self._turn = threading.Lock()
        self._url, self._token = f"{parts.scheme}://{parts.netloc}", token
        self._connection = (
            http.client.HTTPSConnection(
                parts.hostname, port, timeout=_SECONDS, context=ssl.create_default_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname, port, timeout=_SECONDS)
        )

    def close(self) -> None:
        self._connection.close()

    def get(self, *path: str, **query: Any) -> Any:
        given = {name: value for name, value in query.items() if value is not None}
        return self._ask("GET", _address(path) + (f"?{urlencode(given, doseq=True)}" if given else ""))

    def post(self, *path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self._ask("POST", _address(path), body or {})

    def delete(self, *path: str) -> Any:
        return self._ask("DELETE", _address(path))

    def _ask(self, method: str, address: str, body: Mapping[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        with self._turn:
            status, answer = self._exchange(method, address, data, headers)
        if status >= 400:
            raise _error(status, answer, self._url)
        return answer

    def _exchange(
        self, method: str, address: str, data: bytes | None, headers: dict[str, str]
    ) -> tuple[int, Any]:
        # A server that was started anew has closed the connection we kept: a question is asked once more.
        attempts = 2 if self._connection.sock is not None and method == "GET" else 1
        for attempt in range(1, attempts + 1):
            try:
                self._connection.request(method, address, data, headers)
                response = self._connection.getresponse()
                return response.status, json.loads(response.read())
            except ssl.SSLCertVerificationError as error:
                raise CannotDoError(
                    f"the certificate of {self._url} is not trusted: {error.verify_message}",
                    hint="set SSL_CERT_FILE to the CA certificate that signed it",
                ) from None
            except ValueError:
                raise CannotDoError(f"no Holdfast server at {self._url}") from None
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if attempt == attempts:
                    raise StorageError(
                        f"the server at {self._url} cannot be reached: {error}",
                        hint="start it with `holdfast serve`, or omit --server",
                    ) from None
        raise AssertionError("unreachable")


def connection_for(settings: Settings) -> ServerConnection:
    """With the token that is set, or the one of this machine's own server."""
    url = settings.server or ""
    token = settings.server_token
    if token is None:
        if (urlsplit(url).hostname or "") not in _LOOPBACK:
            raise InvalidInputError(
                f"no token for {url}", hint="set HOLDFAST_SERVER_TOKEN to that server's token"
            )
        from holdfast.project.server_token import read_token

        token = read_token(settings.home)
    return ServerConnection(url, token)


def _address(path: tuple[str, ...]) -> str:
    return "/api/" + "/".join(quote(part, safe="") for part in path)


def _error(status: int, answer: Any, url: str) -> HoldfastError:
    try:
        told = answer["error"]
        code, message, hint = told["code"], told["message"], told["hint"]
    except (KeyError, TypeError):
        return CannotDoError(f"no Holdfast server at {url} (status {status})")
    if code == "unauthorised":
        return InvalidInputError(f"{url}: {message}", hint="set HOLDFAST_SERVER_TOKEN to its token")
    return kinds().get(code, CannotDoError)(message, hint=hint)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────

# The reading half of a store, over HTTP: commands that look at things need not know where they are.

_LARGEST_PAGE = 500
_LARGEST_EVENT_PAGE = 2_000
_summaries: TypeAdapter[list[SnapshotSummary]] = TypeAdapter(list[SnapshotSummary])


class RemoteStore:
    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    def apply(self, change: Change) -> Sequence[Event]:
        raise CannotDoError(
            f"workflow {change.workflow.id} is managed by a server; this command only works on a local "
            "database",
            hint="run it without --server",
        )

    def workflow(self, workflow_id: str) -> Workflow:
        return Workflow.model_validate(self._connection.get("workflows", workflow_id))

    def originals(self, workflow_id: str) -> Mapping[str, str]:  # noqa: ARG002
        raise _servers_own("original values")

    def workflows(
        self,
        *,
        worktree: str | None = None,
        statuses: Collection[WorkflowStatus] | None = None,
        limit: int = 100,
        search: str | None = None,
    ) -> Sequence[Workflow]:
        if statuses is not None and not statuses:
            return []
        pages = self._pages(
            limit, worktree=worktree, status=sorted(statuses) if statuses is not None else None, search=search
        )
        return [Workflow.model_validate(one) for one in pages]

    def workflow_page(
        self,
        *,
        worktree: str | None = None,  # noqa: ARG002
        statuses: Collection[WorkflowStatus] | None = None,  # noqa: ARG002
        limit: int = 100,  # noqa: ARG002
        search: str | None = None,  # noqa: ARG002
        before: int | None = None,  # noqa: ARG002
    ) -> tuple[Sequence[Workflow], int | None]:
        raise _servers_own("positions of pages")

    def _pages(self, limit: int, **question: Any) -> Iterator[Any]:
        cursor: str | None = None
        while limit > 0:
            page = self._connection.get(
                "workflows", **question, limit=min(limit, _LARGEST_PAGE), cursor=cursor
            )
            yield from page["workflows"]
            limit -= len(page["workflows"])
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def is_abandoned(self, workflow_id: str) -> bool:
        return self._connection.get("workflows", workflow_id, "progress")["abandoned"]

    def queued(self, limit: int = 100) -> Sequence[Workflow]:  # noqa: ARG002
        raise _servers_own("queued workflows")

    def due(self, now: datetime, limit: int = 100) -> Sequence[Workflow]:  # noqa: ARG002
        raise _servers_own("due workflows")

    def snapshot(self, snapshot_id: str) -> SessionSnapshot:
        return SessionSnapshot.model_validate(self._connection.get("snapshots", snapshot_id))

    def latest_snapshot(self, workflow_id: str) -> SessionSnapshot | None:
        lines = self.snapshots(workflow_id)
        latest = max(lines, key=lambda line: (line.created_at, line.session_number), default=None)
        return self.snapshot(latest.id) if latest else None

    def snapshots(self, workflow_id: str) -> Sequence[SnapshotSummary]:
        found = self._connection.get("workflows", workflow_id, "snapshots")["snapshots"]
        return _summaries.validate_python(found)

    def find_snapshots(self, name: str) -> Sequence[SnapshotSummary]:
        return _summaries.validate_python(self._connection.get("snapshots", name=name)["snapshots"])

    def delete_snapshot(self, line: SnapshotSummary) -> None:
        self._connection.delete("workflows", line.workflow_id, "snapshots", line.id)

    def journal(self, snapshot: SessionSnapshot) -> list[str]:
        """The recorded actions of the wind-down behind a snapshot, as JSON."""
        path = ("workflows", snapshot.workflow_id, "snapshots", snapshot.id, "journal")
        actions = self._connection.get(*path, limit=10_000)["actions"]
        return [json.dumps(action, ensure_ascii=False, separators=(",", ":")) for action in actions]

    def events(
        self,
        *,
        workflow_id: str | None = None,
        since: int = 0,
        limit: int | None = None,
        types: Collection[str] | None = None,
    ) -> Sequence[Event]:
        path = ("workflows", workflow_id, "events") if workflow_id is not None else ("events",)
        found: list[Event] = []
        position: int | None = since
        while position is not None and (limit is None or len(found) < limit):
            page = self._connection.get(*path, since=position, limit=_LARGEST_EVENT_PAGE)
            found += [Event.model_validate(one) for one in page["events"]]
            position = page["next_since"]
        return [event for event in found if types is None or event.entry.type in types][:limit]

    def recent_entries(self, kind: str, limit: int) -> Sequence[Entry]:  # noqa: ARG002
        raise _servers_own(f"all {kind} entries")

    def event_range(self) -> tuple[int, int]:
        page = self._connection.get("events", limit=1)
        return page["oldest"], page["newest"]

    def close(self) -> None:
        self._connection.close()


def _servers_own(what: str) -> CannotDoError:
    return CannotDoError(f"not available through a server: {what}", hint="the server's workers handle it")


# ── the service ───────────────────────────────────────────────────────────────────────────────────

_POLL_SECONDS = 0.2
_WAIT_SECONDS = 30.0

_journal_stats: TypeAdapter[JournalStats] = TypeAdapter(JournalStats)


class RemoteService(WorkflowService[RemoteStore]):
    """`claim` is taken where the embedded service takes one, and means nothing: workers run it there."""

    poll_seconds = _POLL_SECONDS

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._connection = connection_for(settings)
        self.store = RemoteStore(self._connection)

    def close(self) -> None:
        self._connection.close()

    # ── verbs ───────────────────────────────────────────────────────────────────────────────

    def start(self, plan: Plan, worktree: Path | None = None, *, claim: str | None = None) -> Workflow:  # noqa: ARG002
        folder = (worktree or self.settings.project).resolve()
        body = {"plan": _document(plan, self._options(plan)), "worktree": str(folder)}
        return Workflow.model_validate(self._connection.post("workflows", body=body))

    def _options(self, plan: Plan) -> WorkflowOptions:
        """Where the user here has set no limit, the server's settings decide."""
        here = self.settings
        return plan.options.pausing_at(here.exhaustion_at) if here.auto_pause_given else plan.options

    def pause_workflow(
        self,
        workflow_id: str,
        reason: str | None = None,
        *,
        force_after: float | None = None,
        wait: bool = True,
    ) -> str | None:
        answer = self._act(
            workflow_id,
            "pause",
            reason=reason,
            force_after=force_after,
            wait_seconds=_WAIT_SECONDS if wait else 0,
        )
        if answer["status"] == "paused" or not wait:
            return answer["snapshot_id"]
        return self._snapshot_of_pause(self.workflow(workflow_id), force_after)

    def resume_workflow(
        self,
        workflow_id: str,
        *,
        snapshot_id: str | None = None,
        message: str | None = None,
        strict: bool = False,
        claim: str | None = None,  # noqa: ARG002
        accept_commands: bool = False,
        accept_undone: bool = False,
    ) -> Resumed:
        _refuse_to_accept(workflow_id, accept_commands)
        wanted = {"snapshot_id": snapshot_id, "message": message, "strict": strict}
        if accept_undone:  # an older server does not know it
            wanted["accept_undone"] = True
        return self._resumed(workflow_id, self._act(workflow_id, "resume", **wanted))

    def _resumed(self, workflow_id: str, answer: Any) -> Resumed:
        used = answer["snapshot_id"]
        before = answer.get("taken_up_before")
        return Resumed(
            self.workflow(workflow_id),
            self.store.snapshot(used) if used else None,
            tuple(answer["drift"]),
            answer["drift_state"],
            is_handover=answer["status"] == "taken_up",
            taken_up_before=datetime.fromisoformat(before) if before else None,
        )

    def retry(
        self,
        workflow_id: str,
        task_id: str | None = None,
        *,
        message: str | None = None,
        claim: str | None = None,  # noqa: ARG002
    ) -> Resumed:
        return self._resumed(workflow_id, self._act(workflow_id, "retry", task_id=task_id, message=message))

    def skip(
        self,
        workflow_id: str,
        task_id: str,
        reason: str | None = None,
        *,
        claim: str | None = None,  # noqa: ARG002
    ) -> Workflow:
        self._act(workflow_id, "skip", task_id=task_id, reason=reason)
        return self.workflow(workflow_id)

    def fork(
        self,
        workflow_id: str,
        task_id: str | None = None,
        *,
        snapshot_id: str | None = None,
        worktree: Path | None = None,
        accept_commands: bool = False,
    ) -> Workflow:
        _refuse_to_accept(workflow_id, accept_commands)
        folder = str(worktree.resolve()) if worktree else None
        given = {"task_id": task_id, "snapshot_id": snapshot_id, "worktree": folder}
        return Workflow.model_validate(self._act(workflow_id, "fork", **given))

    def resumable(self, workflow_id: str) -> Workflow:
        """The workflow, if it can be resumed; what crashed the server pauses when it resumes it."""
        workflow = self.workflow(workflow_id)
        if not self.is_abandoned(workflow):
            check_resumable(workflow)
        return workflow

    def cancel(self, workflow_id: str, reason: str | None = None) -> Workflow:
        self._act(workflow_id, "cancel", reason=reason)
        return self.workflow(workflow_id)

    def approve(self, workflow_id: str, *, claim: str | None = None) -> Workflow:  # noqa: ARG002
        self._act(workflow_id, "approve")
        return self.workflow(workflow_id)

    def reject(self, workflow_id: str, reason: str | None = None) -> Workflow:
        self._act(workflow_id, "reject", reason=reason)
        return self.workflow(workflow_id)

    def recovered(self, workflow_id: str) -> Workflow:
        """As it is: what was left behind is seen to by the server, when it is resumed."""
        return self.workflow(workflow_id)

    def _act(self, workflow_id: str, verb: str, **given: Any) -> Any:
        body = {name: value for name, value in given.items() if value is not None}
        return self._connection.post("workflows", workflow_id, verb, body=body)

    # ── questions ───────────────────────────────────────────────────────────────────────────

    def tasks(self, workflow_id: str) -> TaskDAG:
        return TaskDAG.model_validate(
            {"tasks": self._connection.get("workflows", workflow_id, "tasks")["tasks"]}
        )

    def task_output(
        self, workflow_id: str, task_id: str, *, attempt: int | None = None, since: int = 0
    ) -> TaskOutput:
        asked = {"task_id": task_id, "since": since, **({"attempt": attempt} if attempt else {})}
        return TaskOutput(**self._connection.get("workflows", workflow_id, "output", **asked))

    def waiting_for_approval(self, workflow: Workflow) -> Task | None:
        waiting = self._progress(workflow.id)["waiting_for_approval"]
        return self.tasks(workflow.id).by_id[waiting] if waiting else None

    def is_abandoned(self, workflow: Workflow) -> bool:
        return self.store.is_abandoned(workflow.id)

    def has_workers(self) -> bool:
        return self._connection.get("health")["workers"] > 0

    def journal_stats(self) -> JournalStats:
        """Of the server's own project."""
        told = self._connection.get("stats")
        del told["project"]
        return _journal_stats.validate_python(told)

    def workflow_stats(self) -> tuple[Sequence[DriverRecord], dict[str, int]]:
        """How tasks went, by driver; and what ended sessions."""
        told = self._connection.get("stats", "workflows")
        return [DriverRecord(**one) for one in told["drivers"]], told["pauses"]

    def _progress(self, workflow_id: str) -> Any:
        return self._connection.get("workflows", workflow_id, "progress")


def _refuse_to_accept(workflow_id: str, accept_commands: bool) -> None:
    if accept_commands:
        raise CannotDoError(
            "commands that came from elsewhere are confirmed on the server's own machine",
            hint=f"run `holdfast resume {workflow_id} --accept-commands` there",
        )


def _document(plan: Plan, options: WorkflowOptions) -> dict[str, Any]:
    return {
        "issue": plan.issue.model_dump(),
        "tasks": [task.model_dump(mode="json", include=set(TASK_KEYS)) for task in plan.tasks.tasks],
        "constraints": list(plan.constraints),
        **options.model_dump(exclude_none=True, exclude_unset=True),
    }


class There:
    """What `Here` is for this process: a session that a server's worker runs, followed to its end."""

    claim = None

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.quit = threading.Event()
        """Set it to cut off what runs."""
        self.resting = threading.Event()
        self._listener: Callable[[str, Entry | UsageMetrics | ModelCall | str], None] | None = None

    def __enter__(self) -> Self:
        self.service = RemoteService(self._settings)
        return self

    def __exit__(self, *_: object) -> None:
        self.service.close()

    def listen(self, listener: Callable[[str, Entry | UsageMetrics | ModelCall | str], None]) -> None:
        self._listener = listener

    def run(self, workflow: Workflow) -> Workflow:
        """Until it rests; a server that is away for a while is waited for."""
        since, cut_off = 0, False
        while True:
            try:
                if self.quit.is_set() and not cut_off:
                    cut_off = True
                    self.service.pause_workflow(workflow.id, force_after=0, wait=False)
                now = self.service.workflow(workflow.id)
                since = self._tell(workflow.id, since)
            except StorageError:
                if self.quit.is_set():
                    raise
            except IllegalTransitionError:
                continue  # it ended in the moment it was to be cut off
            else:
                if now.status != "in_progress":
                    return now
            time.sleep(_POLL_SECONDS)

    def _tell(self, workflow_id: str, since: int) -> int:
        if self._listener is None:
            return since
        for event in self.service.events(workflow_id, since):
            since = event.seq
            entry = event.entry
            self._listener(workflow_id, entry.usage if isinstance(entry, UsageReported) else entry)
        return since
