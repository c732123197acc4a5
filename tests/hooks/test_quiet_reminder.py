"""Quiet mode in the hooks: which words come, and that a prompt is counted once."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence

import pytest

from holdfast.hooks.events import hook_command
from holdfast.project.layout import ProjectLayout
from hooks.harness import AgentSession, quick


@pytest.fixture
def quiet(session: AgentSession) -> AgentSession:
    ProjectLayout(session.project).ensure()
    (session.state / f"quiet-{session.session_id}").write_text("0")
    return session


def at_once(session: AgentSession, prompts: Sequence[str]) -> list[str]:
    command = quick(hook_command("claude-code", "UserPromptSubmit"))
    running = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=session.environment,
            cwd=session.project,
        )
        for _ in prompts
    ]
    for process, prompt in zip(running, prompts, strict=True):
        assert process.stdin is not None
        process.stdin.write(session.payload("UserPromptSubmit", prompt="x", prompt_id=prompt))
        process.stdin.close()
        process.stdin = None
    return [process.communicate()[0].decode() for process in running]


def test_five_short_lines_then_one_with_the_way_back(quiet: AgentSession) -> None:
    lines = [quiet.prompt().out for _ in range(7)]
    assert lines == [
        *["holdfast:quiet\n"] * 5,
        "holdfast:quiet (6 prompts) — nudges back on with /holdfast:unquiet\n",
        "holdfast:quiet (7 prompts) — nudges back on with /holdfast:unquiet\n",
    ]
    assert quiet.after_tool().out == ""


def test_eight_hooks_of_one_prompt_say_it_once(quiet: AgentSession) -> None:
    assert Counter(at_once(quiet, ["p1"] * 8)) == {"holdfast:quiet\n": 1, "": 7}
    assert (quiet.state / f"quiet-{quiet.session_id}").read_text() == "1"


def test_eight_prompts_at_once_are_eight(quiet: AgentSession) -> None:
    lines = at_once(quiet, [f"p{index}" for index in range(8)])
    numbers = sorted(line.partition("(")[2].partition(" ")[0] for line in lines)
    assert numbers == ["", "", "", "", "", "6", "7", "8"]
    assert (quiet.state / f"quiet-{quiet.session_id}").read_text() == "8"


def test_on_again_starts_at_zero_and_off_ends_it(quiet: AgentSession) -> None:
    for _ in range(6):
        quiet.prompt()
    marker = quiet.state / f"quiet-{quiet.session_id}"
    marker.write_text("0")
    assert quiet.prompt().out == "holdfast:quiet\n"
    marker.unlink()
    assert quiet.prompt().out == ""


def test_other_sessions_are_not_affected(quiet: AgentSession) -> None:
    other = AgentSession(quiet.project, quiet.home, session_id="other")
    assert other.prompt().out == ""
    assert quiet.prompt().out == "holdfast:quiet\n"


@pytest.mark.parametrize(
    ("agent", "expected"),
    [("codex", "holdfast:quiet\n"), ("gemini", "additionalContext"), ("opencode", "notice")],
)
def test_in_each_agents_words(quiet: AgentSession, agent: str, expected: str) -> None:
    quiet.agent = agent
    assert expected in quiet.prompt().out


@pytest.mark.parametrize("agent", ["gemini", "opencode"])
def test_a_command_that_is_told_no_session_means_the_only_one_at_work(
    session: AgentSession, agent: str
) -> None:
    """It silenced a session that nobody has, and said that nudges were off."""
    alone = AgentSession(session.project, session.home, agent, session_id="alone")
    alone.start()
    alone.prompt("Store the events")
    assert alone.holdfast("quiet", "on").out.startswith("Nudges are off in session alone.")
    assert (alone.state / "quiet-alone").exists()
    other = AgentSession(session.project, session.home, agent, session_id="other")
    other.start()
    other.prompt("Write the manual")
    for command in ("on", "off", "status"):
        refused = other.holdfast("quiet", command)
        assert (refused.code, refused.out) == (2, ""), "nobody can tell which of two"
        assert refused.err == (
            "error: 2 sessions are open here: alone, other\nhint: say which one with --session-id\n"
        )
    assert not (other.state / "quiet-session-unknown").exists()
