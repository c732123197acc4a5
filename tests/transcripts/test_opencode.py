from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.base.errors import DamagedDataError, HoldfastError, InvalidInputError, NotFoundError
from holdfast.model.message import Message, ReadReport, TodoItem
from holdfast.transcripts import opencode
from transcripts.odd_input import json_objects, json_values, peak_memory, read_all, streamed
from transcripts.opencode_files import Database, export, shell, text, tokens, tool

_MEGABYTE = 1024 * 1024


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "opencode.db").session()


def _read(path: Path, report: ReadReport, session_id: str | None = None) -> Iterator[Message]:
    with path.open("rb") as source:
        yield from opencode.read(source, report, session_id)


def _messages(path: Path, session_id: str | None = None) -> list[Message]:
    messages = list(_read(path, ReadReport(), session_id))
    assert [message.index for message in messages] == list(range(len(messages)))
    return messages


def test_a_turn_with_tools(database: Database) -> None:
    database.message("user", text("fix the login"))
    database.message(
        "assistant",
        {"type": "step-start"},
        {"type": "reasoning", "text": "look first"},
        text("I look"),
        shell("c1", "ls", "a.py\n", 0),
        shell("c2", "pwd", "/home\n", 0),
        {"type": "step-finish"},
        tokens=tokens(100, output=5, read=40, reasoning=3),
    )
    database.message("assistant", text("done"))
    prompt, answer, first, second, last = _messages(database.path)
    assert (prompt.role, prompt.text, prompt.injected) == ("user", "fix the login", False)
    assert (answer.text, answer.thinking) == ("I look", "look first")
    assert [call.arguments for call in answer.tool_calls] == [{"command": "ls"}, {"command": "pwd"}]
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.cache_read, answer.usage.output_tokens) == (100, 40, 8)
    assert [(r.call_id, r.text, r.outcome) for m in (first, second) for r in m.tool_results] == [
        ("c1", "a.py\n", "ok"),
        ("c2", "/home\n", "ok"),
    ]
    assert (last.text, last.at) == ("done", "2026-02-25T06:13:24.000Z")


@pytest.mark.parametrize(
    ("part", "outcome", "told"),
    [
        (shell("c", "x", "bad\n", 3), "error", "bad\n"),
        (shell("c", "x", "half", None), "interrupted", "half"),
        (tool("read", "c", "error", error="File not found"), "error", "File not found"),
        (tool("read", "c", "error", error="Tool execution aborted"), "interrupted", "Tool execution aborted"),
        (tool("invalid", "c", output="no such tool"), "error", "no such tool"),
        (tool("write", "c", output="Wrote it", metadata={}), "ok", "Wrote it"),
        (tool("bash", "c", "running", metadata={"output": "so far"}), "unknown", "so far"),
        (tool("bash", "c", "pending"), "unknown", ""),
    ],
)
def test_outcomes(database: Database, part: dict[str, Any], outcome: str, told: str) -> None:
    database.message("assistant", part)
    result = _messages(database.path)[-1].tool_results[0]
    assert (result.outcome, result.text) == (outcome, told)


@pytest.mark.parametrize(
    ("output", "told", "outcome"),
    [
        (
            '<task id="ses_2" state="completed">\n<task_result>\nit adds up\n</task_result>\n</task>',
            "it adds up",
            "ok",
        ),
        ("task_id: ses_2 (for resuming)\n\n<task_result>\nit adds up\n</task_result>", "it adds up", "ok"),
        (
            '<task id="ses_2" state="running">\n<task_result>\nYou will hear.\n</task_result>\n</task>',
            "You will hear.",
            "unknown",
        ),
        ("it says <task_result>", "it says <task_result>", "ok"),
    ],
)
def test_the_report_of_a_sub_agent_is_what_it_says(
    database: Database, output: str, told: str, outcome: str
) -> None:
    database.message("assistant", tool("task", "c1", input={"prompt": "look"}, output=output))
    (result,) = _messages(database.path)[-1].tool_results
    assert (result.text, result.outcome) == (told, outcome)


def test_a_tool_left_running_by_an_older_message_was_interrupted(database: Database) -> None:
    database.message("assistant", tool("bash", "c1", "running"))
    database.message("user", text("go on"))
    assert _messages(database.path)[1].tool_results[0].outcome == "interrupted"


