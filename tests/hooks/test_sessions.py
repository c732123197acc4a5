"""A session's life: its start with the paused one's context, compaction, end, and being killed."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast import IncrementalPauseManager, SessionPauseManager
from holdfast.base.errors import StorageError
from holdfast.hooks import background_tasks
from holdfast.hooks.background_tasks import SessionWork
from holdfast.hooks.fast import notes
from holdfast.hooks.fast.context import LIMITS
from holdfast.hooks.fast.event import MOMENTS
from holdfast.project.layout import ProjectLayout
from holdfast.sessions.transitions import Facts
from hooks.harness import PATIENCE, AgentSession, said
from transcripts.claude_files import answered, called

DECISION = "We decided to use SQLite instead of PostgreSQL because there is only one writer."


def work(session: AgentSession, tokens: int = 50_000) -> None:
    session.start()
    session.prompt("Store the events")
    session.write(said("Store the events", "user"))
    session.write(said(DECISION, "assistant", "m1", tokens, "claude-sonnet-4-5"))
    session.write(called("c0", "Bash", command="make events"))  # and no result: it is not finished


def settled(session: AgentSession) -> dict[str, Any]:
    name = (session.notes / "settled").read_text().split("\n")[0]
    return json.loads((session.sessions / f"{name}.json").read_text())


def end(session: AgentSession, **fields: Any) -> dict[str, Any]:
    result = session.fire("SessionEnd", **{"reason": "other", **fields})
    assert (result.code, result.out, result.err) == (0, "", "")
    session.wait_for(lambda: bool(list(session.sessions.glob(f"*.context-{LIMITS['gemini']}.md"))))
    return settled(session)


def next_session(session: AgentSession, agent: str = "claude-code") -> AgentSession:
    return AgentSession(session.project, session.home, agent, session_id="the-next-one")


def test_the_first_session_of_a_project_is_told_nothing(session: AgentSession) -> None:
    result = session.start()
    assert (result.code, result.out) == (0, "")
    assert (session.project / ".holdfast" / ".gitignore").read_text() == "*\n"
    assert (session.project / ".holdfast").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini"])
def test_the_end_makes_a_snapshot_and_the_next_start_reads_it(session: AgentSession, agent: str) -> None:
    work(session)
    document = end(session)
    assert document["trigger"] == "pause"
    assert document["context_usage"]["tokens_used"] == 50_000
    assert any("SQLite" in json.dumps(decision) for decision in document["decisions"])
    context = next_session(session, agent).start().context
    assert document["session_id"] in context
    assert "SQLite" in context
    assert len(context) <= LIMITS[agent]
    assert session.errors == ""


def test_a_session_that_starts_in_the_moment_another_ends_is_told_of_it(session: AgentSession) -> None:
    """As with `claude -p one && claude -p two`: the snapshot is still being made then."""
    work(session)
    session.fire("SessionEnd", reason="other")
    assert "SQLite" in next_session(session).start().context
    assert not (session.notes / "settling").exists()


def test_a_session_whose_snapshot_was_cut_off_by_the_machines_end_is_found(session: AgentSession) -> None:
    work(session)
    (session.notes / "ended").write_text("other")
    (session.notes / "settling").touch()
    session.variables["CLAUDE_PID"] = dead_process()
    (session.notes / "who").write_text((session.notes / "who").read_text().replace(str(os.getpid()), "0"))
    assert "SQLite" in next_session(session).start().context
    assert settled(session)["pause_reason"] == "the agent session ended"
    assert session.errors == ""


def test_of_a_session_that_is_being_saved_for_long_it_is_said_so(session: AgentSession) -> None:
    work(session)
    end(session)
    stuck = AgentSession(session.project, session.home, session_id="stuck")
    stuck.prompt()
    (stuck.notes / "ended").write_text("other")
    with (stuck.notes / "settling").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        told = next_session(session).start().context
    assert "is still being saved" in told
    assert "SQLite" in told
    third = AgentSession(session.project, session.home, session_id="third")
    assert "being saved" not in third.start().context  # whoever saved it is gone
    assert session.errors == ""


def test_a_session_in_which_nothing_happened_leaves_nothing(session: AgentSession) -> None:
    session.start()
    session.fire("SessionEnd", reason="other")
    session.wait_for((session.notes / "settle.lock").exists)
    assert next_session(session).start().out == ""


def test_the_pause_of_a_workflows_task_is_left_to_its_runner(session: AgentSession) -> None:
    """Drivers name the workflow in the environment; the end of an agent is not the end of its session."""
    work(session)
    end(session)
    before = sorted(session.sessions.iterdir())
    task = next_session(session)
    with subprocess.Popen(["true"]) as gone:
        task.variables.update(HOLDFAST_WORKFLOW="wf_1", CLAUDE_PID=str(gone.pid))
    assert task.start().out == ""
    task.prompt("Do it")
    task.write(said("Done.", "assistant", "m2", 190_000, "claude-sonnet-4-5"))
    assert "Wrap up" not in task.after_tool("make test").out
    assert not task.journal.exists()
    assert task.fire("SessionEnd", reason="other").code == 0
    assert not (task.notes / "ended").exists()
    assert sorted(session.sessions.iterdir()) == before
    # Nor is it taken for one that was killed.
    assert AgentSession(session.project, session.home, session_id="a-third").start().context
    assert not [path for path in session.sessions.glob("session-*.json") if path not in before]
    assert session.errors == ""


def test_a_wind_down_is_finalised_at_the_end(session: AgentSession) -> None:
    work(session, 185_000)
    session.after_tool("make test")
    assert session.journal.exists()
    document = end(session)
    assert not session.journal.exists()
    assert document["trigger"] == "exhaustion"
    assert document["incremental_pause"]["tool_calls"] == 1
    assert document["context_usage"]["percentage"] == 92.5


@pytest.mark.parametrize("begun_by", ["agent", "user"])
@pytest.mark.parametrize("ending", ["end", "kill"])
def test_a_wind_down_begun_by_hand_that_nobody_finalised_is_in_the_handover(
    session: AgentSession, begun_by: str, ending: str
) -> None:
    """It became a thread of its own without a name, and what was recorded in it stood there alone."""
    gone = {"CLAUDE_PID": dead_process()} if ending == "kill" else {}
    first = AgentSession(session.project, session.home, session_id="first", variables=gone)
    work(first)
    if begun_by == "agent":
        first.variables["CLAUDE_CODE_SESSION_ID"] = "first"
    holdfast(first, "winddown", "start", "--percent", "0.9")
    choice = ("--data", '{"summary": "decision ZAPHOD: use a regex"}', "--percent", "0.91")
    holdfast(first, "winddown", "append", "assistant_response", *choice)
    if ending == "end":
        end(first)
    owner = session.state / "winddown-owner.json"
    if owner.exists():  # whoever began it is gone
        owner.write_text(json.dumps({**json.loads(owner.read_text()), "pid": int(dead_process())}))
    context = next_session(session).start().context
    told = holdfast(session, "context", "latest")
    for words in ("ZAPHOD", "SQLite"):
        assert words in context
        assert words in told
    if ending == "end":
        assert "was interrupted" not in context
    assert len(json.loads(holdfast(session, "threads", "--json"))) == 1
    assert session.errors == ""


@pytest.mark.parametrize("ending", ["end", "kill"])
def test_a_wind_down_of_the_users_that_outlives_its_session_is_part_of_it(
    session: AgentSession, ending: str
) -> None:
    """What it held was in no handover, and stood by itself if another agent was at work at its end."""
    gone = {"CLAUDE_PID": dead_process()} if ending == "kill" else {}
    first = AgentSession(session.project, session.home, session_id="first", variables=gone)
    work(first)
    holdfast(first, "winddown", "start", "--percent", "0.9")
    holdfast(first, "winddown", "append", "user_message", *noted("ZAPHOD"))
    if ending == "end":
        end(first)
    other = next_session(session)
    assert "ZAPHOD" in other.start().context
    assert session.journal.exists()
    other.prompt("Write the manual")
    other.write(said("Write the manual", "user"), said("Which one?", "assistant", "m2"))
    holdfast(session, "winddown", "append", "user_message", *noted("TRILLIAN"))
    name = json.loads(holdfast(session, "winddown", "finalize", "--json"))["session_id"]
    told = holdfast(session, "context", name)
    assert [word in told for word in ("ZAPHOD", "TRILLIAN", "SQLite")] == [True, True, True]
    assert len(json.loads(holdfast(session, "threads", "--json"))) == 1
    other.fire("SessionEnd", reason="other")
    other.wait_for((other.notes / "settled").exists)
    assert "ZAPHOD" not in json.dumps(settled(other)["incremental_pause"])
    assert session.errors == ""


def test_of_two_sessions_none_is_given_what_the_user_wound_down(session: AgentSession) -> None:
    work(session)
    other = next_session(session)
    other.start()
    other.prompt("Write the manual")
    holdfast(session, "winddown", "start", "--percent", "0.9")
    holdfast(session, "winddown", "append", "user_message", *noted("ZAPHOD"))
    for one in (other, session):
        one.write(said("Write the manual", "user"), said("Which one?", "assistant", "m2"))
        one.fire("SessionEnd", reason="other")
        one.wait_for((one.notes / "settled").exists)
        assert "ZAPHOD" not in json.dumps(settled(one)["incremental_pause"])
    assert "ZAPHOD" in session.journal.read_text()


def test_whose_a_snapshot_is_stands_in_it_from_its_first_moment(session: AgentSession) -> None:
    """Of two sessions that ended together, one took the other's notes before its transcript had been read."""
    work(session)
    ending = SessionWork("claude-code", session.session_id, str(session.project))
    name = background_tasks._paused(ending, ending.settings(), "end", worked=True, at=None, recorded=None)
    assert json.loads((session.sessions / f"{name}.json").read_text())["conversation"] == session.session_id


