"""One connection to a server, and the reading half of a store over it. Standard library only."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from pydantic import TypeAdapter

from holdfast.base.errors import (
    CannotDoError,
    HoldfastError,
    InvalidInputError,
    StorageError,
    kinds,
)
from holdfast.model.entry import Entry, Event
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.workflow import Workflow, WorkflowStatus
from holdfast.project.settings import Settings
from holdfast.store.protocol import Change, SnapshotSummary

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
        before: tuple[datetime, str] | None = None,
    ) -> Sequence[Workflow]:
        if before is not None:
            raise CannotDoError("a server's pages require its own cursors")
        if statuses is not None and not statuses:
            return []
        pages = self._pages(
            limit, worktree=worktree, status=sorted(statuses) if statuses is not None else None, search=search
        )
        return [Workflow.model_validate(one) for one in pages]

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
