from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.message import TodoItem
from holdfast.transcripts import fields
from transcripts.claude_files import answered, called, file_of, read_bytes, read_lines, said, typed


def test_what_the_user_typed_and_the_agent_said():
    first, second = read_lines(typed("Add a kettle"), said("Adding it."))
    assert (first.role, first.text, first.injected) == ("user", "Add a kettle", False)
    assert (second.role, second.text, second.index) == ("assistant", "Adding it.", 1)


def test_usage_counts_once_a_message():
    usage = {
        "input_tokens": 5,
        "output_tokens": 7,
        "cache_read_input_tokens": 11,
        "cache_creation_input_tokens": 13,
    }
    messages = read_lines(
        said("one", message_id="a", usage=usage),
        said("two", message_id="a", usage=usage),
        said("three", message_id="b", usage=usage),
    )
    assert [message.usage.context if message.usage else None for message in messages] == [36, None, 36]


def test_a_result_carries_its_outcome():
    messages = read_lines(
        called("c1", "Bash", command="make"),
        answered("c1", "Exit code 2\nno rule", error=True),
        called("c2", "Bash", command="sleep 9"),
        answered("c2", "", structured={"interrupted": True}),
        called("c3", "Read", file_path="a.py"),
        answered("c3", "text"),
    )
    assert messages[0].tool_calls[0].arguments == {"command": "make"}
    assert [result.outcome for message in messages for result in message.tool_results] == [
        "error",
        "interrupted",
        "ok",
    ]


def test_words_in_a_refusal_are_the_users():
    refusal = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected. "
        "To tell you how to proceed, the user said:\nuse the blue one"
    )
    (message,) = read_lines(answered("c1", refusal, error=True))
    assert message.text == "use the blue one"
    assert message.tool_results[0].outcome == "interrupted"
    assert not message.injected


@pytest.mark.parametrize(
    ("written", "read_as", "injected"),
    [
        ("<system-reminder>be brief</system-reminder>", "", True),
        ("Paint it <system-reminder>be brief</system-reminder>red", "Paint it red", False),
        ("<command-name>/plan</command-name><command-args>the shed</command-args>", "/plan the shed", False),
        ("<command-name>/exit</command-name><command-args></command-args>", "/exit", True),
        ("<bash-input>ls</bash-input>", "! ls", True),
        (
            "<local-command-stdout>bye</local-command-stdout>",
            "<local-command-stdout>bye</local-command-stdout>",
            True,
        ),
        ("[Request interrupted by user]", "[Request interrupted by user]", True),
        ("if a < b then <b>stop</b>", "if a < b then <b>stop</b>", False),
    ],
)
def test_what_the_program_wrote_is_told_apart(written: str, read_as: str, injected: bool):
    (message,) = read_lines(typed(written))
    assert (message.text, message.injected) == (read_as, injected)


def test_a_meta_line_is_injected():
    (message,) = read_lines(typed("Follow the skill", isMeta=True))
    assert message.injected


def queue(operation: str, content: str | None = None) -> dict[str, Any]:
    return {"type": "queue-operation", "operation": operation, "content": content}


@pytest.mark.parametrize(
    ("operations", "delivered"),
    [
        ([queue("enqueue", "also tests"), queue("remove")], ["also tests"]),
        ([queue("enqueue", "also tests"), queue("dequeue"), typed("also tests")], ["also tests"]),
        ([queue("enqueue", "no, wait"), queue("popAll", "no, wait")], []),
        ([queue("enqueue", "typed at the very end")], ["typed at the very end"]),
    ],
)
def test_queued_words_are_delivered_once(operations: list[dict[str, Any]], delivered: list[str]):
    assert [message.text for message in read_lines(*operations)] == delivered


def test_todo_list_written_whole():
    todos = [{"content": "Saw", "status": "completed"}, {"content": "Nail", "status": "pending"}]
    (message,) = read_lines(called("c1", "TodoWrite", todos=todos))
    assert message.todos == (TodoItem("Saw", "completed"), TodoItem("Nail", "pending"))


