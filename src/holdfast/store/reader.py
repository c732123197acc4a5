"""Reading our SQLite file without SQLAlchemy and pydantic, for commands that only look.

Loading those takes several times as long as the answer. What is read here is what the store gives,
as the documents that its values make for JSON; `QuickStore` gives them the fields of those values, so
that one function answers from either. Whatever is not plainly what this version writes (another schema,
an older shape, PostgreSQL) is left to the store: `NotPlainError`.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Generator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, cast

from holdfast.model.statuses import IssueFacts, Lease, PlanFacts, WorkflowFacts
from holdfast.model.thresholds import DEFAULT_PRIORITY, WORKFLOW_PAUSE
from holdfast.store.sqlite import LEASE_AGE, SCHEMA_HEAD, SCHEMA_VERSION, prepare, sqlite_driver, sqlite_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.store.protocol import SnapshotSummary, Store

Document = dict[str, Any]

_WAIT_SECONDS = 1.0
"""For a lock; then the store waits as long as it usually does."""

_WORKFLOW = (
    *("id", "issue_id", "issue_title", "issue_description", "worktree", "status", "revision"),
    *("session_count", "created_at", "updated_at", "paused_at", "pause_reason", "pause_request"),
    *("commit_at_start", "options", "run_id", "claim", "resume_at"),
)
_MOMENTS = ("created_at", "updated_at", "paused_at", "resume_at")
_REQUEST = ("trigger", "reason", "requested_at", "force_after")
_OPTIONS: Document = {
    "driver": "shell",
    "parallel": 1,
    "pause_every": None,
    "timeout": None,
    "exhaustion_at": WORKFLOW_PAUSE,
    "force_after": 300.0,
    "resume_on_reset": False,
    "retries": 0,
    "retry_delay": 1.0,
    "keep_going": False,
    "priority": DEFAULT_PRIORITY,
    "repository": None,
    "branch": None,
}
"""Of a workflow, where nothing else was said. A test compares these with the values' own."""

_SNAPSHOT = (
    *("id", "workflow_id", "session_number", "session_id", "trigger", "created_at", "pause_reason"),
    *("tasks_completed", "tasks_remaining", "seq"),
)
_SNAPSHOT_BEGINS = '{"schema_version":1,'
_PACKED_TASK = 12
"""Fields of a task as `TaskDAG.packed` wrote it first; later ones stand behind them."""
_NO_TASKS = b"\x90"
_NEWEST = "ORDER BY created_at DESC, session_number DESC LIMIT 1"


class NotPlainError(Exception):
    """Left to the store."""


# Plain classes: to make one of a dataclass or a named tuple takes as long as to read the database.


class TaskLine:
    """What `status` needs of a task."""

    def __init__(
        self,
        id: str,  # noqa: A002
        status: str,
        attempts: int,
        result: str | None,
        depends_on: Sequence[str],
        approval: bool,
    ) -> None:
        self.id, self.status, self.attempts, self.result = id, status, attempts, result
        self.depends_on, self.approval = depends_on, approval

    def changed(self, **changes: Any) -> TaskLine:
        return TaskLine(**{**vars(self), **changes})


class SnapshotLine:
    """What `status` needs of a snapshot."""

    def __init__(
        self, snapshot_id: str, folded_through: int, current_task_id: str | None, tasks: Sequence[TaskLine]
    ) -> None:
        self.id, self.folded_through = snapshot_id, folded_through
        self.current_task_id, self.tasks = current_task_id, tasks


@contextlib.contextmanager
def open_reader(database: str) -> Generator[QuickReader]:
    """All that is asked within is answered from one state of the database."""
    driver = sqlite_driver()
    address = f"{sqlite_path(database).absolute().as_uri()}?mode=rw"  # never makes the file
    connection: Any = driver.connect(address, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)
    with contextlib.closing(connection):
        prepare(connection, driver, wait=_WAIT_SECONDS)
        connection.execute("BEGIN")
        if connection.execute(SCHEMA_VERSION).fetchall() != [(SCHEMA_HEAD,)]:
            raise NotPlainError
        yield QuickReader(connection)


