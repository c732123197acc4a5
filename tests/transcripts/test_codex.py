from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.model.message import Message, ReadReport, TodoItem
from holdfast.transcripts import codex
from transcripts.codex_files import Rollout, ran
from transcripts.odd_input import (
    drained,
    json_objects,
    lines,
    peak_memory,
    read_all,
    streamed,
)

_MEGABYTE = 1024 * 1024


def _messages(rollout: Rollout) -> list[Message]:
    """Of the file with spaces between its fields, which is parsed whole, and as Codex writes it."""
    messages, report = read_all(codex.read, rollout.data)
    compact, same_report = read_all(codex.read, _compact(rollout.data))
    assert _without_times(compact) == _without_times(messages)
    assert same_report == report
    return messages


def _compact(data: bytes) -> bytes:
    parsed = [json.loads(line) for line in data.splitlines()]
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in parsed)


def _without_times(messages: list[Message]) -> list[Message]:
    """What is made at the end of a file has the time of the last line that was parsed."""
    return [replace(message, at=None) for message in messages]


def _outcome(output: object, *events: Mapping[str, object]) -> tuple[str, str]:
    rollout = Rollout().calls("exec_command", {"cmd": "x"}, "c1")
    for event in events:
        rollout.add("event_msg", dict(event))
    result = _messages(rollout.answers("c1", output))[-1].tool_results[0]
    return result.outcome, result.text


def test_one_answer_of_the_model_becomes_one_message_followed_by_its_results() -> None:
    rollout = Rollout().prompt("fix the login").thinks("look first").says("I will look")
    rollout.calls("exec_command", {"cmd": "ls"}, "c1").calls("exec_command", {"cmd": "pwd"}, "c2").used(
        "r1", 100, 60
    )
    rollout.answers("c1", ran(0, "a.py\n")).answers("c2", ran(0, "/home\n")).says("done").used("r2", 120)

    prompt, answer, first, second, last = _messages(rollout)

    assert (prompt.role, prompt.text, prompt.injected) == ("user", "fix the login", False)
    assert (answer.text, answer.thinking) == ("I will look", "look first")
    assert [call.arguments for call in answer.tool_calls] == [{"cmd": "ls"}, {"cmd": "pwd"}]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.cache_read, answer.usage.context) == (40, 60, 105)
    assert [m.tool_results[0].call_id for m in (first, second)] == ["c1", "c2"]
    assert first.tool_results[0].text == "a.py\n"
    assert last.text == "done"


def test_the_session_line_fills_the_report_and_a_copied_one_does_not_overwrite_it() -> None:
    rollout = Rollout(cwd="/home/ada/shop", session_id="mine", git={"branch": "topic"})
    rollout.add("session_meta", {"id": "ancestor", "cwd": "/elsewhere"})
    _, report = read_all(codex.read, rollout.data)
    assert (report.agent, report.session_id, report.cwd) == ("codex", "mine", "/home/ada/shop")
    assert (report.branch, report.model) == ("topic", "gpt-x")


@pytest.mark.parametrize(
    ("output", "outcome", "text"),
    [
        (ran(0, "fine\n"), "ok", "fine\n"),
        (ran(3, "bad\n"), "error", "Exit code 3\nbad\n"),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nDone\n", "ok", "Done\n"),
        ("Exit code: 2\nWall time: 0 seconds\nOutput:\nno\n", "error", "Exit code 2\nno\n"),
        (json.dumps({"output": "no", "metadata": {"exit_code": 1}}), "error", "Exit code 1\nno"),
        (json.dumps({"output": "yes", "metadata": {"exit_code": 0}}), "ok", "yes"),
        (
            "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\n..",
            "unknown",
            "..",
        ),
        ("Wall time: 1.1 seconds\naborted by user", "interrupted", "Wall time: 1.1 seconds\naborted by user"),
        ("aborted by user after 2.0s", "interrupted", "aborted by user after 2.0s"),
        ("unsupported call: frob", "error", "unsupported call: frob"),
        ({"content": "nope", "success": False}, "error", "nope"),
        (
            [{"type": "input_text", "text": "seen"}, {"type": "input_image", "image_url": "data:"}],
            "ok",
            "seen",
        ),
        ("a test printed: Process exited with code 9", "ok", "a test printed: Process exited with code 9"),
    ],
)
def test_outcomes_are_read_out_of_the_output(output: object, outcome: str, text: str) -> None:
    assert _outcome(output) == (outcome, text)


