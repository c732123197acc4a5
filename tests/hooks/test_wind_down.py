"""From the auto-pause level on: journal, advice, and the stop where it is configured."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from typing import Any

import pytest

from holdfast import IncrementalPauseManager
from holdfast.hooks.background_tasks import SessionWork, settle
from holdfast.hooks.events import hook_command
from holdfast.journal.log import PauseAction
from holdfast.project.layout import ProjectLayout
from hooks.harness import AgentSession, quick


def actions(session: AgentSession) -> list[PauseAction]:
    return [PauseAction.from_json_line(line) for line in session.journal.read_text().splitlines()]


def fill(session: AgentSession, tokens: int = 182_000) -> None:
    """By the means of each agent, none of which compacts before the window's end."""
    session.variables["HOLDFAST_COMPACT_AT"] = "200000"
    if session.agent == "claude-code":
        session.use(tokens, f"m{tokens}")
    elif session.agent == "codex":
        counts = {"input_tokens": tokens - 100, "output_tokens": 100}
        session.fire("PostModelRequest", model="o3", token_usage=counts)
    elif session.agent == "gemini":
        counted = {"promptTokenCount": tokens - 100, "totalTokenCount": tokens}
        session.variables["HOLDFAST_CONTEXT_WINDOW"] = "200000"
        session.fire("AfterModel", llm_request={"model": "g"}, llm_response={"usageMetadata": counted})
    else:
        session.fire("message.updated", usage={"input": tokens}, model="x", context_window=200_000)


AGENTS = ["claude-code", "codex", "gemini", "opencode"]


def told(session: AgentSession, out: str) -> str:
    if not out:
        return ""
    data = json.loads(out)
    return (
        data.get("context", "")
        if session.agent == "opencode"
        else data["hookSpecificOutput"]["additionalContext"]
    )


@pytest.mark.some_of("agent", number=2)
@pytest.mark.parametrize("agent", AGENTS)
def test_below_the_level_nothing_happens(session: AgentSession, agent: str) -> None:
    session.agent = agent
    fill(session, 130_000)
    assert session.after_tool().out == ""
    assert not session.journal.exists()


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_sub_agents_and_their_reports_are_journaled(session: AgentSession, agent: str) -> None:
    session.agent = agent
    fill(session)
    session.after_tool("make test")
    helper = {"agent_id": "a1", "agent_type": "explorer"}
    session.fire("SubagentStart", **helper)
    session.fire("UserPromptSubmit", **helper, prompt="Measure it")  # as Codex has it
    session.fire("SubagentStop", **helper, last_assistant_message="The door is 80 cm wide.")
    assert [one.data for one in actions(session) if one.type == "system_event"] == [
        {"event": "SubagentStart", "detail": "explorer"},
        {"event": "UserPromptSubmit", "detail": "Measure it"},
        {"event": "SubagentStop", "detail": "The door is 80 cm wide."},
    ]
    assert "user_message" not in [one.type for one in actions(session)]


def test_the_window_of_a_sub_agent_is_not_the_sessions(session: AgentSession) -> None:
    session.agent = "codex"
    fill(session, 60_000)
    session.after_tool("ls")
    used = {"input_tokens": 190_000, "cached_input_tokens": 0, "output_tokens": 10, "total_tokens": 190_010}
    session.fire("PostModelRequest", agent_id="a1", agent_type="explorer", model="gpt-5", token_usage=used)
    session.after_tool("ls")
    assert session.holdfast("usage", "--json").data[0]["total_tokens"] == 60_000
    assert not session.journal.exists()


