"""Where the work of a project stands, as `status` shows it, and what its journals tell, as `stats` does."""

from __future__ import annotations

import contextlib
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from holdfast.base.clock import seconds_between
from holdfast.base.durable import read_file
from holdfast.journal.log import Reader
from holdfast.journal.summary import Digest, archives
from holdfast.journal.usage import seconds_until_full
from holdfast.model.statuses import ACTIVE, DONE, REMAINING, TaskProgress, is_gone
from holdfast.project.formats import plan_branches
from holdfast.project.layout import ProjectLayout
from holdfast.store.reader import Document, NotPlainError, QuickReader, SnapshotLine, TaskLine, task_lines

# ── where a workflow stands ───────────────────────────────────────────────────────────────────────

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.task import Task

T = TypeVar("T")

LOOKED_AT = 50
"""Newest workflows of a folder, of which one is chosen."""


def chosen(found: Sequence[T], status: Callable[[T], str]) -> T | None:
    """The active workflow among those of a folder, else the one changed last."""
    return next((flow for flow in found if status(flow) in ACTIVE), found[0] if found else None)


def waiting_plan(
    found: Iterable[T],
    status: Callable[[T], str],
    has_plan: Callable[[T], bool],
    *,
    despite_later: bool = False,
) -> T | None:
    """The plan that `resume` means, of a folder's workflows, newest first; none beside an active workflow.

    Sessions and wind-downs hide no plan. A failed one is meant until a later plan completed, which may have
    done its work in another way; with `despite_later` also then.
    """
    known = list(found)
    if any(status(flow) in ACTIVE for flow in known):
        return None
    may_be_done = False
    for flow in known:
        is_failed = status(flow) == "failed" and (despite_later or not may_be_done)
        if is_failed or (status(flow) == "paused" and has_plan(flow)):
            return flow
        may_be_done |= status(flow) == "completed"
    return None


def described(
    workflow: Document,
    tasks: Sequence[Task] | Sequence[TaskLine],
    *,
    snapshots: int,
    latest: tuple[str, int] | None,
    context_utilization: float | None,
    abandoned: bool,
    taken_up_at: str | None,
    retries: Mapping[str, str],
) -> Document:
    """`latest`: the newest snapshot's name and its session's number; `retries`: when tasks that failed are
    tried again by themselves, also of those that run again."""
    is_running = workflow["status"] == "in_progress"
    running = [task.id for task in tasks if is_running and task.status == "in_progress"]
    return {
        **workflow,
        "failed_tasks": [
            {"id": task.id, "attempt": task.attempts, "reason": task.result}
            for task in tasks
            if task.status == "failed"
        ],
        "retrying_tasks": [
            {"id": task.id, "attempt": task.attempts, "reason": task.result, "retry_at": retries[task.id]}
            for task in tasks
            if is_running and task.status == "pending" and task.id in retries
        ],
        "running_task_ids": running,
        "snapshots": snapshots,
        "latest_snapshot": latest[0] if latest else None,
        "latest_session": latest[1] if latest else None,
        "tasks_completed": sum(task.status == "completed" for task in tasks),
        "tasks_remaining": sum(task.status in REMAINING for task in tasks),
        "current_task_id": running[-1] if running else None,
        "waiting_task_id": _waiting_task(tasks) if workflow["status"] == "blocked" else None,
        "context_utilization": context_utilization,
        "abandoned": abandoned,
        "taken_up_at": taken_up_at,
    }


def _waiting_task(tasks: Sequence[Task] | Sequence[TaskLine]) -> str | None:
    """The one that somebody is to approve."""
    done = {task.id for task in tasks if task.status in DONE}
    waiting = (task for task in tasks if task.status == "pending" and task.approval)
    return next((task.id for task in waiting if done.issuperset(task.depends_on)), None)


def may_be_undone(sidecar: Path, workflow_id: str) -> bool:
    """Whether anything that a session of it, or one it was forked from, changed may have been undone: as each
    one's newest entry says, where that is to be had at once. In doubt it may: who asks then loads what knows
    for sure."""
    for branch in plan_branches(str(sidecar), workflow_id):
        try:
            oid = read_file(Path(branch)).decode("ascii").strip()
            entry = zlib.decompress((sidecar / "objects" / oid[:2] / oid[2:]).read_bytes())
        except (OSError, ValueError, zlib.error):
            return True
        if b'"undone":false' not in entry:
            return True
    return False


# ── straight from the file ────────────────────────────────────────────────────────────────────────


def read_standing(reader: QuickReader, worktree: str, workflow_id: str | None) -> Document | None:
    """What `described` says of the named workflow, or of the one of this folder."""
    if workflow_id is not None:
        return _standing(reader, reader.workflow(workflow_id))
    workflow = chosen(reader.workflows(worktree, limit=LOOKED_AT), lambda flow: flow["status"])
    return _standing(reader, workflow) if workflow else None


def read_waiting_plan(reader: QuickReader, worktree: str) -> Document | None:
    """What `described` says of the plan that a resume in this folder means."""

    def has_plan(flow: Document) -> bool:
        lines = reader.snapshots(flow["id"])
        return any(line["tasks_completed"] + line["tasks_remaining"] for line in lines)

    plan = waiting_plan(reader.workflows(worktree, limit=LOOKED_AT), lambda flow: flow["status"], has_plan)
    return _standing(reader, plan) if plan else None