def test_a_wind_down_belongs_to_who_began_it_whoever_finalises_it(session: AgentSession) -> None:
    work(session)
    other = AgentSession(session.project, session.home, session_id="other")
    other.start()
    other.prompt("Write the manual")
    other.write(said("Write the manual", "user"))
    session.variables["CLAUDE_CODE_SESSION_ID"] = session.session_id
    other.variables["CLAUDE_CODE_SESSION_ID"] = "other"
    holdfast(session, "winddown", "start", "--percent", "0.9")
    choice = ("--data", '{"summary": "decision ZAPHOD: use a regex"}', "--percent", "0.91")
    holdfast(session, "winddown", "append", "assistant_response", *choice)
    holdfast(other, "winddown", "finalize")
    for one in (session, other):
        one.fire("SessionEnd", reason="other")
        one.wait_for((one.notes / "settled").exists)
    names = [settled(one)["session_id"] for one in (session, other)]
    told = [holdfast(session, "context", name) for name in names]
    assert ["ZAPHOD" in one for one in told] == [True, False]


def test_a_note_of_another_session_is_not_given_to_who_winds_down(session: AgentSession) -> None:
    """It stood in that session's handover as its own, and in no other."""
    work(session)
    other = AgentSession(session.project, session.home, session_id="other")
    other.start()
    other.prompt("Write the manual")
    other.write(said("Write the manual", "user"))
    session.variables["CLAUDE_CODE_SESSION_ID"] = session.session_id
    other.variables["CLAUDE_CODE_SESSION_ID"] = "other"
    holdfast(session, "winddown", "start", "--percent", "0.9")
    holdfast(session, "winddown", "append", "assistant_response", *noted("ZAPHOD"))
    refused = other.holdfast("winddown", "append", "assistant_response", *noted("MARVIN"))
    assert (refused.code, refused.out) == (3, "")
    assert f"belongs to another agent session: {session.session_id}\n" in refused.err
    assert "hint: `holdfast note handover` records it for your own session" in refused.err
    again = other.holdfast("winddown", "start", "--percent", "0.9")
    assert "discard" not in again.err
    assert "MARVIN" not in session.journal.read_text()
    nobody = AgentSession(session.project, session.home, session_id="the user")
    holdfast(nobody, "winddown", "append", "user_message", *noted("TRILLIAN"))
    for one in (session, other):
        one.fire("SessionEnd", reason="other")
        one.wait_for((one.notes / "settled").exists)
    told = [holdfast(session, "context", settled(one)["session_id"]) for one in (session, other)]
    assert [[word in one for word in ("ZAPHOD", "TRILLIAN", "MARVIN")] for one in told] == [
        [True, True, False],
        [False, False, False],
    ]