def test_an_event_tells_of_a_failure_that_the_output_hides() -> None:
    event = {"type": "item_completed", "item": {"type": "McpToolCall", "id": "c1", "status": "failed"}}
    assert _outcome("the server said no", event)[0] == "error"
    assert (
        _outcome("Patch failed", {"type": "patch_apply_end", "call_id": "c1", "success": False})[0] == "error"
    )


def test_a_printed_exit_code_wins_over_an_event() -> None:
    event = {"type": "item_completed", "item": {"type": "CommandExecution", "id": "c1", "status": "failed"}}
    assert _outcome(ran(0, "ok\n"), event)[0] == "ok"


@pytest.mark.parametrize("ending", ["turn_aborted", "task_started"])
def test_calls_left_open_when_their_turn_ends_were_interrupted(ending: str) -> None:
    rollout = Rollout().calls("exec_command", {"cmd": "sleep 60"}, "c1").used("r1", 10).event(ending)
    result = next(message for message in _messages(rollout.prompt("go on")) if message.tool_results)
    assert (result.tool_results[0].call_id, result.tool_results[0].outcome) == ("c1", "interrupted")


def test_a_call_still_running_at_the_end_of_the_file_has_no_result() -> None:
    (answer,) = _messages(Rollout().calls("exec_command", {"cmd": "make"}, "c1"))
    assert answer.tool_calls
    assert not answer.tool_results


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("<environment_context>\n</environment_context>", None),
        ("# AGENTS.md instructions for /home", None),
        ("anything at all", "generic.turn_aborted"),
        ("anything at all", "hooks.additional_context"),
    ],
)
def test_what_the_program_says_in_the_users_name_is_marked(text: str, kind: str | None) -> None:
    assert _messages(Rollout().prompt(text, kind=kind))[0].injected


def test_what_the_user_typed_is_kept_apart_from_what_came_with_it() -> None:
    rollout = Rollout().item(
        "message",
        role="user",
        content=[{"type": "input_text", "text": "<skill>s</skill>"}, {"type": "input_text", "text": "do it"}],
    )
    rollout.prompt(
        "# Context from my IDE setup:\n\n## Open tabs:\n- a\n\n## My request for Codex:\nrename it\n"
    )
    assert [(m.text, m.injected) for m in _messages(rollout)] == [("do it", False), ("rename it", False)]


def test_developer_messages_are_the_programs() -> None:
    (message,) = _messages(Rollout().prompt("rules", role="developer"))
    assert (message.role, message.injected) == ("system", True)


def test_a_plan_becomes_the_todo_list_once_it_was_accepted() -> None:
    steps = [
        {"step": "one", "status": "completed"},
        {"step": "two", "status": "in_progress"},
        {"step": "three"},
    ]
    rollout = Rollout().calls("update_plan", {"plan": steps}, "c1").answers("c1", "Plan updated")
    assert _messages(rollout)[-1].todos == (
        TodoItem("one", "completed"),
        TodoItem("two", "in_progress"),
        TodoItem("three", "pending"),
    )
    refused = (
        Rollout().calls("update_plan", {"plan": steps}, "c1").answers("c1", "unsupported call: update_plan")
    )
    assert _messages(refused)[-1].todos is None