class QuickReader:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def store(self) -> Store:
        """As far as `QuickStore` goes; what asks for more falls back to the real one."""
        return cast("Store", QuickStore(self))

    def workflows(
        self, worktree: str | None, limit: int, statuses: Collection[str] | None = None
    ) -> list[Document]:
        """Most recently changed first."""
        named = {f"status_{number}": status for number, status in enumerate(statuses or ())}
        conditions = [
            *(["worktree = :worktree"] if worktree is not None else []),
            *([f"status IN ({_placeholders(named)})"] if statuses is not None else []),
        ]
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        order = "ORDER BY last_seq DESC LIMIT :limit"
        return self._workflows(f"{where} {order}", worktree=worktree, limit=limit, **named)

    def workflow(self, workflow_id: str) -> Document:
        found = self._workflows("WHERE id = :id", id=workflow_id)
        if not found:
            raise NotPlainError
        return found[0]

    def _workflows(self, which: str, **values: Any) -> list[Document]:
        rows = self.rows(f"SELECT {', '.join(_WORKFLOW)} FROM workflows {which}", **values)  # noqa: S608 - our own names
        return [_workflow(dict(zip(_WORKFLOW, row, strict=True))) for row in rows]

    def snapshots(self, workflow_id: str) -> list[Document]:
        """In order of their session numbers, each with the fields of a `SnapshotSummary`."""
        return self._lines("workflow_id = :name ORDER BY session_number", workflow_id)

    def find_snapshots(self, name: str) -> list[Document]:
        """Those whose id begins with it, or whose session is called so; newest first."""
        order = "ORDER BY seq DESC, created_at DESC, session_number DESC, id DESC"
        return self._lines(f"substr(id, 1, length(:name)) = :name OR session_id = :name {order}", name)

    def _lines(self, which: str, name: str) -> list[Document]:
        rows = self.rows(
            f"SELECT {', '.join(_SNAPSHOT)} FROM session_snapshots WHERE {which}",  # noqa: S608 - our own words
            name=name,
        )
        return [_summary(dict(zip(_SNAPSHOT, row, strict=True))) for row in rows]

    def session_names(self, worktree: str) -> set[str]:
        """Of everything that was paused in that folder."""
        rows = self.rows(
            "SELECT session_id FROM session_snapshots "
            "WHERE workflow_id IN (SELECT id FROM workflows WHERE worktree = :worktree)",
            worktree=worktree,
        )
        return {name for (name,) in rows}

    def latest_snapshot(self, workflow_id: str) -> SnapshotLine | None:
        return self._snapshot(f"workflow_id = :id {_NEWEST}", workflow_id)

    def snapshot(self, snapshot_id: str) -> SnapshotLine:
        found = self._snapshot("id = :id", snapshot_id)
        if found is None:
            raise NotPlainError
        return found

    def _snapshot(self, which: str, name: str) -> SnapshotLine | None:
        rows = self.rows(f"SELECT id, snapshot_json, tasks FROM session_snapshots WHERE {which}", id=name)  # noqa: S608 - our own words
        if not rows:
            return None
        snapshot_id, text, packed = rows[0]
        if not text.startswith(_SNAPSHOT_BEGINS):
            raise NotPlainError
        document = json.loads(text)
        tasks = task_lines(document["task_dag"]) if packed is None else _unpacked(packed)
        return SnapshotLine(snapshot_id, document["folded_through"], document["current_task_id"], tasks)

    def entries(self, workflow_id: str, since: int) -> list[Document]:
        """Those with a sequence number above `since`, in order."""
        rows = self.rows(
            "SELECT entry_json FROM workflow_events WHERE workflow_id = :id AND seq > :since ORDER BY seq",
            id=workflow_id,
            since=since,
        )
        return [json.loads(text) for (text,) in rows]

    def printed_events(self, workflow_id: str, since: int) -> list[Document]:
        """All above `since`, as the values have them in JSON."""
        found = self.events(workflow_id, since)
        for one in found:
            _plain("entry", one["entry"])
        return found

    def events(self, workflow_id: str, since: int, types: Collection[str] | None = None) -> list[Document]:
        """Each with the fields of an `Event`."""
        named = {f"type_{number}": kind for number, kind in enumerate(types or ())}
        rows = self.rows(
            "SELECT seq, workflow_id, at, entry_json FROM workflow_events "  # noqa: S608 - our own words
            "WHERE workflow_id = :id AND seq > :since "
            f"{f'AND type IN ({_placeholders(named)})' if types is not None else ''} ORDER BY seq",
            id=workflow_id,
            since=since,
            **named,
        )
        return [
            {"seq": seq, "workflow_id": flow, "at": _moment(at), "entry": json.loads(text)}
            for seq, flow, at, text in rows
        ]

    def taken_up(self, workflow_id: str, snapshot_id: str) -> str | None:
        """When somebody last took that handover up."""
        rows = self.rows(
            "SELECT at, entry_json FROM workflow_events WHERE workflow_id = :id "
            "AND type = 'handover_taken_up' ORDER BY seq DESC",
            id=workflow_id,
        )
        return next(
            (_moment(at) for at, text in rows if json.loads(text)["snapshot_id"] == snapshot_id), None
        )

    def leases(self) -> list[Lease]:
        rows = self.rows(
            f"SELECT id, kind, host, pid, started_mark, lease_seconds, {LEASE_AGE} FROM workers"  # noqa: S608 - our own words
        )
        return [Lease(*row) for row in rows]

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()