@pytest.mark.some_of("agent", number=2)
@pytest.mark.parametrize("agent", AGENTS)
def test_at_the_level_the_journal_begins_and_the_advice_comes_once(session: AgentSession, agent: str) -> None:
    session.agent = agent
    fill(session)
    first = session.after_tool("make test")
    assert "91% full" in told(session, first.out)
    assert "182,000 of 200,000" in told(session, first.out)
    assert session.after_tool("ls").out == ""
    started, call, another = actions(session)
    assert started.type == "pause_started"
    assert started.data["initial_state"]["agent_session"] == session.session_id
    assert started.data["initial_state"]["tokens_used"] == 182_000
    assert (call.type, call.data["input"]) == ("tool_call", {"command": "make test"})
    assert another.data["response"] == {"stdout": "a\nb", "stderr": ""}
    assert call.context_percentage == pytest.approx(0.91)
    assert session.errors == ""


def test_prompts_responses_and_incidents_are_recorded_too(session: AgentSession) -> None:
    fill(session)
    session.prompt("finish it")
    session.fire("Stop", last_assistant_message="It is done: 3 tests pass.")
    session.fire("StopFailure", error="rate_limit")
    session.fire("PostToolUseFailure", tool_name="Bash", tool_input={"command": "false"}, error="Exit code 1")
    kinds = [action.type for action in actions(session)]
    assert kinds == ["pause_started", "user_message", "assistant_response", "system_event", "tool_call"]
    assert actions(session)[2].data == {"text": "It is done: 3 tests pass."}
    assert actions(session)[4].data["error"] == "Exit code 1"


def test_what_programs_say_in_a_prompt_is_not_quoted_as_the_users_words(session: AgentSession) -> None:
    fill(session)
    session.after_tool("make test")
    session.prompt("Never push to main")
    session.prompt(
        "<task-notification>\n<task-id>b1</task-id>\n<status>failed</status>\n"
        "<summary>make failed: never run make as root</summary>\n</task-notification>"
    )
    session.prompt('{"task_id": "b1", "status": "completed", "summary": "always use sudo"}')
    session.prompt("/clear")
    session.holdfast("winddown", "finalize", "-r", "full")
    told = session.holdfast("context", "latest").out
    assert "Never push to main" in told
    for words in ("as root", "sudo", "/clear"):
        assert words not in told
    assert "as root" in session.holdfast("history", "latest", "journal").out  # nothing is lost


def test_a_critical_window_is_said_again(session: AgentSession) -> None:
    fill(session)
    assert session.after_tool().out
    fill(session, 192_000)
    assert "96% full" in session.after_tool().context
    assert session.after_tool().out == ""


def test_secrets_do_not_reach_the_journal(session: AgentSession) -> None:
    fill(session)
    secret = "ghp_" + "a1" * 18
    session.after_tool(f"curl -H 'Authorization: Bearer {secret}' https://example.org")
    assert secret not in session.journal.read_text()
    assert "redacted" in session.journal.read_text()
    assert len(actions(session)) == 2


def test_long_and_odd_results_are_one_line(session: AgentSession) -> None:
    fill(session)
    long = "x" * 500_000 + "END"
    session.after_tool("cat big", tool_response={"stdout": long})
    session.after_tool("odd", tool_response="a\u2028b\n\x00 😀 \ud83d")
    payload = json.dumps(
        json.loads(session.payload("PostToolUse", tool_name="Read", tool_input={"a": [1, {}]})), indent=2
    )
    session.run(quick(hook_command("claude-code", "PostToolUse")), payload.encode())
    recorded = actions(session)
    assert len(recorded) == 4
    assert len(session.journal.read_bytes()) < 20_000
    told = recorded[1].data["response"]["stdout"]
    assert told.startswith("xxx")
    assert "characters …" in told
    assert told.endswith("END")
    assert recorded[3].data["input"] == {"a": [1, {}]}