def test_a_wind_down_of_another_session_is_not_discarded(session: AgentSession) -> None:
    work(session)
    other = AgentSession(session.project, session.home, session_id="other")
    session.variables["CLAUDE_CODE_SESSION_ID"] = session.session_id
    other.variables["CLAUDE_CODE_SESSION_ID"] = "other"
    holdfast(session, "winddown", "start", "--percent", "0.9")
    holdfast(session, "winddown", "append", "assistant_response", *noted("ZAPHOD"))
    for words in (("discard", "--yes"), ("recover", "--discard")):
        refused = other.holdfast("winddown", *words)
        assert (refused.code, refused.out) == (3, "")
        assert f"belongs to another agent session: {session.session_id}\n" in refused.err
        assert "hint: `holdfast winddown finalize` ends it and keeps what it recorded" in refused.err
    assert "ZAPHOD" in session.journal.read_text()
    assert session.holdfast("winddown", "discard", "--yes").code == 0
    assert not session.journal.exists()


def test_the_user_may_discard_the_wind_down_of_a_session(session: AgentSession) -> None:
    work(session)
    session.variables["CLAUDE_CODE_SESSION_ID"] = session.session_id
    holdfast(session, "winddown", "start", "--percent", "0.9")
    nobody = AgentSession(session.project, session.home, session_id="the user")
    assert nobody.holdfast("winddown", "discard", "--yes").code == 0
    assert not session.journal.exists()


def noted(words: str) -> tuple[str, ...]:
    return "--data", json.dumps({"summary": f"decision {words}: use a regex"}), "--percent", "0.91"


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_a_wind_down_held_that_was_ended_by_hand_is_handed_over(
    session: AgentSession, goes_on: bool
) -> None:
    work(session, 185_000)
    session.after_tool("make test")
    words = ("--data", '{"message": "The parser must use utf-8"}', "--percent", "0.93")
    holdfast(session, "winddown", "append", "user_message", *words)
    by_hand = json.loads(holdfast(session, "winddown", "finalize", "-r", "full", "--json"))["session_id"]
    if goes_on:
        session.after_tool("make all")
    assert end(session)["session_id"] != by_hand
    assert "The parser must use utf-8" in holdfast(session, "context", "latest")
    assert len(json.loads(holdfast(session, "threads", "--json"))) == 1
    assert session.errors == ""


def test_what_was_wound_down_by_hand_while_an_agent_worked_is_in_its_handover(session: AgentSession) -> None:
    """Begun and ended on the command line: no hook knew of it."""
    work(session)
    holdfast(session, "winddown", "start", "--percent", "0.9")
    rule = ("--data", '{"content": "Never touch the QUUX module"}', "--percent", "0.9")
    holdfast(session, "winddown", "append", "user_message", *rule)
    choice = ("--data", '{"content": "decision ZAPHOD: use a regex"}', "--percent", "0.9")
    holdfast(session, "winddown", "append", "assistant_response", *choice)
    by_hand = json.loads(holdfast(session, "winddown", "finalize", "--json"))["session_id"]
    session.prompt("Go on")
    session.after_tool("make all")
    assert end(session)["session_id"] != by_hand
    told = holdfast(session, "context", "latest")
    assert "Never touch the QUUX module" in told
    assert "ZAPHOD" in told
    assert len(json.loads(holdfast(session, "threads", "--json"))) == 1
    assert session.errors == ""


def recorded_by_hand(session: AgentSession, words: str, **variables: str) -> str:
    session.variables.update(variables)
    holdfast(session, "winddown", "start", "--percent", "0.9")
    data = ("--data", json.dumps({"content": words}), "--percent", "0.9")
    holdfast(session, "winddown", "append", "user_message", *data)
    return json.loads(holdfast(session, "winddown", "finalize", "--json"))["session_id"]


def test_what_was_wound_down_before_a_compaction_is_in_the_handover_of_the_end(session: AgentSession) -> None:
    work(session)
    recorded_by_hand(session, "Never touch the QUUX module")
    session.fire("PreCompact", trigger="auto")
    session.wait_for((session.notes / "settled").exists)
    session.start("compact")
    session.prompt("Go on")
    later = time.time() + 5
    os.utime(session.notes / "who", (later, later))
    name = settled(session)["session_id"]
    assert session.fire("SessionEnd", reason="other").code == 0
    session.wait_for(lambda: settled(session)["session_id"] != name)
    assert "Never touch the QUUX module" in holdfast(session, "context", "latest")


def wound_down(session: AgentSession, *rules: str) -> None:
    holdfast(session, "winddown", "start", "--percent", "0.9")
    for rule in rules:
        data = ("--data", json.dumps({"content": rule}), "--percent", "0.9")
        holdfast(session, "winddown", "append", "user_message", *data)