# ── as values ─────────────────────────────────────────────────────────────────────────────────────

_TIMES = {
    "workflow": _MOMENTS,
    "pause_request": ("requested_at",),
    "snapshot": ("created_at",),
    **dict.fromkeys(("decisions", "errors", "reviewer_feedback"), ("timestamp",)),
    **dict.fromkeys(("decision", "error", "feedback"), ("timestamp",)),
    **dict.fromkeys(("test_state", "state"), ("last_test_run_at",)),
    "event": ("at",),
    "entry": ("retry_at",),
}
"""Fields that are times, by where the document stands."""

_SNAPSHOT_HOLDS = frozenset(
    (
        *("schema_version", "id", "workflow_id", "session_number", "session_id", "created_at", "trigger"),
        *("pause_reason", "task_dag", "current_task_id", "next_task_id", "git_state", "files"),
        *("folder_files", "decisions", "errors", "reviewer_feedback", "test_state", "constraints", "todos"),
        *("worked", "usage", "agent_session", "conversation", "continues", "handover", "reading"),
        *("context_edits", "closed", "work", "incremental_pause", "gathered", "fidelity", "folded_through"),
    )
)
_DECISION = (
    *("id", "timestamp", "task_id", "decision_type", "description", "rationale"),
    *("alternatives_considered", "evidence"),
)
_ERROR = (
    *("id", "timestamp", "task_id", "error_type", "error_message", "context", "resolution"),
    *("resolution_notes", "evidence"),
)
_FEEDBACK = ("review_id", "reviewer_persona", "timestamp", "approved", "severity", "comments", "addressed")
_TESTS = (
    *("phase", "failing_tests", "expected_failures", "last_test_run_at", "last_test_command"),
    "last_test_output_summary",
)
_TASK = (
    *("id", "description", "status", "depends_on", "run", "prompt", "driver", "approval", "review", "junit"),
    *("attempts", "result", "retries", "timeout", "until", "max", "outputs"),
)
_WHOLE = {
    **dict.fromkeys(("decision", "decisions"), _DECISION),
    **dict.fromkeys(("error", "errors"), _ERROR),
    "evidence": ("source", "messages", "quote"),
    **dict.fromkeys(("feedback", "reviewer_feedback"), _FEEDBACK),
    "git_state": (
        *("branch", "commit_at_workflow_start", "commit_at_snapshot", "files_modified", "files_staged"),
        *("files_uncommitted", "has_uncommitted_changes", "uncommitted_summary", "start_commit_missing"),
        *("operation", "upstream", "ahead", "behind", "worktree", "submodules_changed", "files_uncompared"),
        *("left_out", "staged", "ignore_rules"),
    ),
    "files": ("path", "hash", "mtime_ns", "size", "executable", "ctime_ns"),
    **dict.fromkeys(("state", "test_state"), _TESTS),
    "issue": ("id", "title", "description"),
    "task_dag": ("tasks",),
    "tasks": _TASK,
    "todos": ("text", "status"),
    "usage": (
        *("tokens_used", "tokens_remaining_estimate", "context_utilization", "llm_calls", "tool_calls"),
        *("cost_usd", "session_duration_seconds"),
    ),
}
"""Fields of what is printed as it was stored: an older version stored fewer."""
_ENTRIES = {
    "workflow_created": "issue worktree task_dag constraints runs",
    "workflow_status_changed": "status reason",
    "session_taken": "run_id claim took_over_from",
    "warned": "text",
    "task_approved": "task_id",
    "task_skipped": "task_id reason",
    "agent_session_reported": "task_id agent agent_session_id transcript",
    "work_committed": "task_id commit ref",
    "task_started": "task_id attempt",
    "task_finished": "task_id outcome result attempt seconds driver tokens context_share outputs retry_at",
    "decision_recorded": "decision",
    "error_recorded": "error",
    "feedback_recorded": "feedback",
    "tests_run": "state",
    "usage_reported": "usage",
    "constraint_pinned": "text",
    "todos_set": "todos",
    "pause_requested": "trigger reason",
    "workflow_paused": "snapshot_id session_id session_number trigger reason",
    "workflow_resumed": "snapshot_id session_number message retry",
    "handover_taken_up": "snapshot_id message",
    "snapshot_enriched": "snapshot_id decisions errors",
    "snapshot_deleted": "snapshot_id",
    "snapshot_imported": "snapshot_id session_id",
    "workflow_moved": "worktree",
    "workflow_forked": "origin_id snapshot_id task_id",
}
"""The fields of each behind its type."""
_PRINTED = ("decisions", "errors", "reviewer_feedback", "git_state", "files", "test_state")


