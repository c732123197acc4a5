"""Snapshots as JSON text, validated both ways; and as the documents people and other programs read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from holdfast.base.errors import DamagedDataError
from holdfast.base.text import counted, one_line
from holdfast.model.base import SNAPSHOT_SCHEMA, explain
from holdfast.model.snapshot import SessionSnapshot
from holdfast.model.task import TaskDAG
from holdfast.model.workflow import Workflow

_CURRENT = f'{{"schema_version":{SNAPSHOT_SCHEMA.current},'
"""How the text of a snapshot in today's shape begins: that one needs no step in between."""


def snapshot_from_json(text: str, *, where: str) -> SessionSnapshot:
    if text.startswith(_CURRENT):
        return _checked(lambda: SessionSnapshot.model_validate_json(text), where)
    return snapshot_from_document(_object(text, where), where=where)


def snapshot_to_columns(snapshot: SessionSnapshot) -> tuple[str, bytes]:
    """The snapshot without its tasks, and they."""
    return snapshot.model_dump_json(exclude={"task_dag"}), snapshot.task_dag.packed()


def snapshot_from_columns(text: str, tasks: bytes | None, *, where: str) -> SessionSnapshot:
    """`tasks` is None in rows from before they had a column of their own."""
    if tasks is None:
        return snapshot_from_json(text, where=where)
    document = _object(text, where)
    if not text.startswith(_CURRENT):
        document = SNAPSHOT_SCHEMA.upgrade(document, where=where)
    try:
        document["task_dag"] = TaskDAG.unpacked(tasks)
    except ValueError as error:
        raise DamagedDataError(f"{where} is damaged: {error}") from error
    return _checked(lambda: SessionSnapshot.model_validate(document), where)


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        document: Any = from_json(text)
    except (ValueError, RecursionError) as error:
        raise DamagedDataError(f"{where} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise DamagedDataError(f"{where} is not a snapshot")
    return document  # pyright: ignore[reportUnknownVariableType]


def snapshot_from_document(document: dict[str, Any], *, where: str) -> SessionSnapshot:
    upgraded = SNAPSHOT_SCHEMA.upgrade(document, where=where)
    return _checked(lambda: SessionSnapshot.model_validate(upgraded, strict=False), where)


def _checked(read: Callable[[], SessionSnapshot], where: str) -> SessionSnapshot:
    try:
        return read()
    except ValidationError as error:
        raise DamagedDataError(f"{where} is damaged: {explain(error)}") from error


# ── documents for people ──────────────────────────────────────────────────────────────────────────

# A snapshot as people and other programs read it: one JSON document, the same in YAML, and a page.
#
# The top of the document keeps the names of the session file format (`session_id`,
# `paused_at`, `duration_hours`, `context_usage`, `incremental_pause`); the rest is the
# snapshot and its workflow, complete, so the database can be rebuilt from it.

_FOR_READERS = ("paused_at", "duration_hours", "context_usage", "tasks_completed", "tasks_remaining")


def session_document(snapshot: SessionSnapshot, workflow: Workflow) -> dict[str, Any]:
    fields = snapshot.model_dump(mode="json")
    head = {
        "session_id": fields.pop("session_id"),
        "paused_at": fields["created_at"],
        "duration_hours": round(snapshot.usage.session_duration_seconds / 3600, 2),
        "context_usage": _context_usage(snapshot),
        "tasks_completed": snapshot.tasks_completed,
        "tasks_remaining": snapshot.tasks_remaining,
        "incremental_pause": fields.pop("incremental_pause"),
    }
    return {**head, **fields, "workflow": workflow.model_dump(mode="json")}


def _context_usage(snapshot: SessionSnapshot) -> dict[str, Any] | None:
    usage = snapshot.usage
    if usage.context_utilization is None:
        return None
    return {
        "tokens_used": usage.tokens_used,
        "tokens_total": usage.tokens_used + (usage.tokens_remaining_estimate or 0),
        "percentage": round(usage.context_utilization * 100, 2),
    }


def read_session_document(document: dict[str, Any], *, where: str) -> tuple[SessionSnapshot, Workflow]:
    fields = {key: value for key, value in document.items() if key not in _FOR_READERS}
    raw_workflow = fields.pop("workflow", None)
    snapshot = snapshot_from_document(fields, where=where)
    try:
        workflow = Workflow.model_validate(raw_workflow)
    except ValidationError as error:
        raise DamagedDataError(f"{where}: its workflow is damaged: {explain(error)}") from error
    return snapshot, workflow


def render_files(snapshot: SessionSnapshot, workflow: Workflow) -> dict[str, bytes]:
    """The three files of a session, by ending."""
    import yaml

    document = session_document(snapshot, workflow)
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    as_yaml = yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True)
    return {
        ".json": json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n",
        ".yaml": as_yaml.encode(),
        ".md": markdown(snapshot, workflow).encode(),
    }