@pytest.mark.parametrize("begun", ["while it worked", "after its end"])
def test_a_wind_down_finalised_after_the_end_hides_no_goal(session: AgentSession, begun: str) -> None:
    work(session)
    session.prompt("Never write to the disk twice")
    session.write(said("Never write to the disk twice", "user", "m2"))
    if begun == "while it worked":
        wound_down(session, "The parser must use utf-8")
    end(session)
    if begun == "after its end":
        wound_down(session, "The parser must use utf-8")
    holdfast(session, "winddown", "finalize", "-r", "enough for today")
    told = holdfast(session, "context", "latest")
    for words in ("Store the events", "Never write to the disk twice", "The parser must use utf-8"):
        assert words in told
    assert len(json.loads(holdfast(session, "threads", "--json"))) == 1
    assert session.errors == ""


def test_a_wind_down_is_not_given_the_goal_of_work_that_was_over(session: AgentSession) -> None:
    session.start()
    session.prompt("Store the events")
    session.write(said("Store the events", "user"))
    session.write(said(DECISION, "assistant", "m1", 50_000, "claude-sonnet-4-5"))
    session.write(called("c0", "Bash", command="make events"), answered("c0", "ok"))
    session.write(said("Done, all of it.", "assistant", "m2"))
    end(session)
    wound_down(session, "The parser must use utf-8")
    holdfast(session, "winddown", "finalize")
    told = holdfast(session, "context", "latest")
    assert "The parser must use utf-8" in told
    assert "Store the events" not in told


