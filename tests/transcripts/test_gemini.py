from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.model.message import Message, ReadReport, TodoItem
from holdfast.transcripts import gemini as reader
from transcripts.gemini_files import CONTEXT, Log, answered, as_history, gemini, tokens, tool, user
from transcripts.odd_input import drained, json_objects, lines, peak_memory, read_all, streamed

_MEGABYTE = 1024 * 1024


def _talk(log: Log) -> list[Message]:
    """The messages after the one that sets the context.

    Read twice: with spaces between the fields, which is parsed whole, and as Gemini CLI writes it.
    """
    messages, report = read_all(reader.read, log.data)
    assert read_all(reader.read, _compact(log.data)) == (messages, report)
    assert messages[0].injected
    return messages[1:]


def _compact(data: bytes) -> bytes:
    parsed = [json.loads(line) for line in data.splitlines()]
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in parsed)


def _shell(call_id: str, command: str, output: str, status: str = "success") -> dict[str, object]:
    wrapped = f"<untrusted_context>\n{output}\n</untrusted_context>"
    return tool(call_id, "run_shell_command", {"command": command}, status, output=wrapped)


def test_a_message_that_is_completed_later_comes_once_with_its_tools() -> None:
    first = gemini("m1", "I will look")
    done = {**first, "toolCalls": [_shell("c1", "ls", "Output: a.py"), _shell("c2", "pwd", "Output: /home")]}
    log = Log().say(user("u1", "look"), first).add(done)
    log.say(answered("u2", "c1", "c2", output="Output: again"), gemini("m2", "done"))

    prompt, answer, one, two, last = _talk(log)

    assert (prompt.role, prompt.text) == ("user", "look")
    assert [call.id for call in answer.tool_calls] == ["c1", "c2"]
    assert (answer.text, answer.usage is not None) == ("I will look", True)
    assert [(r.call_id, r.text, r.outcome) for m in (one, two) for r in m.tool_results] == [
        ("c1", "a.py", "ok"),
        ("c2", "/home", "ok"),
    ]
    assert last.text == "done"


def test_calls_added_to_an_older_message_are_not_lost() -> None:
    first = gemini("m1", "go", toolCalls=[_shell("c1", "ls", "Output: a")])
    more = {**first, "toolCalls": [*first["toolCalls"], _shell("c2", "pwd", "Output: b")]}
    log = Log().say(first, user("u1", "wait")).add(more)
    calls = [call.id for message in _talk(log) for call in message.tool_calls]
    results = [result.call_id for message in _talk(log) for result in message.tool_results]
    assert calls == results == ["c1", "c2"]
    assert sum(1 for m in _talk(log) if m.usage) == 1


_BEFORE = "Command: echo a\\\n  && b\nDirectory: (root)\n"
_AFTER = "Signal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 7"


@pytest.mark.parametrize(
    ("output", "status", "outcome", "text"),
    [
        ("Output: fine\nProcess Group PGID: 7", "success", "ok", "fine"),
        ("Output: bad\nExit Code: 3\nProcess Group PGID: 7", "success", "error", "Exit code 3\nbad"),
        ("Output: (empty)\nExit Code: 0", "success", "ok", ""),
        ("Output: x\nSignal: SIGKILL", "success", "interrupted", "x"),
        (f"{_BEFORE}Output: a\nError: (none)\nExit Code: 0\n{_AFTER}", "success", "ok", "a"),
        (
            f"{_BEFORE}Output: (empty)\nError: (none)\nExit Code: 1\n{_AFTER}",
            "success",
            "error",
            "Exit code 1\n",
        ),
        (
            "Output: Error: no such table\nExit Code: 1",
            "success",
            "error",
            "Exit code 1\nError: no such table",
        ),
        ("Command was automatically cancelled because it ran long.", "success", "error", None),
        ("Command moved to background (PID: 7). Output hidden.", "success", "unknown", None),
        ("refused", "error", "error", None),
        ("stopped", "cancelled", "interrupted", None),
    ],
)
def test_what_a_command_printed_and_how_it_ended(
    output: str, status: str, outcome: str, text: str | None
) -> None:
    log = Log().say(gemini("m1", toolCalls=[_shell("c1", "x", output, status)]))
    result = _talk(log)[-1].tool_results[0]
    assert (result.outcome, result.text) == (outcome, output if text is None else text)