def test_a_task_whose_sub_agent_still_works_is_not_interrupted(database: Database) -> None:
    database.message("user", text("look"))
    database.message("assistant", tool("task", "c1", "running"))
    database.session("ses_2", parent="ses_1")
    database.message("user", text("look around"), session="ses_2")
    database.message("assistant", text("looking"), session="ses_2", agent="general")
    messages = _messages(database.path)
    assert messages[2].tool_results[0].outcome == "unknown"
    assert [(m.text, m.subagent) for m in messages[3:]] == [("look around", "ses_2"), ("looking", "general")]


def test_sub_agents_of_sub_agents_and_a_ring_of_parents(database: Database) -> None:
    database.session("ses_2", parent="ses_1").session("ses_3", parent="ses_2")
    database.run("UPDATE session SET parent_id = 'ses_3' WHERE id = 'ses_2'")
    database.message("user", text("deep"), session="ses_3")
    assert [m.text for m in _messages(database.path, "ses_2")] == ["deep"]


def test_an_aborted_message_and_one_that_failed(database: Database) -> None:
    aborted = {"name": "MessageAbortedError", "data": {"message": "Aborted"}}
    database.message(
        "assistant", text("half"), tool("read", "c1", "running"), error=aborted, tokens=tokens(0, 0)
    )
    database.message(
        "assistant", error={"name": "APIError", "data": {"message": "overloaded"}}, tokens=tokens(0, 0)
    )
    half, result, stop, failure = _messages(database.path)
    assert (stop.turn, failure.turn) == ("stopped", "failed")
    assert (half.text, half.usage, result.tool_results[0].outcome) == ("half", None, "interrupted")
    assert (failure.role, failure.text) == ("system", "APIError: overloaded")


def test_todos(database: Database) -> None:
    todos = [
        {"content": "one", "status": "completed"},
        {"content": "two", "status": "in_progress"},
        {"content": "three", "status": "cancelled"},
    ]
    database.message("assistant", tool("todowrite", "c1", input={"todos": todos}, output="[]"))
    assert _messages(database.path)[-1].todos == (
        TodoItem("one", "completed"),
        TodoItem("two", "in_progress"),
    )


def test_compaction(database: Database) -> None:
    database.message("user", text("hello"), summary={"diffs": []})
    database.message("user", {"type": "compaction", "auto": True})
    database.message("assistant", text("THE SUMMARY"), summary=True, agent="compaction")
    database.message("user", text("Continue", synthetic=True))
    messages = _messages(database.path)
    assert [(m.text, m.compaction, m.injected) for m in messages] == [
        ("hello", False, False),
        ("THE SUMMARY", True, True),
        ("Continue", False, True),
    ]


def test_what_the_program_adds_to_a_prompt_is_not_the_prompt(database: Database) -> None:
    database.message(
        "user",
        text("see @a.py"),
        text("Called the Read tool", synthetic=True),
        {"type": "file", "filename": "a.py", "mime": "text/plain"},
    )
    (prompt,) = _messages(database.path)
    assert (prompt.text, prompt.injected) == ("see @a.py", False)


def test_each_step_of_one_message_is_a_message(database: Database) -> None:
    database.message(
        "assistant",
        {"type": "step-start"},
        text("a"),
        shell("c1", "x", "1", 0),
        {"type": "step-start"},
        text("b"),
    )
    messages = _messages(database.path)
    assert [m.text for m in messages] == ["a", "", "b"]
    assert sum(1 for m in messages if m.usage) == 1


def test_what_the_user_reverted_is_left_out_and_counted(database: Database) -> None:
    database.message("user", text("one"))
    second = database.message("user", text("two"))
    database.message("assistant", text("2"))
    database.run("UPDATE session SET revert = ?", json.dumps({"messageID": second}))
    report = ReadReport()
    assert [m.text for m in _read(database.path, report)] == ["one"]
    assert report.taken_back == 2


def test_which_session(database: Database) -> None:
    database.message("user", text("older"))
    database.session("ses_2", title="Second").session("ses_3", parent="ses_2")
    database.message("user", text("newer"), session="ses_2")
    report = ReadReport()
    assert [m.text for m in _read(database.path, report)] == ["newer"]
    assert (report.session_id, report.cwd, report.title) == ("ses_2", "/home/ada/shop", "Second")
    assert [m.text for m in _messages(database.path, "ses_1")] == ["older"]
    with pytest.raises(NotFoundError, match="no session ses_9"):
        _messages(database.path, "ses_9")