@pytest.mark.some_of("agent", number=2)
@pytest.mark.parametrize("agent", AGENTS)
def test_stop_where_it_is_configured(session: AgentSession, agent: str) -> None:
    session.agent = agent
    session.variables["HOLDFAST_ON_EXHAUSTION"] = "stop"
    session.prompt("work")
    fill(session)
    assert notice(session.after_tool()).endswith("The run stops at the next tool boundary.")
    result = session.fire("PostToolBatch", tool_calls=[]) if agent == "claude-code" else session.before_tool()
    assert result.code == 0
    answer: dict[str, Any] = result.data
    if agent == "codex":
        decision = answer["hookSpecificOutput"]
        assert decision["permissionDecision"] == "deny"
        assert "91% full" in decision["permissionDecisionReason"]
    elif agent == "opencode":
        assert "91% full" in answer["stop"]
    else:
        assert answer["continue"] is False
        assert "91% full" in answer["stopReason"]
    session.wait_for((session.notes / "settled").exists)
    name = (session.notes / "settled").read_text().split("\n")[0]
    document = json.loads((session.sessions / f"{name}.json").read_text())
    assert document["trigger"] == "exhaustion"
    assert document["incremental_pause"]["tool_calls"] == 1


def test_the_end_of_a_stopped_session_does_not_hide_why_it_ended(session: AgentSession) -> None:
    """The stop leaves a process to settle the session; the agent ends, and that of its end may be first."""
    session.prompt("work")
    (session.notes / "stopped").touch()
    assert settle(SessionWork("gemini", session.session_id, str(session.project)), "end")
    name = (session.notes / "settled").read_text().split("\n")[0]
    assert json.loads((session.sessions / f"{name}.json").read_text())["trigger"] == "exhaustion"


def test_a_sub_agent_is_never_stopped_nor_advised(session: AgentSession) -> None:
    session.variables["HOLDFAST_ON_EXHAUSTION"] = "stop"
    fill(session)
    assert session.fire("PostToolBatch", tool_calls=[], agent_id="a1").out == ""
    session.variables.clear()
    assert session.after_tool(agent_id="a1").out == ""
    assert session.after_tool().out


def test_a_settings_file_is_heeded_and_a_change_of_it_too(session: AgentSession) -> None:
    fill(session, 120_000)
    ProjectLayout(session.project).ensure()
    config = session.project / ".holdfast" / "config.toml"
    config.write_text('on_exhaustion = "stop"\n[levels]\ncaution = 0.3\nwarning = 0.4\nauto_pause = 0.5\n')
    session.start()
    assert session.fire("PostToolBatch", tool_calls=[]).data["continue"] is False
    config.write_text("[levels]\nauto_pause = 0.95\n")
    fill(session, 120_100)
    session.prompt()
    assert session.fire("PostToolBatch", tool_calls=[]).out == ""


@pytest.mark.parametrize("where", ["variable", "settings file"])
def test_a_level_below_the_defaults_of_the_lower_ones_is_heeded(session: AgentSession, where: str) -> None:
    if where == "variable":
        session.variables["HOLDFAST_LEVELS_AUTO_PAUSE"] = ".5"
    else:
        ProjectLayout(session.project).ensure().config.write_text("[levels]\nauto_pause = 0.5\n")
    fill(session, 99_000)
    assert session.after_tool().out == ""
    fill(session, 101_000)
    assert "50% full" in session.after_tool().context  # and not that it is nearly so, with a caution
    assert session.journal.exists()
    assert session.errors == ""


def test_variables_move_only_the_levels_that_the_settings_file_leaves_open(session: AgentSession) -> None:
    """The nudge at the caution level is heard on a prompt, once it is reached."""
    ProjectLayout(session.project).ensure().config.write_text("[levels]\ncaution = 0.4\n")
    session.variables["HOLDFAST_LEVELS_AUTO_PAUSE"] = ".5"
    fill(session, 90_000)
    assert "Context is 45% full" in session.prompt().context
    assert not session.journal.exists()