def test_the_report_of_a_sub_agent_is_what_it_says() -> None:
    told = "Subagent 'generalist' finished.\nTermination Reason: GOAL\nResult:\nit adds up"
    asked = tool("c1", "invoke_agent", {"agent_name": "generalist", "prompt": "look"}, output=told)
    assert _talk(Log().say(gemini("m1", toolCalls=[asked])))[-1].tool_results[0].text == "it adds up"


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ('{"answers":{"0":"Sales tax"}}', '"Which tax?"="Sales tax"'),
        ("User dismissed ask_user dialog.", "User dismissed ask_user dialog."),
    ],
)
def test_what_the_user_chose_stands_with_the_question(output: str, text: str) -> None:
    asked = tool("c1", "ask_user", {"questions": [{"question": "Which tax?"}]}, output=output)
    assert _talk(Log().say(gemini("m1", toolCalls=[asked])))[-1].tool_results[0].text == text


def test_only_a_shell_command_has_an_exit_code() -> None:
    read = tool("c1", "read_file", {"file_path": "log"}, output="the log says\nExit Code: 3\n")
    assert _talk(Log().say(gemini("m1", toolCalls=[read])))[-1].tool_results[0].outcome == "ok"


def test_a_hooks_words_are_taken_out_of_the_prompt() -> None:
    hooked = "<hook_context>be brief</hook_context>\n\nfix it"
    log = Log().say(
        user("u1", hooked, "<hook_context>more</hook_context>"),
        user("u2", "see @a.py", "--- Content of a.py ---", displayContent=[{"text": "see @a.py"}]),
        user("u3", "<hook_context>alone</hook_context>"),
    )
    assert [(m.text, m.injected) for m in _talk(log)] == [
        ("fix it", False),
        ("see @a.py", False),
        ("<hook_context>alone</hook_context>", True),
    ]


def test_todos_thoughts_and_usage() -> None:
    todos = [
        {"description": "one", "status": "completed"},
        {"description": "two", "status": "in_progress"},
        {"description": "three", "status": "cancelled"},
    ]
    message = gemini(
        "m1",
        "planning",
        thoughts=[{"subject": "Plan", "description": "first this"}],
        tokens=tokens(1000, cached=800, thoughts=20),
        toolCalls=[tool("c1", "write_todos", {"todos": todos}, output="ok")],
    )
    answer, result = _talk(Log().say(message))
    assert answer.thinking == "Plan: first this"
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.cache_read, answer.usage.output_tokens) == (200, 800, 25)
    assert answer.usage.context == 1025
    assert result.todos == (TodoItem("one", "completed"), TodoItem("two", "in_progress"))


def test_a_resume_that_restates_the_history_adds_nothing() -> None:
    prompt = user("u1", "look")
    work = gemini("m1", "I look", toolCalls=[_shell("c1", "ls", "Output: a")])
    log = Log().say(prompt, work, answered("u2", "c1", output="Output: a"))
    before = _talk(log)
    log.add({"sessionId": "g-1", "projectHash": "00"}).set(messages=[user("ctx", CONTEXT)])
    log.set(
        messages=[
            user("ctx", CONTEXT),
            as_history(prompt),
            as_history(work),
            answered("m1_response", "c1", output="Output: a"),
            answered("u2", "c1", output="Output: a"),
        ]
    )
    assert _talk(log) == before
    assert [m.text for m in _talk(log.say(user("u3", "look")))[len(before) :]] == ["look"]


def test_a_compressed_history_is_a_boundary_with_its_summary() -> None:
    old, answer = user("u1", "long ago"), gemini("m1", "yes")
    prompt, work = user("u2", "go on"), gemini("m2", "working", toolCalls=[_shell("c1", "ls", "Output: a")])
    log = Log().say(old, answer, prompt).add(work)
    before = _talk(log)
    log.set(
        messages=[
            user("ctx", CONTEXT),
            user("n1", "<state_snapshot>all of it</state_snapshot>"),
            as_history(gemini("n2", "Got it.")),
            as_history(prompt, "n3"),
            as_history(work, "n4", with_call_ids=False),
        ]
    )
    log.say(answered("u9", "c1", output="Output: a"), gemini("m3", "after"))
    boundary, thanks, after = _talk(log)[len(before) :]
    assert (boundary.compaction, boundary.text) == (True, "<state_snapshot>all of it</state_snapshot>")
    assert thanks.injected
    assert after.text == "after"


def test_two_compressions_are_two_boundaries_even_with_the_same_words() -> None:
    log = Log()
    for number in range(2):
        log.say(user(f"u{number}", f"prompt {number}"), gemini(f"m{number}", f"answer {number}"))
        log.set(messages=[user("ctx", CONTEXT), user(f"s{number}", "<state_snapshot>same</state_snapshot>")])
    assert sum(1 for message in _talk(log) if message.compaction) == 2