class DocumentRecord:
    """A document with the fields of the value that it was written from, and nothing more: what a value works
    out, and what an older one lacks, is left to the store. A test compares the two."""

    def __init__(self, document: Document, place: str) -> None:
        self.document, self._times = document, _TIMES.get(place, ())

    def __getattr__(self, name: str) -> Any:
        if name not in self.document:
            raise NotPlainError(name)
        found = self.document[name]
        is_time = name in self._times and isinstance(found, str)
        value = self.__dict__[name] = datetime.fromisoformat(found) if is_time else _recorded(name, found)
        return value


def _recorded(place: str, found: Any) -> Any:
    if place in ("gathered", "fidelity", "todos"):
        return _converted(place, found)
    if isinstance(found, dict) and place != "outputs":  # whose keys are the user's
        return (_IssueRecord if place == "issue" else DocumentRecord)(cast("Document", found), place)
    if isinstance(found, list):
        return tuple(_recorded(place, one) for one in cast("list[Any]", found))
    return found  # pyright: ignore[reportUnknownVariableType]


def _converted(place: str, found: Any) -> Any:
    """What is no pydantic value is read as what it is."""
    from msgspec import convert

    from holdfast.model.gathered import Fidelity, Gathered
    from holdfast.model.message import TodoItem

    kinds: dict[str, Any] = {"gathered": Gathered, "fidelity": Fidelity, "todos": tuple[TodoItem, ...]}
    return None if found is None else convert(found, kinds[place])


class _PlanRecord(PlanFacts):
    def __init__(self, tasks: Sequence[DocumentRecord]) -> None:
        self.tasks = cast("Any", tuple(tasks))


class _IssueRecord(IssueFacts, DocumentRecord):
    pass


class _WorkflowRecord(WorkflowFacts, DocumentRecord):
    pass


class _SnapshotRecord(DocumentRecord):
    """Counts of its tasks are columns of their own."""

    def __init__(self, document: Document, packed: bytes | None, completed: int, remaining: int) -> None:
        super().__init__(document, "snapshot")
        self._packed, self.tasks_completed, self.tasks_remaining = packed, completed, remaining

    @cached_property
    def task_dag(self) -> _PlanRecord:
        if self._packed is None:
            return _PlanRecord(_recorded("tasks", self.document["task_dag"]["tasks"]))
        return _PlanRecord(
            [DocumentRecord(dict(zip(_TASK, task, strict=True)), "tasks") for task in _tasks(self._packed)]
        )

    def model_dump(self, *, mode: str) -> Document:  # noqa: ARG002 - JSON is what there is
        """The parts that `history` prints, as the value has them in JSON."""
        from dataclasses import asdict

        parts = {name: _plain(name, self.document[name]) for name in _PRINTED}
        tasks = [task.document for task in cast("tuple[Any, ...]", self.task_dag.tasks)]
        gathered = self.gathered and asdict(self.gathered)
        todos = [asdict(todo) for todo in self.todos]
        return {**parts, "task_dag": {"tasks": tasks}, "gathered": gathered, "todos": todos}


