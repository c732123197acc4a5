"""How full the window is, to the token, from where each agent tells it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.hooks.fast import notes
from holdfast.hooks.fast import usage as reading
from holdfast.hooks.fast.event import AgentEvent
from holdfast.hooks.fast.usage import claude_usage, codex_usage, newest_in_transcript
from holdfast.journal.usage import ContextUsageTracker, UsageState
from holdfast.project.layout import ProjectLayout
from hooks.harness import AgentSession, said
from soak import repeated


def usage(session: AgentSession) -> UsageState:
    return ContextUsageTracker(session.project, session_id=session.session_id).get_current_state()


def test_the_newest_message_counts_once(session: AgentSession) -> None:
    session.use(50_000, "m1")
    session.write(said("more of it", "assistant", "m1", 50_000, "claude-sonnet-4-5"))
    session.prompt()
    assert usage(session).total_tokens == 50_000
    assert usage(session).reports == 1
    session.use(60_001, "m2")
    session.prompt()
    session.prompt()
    state = usage(session)
    assert (state.total_tokens, state.reports) == (60_001, 2)
    assert (state.input_tokens, state.cache_read, state.output_tokens) == (29_991, 30_000, 10)
    assert state.model == "claude-sonnet-4-5"


def test_side_talk_errors_and_half_lines_do_not_count(session: AgentSession) -> None:
    session.use(40_000)
    session.write(
        {**said("sub-agent", "assistant", "m2", 90_000, "claude-sonnet-4-5"), "isSidechain": True},
        said("API error", "assistant", "m3", 0, "<synthetic>"),
        {
            "type": "user",
            "toolUseResult": {"usage": {"input_tokens": 5}},
            "message": {"role": "user", "content": "x"},
        },
    )
    with session.transcript.open("a") as file:
        file.write(json.dumps(said("unfinished", "assistant", "m4", 70_000, "claude-sonnet-4-5"))[:-20])
    session.prompt()
    assert usage(session).total_tokens == 40_000
    with session.transcript.open("a") as file:
        file.write(
            json.dumps(said("unfinished", "assistant", "m4", 70_000, "claude-sonnet-4-5"))[-20:] + "\n"
        )
    session.prompt()
    assert usage(session).total_tokens == 70_000


def test_a_session_without_a_transcript_yet(session: AgentSession) -> None:
    session.start()
    assert session.prompt().code == 0
    assert session.errors == ""
    assert usage(session).reports == 0


def test_only_what_is_new_is_read(session: AgentSession) -> None:
    session.use(10_000)
    session.prompt()
    end = session.transcript.stat().st_size
    found, offset = newest_in_transcript(str(session.transcript), end, claude_usage)
    assert (found, offset) == (None, end)


@given(
    st.lists(st.tuples(st.integers(20, 10**6), st.integers(0, 70_000)), min_size=1, max_size=6),
    st.integers(0, 3),
)
@settings(
    max_examples=repeated(40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
def test_the_newest_is_found_however_far_from_the_end(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[int, int]], later: int
) -> None:
    """Messages with results of any size between them, read at once or in steps."""
    path = tmp_path_factory.mktemp("t") / "t.jsonl"
    offset, known = 0, None
    with path.open("a") as file:
        for index, (tokens, size) in enumerate(calls):
            file.write(json.dumps(said("x", "assistant", f"m{index}", tokens, "m")) + "\n")
            file.write(json.dumps(said("y" * size, "user")) + "\n")
            file.flush()
            if index % 2:
                found, offset = newest_in_transcript(str(path), offset, claude_usage)
                known = found or known
        file.writelines(json.dumps(said("z", "user")) + "\n" for _ in range(later))
    found, offset = newest_in_transcript(str(path), offset, claude_usage)
    known = found or known
    assert known is not None
    assert known.total == calls[-1][0]
    assert offset == path.stat().st_size


def test_the_status_line_tells_the_window(session: AgentSession) -> None:
    window = {
        "context_window_size": 1_000_000,
        "current_usage": {
            "input_tokens": 1_000,
            "output_tokens": 500,
            "cache_creation_input_tokens": 8_500,
            "cache_read_input_tokens": 240_000,
        },
    }
    result = session.fire("statusLine", model={"id": "claude-sonnet-4-5"}, context_window=window)
    assert result.out.count("\n") == 1
    assert "25%" in result.out
    assert "250k/1.0M" in result.out
    assert usage(session).context_window == 1_000_000
    session.use(300_000)
    session.prompt()
    assert usage(session).percentage_used == 30.0


def test_the_window_is_known_though_nothing_else_is_new(session: AgentSession) -> None:
    session.use(50_000)
    session.prompt()
    counts = {"input_tokens": 24_990, "cache_read_input_tokens": 25_000, "output_tokens": 10}
    window = {"context_window_size": 500_000, "current_usage": counts}
    session.fire("statusLine", model={"id": "claude-sonnet-4-5"}, context_window=window)
    assert usage(session).percentage_used == 10.0


def test_a_window_that_is_overrun_was_larger(session: AgentSession) -> None:
    session.use(350_000)
    session.prompt()
    assert usage(session).context_window == 1_000_000


def test_codex_counts_cached_tokens_once(session: AgentSession) -> None:
    session.agent = "codex"
    counts = {
        "input_tokens": 12_000,
        "cached_input_tokens": 8_000,
        "output_tokens": 60,
        "total_tokens": 12_060,
    }
    info = {"last_token_usage": counts, "model_context_window": 258_400}
    session.write({"type": "event_msg", "payload": {"type": "token_count", "info": info}})
    session.fire("PostModelRequest", model="gpt-5-codex", token_usage=counts)
    state = usage(session)
    assert (state.total_tokens, state.input_tokens, state.cache_read) == (12_060, 4_000, 8_000)
    assert state.context_window == 258_400


def test_a_rollout_alone_tells_it_too() -> None:
    counts = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 5}
    line = {
        "payload": {"type": "token_count", "info": {"last_token_usage": counts, "model_context_window": 7}}
    }
    found = codex_usage(json.dumps(line).encode())
    assert found is not None
    assert (found.total, found.window) == (105, 7)


def test_gemini_reports_with_each_answer(session: AgentSession) -> None:
    session.agent = "gemini"
    request = {"model": "gemini-2.5-flash", "messages": [{"role": "user", "content": "hello"}]}
    counted = {"promptTokenCount": 12_000, "candidatesTokenCount": 60, "totalTokenCount": 12_075}
    session.fire("AfterModel", llm_request=request, llm_response={"text": "", "usageMetadata": counted})
    session.fire("AfterModel", llm_request=request, llm_response={"text": "a part"})
    state = usage(session)
    assert (state.total_tokens, state.context_window) == (12_075, 1_048_576)


def test_the_plugin_of_opencode_reports(session: AgentSession) -> None:
    session.agent = "opencode"
    told: dict[str, Any] = {"input": 100, "output": 20, "reasoning": 5, "cache_read": 1_000, "cache_write": 0}
    session.fire("message.updated", usage=told, model="x", context_window=100_000)
    assert (usage(session).total_tokens, usage(session).context_window) == (1_125, 100_000)


def test_after_a_compaction_the_window_is_empty(session: AgentSession) -> None:
    session.use(150_000)
    session.prompt()
    session.start("compact")
    assert usage(session).total_tokens == 0
    session.prompt()
    assert usage(session).total_tokens == 0
    session.use(30_000, "m9")
    session.prompt()
    assert usage(session).total_tokens == 30_000


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"schema_version": 99}', b"\xff\x00"])
def test_a_damaged_state_is_set_aside(session: AgentSession, damage: bytes) -> None:
    session.use(20_000)
    ProjectLayout(session.project).ensure()
    path = session.state / f"usage-{session.session_id}.json"
    path.write_bytes(damage)
    assert session.prompt().code == 0
    assert usage(session).total_tokens == 20_000
    kept = list(session.state.glob("usage-*.damaged-*"))
    assert [one.read_bytes() for one in kept] == [damage]


def test_a_report_that_is_written_late_is_waited_for(
    session: AgentSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code's transcript lags behind: a quick tool has ended before its call stands there."""
    session.use(100_000)
    session.after_tool()
    late = said("ls", "assistant", "m2", 185_000, "claude-sonnet-4-5")
    late["message"]["content"] = [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {}}]
    payload = session.payload("PostToolUse", tool_name="Bash", tool_input={}, tool_use_id="t2")
    event = AgentEvent("claude-code", "PostToolUse", payload, session.environment)
    monkeypatch.setattr(notes.time, "sleep", lambda _seconds: session.write(late))
    found = reading.measured(event, event.settings)
    assert found is not None
    assert found.tokens == 185_000


@pytest.mark.parametrize(
    "fields", [{"tool_use_id": "t9", "agent_id": "a1"}, {}], ids=["of another file", "unnamed"]
)
def test_what_will_not_come_is_not_waited_for(
    session: AgentSession, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    session.use(100_000)
    session.after_tool()

    def never(_seconds: float) -> None:
        raise AssertionError("waited")

    monkeypatch.setattr(notes.time, "sleep", never)
    payload = session.payload("PostToolUse", tool_name="Bash", tool_input={}, **fields)
    event = AgentEvent("claude-code", "PostToolUse", payload, session.environment)
    found = reading.measured(event, event.settings)
    assert found is not None
    assert found.tokens == 100_000