def test_todo_list_folded_from_single_changes():
    messages = read_lines(
        called("c1", "TaskCreate", subject="Saw"),
        answered("c1", "Task #1 created successfully: Saw", structured={"task": {"id": "1"}}),
        called("c2", "TaskCreate", subject="Nail"),
        answered("c2", "Task #2 created successfully: Nail"),
        called("c3", "TaskUpdate", taskId="1", status="completed"),
        called("c4", "TaskUpdate", taskId="2", status="in_progress", subject="Nail it"),
        called("c5", "TaskUpdate", taskId="9", status="completed"),
    )
    assert messages[1].todos == (TodoItem("Saw", "pending"),)
    assert messages[5].todos == (TodoItem("Saw", "completed"), TodoItem("Nail it", "in_progress"))
    assert messages[6].todos is None


def test_a_deleted_task_is_gone_and_a_listing_tells_all():
    listing = {"tasks": [{"id": "7", "subject": "Paint", "status": "in_progress"}]}
    messages = read_lines(
        called("c1", "TaskCreate", subject="Saw"),
        answered("c1", "Task #1 created successfully: Saw"),
        called("c2", "TaskUpdate", taskId="1", status="deleted"),
        answered("c3", "#7 [in_progress] Paint", structured=listing),
    )
    assert messages[2].todos == ()
    assert messages[3].todos == (TodoItem("Paint", "in_progress"),)


def test_a_compaction_carries_the_summary_without_its_preamble():
    boundary = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
    text = "This session is being continued.\n\nAnalysis:\nhm\n\nSummary:\n1. The shed is painted."
    before, message = read_lines(typed("go"), boundary, typed(text, isCompactSummary=True))
    assert not before.compaction
    assert message.compaction
    assert message.text == "1. The shed is painted."


def test_a_boundary_without_summary_still_marks_the_compaction():
    boundary = {"type": "system", "subtype": "compact_boundary"}
    assert [message.compaction for message in read_lines(boundary, typed("go on"))] == [True, False]
    assert [message.compaction for message in read_lines(typed("go on"), boundary)] == [False, True]


def test_subagent_lines_say_whose_they_are():
    (message,) = read_lines(said("looking", isSidechain=True, agentId="a7"))
    assert message.subagent == "a7"


def test_the_report_knows_the_session():
    line = typed("hi", sessionId="s1", cwd="/home/kim/shed", gitBranch="paint", uuid="u1")
    _, report = read_bytes(file_of(line, {"type": "summary", "summary": "Painting the shed"}))
    assert (report.session_id, report.cwd, report.branch) == ("s1", "/home/kim/shed", "paint")
    assert report.title == "Painting the shed"


def test_odd_lines_are_counted_and_survived(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fields, "MAX_LINE_BYTES", 500)
    good = json.dumps(typed("good", uuid="u1")).encode() + b"\n"
    huge = json.dumps(typed("x" * 3000)).encode() + b"\n"
    data = (
        good
        + good
        + b'{"type": "user", "mess'
        + b"\n"
        + b"[1]\n"
        + huge
        + b'{"type": "novel"}\n\n'
        + good[:-9]
    )
    messages, report = read_bytes(data)
    assert [message.text for message in messages] == ["good"]
    assert (report.duplicated, report.torn, report.oversized, report.unknown) == (1, 3, 1, 1)
    assert report.unknown_types == {"novel": 1}


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_counted(data: bytes):
    read_bytes(data)


_KEYS = (
    "type",
    "message",
    "content",
    "role",
    "uuid",
    "usage",
    "id",
    "name",
    "input",
    "tool_use_id",
    "is_error",
    "text",
    "thinking",
    "toolUseResult",
    "tasks",
    "task",
    "todos",
    "subject",
    "status",
    "taskId",
    "operation",
    "subtype",
    "isCompactSummary",
    "isMeta",
    "timestamp",
    "interrupted",
    "summary",
    "attachment",
    "agentId",
)
_WORDS = (
    "user",
    "assistant",
    "system",
    "queue-operation",
    "summary",
    "pr-link",
    "text",
    "tool_use",
    "tool_result",
    "thinking",
    "TodoWrite",
    "TaskCreate",
    "TaskUpdate",
    "completed",
    "deleted",
    "enqueue",
    "remove",
    "popAll",
    "compact_boundary",
    "<command-name>/x</command-name>",
    "The user doesn't want to ",
    "<system-reminder>",
    "c1",
    "",
)
_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.sampled_from(_WORDS),
        st.text(max_size=5),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.sampled_from(_KEYS), _values, max_size=8), max_size=6))
def test_any_json_of_known_words_is_read(objects: list[dict[str, Any]]):
    messages, report = read_bytes(file_of(*objects))
    assert [message.index for message in messages] == list(range(len(messages)))
    assert report.lines == len(objects)
