"""A compaction: the request for the summary gets form and facts; afterwards only what that lacks is told."""

from __future__ import annotations

import json

from hooks.harness import AgentSession, said
from hooks.test_sessions import settled, work
from transcripts.claude_files import answered, called

RULE = "Never touch the folder vendor/, it belongs to others"


def compact(session: AgentSession, summary: str) -> None:
    """As Claude Code writes it down, after its SessionStart hooks."""
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}
    session.write(boundary, {**said(summary, "user", "s1"), "isCompactSummary": True})


def begun(session: AgentSession) -> str:
    """Work with a rule and a red test; what the hook adds to the request for the summary."""
    work(session, 160_000)
    session.prompt(RULE)
    session.write(
        said(RULE, "user", "r1"),
        called("t1", "Bash", command="pytest -q tests/test_lexer.py"),
        answered(
            "t1", "FAILED tests/test_lexer.py::test_numbers - assert 1 == 2\n1 failed, 3 passed", error=True
        ),
        said("One test fails.", "assistant", "m2", 160_000, "claude-sonnet-4-5"),
    )
    result = session.fire("PreCompact", trigger="auto", custom_instructions=None)
    assert (result.code, result.err) == (0, "")
    return result.out


def test_the_request_for_the_summary_gets_the_form_and_the_facts(session: AgentSession) -> None:
    told = begun(session)
    assert "Write this summary as a handover" in told
    assert f'The user\'s rule, word for word: "{RULE}"' in told
    assert "test_numbers" in told
    assert "follow the user" not in told
    assert settled(session)["trigger"] == "exhaustion"
    session.prompt("And the parser")
    own = session.fire("PreCompact", trigger="manual", custom_instructions="Only the parser matters").out
    assert "The user's own instructions for this summary hold" in own
    assert session.errors == ""


def test_only_what_the_summary_lacks_or_gets_wrong_is_added_and_once(session: AgentSession) -> None:
    begun(session)
    at_once = session.start("compact").context
    assert RULE in at_once  # while nobody knows what the summary says
    assert "test_numbers" not in at_once
    compact(session, "We store events in SQLite. All tests pass.")
    after = session.after_tool("ls").context
    assert 'The summary above says "All tests pass."; the record: the newest run of `pytest -q' in after
    assert "test_numbers" in after
    assert RULE not in after  # told already
    assert len(at_once) + len(after) <= 2_000
    assert session.after_tool("ls").out == ""
    assert session.errors == ""


def test_a_summary_that_has_it_all_gets_no_supplement(session: AgentSession) -> None:
    begun(session)
    session.start("compact")
    compact(
        session,
        f"The user wants the events stored ('Store the events'). Rule: {RULE}. The last run of `pytest -q "
        "tests/test_lexer.py` failed: test_numbers. `make events` was started.",
    )
    assert session.prompt("go on").out == ""
    assert not (session.notes / "compacted").exists()
    assert session.errors == ""


def test_an_agent_that_keeps_its_summary_to_itself_is_asked_no_further(session: AgentSession) -> None:
    begun(session)
    assert RULE in session.start("compact").context
    for _ in range(4):
        assert session.after_tool("ls").out == ""
    assert not (session.notes / "compacted").exists()


def test_a_compacted_session_is_still_one_thread_that_others_leave_alone(session: AgentSession) -> None:
    begun(session)
    told = AgentSession(session.project, session.home, session_id="other").start().context
    assert "another session that is still open" in told
    assert json.loads((session.sessions / f"{settled(session)['session_id']}.json").read_text())[
        "conversation"
    ]
