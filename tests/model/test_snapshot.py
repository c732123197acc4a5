"""Snapshots: the same after every journey, and refused where they are not right."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from pydantic import ValidationError

from holdfast.base.errors import DamagedDataError, NewerSchemaError
from holdfast.model.snapshot import ActionGlimpse, FileFingerprint, IncrementalPause, SessionSnapshot
from holdfast.model.task import TaskDAG
from holdfast.model.usage import UsageMetadata, UsageMetrics
from holdfast.model.workflow import Workflow
from holdfast.store.documents import (
    markdown,
    read_session_document,
    render_files,
    session_document,
    snapshot_from_columns,
    snapshot_from_json,
    snapshot_to_columns,
)
from model.strategies import snapshots, workflows
from store.samples import PLAN, full_snapshot, full_workflow, snapshot, workflow


@given(value=snapshots())
def test_a_snapshot_is_the_same_after_json(value: SessionSnapshot) -> None:
    assert snapshot_from_json(value.model_dump_json(), where="here") == value


@given(value=snapshots())
def test_a_snapshot_is_the_same_after_its_columns_old_and_new(value: SessionSnapshot) -> None:
    assert snapshot_from_columns(*snapshot_to_columns(value), where="here") == value
    assert snapshot_from_columns(value.model_dump_json(), None, where="here") == value


@given(value=snapshots(), flow=workflows)
def test_a_snapshot_and_its_workflow_are_the_same_after_a_session_document(
    value: SessionSnapshot, flow: Workflow
) -> None:
    assert read_session_document(session_document(value, flow), where="here") == (value, flow)


@given(value=snapshots(), flow=workflows)
def test_a_snapshot_and_its_workflow_are_the_same_after_the_json_file(
    value: SessionSnapshot, flow: Workflow
) -> None:
    document = json.loads(render_files(value, flow)[".json"])
    assert read_session_document(document, where="here") == (value, flow)


@given(value=snapshots(), flow=workflows)
def test_the_yaml_file_says_what_the_json_file_says(value: SessionSnapshot, flow: Workflow) -> None:
    files = render_files(value, flow)
    assert yaml.safe_load(files[".yaml"]) == json.loads(files[".json"])


@given(value=snapshots(), flow=workflows)
def test_there_is_a_page_for_every_snapshot(value: SessionSnapshot, flow: Workflow) -> None:
    assert markdown(value, flow).startswith(f"# {value.session_id}\n")


def test_the_document_begins_with_the_names_of_the_session_file_format() -> None:
    document = session_document(full_snapshot(), full_workflow())
    names = ["session_id", "paused_at", "duration_hours", "context_usage", "incremental_pause"]
    assert [name for name in document if name in names] == names
    assert "schema_version" not in list(document)[: list(document).index("incremental_pause")]
    assert document["paused_at"] == "2026-01-06T12:00:07.654321Z"
    assert document["duration_hours"] == 1.5
    assert document["context_usage"] == {"tokens_used": 170_000, "tokens_total": 200_000, "percentage": 85.0}
    assert document["incremental_pause"]["action_count"] == 12


def test_context_that_was_not_measured_is_no_number() -> None:
    assert session_document(snapshot(), workflow())["context_usage"] is None


def test_the_page_tells_what_a_person_needs() -> None:
    page = markdown(full_snapshot(), full_workflow())
    for words in (
        "Mend the sail, session 1, paused 2026-01-06 12:00:07 UTC (exhaustion).",
        "Reason: full",
        "Context: 85 % used (170,000 of 200,000 tokens).",
        "12 actions, 4 of them tool calls, in 60 s; context 90% → 97%.",
        "- [x] t1: cut",
        "- [ ] t2: sew",
        "- [!] t3: hoist",
        "- never cut the mast",
        "- Use canvas Because: It holds",
        "(unresolved)",
        "- test_holds",
        "Branch main at bbbbbbbbbbbb.",
        "A merge is in progress.",
        "- `sail.txt`",
    ):
        assert words in page


def test_counters_follow_from_the_tasks() -> None:
    value = full_snapshot()
    assert (value.tasks_completed, value.tasks_remaining) == (1, 2)
    again = value.changed(task_dag=PLAN.updated({"t2": {"status": "completed"}, "t3": {"status": "failed"}}))
    assert (again.tasks_completed, again.tasks_remaining) == (2, 1)  # what failed is to be tried again


def test_counters_are_written_for_readers_and_counted_anew_when_read() -> None:
    document = session_document(full_snapshot(), full_workflow())
    assert (document["tasks_completed"], document["tasks_remaining"]) == (1, 2)
    document["tasks_completed"] = 99
    value, _ = read_session_document(document, where="here")
    assert value.tasks_completed == 1


def test_the_database_holds_no_counters_beside_what_they_count() -> None:
    assert "tasks_completed" not in json.loads(full_snapshot().model_dump_json())


@pytest.mark.parametrize(
    "value", [full_snapshot(), full_workflow(), PLAN, UsageMetrics()], ids=lambda v: type(v).__name__
)
def test_values_cannot_be_changed(value: Any) -> None:
    name = next(iter(type(value).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(value, name, getattr(value, name))


@pytest.mark.parametrize(
    "spoil",
    [
        {"surprise": 1},
        {"trigger": "boredom"},
        {"session_number": 0},
        {"created_at": "2026-01-06T12:00:00"},
        {"current_task_id": "nobody"},
        {"next_task_id": "nobody"},
        {"usage": {"tokens_used": -1}},
        {"usage": {"surprise": 1}},
        {"files": [{"path": "a", "hash": "md5:0", "mtime_ns": 0, "size": 0}]},
        {"decisions": [{"id": "d"}]},
        {"id": None},
    ],
    ids=str,
)
def test_what_is_not_right_is_refused(spoil: dict[str, Any]) -> None:
    document = json.loads(full_snapshot().model_dump_json()) | spoil
    with pytest.raises(ValidationError):
        SessionSnapshot.model_validate(document)
    with pytest.raises(DamagedDataError, match=r"^here"):
        snapshot_from_json(json.dumps(document), where="here")


@pytest.mark.parametrize(
    "field", ["id", "workflow_id", "session_number", "session_id", "created_at", "trigger"]
)
def test_what_a_snapshot_must_have_is_missed(field: str) -> None:
    document = json.loads(snapshot().model_dump_json())
    del document[field]
    with pytest.raises(DamagedDataError, match=f"here is damaged: {field}"):
        snapshot_from_json(json.dumps(document), where="here")


@pytest.mark.parametrize("version", [None, "1", 0, -1, True, 1.5])
def test_a_version_that_is_none_of_ours_is_damage(version: object) -> None:
    document = json.loads(snapshot().model_dump_json()) | {"schema_version": version}
    with pytest.raises(DamagedDataError, match="schema_version") as raised:
        snapshot_from_json(json.dumps(document), where="here")
    assert not isinstance(raised.value, NewerSchemaError)


def test_a_snapshot_without_a_version_is_damage() -> None:
    document = json.loads(snapshot().model_dump_json())
    del document["schema_version"]
    with pytest.raises(DamagedDataError, match="schema_version is None"):
        snapshot_from_json(json.dumps(document), where="here")


def test_a_snapshot_of_a_newer_version_says_so_whatever_else_it_holds() -> None:
    with pytest.raises(
        NewerSchemaError, match="here is a snapshot of version 2; this holdfast supports versions up to 1"
    ):
        snapshot_from_json('{"schema_version": 2, "new": "shape"}', where="here")


@pytest.mark.parametrize("flow", [None, [], {}, "x"])
def test_a_document_whose_workflow_is_damaged_is_refused(flow: object) -> None:
    document = session_document(snapshot(), workflow()) | {"workflow": flow}
    with pytest.raises(DamagedDataError, match="its workflow is damaged"):
        read_session_document(document, where="here")


def test_a_summary_holds_at_most_ten_actions() -> None:
    glimpse = ActionGlimpse(type="tool_call", timestamp="t")
    fields: dict[str, Any] = {
        "action_count": 11,
        "duration_seconds": 0,
        "context_range": (0, 1),
        "tool_calls": 0,
    }
    assert IncrementalPause(**fields, actions_summary=(glimpse,) * 10)
    with pytest.raises(ValidationError):
        IncrementalPause(**fields, actions_summary=(glimpse,) * 11)


@pytest.mark.parametrize(
    "text", ["", "0" * 64, f"sha256:{'0' * 63}", f"sha256:{'G' * 64}", f"sha256:{'0' * 64}\n"]
)
def test_a_hash_names_its_algorithm(text: str) -> None:
    with pytest.raises(ValidationError):
        FileFingerprint(path="a", hash=text, mtime_ns=0, size=0)


def test_an_empty_plan_has_nothing_to_do() -> None:
    value = snapshot(task_dag=TaskDAG())
    assert (value.tasks_completed, value.tasks_remaining) == (0, 0)


class RunUsage:
    """As pydantic-ai reports it."""

    def __init__(self, input_tokens: int, output_tokens: int) -> None:
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens


@pytest.mark.parametrize(
    ("given_usage", "window", "expected"),
    [
        (RunUsage(150_000, 20_000), 200_000, (170_000, 30_000, 0.85)),
        (RunUsage(0, 0), 200_000, (0, 200_000, 0.0)),
        (RunUsage(300, 0), 200, (300, 0, 1.0)),
    ],
)
def test_a_models_usage_becomes_a_share_of_the_window(
    given_usage: RunUsage, window: int, expected: tuple[int, int, float]
) -> None:
    usage = UsageMetadata.from_pydantic_ai_usage(given_usage, window)
    assert (usage.total_tokens, usage.tokens_remaining, usage.utilization_percent) == expected
