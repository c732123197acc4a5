"""The outgoing agent's own words: asked for, kept with its session, checked, told to the next one."""

from __future__ import annotations

import json

import pytest

from cli.harness import start_program
from fork_server import READ_AT_START
from holdfast import SessionPauseManager
from hooks.harness import PATIENCE, AgentSession, said
from hooks.test_sessions import end, holdfast, settled
from transcripts.claude_files import answered, called

SECRET = "ghp_" + "a1B2" * 9
WORDS = f"Now: fix test_numbers, then run make check.\nState: all tests pass.\nkey {SECRET}"


def hand_over(session: AgentSession, words: str, *options: str) -> tuple[int, str]:
    environment = {**session.environment, **READ_AT_START}
    command = ("note", "handover", *options)
    with start_program(command, cwd=session.project, env=environment, text=True, stdin=-1) as process:
        out, err = process.communicate(words, timeout=PATIENCE)
    return process.returncode, out + err


def worked(session: AgentSession) -> None:
    session.variables["CLAUDE_CODE_SESSION_ID"] = session.session_id
    session.start()
    session.prompt("Make the lexer read numbers")
    session.write(
        said("Make the lexer read numbers", "user"),
        called("t1", "Bash", command="pytest -q"),
        answered("t1", "FAILED tests/test_lexer.py::test_numbers\n1 failed", error=True),
        said("I hand over.", "assistant", "m1", 185_000, "claude-sonnet-4-5"),
    )


def test_it_is_asked_for_and_reaches_the_next_session_checked(session: AgentSession) -> None:
    worked(session)
    assert "holdfast note handover <<'EOF'\nNow: " in session.after_tool("make").context
    code, told = hand_over(session, WORDS)
    assert (code, told) == (0, f"✓ Handover noted for session {session.session_id}\n")
    document = end(session)
    assert "fix test_numbers" in document["handover"]
    context = AgentSession(session.project, session.home, session_id="next").start().context
    own = context[context.index("## In the outgoing agent's own words") :].split("\n## ")[0]
    assert "Now: fix test_numbers, then run make check." in own
    assert "all tests pass. [the record: the newest run of `pytest -q` failed]" in own
    assert SECRET not in context
    assert SECRET not in json.dumps(document)
    assert session.errors == ""


def test_words_from_before_the_last_prompt_are_not_the_last_words(session: AgentSession) -> None:
    worked(session)
    hand_over(session, WORDS)
    session.prompt("One more thing: rename it")
    session.write(said("One more thing: rename it", "user", "r1"))
    assert end(session)["handover"] is None


def test_without_an_agent_they_belong_to_the_latest_snapshot(session: AgentSession) -> None:
    name = SessionPauseManager(session.project).create_pause_session("lunch")
    assert hand_over(session, "Go on with the parser.") == (0, f"✓ Handover added to {name}\n")
    assert "Go on with the parser." in holdfast(session, "context", "latest")


def test_the_one_session_at_work_is_meant_where_its_agent_does_not_name_it(session: AgentSession) -> None:
    worked(session)
    del session.variables["CLAUDE_CODE_SESSION_ID"]
    assert hand_over(session, "Go on with the parser.")[0] == 0
    end(session)
    assert settled(session)["handover"] == "Go on with the parser."


@pytest.mark.parametrize(
    ("words", "options", "why"),
    [
        (" \n", (), "the handover is empty"),
        ("x" * 20_001, (), "the handover has 20,001 characters; the maximum is 20,000"),
        ("x", ("--session-id", "nobody"), "no hooks have recorded a session nobody here"),
        ("x", ("missing.md",), "missing.md"),
        ("x", (), "nothing has been paused in this folder yet"),
    ],
)
def test_what_is_wrong_is_said_and_changes_nothing(
    session: AgentSession, words: str, options: tuple[str, ...], why: str
) -> None:
    code, told = hand_over(session, words, *options)
    assert code in (1, 2)
    assert why in told


def test_the_command_that_is_named_runs_where_holdfast_is_not_on_the_path(session: AgentSession) -> None:
    session.variables["PATH"] = "/usr/bin:/bin"
    worked(session)
    asked = session.after_tool("make").context
    form = asked[asked.index("characters:\n\n") :].split("\n\n")[1]
    done = session.run(["/bin/sh", "-c", form], b"")
    assert (done.code, done.out) == (0, f"✓ Handover noted for session {session.session_id}\n"), done.err
    end(session)
    told = AgentSession(session.project, session.home, session_id="next", variables=session.variables)
    context = told.start().context
    program = form.split(" note handover")[0]
    assert f"It is not on the PATH here: in place of `holdfast`, run `{program}`." in context


def test_a_program_on_the_path_is_called_by_its_name(session: AgentSession) -> None:
    folder = session.home / "bin"
    folder.mkdir()
    (folder / "holdfast").write_text("#!/bin/sh\n")
    (folder / "holdfast").chmod(0o755)
    session.variables["PATH"] = f"{folder}:/usr/bin:/bin"
    worked(session)
    asked = session.after_tool("make").context
    assert "\n\nholdfast note handover <<'EOF'" in asked
    assert "on the PATH" not in asked