def test_what_a_sub_agent_reports_answers_the_call_that_started_it() -> None:
    rollout = Rollout()
    for agent in ("a1", "a2"):
        rollout.calls("spawn_agent", {"message": "look at the cart"}, agent.upper())
        rollout.answers(agent.upper(), json.dumps({"agent_id": agent, "nickname": "Euclid"}))
    waited = {"status": {"a1": {"completed": "it adds up"}, "other": {"completed": "x"}}, "timed_out": False}
    for call_id in ("w1", "w2"):
        rollout.calls("wait_agent", {"targets": ["a1"]}, call_id).answers(call_id, json.dumps(waited))
    notice = json.dumps({"agent_id": "a2", "status": {"errored": "no tokens left"}})
    rollout.prompt(f"<subagent_notification>\n{notice}\n</subagent_notification>", kind="other")
    told = [(r.call_id, r.outcome, r.text) for m in _messages(rollout) for r in m.tool_results]
    assert [one for one in told if one[0] in ("A1", "A2") and one[1] != "unknown"] == [
        ("A1", "ok", "it adds up"),
        ("A2", "error", "no tokens left"),
    ]
    assert [one[0] for one in told if one[1] == "unknown"] == ["A1", "A2"]


def test_what_the_user_chose_stands_with_the_question() -> None:
    asked = {"questions": [{"id": "q", "question": 'Which "tax"?'}, {"id": "r", "question": "When?"}]}
    given = {"answers": {"q": {"answers": ["Sales tax", "user_note: and soon"]}, "r": {"answers": []}}}
    rollout = Rollout().calls("request_user_input", asked, "c1").answers("c1", json.dumps(given))
    assert _messages(rollout)[-1].tool_results[0].text == '"Which \'tax\'?"="Sales tax, and soon"'


def test_compaction_gives_the_summary_once() -> None:
    lead = "Another language model started to solve this problem and so on:\n"
    rollout = Rollout().prompt("hello").says("THE SUMMARY", {"compaction_output": True}).used("r1", 10)
    rollout.token_count(10, 10).add("compacted", {"message": lead + "THE SUMMARY"}).token_count(10, 0)
    messages = _messages(rollout.says("on we go").used("r2", 20))
    assert [m.text for m in messages] == ["hello", "THE SUMMARY", "on we go"]
    assert [m.compaction for m in messages] == [False, True, False]
    assert messages[1].usage is not None

    (older,) = _messages(Rollout().add("compacted", {"message": lead + "OLD SUMMARY"}))
    assert (older.text, older.compaction) == ("OLD SUMMARY", True)


def test_usage_is_counted_once_whichever_way_it_is_told() -> None:
    both = (
        Rollout()
        .says("a")
        .used("r1", 100)
        .token_count(100, 100)
        .says("b")
        .used("r2", 150)
        .token_count(250, 150)
    )
    assert [m.usage.input_tokens for m in _messages(both) if m.usage] == [100, 150]

    totals = Rollout().says("a").token_count(100, 100).token_count(100, 100).says("b").token_count(250, 150)
    assert [m.usage.input_tokens for m in _messages(totals) if m.usage] == [100, 150]

    twice = Rollout().says("a").used("r1", 100).used("r1", 100)
    assert sum(1 for m in _messages(twice) if m.usage) == 1


def test_usage_told_after_the_results_still_belongs_to_the_answer() -> None:
    rollout = (
        Rollout().calls("exec_command", {"cmd": "ls"}, "c1").answers("c1", ran(0, "")).token_count(10, 10)
    )
    answer, result = _messages(rollout)
    assert answer.usage is not None
    assert result.tool_results


def test_a_sub_agents_file_says_so_in_every_message() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "s-0"}}}
    rollout = Rollout(source=source, agent_nickname="Harvey").prompt("look around").says("done")
    assert {m.subagent for m in _messages(rollout)} == {"Harvey"}