class QuickStore:
    """The questions of a `Store` that those commands ask, within one reading."""

    def __init__(self, reader: QuickReader) -> None:
        self._reader = reader

    def workflow(self, workflow_id: str) -> _WorkflowRecord:
        return _WorkflowRecord(self._reader.workflow(workflow_id), "workflow")

    def workflows(
        self, *, worktree: str | None = None, statuses: Collection[str] | None = None, limit: int = 100
    ) -> list[DocumentRecord]:
        found = self._reader.workflows(worktree, limit, statuses)
        return [DocumentRecord(one, "workflow") for one in found]

    def snapshot(self, snapshot_id: str) -> _SnapshotRecord:
        found = self._snapshots("id = :which", snapshot_id)
        if not found:
            raise NotPlainError
        return found[0]

    def latest_snapshot(self, workflow_id: str) -> _SnapshotRecord | None:
        found = self._snapshots(f"workflow_id = :which {_NEWEST}", workflow_id)
        return found[0] if found else None

    def _snapshots(self, which: str, name: str) -> list[_SnapshotRecord]:
        rows = self._reader.rows(
            "SELECT snapshot_json, tasks, tasks_completed, tasks_remaining "  # noqa: S608 - our own words
            f"FROM session_snapshots WHERE {which}",
            which=name,
        )
        return [_SnapshotRecord(_whole(text), *columns) for text, *columns in rows]

    def snapshots(self, workflow_id: str) -> list[SnapshotSummary]:
        from holdfast.store.protocol import SnapshotSummary

        return [SnapshotSummary(**line) for line in self._reader.snapshots(workflow_id)]

    def find_snapshots(self, name: str) -> list[SnapshotSummary]:
        from holdfast.store.protocol import SnapshotSummary

        return [SnapshotSummary(**line) for line in self._reader.find_snapshots(name)]

    def events(self, *, workflow_id: str, types: Collection[str]) -> list[DocumentRecord]:
        """Of some types, to be looked at; where the work stands is computed from values alone."""
        return [DocumentRecord(one, "event") for one in self._reader.events(workflow_id, 0, types)]


def _plain(place: str, found: Any) -> Any:
    """If it is in today's shape, down to what it is made of."""
    if isinstance(found, list):
        return [_plain(place, one) for one in cast("list[Any]", found)]
    if not isinstance(found, dict) or place == "outputs":
        return found  # pyright: ignore[reportUnknownVariableType]
    document = cast("Document", found)
    shape = ("type", *_ENTRIES[document["type"]].split()) if place == "entry" else _WHOLE[place]
    if tuple(document) != shape:
        raise NotPlainError
    for name, value in document.items():
        _plain(name, value)
    return document


def _whole(text: str) -> Document:
    document = json.loads(text) if text.startswith(_SNAPSHOT_BEGINS) else {"": text}
    if not document.keys() <= _SNAPSHOT_HOLDS:
        raise NotPlainError
    return document


def task_lines(task_dag: Document) -> list[TaskLine]:
    names = ("id", "status", "attempts", "result", "depends_on", "approval")
    return [TaskLine(*(task[name] for name in names)) for task in task_dag["tasks"]]


def _placeholders(named: Collection[str]) -> str:
    return ", ".join(f":{name}" for name in named)


def _tasks(packed: bytes) -> list[Any]:
    if packed == _NO_TASKS:
        return []
    from msgspec import msgpack

    return msgpack.decode(packed)


def _unpacked(packed: bytes) -> list[TaskLine]:
    tasks = _tasks(packed)
    if any(len(task) < _PACKED_TASK for task in tasks):
        raise NotPlainError
    return [TaskLine(task[0], task[2], task[10], task[11], task[3], task[7]) for task in tasks]


def _workflow(row: Document) -> Document:
    issue = {
        "id": row["id"],
        "issue": {name: row.pop(f"issue_{name}") for name in ("id", "title", "description")},
    }
    for name in _MOMENTS:
        row[name] = _moment(row[name])
    row["pause_request"] = _request(row["pause_request"])
    row["options"] = _options(row["options"])
    return {**issue, **row}


def _summary(row: Document) -> Document:
    return {**row, "created_at": datetime.fromisoformat(row["created_at"])}


def _moment(stored: str | None) -> str | None:
    """As values write it: no fraction where it is a whole second."""
    return stored and stored.replace(".000000Z", "Z")


def _request(stored: str | None) -> Document | None:
    found = json.loads(stored) if stored else None
    if found is not None and tuple(found) != _REQUEST:
        raise NotPlainError
    return found


def _options(stored: str) -> Document:
    found = json.loads(stored)
    if not _OPTIONS.keys() >= found.keys():
        raise NotPlainError
    return {**_OPTIONS, **found}