def test_a_stream_of_a_file_works_and_one_without_a_path_is_refused(database: Database) -> None:
    database.message("user", text("hello"))
    with database.path.open("rb") as source:
        assert [m.text for m in opencode.read(source, ReadReport())] == ["hello"]
    with pytest.raises(InvalidInputError):
        opencode.read(io.BytesIO(database.path.read_bytes()), ReadReport())


# --- never writing


def _listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


def test_reading_a_closed_database_leaves_nothing_behind(database: Database) -> None:
    database.message("user", text("hello"))
    before = _listing(database.path.parent)
    _messages(database.path)
    assert _listing(database.path.parent) == before
    assert not list(database.path.parent.glob("*-shm"))


def test_a_database_that_is_being_written_is_read_as_of_the_start(database: Database) -> None:
    database.message("user", text("one"))
    with closing(sqlite3.connect(database.path)) as writer:
        writer.execute("PRAGMA wal_autocheckpoint=0")
        writer.execute("UPDATE session SET title = 'live'")
        writer.commit()
        database.message("user", text("two"))
        before = _listing(database.path.parent)
        report = ReadReport()
        reading = _read(database.path, report)
        assert next(reading).text == "one"
        assert _listing(database.path.parent) == before
        database.message("user", text("three"))
        assert [m.text for m in reading] == ["two"]
        assert report.title == "live"
        assert [m.text for m in _messages(database.path)] == ["one", "two", "three"]


def test_a_folder_that_cannot_be_written_is_no_hindrance(database: Database) -> None:
    database.message("user", text("hello"))
    database.path.parent.chmod(0o500)
    try:
        assert [m.text for m in _messages(database.path)] == ["hello"]
    finally:
        database.path.parent.chmod(0o700)


# --- exports


@pytest.mark.parametrize("indent", [2, None, 4])
def test_an_export_reads_like_the_database(indent: int | None, tmp_path: Path) -> None:
    data = export(
        ("user", [text("hello")]), ("assistant", [text("hi"), shell("c1", "ls", "a", 0)]), indent=indent
    )
    messages, report = read_all(opencode.read, data)
    assert [m.text for m in messages] == ["hello", "hi", ""]
    assert messages[2].tool_results[0].outcome == "ok"
    assert (report.session_id, report.cwd, report.torn) == ("ses_1", "/home/ada/shop", 0)
    path = tmp_path / "export.json"
    path.write_bytes(data)
    assert _messages(path) == messages


def test_an_export_knows_what_was_reverted_and_what_was_left_running() -> None:
    data = export(
        ("assistant", [tool("bash", "c1", "running")]),
        ("user", [text("two")]),
        ("assistant", [tool("bash", "c2", "running")]),
        ("user", [text("gone")]),
        revert={"messageID": "msg_3"},
    )
    messages, report = read_all(opencode.read, data)
    assert [r.outcome for m in messages for r in m.tool_results] == ["interrupted", "unknown"]
    assert report.taken_back == 1


def test_a_cut_export_keeps_its_whole_messages() -> None:
    data = export(("user", [text("one")]), ("user", [text("two")]), ("user", [text("three")]))
    messages, report = read_all(opencode.read, data[:-80])
    assert [m.text for m in messages] == ["one", "two"]
    assert report.torn == 1


def test_a_huge_message_in_an_export_is_passed_over_within_bounded_memory() -> None:
    head, tail = export(("user", [text("SPLIT")])).split(b"SPLIT")
    report = ReadReport()

    def drain() -> None:
        list(opencode.read(streamed([head, *[b"a" * _MEGABYTE] * 50, tail]), report))

    assert peak_memory(drain) < 60 * _MEGABYTE
    assert report.oversized == 1


def test_memory_does_not_grow_with_an_export() -> None:
    def pieces(count: int) -> Iterator[bytes]:
        head, tail = export(("user", [text("SPLIT")])).split(b"    {", 1)
        message, end = (b"    {" + tail).rsplit(b"\n  ]", 1)
        yield head
        for number in range(count):
            yield message.replace(b"SPLIT", b"x" * 20_000) + (
                b",\n" if number < count - 1 else b"\n  ]" + end
            )

    def peak(count: int) -> int:
        return peak_memory(lambda: sum(1 for _ in opencode.read(streamed(pieces(count)), ReadReport())))

    assert peak(1000) - peak(100) < _MEGABYTE