def test_a_wind_down_is_not_given_the_goal_of_another_branch(session: AgentSession) -> None:
    git = ("git", "-C", str(session.project), "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True)
    work(session)
    end(session)
    subprocess.run([*git, "switch", "-q", "-c", "another"], check=True)
    wound_down(session, "The parser must use utf-8")
    holdfast(session, "winddown", "finalize")
    assert "Store the events" not in holdfast(session, "context", "latest")


def test_what_one_agent_wound_down_is_not_given_to_another(session: AgentSession) -> None:
    work(session)
    beside = next_session(session)
    beside.start()
    beside.prompt("Which day is it?")
    recorded_by_hand(session, "Never touch the QUUX module", CLAUDE_CODE_SESSION_ID=session.session_id)
    beside.write(said("Which day is it?", "user"), said("Monday.", "assistant", "m2"))
    assert beside.fire("SessionEnd", reason="other").code == 0
    beside.wait_for((beside.notes / "settled").exists)
    assert "QUUX" not in json.dumps(settled(beside)["incremental_pause"])
    assert session.fire("SessionEnd", reason="other").code == 0
    session.wait_for((session.notes / "settled").exists)
    assert "Never touch the QUUX module" in json.dumps(settled(session)["incremental_pause"])


def test_what_was_wound_down_before_a_session_began_is_not_its_own(session: AgentSession) -> None:
    holdfast(session, "winddown", "start", "--percent", "0.9")
    rule = ("--data", '{"content": "Never touch the QUUX module"}', "--percent", "0.9")
    holdfast(session, "winddown", "append", "user_message", *rule)
    holdfast(session, "winddown", "finalize")
    work(session)
    later = time.time() + 5  # names tell the second alone
    os.utime(session.notes / "who", (later, later))
    assert session.fire("SessionEnd", reason="other").code == 0
    session.wait_for((session.notes / "settled").exists)
    assert "QUUX" not in json.dumps(settled(session)["incremental_pause"])


def test_another_session_is_not_given_what_a_live_one_compacted(session: AgentSession) -> None:
    work(session)
    session.fire("PreCompact", trigger="manual")
    told = next_session(session).start().context
    assert "SQLite" not in told
    assert session.session_id in told


def test_one_of_two_new_sessions_takes_the_work_up(session: AgentSession) -> None:
    work(session)
    end(session)
    first, second = next_session(session), AgentSession(session.project, session.home, session_id="second")
    assert "SQLite" in first.start().context
    assert "SQLite" not in second.start().context
    assert first.start("resume").out == ""  # the agent has its conversation
    assert first.start().out == ""  # and never twice


def test_a_repository_that_moved_on_is_told(session: AgentSession) -> None:
    def git(*words: str) -> str:
        author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        done = subprocess.run(
            ["git", "-C", session.project, *author, *words], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    before = git("rev-parse", "HEAD")
    work(session)
    end(session)
    short = next_session(session)
    assert "moved from" not in short.start().context
    short.fire("SessionEnd", reason="other")
    git("commit", "-q", "--allow-empty", "-m", "two")
    third = AgentSession(session.project, session.home, session_id="third")
    assert f"moved from commit {before[:10]}" in third.start().context
    assert "HEAD was" in session.start("resume").context
    assert session.start("resume").out == ""  # told once


def test_the_handover_of_a_moved_folder_names_it_where_it_is(session: AgentSession) -> None:
    line = said("Store the events", "user")
    session.write({**line, "cwd": str(session.project)})
    work(session)
    end(session)
    moved = session.project.rename(session.project.with_name("moved"))
    there = AgentSession(moved, session.home, session_id="next")
    holdfast(there, "reindex")
    for told in (holdfast(there, "context", "latest"), there.start().context):
        assert f" in `{moved}`, recorded in `{session.project}`" in told


def test_clear_and_fork_start_clean(session: AgentSession) -> None:
    work(session)
    end(session, reason="clear")
    assert next_session(session).start("clear").out == ""
    assert next_session(session).start("fork").out == ""


def test_a_pause_made_by_hand_is_given_too(session: AgentSession) -> None:
    session.start()
    name = SessionPauseManager(session.project).create_pause_session("lunch")
    assert name in next_session(session).start().context


def dead_process() -> str:
    done = subprocess.Popen([sys.executable, "-I", "-S", "-c", "pass"])
    done.wait()
    return str(done.pid)


@pytest.mark.parametrize("tokens", [50_000, 185_000])
def test_a_killed_session_is_found_by_the_next(session: AgentSession, tokens: int) -> None:
    """With and without a wind-down going on."""
    killed = AgentSession(
        session.project, session.home, session_id="killed", variables={"CLAUDE_PID": dead_process()}
    )
    work(killed, tokens)
    killed.after_tool("a tool that was running")
    assert killed.journal.exists() == (tokens > 180_000)
    context = session.start().context
    assert "SQLite" in context
    document = settled(killed)
    assert document["trigger"] == "crash"
    assert bool(document["incremental_pause"]) == (tokens > 180_000)
    assert not killed.journal.exists()


@pytest.mark.parametrize("tokens", [50_000, 185_000])
def test_a_killed_session_hides_none_that_went_on_after_it(session: AgentSession, tokens: int) -> None:
    killed = AgentSession(
        session.project, session.home, session_id="killed", variables={"CLAUDE_PID": dead_process()}
    )
    work(killed, tokens)
    killed.after_tool("a tool that was running")
    os.utime(killed.transcript, (1_700_000_000, 1_700_000_000))
    for note in (*killed.notes.iterdir(), *killed.sessions.glob("ACTIVE-*")):
        os.utime(note, (1_700_000_000, 1_700_000_000))
    newer = AgentSession(session.project, session.home, session_id="newer")
    newer.prompt("Write the lexer")
    newer.write(said("Write the lexer", "user"), called("c1", "Bash", command="make lexer"))
    name = end(newer)["session_id"]
    told = AgentSession(session.project, session.home, session_id="third").start().context
    other = settled(killed)["session_id"]
    assert f'- `{name}`: "Write the lexer"' in told
    assert f'- `{other}`: "Store the events"' in told
    assert "SQLite" not in told
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{name}\n"
    assert "lexer" in holdfast(session, "context", "latest")
    assert "lexer" in holdfast(session, "resume")
    assert "the agent session ended" in holdfast(session, "status")
    assert "SQLite" in holdfast(session, "context", other)
    assert session.errors == ""


def pulled(session: AgentSession) -> None:
    """What a pull in mid-session brings: a file in our folder that git tracks."""
    (session.sessions / "notes.md").write_text("brought")
    git(session, "add", "--force", ".holdfast/sessions/notes.md")


def git(session: AgentSession, *words: str) -> None:
    subprocess.run(["git", *words], cwd=session.project, env=session.environment, check=True)


@pytest.mark.parametrize("first", ["before a tool", "after a tool", "answer", "prompt"])
def test_what_git_brings_in_mid_session_is_said_at_the_next_thing_done(
    session: AgentSession, first: str
) -> None:
    git(session, "init", "--quiet")
    work(session)
    session.after_tool()
    pulled(session)
    done = {
        "before a tool": session.before_tool,
        "after a tool": session.after_tool,
        "answer": lambda: session.fire("Stop"),
        "prompt": session.prompt,
    }[first]()
    why = "git tracks files in it, or did"
    if first != "answer":
        assert f"nothing is recorded: {why}" in done.context
    if first != "prompt":
        assert done.data["systemMessage"] == (
            f"holdfast: nothing is recorded from now on: {why}; see `holdfast trust --show`"
        )
    assert session.before_tool().out == session.after_tool().out == ""  # once is enough
    assert why in session.prompt().context
    assert session.holdfast("trust", "--yes").code == 0
    assert why not in session.prompt().out
    assert session.after_tool().out == ""


@pytest.mark.parametrize("agent", ["codex", "gemini", "opencode"])
def test_other_agents_are_told_of_it_after_a_tool_too(session: AgentSession, agent: str) -> None:
    git(session, "init", "--quiet")
    other = AgentSession(session.project, session.home, agent)
    other.prompt()
    other.after_tool()
    pulled(other)
    told = other.after_tool().data
    assert "git tracks files in it" in (told["notice"] if agent == "opencode" else told["systemMessage"])


@pytest.mark.parametrize("ended", [True, False])
def test_a_session_that_ended_while_its_folder_was_foreign_is_not_called_killed(
    session: AgentSession, ended: bool
) -> None:
    git(session, "init", "--quiet")
    first = AgentSession(
        session.project, session.home, session_id="first", variables={"CLAUDE_PID": dead_process()}
    )
    work(first)
    pulled(first)
    first.prompt()
    if ended:
        first.fire("SessionEnd", reason="other")
    trusted = session.holdfast("trust", "--yes")
    assert trusted.code == 0
    if ended:
        name = settled(first)["session_id"]
        assert f"Saved {name}, a session that ended while the folder was ignored.\n" in trusted.err
        assert [one["id"] for one in json.loads(holdfast(session, "threads", "--json"))] == [name]
        assert "Store the events" in holdfast(session, "resume", name)
    session.start()
    trigger = settled(first)["trigger"]
    assert trigger == ("pause" if ended else "crash")


def test_a_killed_session_did_not_end_in_good_order(session: AgentSession) -> None:
    killed = AgentSession(
        session.project, session.home, session_id="killed", variables={"CLAUDE_PID": dead_process()}
    )
    killed.prompt("Write the lexer")
    ended = {**said("Done.", "assistant", "m2", 100, "m")}
    ended["message"] |= {"stop_reason": "end_turn"}
    killed.write(said("Write the lexer", "user"), ended)
    told = session.start().context
    assert "the agent was killed" in told
    assert "Write the lexer" in told


def test_an_orphaned_journal_that_no_hook_began(session: AgentSession) -> None:
    manager = IncrementalPauseManager(session.project, owner=int(dead_process()))
    name = manager.start_incremental_pause(0.91, {})
    assert name in session.start().context
    assert not session.journal.exists()


def test_the_end_comes_back_at_once_and_works_on(session: AgentSession) -> None:
    """The agent kills the hook's process group soon after; the snapshot is made all the same."""
    from holdfast.hooks.events import hook_command

    work(session)
    process = subprocess.Popen(
        hook_command("claude-code", "SessionEnd"),
        stdin=subprocess.PIPE,
        env=session.environment,
        cwd=session.project,
        start_new_session=True,
    )
    process.communicate(session.payload("SessionEnd", reason="other"), timeout=PATIENCE)
    subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=False, capture_output=True)
    session.wait_for((session.notes / "settled").exists)
    assert settled(session)["trigger"] == "pause"


def test_ending_twice_makes_one_session(session: AgentSession) -> None:
    work(session)
    first = end(session)
    stamp = (session.notes / "settled").stat().st_mtime_ns
    session.fire("SessionEnd", reason="other")
    session.wait_for(lambda: (session.notes / "settled").stat().st_mtime_ns != stamp)
    assert settled(session)["session_id"] == first["session_id"]


def test_old_notes_are_cleaned_up(session: AgentSession) -> None:
    import os

    ProjectLayout(session.project).ensure()
    old = session.state / "hooks" / "long-ago"
    old.mkdir(parents=True)
    marker = session.state / "quiet-long-ago"
    for path in (old / "prompts", marker):
        path.write_text("1")
        os.utime(path, (1e9, 1e9))
    (old / "ended").write_text("x")
    os.utime(old / "ended", (1e9, 1e9))
    os.utime(old, (1e9, 1e9))
    session.start()
    assert not old.exists()
    assert not marker.exists()
    assert Path(session.notes).exists()


# ── a session that did nothing ──────────────────────────────────────────────────────────────────

ANSWER = said("It is Tuesday.", "assistant", "m9", 20_000, "claude-sonnet-4-5")
IDLE = {
    "ran into a limit": [
        said("continue", "user"),
        {**said("API Error: 429 rate limit", "assistant", "m9", 0, "<synthetic>"), "isApiErrorMessage": True},
    ],
    "asked": [said("Which day is it?", "user"), ANSWER],
    "looked it up": [
        said("Which day is it?", "user"),
        called("c1", "Bash", command="date +%A"),
        answered("c1", "Tuesday"),
        ANSWER,
    ],
    "compacted a greeting": [
        said("hi", "user"),
        said("Hello!", "assistant", "m9", 20_000, "claude-sonnet-4-5"),
        {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "manual"}},
        {**said("The user said hi, and I greeted back.", "user", "s1"), "isCompactSummary": True},
        {
            "type": "user",
            "message": {"role": "user", "content": "<command-name>/compact</command-name>"},
            "uuid": "c1",
        },
    ],
    "asked Holdfast": [
        said("Status?", "user"),
        called("c1", "Bash", command="python3 -P -m holdfast status --json"),
        answered("c1", "paused"),
        ANSWER,
    ],
    "typed a command of the program alone": [
        {
            "type": "user",
            "message": {"role": "user", "content": "<command-name>/clear</command-name>"},
            "uuid": "c1",
        },
        {
            "type": "user",
            "message": {"role": "user", "content": "<local-command-stdout></local-command-stdout>"},
            "uuid": "c2",
        },
    ],
    "was opened": [{"type": "file-history-snapshot", "messageId": "m1", "snapshot": {}}],
    "read a file": [
        said("What is in the README?", "user"),
        called("c1", "Read", file_path="README.md"),
        answered("c1", "# A project"),
        said("A title.", "assistant", "m9", 20_000, "claude-sonnet-4-5"),
    ],
}
BUSY = {
    "deployed on a second line": [called("c1", "Bash", command="ls\n./deploy.sh prod"), answered("c1", "ok")],
    "was told a decision": [said("Use Postgres for the store, SQLite is out.", "user", "r1")],
    "was told a rule in German": [said("Finger weg von migrations/", "user", "r1")],
    "edited": [called("c1", "Edit", file_path="a.py", old_string="a", new_string="b"), answered("c1", "ok")],
    "deployed": [called("c1", "Bash", command="./deploy.sh"), answered("c1", "ok")],
    "wrote by shell": [called("c1", "Bash", command="date > today"), answered("c1", "")],
    "in a substitution": [called("c1", "Bash", command="echo $(rm -r build)"), answered("c1", "")],
    "called a tool of others": [called("c1", "mcp__tracker__close_issue", id=7), answered("c1", "closed")],
    "was told a rule": [said("Never touch migrations/", "user", "r1")],
    "decided": [said(DECISION, "assistant", "m8", 20_000, "claude-sonnet-4-5")],
    "was asked to keep a rule": [
        said(
            "Can you keep in mind that we deploy only from the release branch, and that EU customers "
            "are not mailed?",
            "user",
            "r1",
        )
    ],
    "was asked to agree": [
        said("Which database? I'd say Postgres 16, and we drop MySQL support in March. OK?", "user", "r1")
    ],
    "was asked for a habit": [said("Can you use tabs?", "user", "r1")],
    "was told between two lines": [said("Postgres it is\nOK?", "user", "r1")],
    "found the cause": [
        said("Why does the login fail?", "user", "r1"),
        called("c1", "Read", file_path="auth.py"),
        answered("c1", "def login(): ..."),
        said(
            "The cause: login() in auth.py drops the cookie.", "assistant", "m8", 20_000, "claude-sonnet-4-5"
        ),
    ],
    "planned in steps": [
        said(
            "1. Add column tenant_id. 2. Backfill in batches of 500. 3. Switch reads. 4. Drop it on Friday.",
            "assistant",
            "m8",
            20_000,
            "claude-sonnet-4-5",
        )
    ],
    "planned in points": [
        said("The migration:\n- add the column\n- backfill", "assistant", "m8", 20_000, "claude-sonnet-4-5")
    ],
    "planned at length": [said("First the parser. " * 200, "assistant", "m8", 20_000, "claude-sonnet-4-5")],
}


