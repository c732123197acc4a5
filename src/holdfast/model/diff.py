"""What changed between two snapshots."""

from __future__ import annotations

from typing import Any

from holdfast.model.base import Value
from holdfast.model.findings import Decision, ErrorRecord
from holdfast.model.snapshot import SessionSnapshot


class TaskChange(Value):
    id: str
    before: str | None
    after: str | None


class Step(Value):
    """One plain fact, then and now."""

    what: str
    before: Any
    after: Any


class SnapshotDiff(Value):
    before: str
    after: str
    facts: tuple[Step, ...]
    tasks: tuple[TaskChange, ...]
    decisions_added: tuple[Decision, ...]
    errors_added: tuple[ErrorRecord, ...]
    errors_resolved: tuple[ErrorRecord, ...]
    files_added: tuple[str, ...]
    files_removed: tuple[str, ...]
    files_changed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not any(
            getattr(self, name) for name in type(self).model_fields if name not in ("before", "after")
        )


def diff(before: SessionSnapshot, after: SessionSnapshot) -> SnapshotDiff:
    known_decisions = {item.id for item in before.decisions}
    old_errors = {item.id: item for item in before.errors}
    old_files = {item.path: item.hash for item in before.files}
    new_files = {item.path: item.hash for item in after.files}
    return SnapshotDiff(
        before=before.session_id,
        after=after.session_id,
        facts=tuple(_facts(before, after)),
        tasks=tuple(_tasks(before, after)),
        decisions_added=tuple(item for item in after.decisions if item.id not in known_decisions),
        errors_added=tuple(item for item in after.errors if item.id not in old_errors),
        errors_resolved=tuple(
            item
            for item in after.errors
            if item.id in old_errors
            and old_errors[item.id].resolution == "unresolved"
            and item.resolution != "unresolved"
        ),
        files_added=tuple(sorted(new_files.keys() - old_files.keys())),
        files_removed=tuple(sorted(old_files.keys() - new_files.keys())),
        files_changed=tuple(
            sorted(path for path in old_files.keys() & new_files.keys() if old_files[path] != new_files[path])
        ),
    )


def _plain_facts(snapshot: SessionSnapshot) -> dict[str, Any]:
    git, tests, usage = snapshot.git_state, snapshot.test_state, snapshot.usage
    return {
        "workflow": snapshot.workflow_id,
        "session number": snapshot.session_number,
        "trigger": snapshot.trigger,
        "reason": snapshot.pause_reason,
        "branch": git.branch if git else None,
        "commit": git.commit_at_snapshot if git else None,
        "uncommitted changes": git.uncommitted_summary if git else None,
        "test phase": tests.phase if tests else None,
        "failing tests": list(tests.failing_tests) if tests else None,
        "context used": usage.context_utilization,
        "tokens used": usage.tokens_used,
        "tool calls": usage.tool_calls,
        "constraints": list(snapshot.constraints),
    }


def _facts(before: SessionSnapshot, after: SessionSnapshot) -> list[Step]:
    old, new = _plain_facts(before), _plain_facts(after)
    return [Step(what=what, before=old[what], after=new[what]) for what in old if old[what] != new[what]]


def _tasks(before: SessionSnapshot, after: SessionSnapshot) -> list[TaskChange]:
    old = {task.id: task.status for task in before.task_dag.tasks}
    new = {task.id: task.status for task in after.task_dag.tasks}
    return [
        TaskChange(id=name, before=old.get(name), after=new.get(name))
        for name in dict.fromkeys((*old, *new))
        if old.get(name) != new.get(name)
    ]