def test_a_roll_back_points_at_the_first_message_taken_back() -> None:
    rollout = Rollout().prompt("one").says("1").prompt("two").says("2").prompt("three").says("3")
    marker = _messages(rollout.event("thread_rolled_back", num_turns=2))[-1]
    assert marker.undone_from == 2


def test_tools_of_other_kinds() -> None:
    rollout = Rollout().item("custom_tool_call", name="apply_patch", input="*** Begin", call_id="c1")
    rollout.answers("c1", "Exit code: 0\nWall time: 0 seconds\nOutput:\nDone", "custom_tool_call_output")
    rollout.item("local_shell_call", call_id="c2", action={"type": "exec", "command": ["ls"]})
    rollout.answers("c2", ran(0, "a"))
    rollout.item("web_search_call", status="completed", action={"type": "search", "query": "q"})
    messages = _messages(rollout)
    calls = [(call.name, call.arguments) for m in messages for call in m.tool_calls]
    assert calls == [
        ("apply_patch", {"input": "*** Begin"}),
        ("local_shell", {"type": "exec", "command": ["ls"]}),
        ("web_search", {"type": "search", "query": "q"}),
    ]
    assert [r.outcome for m in messages for r in m.tool_results] == ["ok", "ok", "ok"]


def test_the_first_versions_wrote_items_bare() -> None:
    data = lines(
        {"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c1"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": '{"output":"a","metadata":{"exit_code":0}}',
        },
    )
    messages, report = read_all(codex.read, data)
    assert report.session_id == "old"
    assert [m.text for m in messages if m.text] == ["hi"]
    assert messages[-1].tool_results[0].text == "a"


def test_torn_doubled_unknown_and_foreign_lines_are_counted() -> None:
    rollout = Rollout().prompt("hello").says("hi")
    rollout.lines.append(rollout.lines[-1])
    rollout.add("brand_new", {}).event("brand_new_event").item("brand_new_item")
    data = rollout.data + b"[1, 2]\nnot json\n" + rollout.lines[2][:40]
    messages, report = read_all(codex.read, data)
    assert [m.text for m in messages] == ["hello", "hi"]
    assert (report.duplicated, report.unknown, report.torn) == (1, 3, 3)
    assert set(report.unknown_types) == {
        "brand_new",
        "event_msg/brand_new_event",
        "response_item/brand_new_item",
    }


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_a_file_cut_anywhere_keeps_what_came_before(cut: int) -> None:
    rollout = Rollout().prompt("hello").says("hi")
    whole = _messages(rollout)
    messages, _ = read_all(codex.read, rollout.data[:-cut] if cut else rollout.data)
    assert messages == whole[: len(messages)]


def test_a_line_of_fifty_megabytes_costs_little_memory() -> None:
    before, after = Rollout().prompt("before"), Rollout().prompt("after")
    huge = (b'{"type":"response_item","payload":{"type":"message","x":"', *[b"a" * _MEGABYTE] * 50, b'"}}\n')
    report = ReadReport()
    peak = peak_memory(lambda: drained(codex.read, streamed([before.data, *huge, after.data]), report))
    assert peak < 60 * _MEGABYTE
    assert report.oversized == 1
    assert report.lines == len(before.lines) + len(after.lines) + 1


@pytest.mark.whole_sample
def test_memory_does_not_grow_with_the_file() -> None:
    def peak(turns: int) -> int:
        return peak_memory(lambda: drained(codex.read, streamed(_turns(turns)), ReadReport()))

    # What is remembered of lines and calls is bounded; beyond that bound nothing may be added.
    assert peak(9_000) < peak(4_500) + _MEGABYTE


def _turns(count: int) -> Iterator[bytes]:
    for number in range(count):
        rollout = Rollout().prompt(f"p{number}").calls("exec_command", {"cmd": f"c{number}"}, f"c{number}")
        rollout.used(f"r{number}", number).answers(f"c{number}", ran(0, "x" * 2000))
        yield rollout.data