def run_through(session: AgentSession, lines: list[dict[str, Any]]) -> str:
    """Start, prompt and end, with that transcript; the name of its snapshot."""
    session.start()
    if any(line.get("message", {}).get("role") == "assistant" for line in lines):
        session.prompt()
    session.write(*lines)
    assert session.fire("SessionEnd", reason="other").code == 0
    session.wait_for(
        lambda: (
            (session.notes / "settled").exists()
            and any(session.sessions.glob(f"{settled(session)['session_id']}.context-*.md"))
        )
    )
    return settled(session)["session_id"]


def holdfast(session: AgentSession, *words: str) -> str:
    done = session.holdfast(*words)
    assert done.code == 0, done.err
    return done.out


@pytest.mark.some_of("kind", number=2)
@pytest.mark.parametrize("kind", IDLE)
def test_a_session_that_did_nothing_hides_no_other(session: AgentSession, kind: str) -> None:
    work(session)
    name = end(session)["session_id"]
    idle = AgentSession(session.project, session.home, session_id="idle")
    other = run_through(idle, IDLE[kind])
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{name}\n"
    context = AgentSession(session.project, session.home, session_id="third").start().context
    assert name in context
    assert "SQLite" in context
    assert "SQLite" in holdfast(session, "context", "latest")
    assert "SQLite" in holdfast(session, "resume")
    assert other in holdfast(session, "snapshot", "list")  # nothing is lost
    assert "Handover" in holdfast(session, "context", other)
    assert session.errors == ""