def test_eight_hooks_at_once_lose_no_action(session: AgentSession) -> None:
    fill(session)
    session.after_tool("first")
    command = quick(hook_command("claude-code", "PostToolUse"))
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, env=session.environment, cwd=session.project)
        for _ in range(8)
    ]
    for index, process in enumerate(running):
        process.communicate(
            session.payload("PostToolUse", tool_name="Bash", tool_input={"command": f"step {index}"})
        )
    assert [process.returncode for process in running] == [0] * 8
    commands = Counter(action.data["input"]["command"] for action in actions(session)[1:])
    assert commands == Counter(["first", *(f"step {index}" for index in range(8))])


def test_the_manager_and_the_hooks_write_one_journal(session: AgentSession) -> None:
    fill(session)
    session.after_tool("one")
    manager = IncrementalPauseManager(session.project)
    manager.append_action("system_event", {"from": "the manager"}, 0.92)
    with session.journal.open("ab") as file:
        file.write(b'{"torn')
    session.after_tool("two")
    summary = manager.get_pause_summary()
    assert summary is not None
    assert summary["action_count"] == 4
    assert [action.type for action in manager.get_recorded_actions()][-1] == "tool_call"
    manager.discard_pause()
    assert session.after_tool("three").code == 0


def test_two_sessions_in_one_folder_do_not_mix(session: AgentSession) -> None:
    other = AgentSession(session.project, session.home, session_id="other-1")
    fill(session)
    other.use(20_000)
    session.after_tool("of the full one")
    assert other.after_tool("of the other").out == ""
    other.prompt("hello")
    assert "of the other" not in session.journal.read_text()
    fill(other)
    assert "91% full" in other.after_tool("now full, too").context
    assert "now full" not in session.journal.read_text()
    assert len(actions(session)) == 2


# ── before the agent compacts, and visible to the user ────────────────────────────────────────────


def use_up(session: AgentSession, tokens: int, window: int, model: str) -> None:
    """As the agent reports it, with nothing set by hand."""
    if session.agent == "claude-code":
        session.use(tokens, f"m{tokens}", model=model)
    elif session.agent == "codex":
        told = {"last_token_usage": {"input_tokens": tokens}, "model_context_window": window}
        session.write({"type": "event_msg", "payload": {"type": "token_count", "info": told}})
        session.fire("PostModelRequest", model=model, token_usage={"input_tokens": tokens})
    elif session.agent == "gemini":
        counted = {"promptTokenCount": tokens, "totalTokenCount": tokens}
        session.fire("AfterModel", llm_request={"model": model}, llm_response={"usageMetadata": counted})
    else:
        limits = {"context_window": window, "compact_at": window - 32_000}
        session.fire("message.updated", usage={"input": tokens}, model=model, **limits)


COMPACTS_AT = [
    ("claude-code", "claude-opus-4-6", 200_000, 167_000),
    ("claude-code", "claude-sonnet-4-6", 200_000, 167_000),
    ("claude-code", "claude-haiku-4-5", 200_000, 200_000),
    ("codex", "gpt-5-codex", 258_400, 232_560),
    ("gemini", "gemini-2.5-pro", 1_048_576, 524_288),
    ("opencode", "x", 200_000, 168_000),
]


def notice(result: Any) -> str:
    told = result.data if result.out else {}
    return told.get("systemMessage") or told.get("notice") or ""


@pytest.mark.some_of("agent", "model", "window", "point", number=2)
@pytest.mark.parametrize(("agent", "model", "window", "point"), COMPACTS_AT)
def test_the_wrap_up_is_asked_for_at_a_tool_before_compaction(
    session: AgentSession, agent: str, model: str, window: int, point: int
) -> None:
    session.agent = agent
    session.fire({"claude-code": "SessionStart", "opencode": "session.created"}.get(agent, "SessionStart"))
    use_up(session, int(point * 0.88), window, model)
    assert "Wrap up" not in session.after_tool().out
    use_up(session, int(point * 0.91), window, model)
    asked = session.after_tool()
    assert "Wrap up now" in told(session, asked.out)
    assert f"{(point - int(point * 0.91)) / 1000:.0f}k" in notice(asked)
    assert session.errors == ""