_KEYS = (
    "type",
    "payload",
    "timestamp",
    "ordinal",
    "id",
    "call_id",
    "role",
    "content",
    "text",
    "output",
    "arguments",
    "name",
    "info",
    "usage",
    "message",
    "item",
    "status",
    "summary",
    "metadata",
    "compaction_output",
    "num_turns",
    "total_token_usage",
    "last_token_usage",
    "input_tokens",
    "git",
    "source",
    "subagent",
    "cwd",
    "model",
    "plan",
    "internal_chat_message_metadata_passthrough",
    "content_item_kinds",
    "action",
    "input",
    "success",
)
_WORDS = (
    "response_item",
    "event_msg",
    "session_meta",
    "turn_context",
    "compacted",
    "token_usage_record",
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "web_search_call",
    "token_count",
    "turn_aborted",
    "item_completed",
    "thread_rolled_back",
    "user",
    "assistant",
    "update_plan",
    '{"plan": [1, {"step": "x", "status": []}]}',
    "error",
    '{"output":',
    "Exit code: 1",
)


@settings(deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes(data: bytes) -> None:
    read_all(codex.read, data)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(json_objects(_KEYS, _WORDS), max_size=8))
def test_any_json_lines(objects: list[dict[str, object]]) -> None:
    read_all(codex.read, lines(*objects))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["response_item", "event_msg", "compacted"]), json_objects(_KEYS, _WORDS)),
        max_size=8,
    )
)
def test_any_payload(entries: list[tuple[str, dict[str, object]]]) -> None:
    read_all(codex.read, lines(*({"type": kind, "payload": payload} for kind, payload in entries)))


def _completed(kind: str, **fields: object) -> Callable[[Rollout], Rollout]:
    item = {"type": kind, "id": "c1", **fields}
    return lambda rollout: rollout.event("item_completed", thread_id="t", turn_id="u", item=item)


_STEPS: tuple[Callable[[Rollout], Rollout], ...] = (
    lambda rollout: rollout.prompt("go on"),
    lambda rollout: rollout.says("I will"),
    lambda rollout: rollout.thinks("hm"),
    lambda rollout: rollout.calls("exec_command", {"cmd": "ls"}, "c1"),
    lambda rollout: rollout.calls("mcp", {}, "c1"),
    lambda rollout: rollout.answers("c1", ran(0, "a.py")),
    lambda rollout: rollout.answers("c1", ran(2, "gone")),
    lambda rollout: rollout.answers("c1", "said without an exit code"),
    lambda rollout: rollout.used("r1", 100),
    lambda rollout: rollout.used("r2", 200),
    lambda rollout: rollout.token_count(300, 100),
    lambda rollout: rollout.token_count(500, 200),
    lambda rollout: rollout.event("agent_message", message="I will"),
    lambda rollout: rollout.event("turn_aborted"),
    lambda rollout: rollout.event("never_heard_of"),
    _completed("UserMessage", content=[]),
    _completed("AgentMessage", content=[{"text": '"item":{"type":"McpToolCall","status":"failed"'}]),
    _completed("CommandExecution", command=['"status":"completed"'], status="failed", exit_code=1),
    _completed("CommandExecution", command=["ls"], status="completed", exit_code=0),
    _completed("McpToolCall", status="failed"),
    _completed("FileChange", status="declined"),
)


@settings(deadline=None)
@given(st.lists(st.sampled_from(_STEPS), max_size=25))
def test_lines_that_are_not_parsed_would_have_said_nothing(steps: list[Callable[[Rollout], Rollout]]) -> None:
    rollout = Rollout()
    for step in steps:
        step(rollout)
    _messages(rollout)


def test_a_line_cut_short_is_torn_even_where_it_would_not_be_parsed() -> None:
    whole = _compact(Rollout().event("agent_message", message="hello").data)
    assert read_all(codex.read, whole)[1].torn == 0
    assert read_all(codex.read, whole[:-3])[1].torn == 1