@pytest.mark.some_of("is_named")
@pytest.mark.parametrize("is_named", [True, False])
def test_any_number_of_sessions_that_did_nothing_hides_no_other(
    session: AgentSession, is_named: bool
) -> None:
    work(session)
    end(session)
    pauses = SessionPauseManager(session.project)
    for _ in range(60):
        with pauses.files.locked():
            name = pauses.files.free_session_id(time.time())
            pauses.pause(Facts(session_id=name, worked=False))
    if not is_named:
        (session.sessions / "LATEST-SESSION.txt").unlink()
    assert "Store the events" in holdfast(session, "context", "latest")
    assert "Store the events" in holdfast(session, "resume")


@pytest.mark.some_of("kind", number=4)
@pytest.mark.parametrize("kind", BUSY)
def test_in_doubt_a_session_did_something(session: AgentSession, kind: str) -> None:
    work(session)
    end(session)
    busy = AgentSession(session.project, session.home, session_id="busy")
    name = run_through(busy, [said("Go on", "user"), *BUSY[kind], ANSWER])
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{name}\n"


def test_a_compaction_of_nothing_hides_no_other(session: AgentSession) -> None:
    work(session)
    name = end(session)["session_id"]
    idle = AgentSession(session.project, session.home, session_id="idle")
    idle.start()
    idle.prompt("hi")
    idle.write(*IDLE["compacted a greeting"][:2])
    idle.fire("PreCompact", trigger="manual")
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{name}\n"
    third = AgentSession(session.project, session.home, session_id="third")
    assert "still open (idle)" in third.start().context  # which took that up when it started


def test_a_record_that_begins_with_a_compaction_did_something(session: AgentSession) -> None:
    work(session)
    end(session)
    busy = AgentSession(session.project, session.home, session_id="busy")
    name = run_through(busy, [*IDLE["compacted a greeting"][2:], said("Go on", "user"), ANSWER])
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{name}\n"


@pytest.mark.parametrize(
    ("words", "is_work"),
    [
        ([], False),
        (["--state", '{"model": "claude-sonnet-4-5"}'], False),
        (["--state", '{"task": "mend the parser"}'], True),
    ],
)
def test_a_wind_down_by_hand_in_which_nothing_was_recorded(
    session: AgentSession, words: list[str], is_work: bool
) -> None:
    work(session)
    name = end(session)["session_id"]
    holdfast(session, "winddown", "start", "--percent", "0.9", *words)
    other = json.loads(holdfast(session, "winddown", "finalize", "--json"))["session_id"]
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{other if is_work else name}\n"
    assert other in holdfast(session, "snapshot", "list")


@pytest.mark.parametrize("how", ["an action", "a transcript"])
def test_a_wind_down_by_hand_with_something_in_it(session: AgentSession, how: str) -> None:
    work(session)
    end(session)
    holdfast(session, "winddown", "start", "--percent", "0.9")
    if how == "an action":
        given = ("--data", '{"text": "tabs"}', "--percent", "0.9")
        holdfast(session, "winddown", "append", "user_message", *given)
    more = ("--transcript", str(session.transcript)) if how == "a transcript" else ()
    words = ("winddown", "finalize", "--json", *more)
    name = json.loads(holdfast(session, *words))["session_id"]
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{name}\n"


def test_a_session_that_was_cut_off_did_something(session: AgentSession) -> None:
    work(session)
    end(session)
    cut = AgentSession(session.project, session.home, session_id="cut")
    name = run_through(cut, [said("Which day is it?", "user")])
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{name}\n"


def test_where_no_session_did_anything_the_next_is_told_nothing(session: AgentSession) -> None:
    first, last = (AgentSession(session.project, session.home, session_id=f"idle-{n}") for n in range(2))
    run_through(first, IDLE["asked"])
    name = run_through(last, IDLE["asked"])
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{name}\n"
    assert AgentSession(session.project, session.home, session_id="third").start().out == ""


def test_deleting_the_latest_session_goes_back_to_one_that_did_something(session: AgentSession) -> None:
    work(session)
    first = end(session)["session_id"]
    busy = AgentSession(session.project, session.home, session_id="busy")
    last = run_through(busy, [said("Go on", "user"), *BUSY["edited"], ANSWER])
    run_through(AgentSession(session.project, session.home, session_id="idle"), IDLE["asked"])
    holdfast(session, "snapshot", "delete", last, "--yes")
    assert (session.sessions / "LATEST-SESSION.txt").read_text() == f"{first}\n"