def test_a_history_written_again_line_by_line_under_new_ids_adds_nothing() -> None:
    """So it is when Gemini CLI masks bulky tool output."""
    prompt, work = (
        user("u1", "look"),
        gemini("m1", "I look", toolCalls=[_shell("c1", "ls", "Output: a" * 99)]),
    )
    log = Log().say(prompt, work, answered("u2", "c1", output="Output: aaaa"), gemini("m2", "done"))
    before = _talk(log)
    again = [
        user("n0", CONTEXT, "look"),  # two messages of the user in a row have become one
        as_history(work, "n2"),
        answered("n3", "c1", output="<masked>"),
        as_history(gemini("m2", "done"), "n4"),
    ]
    for generation in "abc":
        renamed = [{**record, "id": record["id"] + generation} for record in again]
        log.say(*renamed).set(messages=renamed)
    assert _talk(log) == before
    assert [m.text for m in _talk(log.say(user("u3", "look"), gemini("m4", "done")))[len(before) :]] == [
        "look",
        "done",
    ]


def test_the_same_words_said_twice_by_the_user_are_two_messages() -> None:
    log = Log().say(user("u1", "continue"), gemini("m1", "ok"), user("u2", "continue"), gemini("m2", "ok"))
    assert [m.text for m in _talk(log)] == ["continue", "ok", "continue", "ok"]


def test_a_history_brought_from_another_file_is_read_in_full() -> None:
    work = gemini("m1", "I look", toolCalls=[_shell("c1", "ls", "Output: a")])
    log = Log().set(
        messages=[
            user("ctx", CONTEXT),
            user("u1", "look"),
            as_history(work),
            answered("u2", "c1", output="Output: a"),
        ]
    )
    prompt, answer, result = _talk(log)
    assert (prompt.text, answer.text, answer.tool_calls[0].name) == ("look", "I look", "run_shell_command")
    assert result.tool_results[0].outcome == "ok"
    assert not any(m.compaction or m.injected for m in (prompt, answer, result))


def test_a_rewind_points_at_the_first_message_taken_back() -> None:
    log = Log().say(user("u1", "one"), gemini("m1", "1"), user("u2", "two"), gemini("m2", "2"))
    marker = _talk(log.add({"$rewindTo": "u2"}))[-1]
    assert marker.undone_from == 3
    assert _talk(log.say(user("u3", "three")))[-1].text == "three"


def test_notices_and_the_session() -> None:
    log = Log("g-7").say({"id": "i1", "type": "info", "content": "Updated"}).set(summary="The shop")
    messages, report = read_all(reader.read, log.data)
    assert (messages[-1].role, messages[-1].text) == ("system", "Updated")
    assert (report.session_id, report.cwd, report.title) == ("g-7", "/home/ada/shop", "The shop")


def test_a_sub_agents_file_says_so_in_every_message() -> None:
    log = Log("sub-1", kind="subagent", directories=["/home/ada/shop"]).say(user("u1", "look"))
    assert {m.subagent for m in _talk(log)} == {"sub-1"}


def test_sessions_of_older_versions_are_one_document() -> None:
    document = {
        "sessionId": "old",
        "messages": [user("u1", "look"), gemini("m1", "done")],
        "summary": "Title",
    }
    for indent in (2, None, 1):
        messages, report = read_all(reader.read, json.dumps(document, indent=indent).encode())
        assert [m.text for m in messages] == ["look", "done"]
        assert (report.session_id, report.title, report.torn) == ("old", "Title", 0)


def test_a_cut_document_keeps_its_whole_messages() -> None:
    document = {"sessionId": "old", "messages": [user("u1", "look"), gemini("m1", "done")]}
    messages, report = read_all(reader.read, json.dumps(document, indent=2).encode()[:-60])
    assert [m.text for m in messages] == ["look"]
    assert report.torn == 1


def test_messages_in_the_first_line_are_read_and_those_without_an_id_are_not() -> None:
    log = Log(messages=[user("u1", "hello"), {"type": "user"}, {"id": 7}, "x"])
    messages, _ = read_all(reader.read, log.data)
    assert [m.text for m in messages if not m.injected] == ["hello"]