@pytest.mark.some_of("agent", "model", "window", "point")
@pytest.mark.parametrize(("agent", "model", "window", "point"), COMPACTS_AT[2:])
def test_the_user_sees_each_level_once_in_one_long_turn(
    session: AgentSession, agent: str, model: str, window: int, point: int
) -> None:
    session.agent = agent
    session.prompt("one long job")
    seen: list[str] = []
    for share in (0.5, 0.69, 0.71, 0.72, 0.86, 0.87, 0.91, 0.92, 0.96, 0.97):
        use_up(session, int(point * share), window, model)
        seen += [words for _ in range(2) if (words := notice(session.after_tool()))]
    assert len(seen) == 4
    assert all("until compaction" in words or "left in the window" in words for words in seen)


def test_a_compaction_that_came_earlier_moves_the_levels(session: AgentSession) -> None:
    use_up(session, 120_000, 200_000, "claude-haiku-4-5")
    session.prompt()
    session.fire("PreCompact", trigger="manual")
    session.fire("SessionStart", source="compact")
    use_up(session, 140_000, 200_000, "claude-haiku-4-5")
    assert "Wrap up" not in session.after_tool().out, "what the user asked for teaches nothing"
    session.fire("PreCompact", trigger="auto")
    session.session_id = session.session_id.replace("1", "2")
    use_up(session, 130_000, 200_000, "claude-haiku-4-5")
    assert "10k until compaction" in session.after_tool().out


@pytest.mark.parametrize(
    ("variables", "point"),
    [
        ({"DISABLE_AUTO_COMPACT": "1"}, 200_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, 90_000),
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}, 67_000),
        ({"HOLDFAST_COMPACT_AT": "110000"}, 110_000),
    ],
)
def test_what_the_user_told_the_agent_counts(
    session: AgentSession, variables: dict[str, str], point: int
) -> None:
    session.variables |= variables
    use_up(session, int(point * 0.91), 200_000, "claude-opus-4-6")
    assert "Wrap up now" in session.after_tool().out


def test_the_limit_in_the_users_codex_settings_counts(session: AgentSession) -> None:
    session.agent = "codex"
    (session.home / ".codex").mkdir()
    (session.home / ".codex" / "config.toml").write_text("model_auto_compact_token_limit = 60_000 # early\n")
    use_up(session, 55_000, 258_400, "gpt-5-codex")
    assert "5k until compaction" in session.after_tool().out


def test_a_limit_in_a_codex_profile_is_not_taken_for_every_sessions(session: AgentSession) -> None:
    session.agent = "codex"
    (session.home / ".codex").mkdir()
    settings = "[profiles.small]\nmodel_auto_compact_token_limit = 60_000\n"
    (session.home / ".codex" / "config.toml").write_text(settings)
    use_up(session, 55_000, 258_400, "gpt-5-codex")
    assert session.after_tool().out == ""


def test_a_limit_beyond_the_window_is_the_window(session: AgentSession) -> None:
    session.agent = "codex"
    (session.home / ".codex").mkdir()
    (session.home / ".codex" / "config.toml").write_text("model_auto_compact_token_limit = 9000000\n")
    use_up(session, 240_000, 258_400, "gpt-5-codex")
    assert "18k left in the window" in session.after_tool().out


@pytest.mark.parametrize(
    "settings",
    [
        '{"model": {"compressionThreshold": 0.25}}',
        '// mine\n{"a": "http://b \\" /*", "model": {/* early */"compressionThreshold": 0.25}} // "',
    ],
)
def test_the_threshold_in_the_users_gemini_settings_counts(session: AgentSession, settings: str) -> None:
    session.agent = "gemini"
    (session.home / ".gemini").mkdir()
    (session.home / ".gemini" / "settings.json").write_text(settings)
    use_up(session, 250_000, 0, "gemini-2.5-pro")
    assert "12k until compaction" in session.after_tool().out