def _standing(reader: QuickReader, workflow: Document) -> Document:
    fold = _folded(reader, workflow["id"])
    snapshots = reader.snapshots(workflow["id"])
    latest = max(snapshots, key=lambda line: (line["created_at"], line["session_number"]), default=None)
    claim = workflow["claim"]
    return described(
        workflow,
        fold.tasks(),
        snapshots=len(snapshots),
        latest=(latest["session_id"], latest["session_number"]) if latest else None,
        context_utilization=fold.context_utilization,
        abandoned=claim is not None and is_gone(claim, reader.leases()),
        taken_up_at=reader.taken_up(workflow["id"], latest["id"]) if latest else None,
        retries=fold.retries,
    )


def _folded(reader: QuickReader, workflow_id: str) -> _QuickFold:
    """As `Core.fold`: the last snapshot (or the older one resumed from) and what followed."""
    base = reader.latest_snapshot(workflow_id)
    entries = reader.entries(workflow_id, base.folded_through if base else 0)
    resumed = _last_resume(entries)
    if base is not None and resumed is not None and resumed[1] != base.id:
        base, entries = reader.snapshot(resumed[1]), entries[resumed[0] :]
    fold = _QuickFold(base)
    for entry in entries:
        fold.take(entry)
    return fold


def _last_resume(entries: Sequence[Document]) -> tuple[int, str] | None:
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if entry["type"] == "workflow_resumed" and entry["snapshot_id"]:
            return index, entry["snapshot_id"]
    return None


class _QuickFold:
    """`SessionFold` over documents, as far as `status` shows it; tasks go by `TaskProgress`."""

    def __init__(self, base: SnapshotLine | None) -> None:
        self.progress = TaskProgress(current_task_id=base.current_task_id if base else None)
        self.context_utilization: float | None = None
        self.retries: dict[str, str] = {}
        self._has_base = base is not None
        self._plan: dict[str, TaskLine] = {}
        self._set_plan(base.tasks if base else ())

    def _set_plan(self, tasks: Iterable[TaskLine]) -> None:
        lines = tuple(tasks)
        self._plan = {task.id: task for task in lines}
        if len(self._plan) != len(lines):
            raise NotPlainError

    def take(self, entry: Document) -> None:
        kind: Any = entry["type"]
        if kind == "task_started":
            self.progress.start(self._plan, entry["task_id"], entry["attempt"])
        elif kind == "task_finished":
            retry_at = entry.get("retry_at")
            is_retried = retry_at is not None
            self.progress.finish(entry["task_id"], entry["outcome"], entry["result"], is_retried=is_retried)
            if is_retried:
                self.retries[entry["task_id"]] = retry_at
        elif kind == "task_skipped":
            self.progress.skip(entry["task_id"], entry["reason"])
        elif kind == "task_approved":
            self.progress.change(entry["task_id"], approval=False)
        elif kind == "usage_reported":
            self.context_utilization = entry["usage"]["context_utilization"]
        elif kind == "workflow_resumed":
            self.progress.resume(self._plan, entry.get("retry"))
            self.retries = {}
            self.context_utilization = None
        elif kind == "workflow_created" and not self._has_base:
            self._set_plan(task_lines(entry["task_dag"]))

    def tasks(self) -> list[TaskLine]:
        changes = self.progress.task_changes
        return [task.changed(**changes.get(task.id, {})) for task in self._plan.values()]


# ── what the journals tell ────────────────────────────────────────────────────────────────────────

_NEWEST_SAMPLES = 10_000


@dataclass
class JournalStats:
    journals: int = 0
    actions: int = 0
    skipped_lines: int = 0
    by_type: Counter[str] = field(default_factory=Counter[str])
    by_tool: Counter[str] = field(default_factory=Counter[str])
    context_per_action: float | None = None
    mean_duration_seconds: float | None = None
    seconds_to_exhaustion: float | None = None
    """Of the active wind-down, judging by its own pace."""
    active_session: str | None = None


def journal_stats(layout: ProjectLayout) -> JournalStats:
    stats = JournalStats()
    rises: list[float] = []
    durations: list[float] = []
    for path in archives(layout.sessions):
        digest = _take(path, stats)
        durations.append(digest.duration_seconds)
        if digest.context_per_action is not None:
            rises.append(digest.context_per_action)
    if layout.journal.exists():
        digest, samples = _take_sampled(layout.journal, stats)
        stats.active_session = digest.first.session_id if digest.first else None
        stats.seconds_to_exhaustion = seconds_until_full(samples)
        if digest.context_per_action is not None:
            rises.append(digest.context_per_action)
    stats.context_per_action = sum(rises) / len(rises) if rises else None
    stats.mean_duration_seconds = sum(durations) / len(durations) if durations else None
    return stats


def _take(path: Path, stats: JournalStats) -> Digest:
    reader = Reader(path)
    return _added(Digest().take(reader), reader, stats)


def _take_sampled(path: Path, stats: JournalStats) -> tuple[Digest, deque[tuple[float, float]]]:
    reader, digest = Reader(path), Digest()
    samples: deque[tuple[float, float]] = deque(maxlen=_NEWEST_SAMPLES)
    for action in reader:
        digest.add(action)
        first = digest.first or action
        with contextlib.suppress(ValueError):  # a timestamp of another program, which we cannot read
            samples.append((seconds_between(first.timestamp, action.timestamp), action.context_percentage))
    return _added(digest, reader, stats), samples


def _added(digest: Digest, reader: Reader, stats: JournalStats) -> Digest:
    stats.journals += 1
    stats.actions += digest.action_count
    stats.skipped_lines += reader.skipped
    stats.by_type += digest.by_type
    stats.by_tool += digest.by_tool
    return digest