def test_torn_doubled_and_unknown_lines_are_counted() -> None:
    log = Log().say(user("u1", "hello"), gemini("m1", "hi"), user("u2", "more"))
    log.add(user("u1", "hello"), {"new": 1}, {"id": "x", "type": "novel"})
    messages, report = read_all(reader.read, log.data + b"\xff\xfe\n" + log.lines[0][:20])
    assert [m.text for m in messages[1:]] == ["hello", "hi", "more"]
    assert (report.duplicated, report.torn) == (1, 2)
    assert report.unknown_types == {"new": 1, "message/novel": 1}


def test_a_line_of_fifty_megabytes_costs_little_memory() -> None:
    huge = (b'{"id":"h","type":"user","content":"', *[b"a" * _MEGABYTE] * 50, b'"}\n')
    report = ReadReport()
    pieces = [Log().data, *huge, Log().say(user("u1", "after")).data]
    assert peak_memory(lambda: drained(reader.read, streamed(pieces), report)) < 60 * _MEGABYTE
    assert report.oversized == 1


def test_memory_does_not_grow_with_the_file() -> None:
    def peak(turns: int) -> int:
        def pieces() -> Iterator[bytes]:
            yield Log().data
            for number in range(turns):
                work = gemini(f"m{number}", "x" * 1000, toolCalls=[_shell(f"c{number}", "ls", "y" * 20_000)])
                yield lines(user(f"u{number}", "p"), work)

        return peak_memory(lambda: drained(reader.read, streamed(pieces()), ReadReport()))

    few, many = peak(200), peak(1600)
    # 28 MB more to read; of each message only its id and a hash are kept.
    assert many - few < 2 * _MEGABYTE


_KEYS = (
    "$set",
    "$rewindTo",
    "id",
    "type",
    "content",
    "messages",
    "text",
    "toolCalls",
    "functionCall",
    "functionResponse",
    "response",
    "output",
    "error",
    "name",
    "args",
    "status",
    "result",
    "tokens",
    "input",
    "cached",
    "thoughts",
    "thought",
    "sessionId",
    "kind",
    "directories",
    "displayContent",
    "timestamp",
    "model",
    "todos",
    "summary",
)
_WORDS = (
    "user",
    "gemini",
    "info",
    "a",
    "b",
    "success",
    "cancelled",
    "write_todos",
    "subagent",
    CONTEXT,
    "<state_snapshot>",
)


@settings(deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes(data: bytes) -> None:
    read_all(reader.read, data)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(json_objects(_KEYS, _WORDS), max_size=8))
def test_any_json_lines(objects: list[dict[str, object]]) -> None:
    read_all(reader.read, lines(*objects))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(json_objects(_KEYS, _WORDS), max_size=6), st.sampled_from([1, 2, None]), st.integers(0, 40))
def test_any_document(objects: list[dict[str, object]], indent: int | None, cut: int) -> None:
    data = json.dumps({"sessionId": "s", "messages": objects, "kind": "main"}, indent=indent).encode()
    read_all(reader.read, data[: len(data) - cut])


def _tool_use(number: int, *, told_again: bool = True) -> list[dict[str, object]]:
    """An answer, the same with its tool, and the result once more for the model."""
    answer: dict[str, object] = gemini(f"m{number}", "I will look")
    done: dict[str, object] = {**answer, "toolCalls": [_shell(f"c{number}", "ls", "Output: a.py")]}
    again = {"timestamp": "2026-03-01T10:00:03.000Z", **answered(f"r{number}", f"c{number}", output="a.py")}
    ordered: dict[str, object] = {key: again[key] for key in ("id", "timestamp", "type", "content")}
    return [answer, done, ordered] if told_again else [answer, ordered]


_STEPS: tuple[list[dict[str, object]], ...] = (
    _tool_use(1),
    _tool_use(2),
    _tool_use(3, told_again=False),
    [user("u1", "go on")],
    [user("u2", CONTEXT)],
    [gemini("m9", "done")],
    [{"$rewindTo": "u1"}],
    [{"$set": {"lastUpdated": "2026-03-01T10:00:02.000Z"}}],
    [{"$set": {"lastUpdated": "2026-03-01T10:00:02.000Z", "summary": "The shop"}}],
    [{"$set": {"messages": [user("ctx", CONTEXT), user("s1", "<state_snapshot>so far</state_snapshot>")]}}],
    [{"$set": {"messages": [user("ctx", CONTEXT), user("u1", "go on"), gemini("m1", "I will look")]}}],
)


@settings(deadline=None)
@given(st.lists(st.sampled_from(_STEPS), max_size=14))
def test_lines_that_are_not_parsed_would_have_said_nothing(steps: list[list[dict[str, object]]]) -> None:
    log = Log()
    for records in steps:
        log.add(*records)
    _talk(log)