def markdown(snapshot: SessionSnapshot, workflow: Workflow) -> str:
    """The page for people."""
    sections = (
        _header(snapshot, workflow),
        _winddown(snapshot),
        _tasks(snapshot),
        _findings(snapshot),
        _git(snapshot),
    )
    return "\n".join(line for section in sections for line in section) + "\n"


def _header(snapshot: SessionSnapshot, workflow: Workflow) -> list[str]:
    lines = [
        f"# {snapshot.session_id}",
        "",
        f"{workflow.issue.title}, session {snapshot.session_number}, "
        f"paused {snapshot.created_at:%Y-%m-%d %H:%M:%S} UTC ({snapshot.trigger}).",
    ]
    if snapshot.pause_reason:
        lines += ["", f"Reason: {snapshot.pause_reason}"]
    usage = _context_usage(snapshot)
    if usage:
        lines += [
            "",
            f"Context: {usage['percentage']:g} % used "
            f"({usage['tokens_used']:,} of {usage['tokens_total']:,} tokens).",
        ]
    return lines


def _winddown(snapshot: SessionSnapshot) -> list[str]:
    pause = snapshot.incremental_pause
    if pause is None:
        return []
    start, end = pause.context_range
    lines = [
        "",
        "## Wind-down",
        "",
        f"{counted(pause.action_count, 'action')}, {pause.tool_calls} of them tool calls, "
        f"in {pause.duration_seconds} s; context {start:.0%} → {end:.0%}.",
    ]
    if pause.skipped_lines:
        lines.append(f"{pause.skipped_lines} damaged lines were kept in the journal but not counted.")
    if pause.actions_summary:
        lines += ["", "| when | what |", "|---|---|"]
        lines += [f"| {action.timestamp} | {action.type} |" for action in pause.actions_summary]
    return lines


_MARKS = {"completed": "x", "pending": " ", "in_progress": "~", "blocked": "!", "failed": "-", "skipped": "/"}


def _tasks(snapshot: SessionSnapshot) -> list[str]:
    if not snapshot.task_dag.tasks:
        return []
    lines = [
        "",
        "## Tasks",
        "",
        f"{snapshot.tasks_completed} done, {snapshot.tasks_remaining} remaining.",
        "",
    ]
    lines += [
        f"- [{_MARKS[task.status]}] {task.id}: {one_line(task.description)}"
        for task in snapshot.task_dag.tasks
    ]
    return lines


def _findings(snapshot: SessionSnapshot) -> list[str]:
    return [
        *_list("Constraints", snapshot.constraints),
        *_list("Decisions", (f"{item.description} Because: {item.rationale}" for item in snapshot.decisions)),
        *_list(
            "Errors",
            (f"{item.error_type}: {item.error_message} ({item.resolution})" for item in snapshot.errors),
        ),
        *_list("Failing tests", snapshot.test_state.failing_tests if snapshot.test_state else ()),
    ]


def _git(snapshot: SessionSnapshot) -> list[str]:
    git = snapshot.git_state
    if git is None:
        return []
    where = f"at {git.commit_at_snapshot[:12]}" if git.commit_at_snapshot else "with no commit yet"
    lines = ["", "## Git", "", f"Branch {git.branch or '(detached)'} {where}."]
    if git.operation:
        lines.append(f"A {git.operation} is in progress.")
    if git.uncommitted_summary:
        lines.append(f"Uncommitted: {git.uncommitted_summary}.")
    return [
        *lines,
        *_list("Changed files", (f"`{path}`" for path in git.files_modified)),
        *_list("Cannot tell whether these changed", (f"`{path}`" for path in git.files_uncompared)),
    ]


def _list(title: str, items: Iterable[str]) -> list[str]:
    lines = [f"- {one_line(item)}" for item in items]
    return ["", f"## {title}", "", *lines] if lines else []