def test_a_handoff_hands_over_the_work_and_not_the_question_after_it(session: AgentSession) -> None:
    folder = session.home / ".claude" / "projects" / re.sub("[^A-Za-z0-9]", "-", str(session.project))
    folder.mkdir(parents=True)
    for name, lines in {"worked": BUSY["edited"], "asked": []}.items():
        spoken = [said("Go on", "user"), *lines, ANSWER]
        lines_of = [{**line, "sessionId": name, "cwd": str(session.project)} for line in spoken]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines_of))
        os.utime(folder / f"{name}.jsonl", (1_700_000_000, 1_700_000_000 + (name == "asked")))
    told = json.loads(holdfast(session, "handoff", "--to", "codex", "--json"))
    text = Path(told["context_file"]).read_text()
    assert "a.py" in text
    # The same report, price and limits as with `context`, for each agent by what it accepts.
    assert told["cost"]["tokens"] > 0
    assert {one["category"] for one in told["fidelity"]["categories"]} >= {"files"}
    assert told["fidelity"]["budget"] < LIMITS["codex"]
    assert len(text) <= LIMITS["codex"]
    for agent in ("claude-code", "gemini", "opencode"):
        other = json.loads(holdfast(session, "handoff", "--to", agent, "--json"))
        assert LIMITS["codex"] < other["fidelity"]["budget"] < LIMITS[agent]
    priced = holdfast(
        session, "handoff", "--to", "codex", "--max-chars", "1000", "--model", "gpt-5", "--json"
    )
    short = json.loads(priced)
    assert short["fidelity"]["characters"] <= 1_000
    assert short["cost"]["dollars"] > 0


def test_a_conversation_that_opencode_continues_is_at_work_again(session: AgentSession) -> None:
    """It tells of no start then: only a prompt comes."""
    opencode = next_session(session, "opencode")
    opencode.fire("session.created")
    opencode.fire("chat.message", prompt="Begin")
    opencode.fire("session.deleted", reason="exit")
    assert (opencode.notes / "ended").exists()
    opencode.fire("chat.message", prompt="Go on")
    assert not (opencode.notes / "ended").exists()


def test_a_handover_is_at_hand_though_older_ones_have_later_names(session: AgentSession) -> None:
    """They were made while the clock was ahead; only so many are kept."""
    work(session)
    ahead = [
        session.sessions / f"session-209901{n}-120000.context-{LIMITS['claude-code']}.md"
        for n in range(10, 22)
    ]
    for path in ahead:
        path.write_text("old")
    session.fire("SessionEnd", reason="other")
    session.wait_for(lambda: not all(path.exists() for path in ahead))
    name = settled(session)["session_id"]
    assert (session.sessions / f"{name}.context-{LIMITS['claude-code']}.md").exists()


# ── a project folder that is gone ─────────────────────────────────────────────────────────────────

EVENTS = [(agent, name) for agent, events in MOMENTS.items() for name in events]
SAYS = {"prompt": "go on", "tool_name": "Bash", "tool_input": {"command": "git status"}, "source": "resume"}


@pytest.mark.parametrize(("agent", "event"), EVENTS, ids=[f"{agent}-{name}" for agent, name in EVENTS])
def test_no_event_makes_a_project_folder_that_is_gone(tmp_path: Path, agent: str, event: str) -> None:
    """A worktree was removed, and the agent that worked in it still runs."""
    outside, gone = tmp_path / "outside", tmp_path / "trees" / "gone"
    outside.mkdir()
    late = AgentSession(outside, tmp_path, agent, variables={"CLAUDE_PROJECT_DIR": str(gone)})
    for answer in (late.fire, late.fire_python):
        result = answer(event, cwd=str(gone), **SAYS)
        assert (result.code, result.out, result.err) == (0, "", "")
    assert not gone.parent.exists()
    assert not list(outside.iterdir())


def test_a_project_folder_that_is_gone_leaves_no_session_in_the_one_around_it(
    session: AgentSession,
) -> None:
    (session.project / ".git").mkdir()
    late = AgentSession(session.project, session.home, "codex")
    for event in ("UserPromptSubmit", "Stop", "SessionEnd"):
        assert late.fire(event, cwd=str(session.project / "trees" / "gone"), **SAYS).out == ""
    assert [path.name for path in session.project.iterdir()] == [".git"]


def test_a_session_goes_on_whose_subfolder_is_gone(session: AgentSession) -> None:
    session.agent = "codex"
    session.start()
    session.fire("UserPromptSubmit", cwd=str(session.project / "removed"), **SAYS)
    assert (session.notes / "prompts").read_text().strip() == "1"


def test_a_folder_that_is_gone_is_no_way_past_the_guards(tmp_path: Path) -> None:
    late = AgentSession(tmp_path, tmp_path, variables={"CLAUDE_PROJECT_DIR": str(tmp_path / "gone")})
    command = {"command": "rm -rf " + "/"}
    result = late.fire("PreToolUse", cwd=str(tmp_path / "gone"), tool_name="Bash", tool_input=command)
    assert result.refusal
    assert not (tmp_path / "gone").exists()


@pytest.mark.parametrize("task", background_tasks.TASKS)
def test_no_background_task_makes_a_project_folder_that_is_gone(session: AgentSession, task: str) -> None:
    gone = session.home / "trees" / "gone"
    script = str(Path(background_tasks.__file__).with_name("background.py"))
    done = session.run([sys.executable, script, task, "codex", "s-1", str(gone), "1"], b"")
    assert (done.out, done.err) == ("", "")
    assert not gone.parent.exists()


def test_nothing_makes_a_project_folder_that_goes_meanwhile(tmp_path: Path) -> None:
    gone = tmp_path / "trees" / "gone"
    work = SessionWork("codex", "s-1", str(gone))
    for make in (
        lambda: notes.ensure_folder(str(work.folder)),
        lambda: background_tasks.settle(work, "end"),
        lambda: background_tasks.recover(work),
    ):
        with pytest.raises((FileNotFoundError, StorageError)):
            make()
        assert not gone.parent.exists()