# --- damage


def test_huge_and_damaged_rows_are_counted(database: Database) -> None:
    first = database.message("user", text("hello"), {"type": "brand-new"})
    database.run("INSERT INTO part VALUES ('prt_x', ?, 'ses_1', 0, 0, 'not json')", first)
    database.run("INSERT INTO part VALUES ('prt_y', ?, 'ses_1', 0, 0, ?)", first, "x" * (50 * _MEGABYTE))
    database.message("martian", text("?"))
    database.run("INSERT INTO message VALUES ('msg_z', 'ses_1', 9e15, 0, X'FF')")
    report = ReadReport()
    peak = peak_memory(lambda: [m.text for m in _read(database.path, report)])
    assert peak < 40 * _MEGABYTE
    assert (report.torn, report.oversized) == (2, 1)
    assert report.unknown_types == {"part/brand-new": 1, "message/martian": 1}


def test_a_layout_that_is_not_known_yet_is_said(database: Database) -> None:
    database.run("INSERT INTO session_message VALUES ('m', 'ses_1', '{}')")
    report = ReadReport()
    assert list(_read(database.path, report)) == []
    assert report.unknown_types == {"session_message": 1}


def test_what_is_no_opencode_database_is_a_clear_error(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(DamagedDataError, match="OpenCode database"):
        _messages(other)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = Database(tmp_path_factory.mktemp("filled") / "opencode.db", journal="delete").session()
    for number in range(30):
        database.message("user", text(f"prompt {number} " * 20))
        database.message("assistant", text("answer"), shell(f"c{number}", "ls", "x" * 500, 0))
    return database.path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=64)), max_size=8), st.floats(0, 1))
def test_a_damaged_database_gives_messages_or_a_clear_error(
    filled: Path, tmp_path: Path, wounds: list[tuple[float, bytes]], kept: float
) -> None:
    data = bytearray(filled.read_bytes())
    for place, garbage in wounds:
        start = int(place * len(data))
        data[start : start + len(garbage)] = garbage
    path = tmp_path / "damaged.db"
    path.write_bytes(bytes(data[: int(kept * len(data))]) if kept > 0.3 else bytes(data))
    with suppress(HoldfastError):
        list(_read(path, ReadReport()))


_KEYS = (
    "role",
    "type",
    "text",
    "state",
    "status",
    "input",
    "output",
    "metadata",
    "exit",
    "tokens",
    "cache",
    "read",
    "error",
    "data",
    "message",
    "name",
    "summary",
    "time",
    "created",
    "modelID",
    "tool",
    "callID",
    "todos",
    "content",
    "info",
    "parts",
    "id",
    "revert",
    "messageID",
    "synthetic",
    "prompt",
    "filename",
)
_WORDS = (
    "user",
    "assistant",
    "text",
    "tool",
    "reasoning",
    "step-start",
    "completed",
    "error",
    "todowrite",
    "bash",
    "file",
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.tuples(json_values(_KEYS, _WORDS), st.lists(json_values(_KEYS, _WORDS), max_size=3)), max_size=3
    )
)
def test_any_json_in_the_rows(tmp_path: Path, rows: list[tuple[Any, list[Any]]]) -> None:
    path = tmp_path / "rows.db"
    path.unlink(missing_ok=True)
    database = Database(path, journal="off").session()
    with closing(sqlite3.connect(path)) as connection, connection:
        for number, (info, parts) in enumerate(rows):
            connection.execute(
                "INSERT INTO message VALUES (?, 'ses_1', 0, 0, ?)", (f"m{number}", json.dumps(info))
            )
            connection.executemany(
                "INSERT INTO part VALUES (?, ?, 'ses_1', 0, 0, ?)",
                [(f"p{number}-{place}", f"m{number}", json.dumps(part)) for place, part in enumerate(parts)],
            )
    _messages(database.path)


@settings(deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_as_an_export(data: bytes) -> None:
    if not data.startswith(b"SQLite format 3\x00"):
        read_all(opencode.read, data)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(json_objects(_KEYS, _WORDS), max_size=6), json_values(_KEYS, _WORDS), st.sampled_from([2, None])
)
def test_any_json_as_an_export(messages: list[dict[str, Any]], info: Any, indent: int | None) -> None:
    read_all(opencode.read, json.dumps({"info": info, "messages": messages}, indent=indent).encode())
