"""What an agent changes in files, turn by turn: recorded beside it, and the user's own edits are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.base.durable import lock_file
from holdfast.base.errors import HoldfastError
from holdfast.findings.rules.actions import action_of
from holdfast.hooks.housekeeping import ONLY_READING
from holdfast.model.message import ToolCall
from holdfast.project.layout import ProjectLayout
from holdfast.undo.ledger import Transaction
from holdfast.undo.transactions import SideCar
from hooks.harness import AgentSession
from transcripts import gemini_files, opencode_files

ENDS = {"claude-code": "Stop", "codex": "Stop", "gemini": "AfterAgent", "opencode": "session.idle"}
STARTS = {"opencode": "session.created"}
OVER = {"opencode": "session.deleted"}


@pytest.fixture(params=["claude-code"])
def agent(request: pytest.FixtureRequest, session: AgentSession) -> AgentSession:
    """In a git worktree."""
    subprocess.run(["git", "init", "--quiet", session.project], check=True)
    (session.project / "mine").write_text("mine\n")
    session.agent = request.param
    return session


def start(agent: AgentSession) -> None:
    assert agent.fire(STARTS.get(agent.agent, "SessionStart"), source="startup").code == 0


def begin_turn(agent: AgentSession) -> None:
    agent.prompt("change something")
    agent.wait_for(lambda: not (agent.notes / "turning").exists())


def end_turn(agent: AgentSession) -> None:
    agent.fire(ENDS[agent.agent])
    agent.wait_for(lambda: not (agent.notes / "ending").exists())


def end(agent: AgentSession) -> None:
    agent.fire(OVER.get(agent.agent, "SessionEnd"), reason="other")
    agent.wait_for(lambda: not (agent.notes / "transaction").exists())


def transactions(agent: AgentSession) -> list[Transaction]:
    with SideCar(agent.project) as sidecar:
        return sidecar.transactions()


def told(transaction: Transaction) -> list[tuple[str, list[str], str]]:
    return [
        (one.description, [change.path for change in one.changes], one.doubt) for one in transaction.changes
    ]


def write_file(agent: AgentSession, name: str, text: str) -> None:
    """As the agent's own tool for writing does: named to the hook, then done."""
    tools = {"gemini": "write_file", "opencode": "write"}
    given = {"file_path": str(agent.project / name), "content": text}
    agent.before_tool(tool_name=tools.get(agent.agent, "Write"), tool_input=given)
    (agent.project / name).write_text(text)


@pytest.mark.some_of("agent", number=2)
@pytest.mark.parametrize("agent", list(ENDS), indirect=True)
def test_every_turn_is_a_change_and_what_the_user_does_between_is_not(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    agent.before_tool("echo by a shell > made")
    (agent.project / "made").write_text("by a shell\n")
    end_turn(agent)
    (agent.project / "mine").write_text("mine, between two turns\n")
    begin_turn(agent)
    agent.before_tool("rm -f made")
    (agent.project / "made").unlink()
    write_file(agent, "other", "x\n")
    end_turn(agent)
    (found,) = transactions(agent)
    assert (found.id, found.status) == (f"{agent.agent}-{agent.session_id}", "in-progress")
    assert told(found) == [("turn 1", ["made"], ""), ("turn 2", ["made", "other"], "")]
    end(agent)
    (found,) = transactions(agent)
    assert found.status == "committed"
    with SideCar(agent.project) as sidecar:
        sidecar.rollback(found.id)
    assert sorted(path.name for path in agent.project.iterdir()) == [".git", ".holdfast", "mine"]
    assert (agent.project / "mine").read_text() == "mine, between two turns\n"
    assert not any("first look" in line for line in found.uncovered)
    assert agent.errors == ""


def test_a_tool_that_comes_at_once_is_recorded_or_the_record_says_that_it_may_not_be(
    agent: AgentSession,
) -> None:
    for number in range(200):
        (agent.project / f"file{number}").write_text(f"{number}\n")
    agent.prompt("at once")
    agent.before_tool("echo by the tool > file7")
    (agent.project / "file7").write_text("by the tool\n")
    agent.wait_for(lambda: not (agent.notes / "turning").exists())
    is_late = (agent.notes / "late-look").exists()
    end_turn(agent)
    (found,) = transactions(agent)
    assert is_late == any("before its first look" in line for line in found.uncovered)
    assert is_late or told(found) == [("turn 1", ["file7"], "")]


def test_no_tool_waits_for_a_look_that_takes_long_and_the_record_says_what_it_may_lack(
    agent: AgentSession,
) -> None:
    start(agent)
    agent.wait_for((agent.project / ".holdfast" / "sidecar" / "holdfast.lock").exists)
    with lock_file(agent.project / ".holdfast" / "sidecar" / "holdfast.lock"):
        agent.prompt("work")
        agent.before_tool(tool_name="Read", tool_input={"file_path": "mine"})
        assert not (agent.notes / "late-look").exists()
        agent.before_tool("rm -rf build")
        assert (agent.notes / "turning").exists()  # the look has not even begun
        (agent.project / "lost").write_text("before the look\n")
    agent.wait_for(lambda: not (agent.notes / "turning").exists())
    write_file(agent, "made", "x\n")
    end_turn(agent)
    begin_turn(agent)
    write_file(agent, "later", "x\n")
    end_turn(agent)
    (found,) = transactions(agent)
    assert [(name, paths) for name, paths, _ in told(found)] == [("turn 1", ["made"]), ("turn 2", ["later"])]
    (missed,) = [line for line in found.uncovered if "before its first look" in line]
    assert missed.startswith("what turn 1 changed")
    shown = agent.holdfast("tx", "show", found.id).out
    assert missed in shown
    for words in (["tx", "rollback"], ["rewind", "0"]):
        done = agent.holdfast(*words, "--dry-run")
        assert (done.code, done.err) == (3, f"not covered: {missed}\n")
        done = agent.holdfast(*words, "--dry-run", "--json")
        assert (done.code, done.data["not_covered"]) == (3, [missed])
    assert agent.holdfast("rewind", "1", "--dry-run").code == 0
    done = agent.holdfast("tx", "rollback", "--yes")
    assert (done.code, done.err, (agent.project / "lost").exists()) == (3, f"not covered: {missed}\n", True)


@pytest.mark.parametrize("tool", ONLY_READING)
def test_a_tool_that_no_look_is_waited_for_changes_no_file(tool: str) -> None:
    assert action_of(ToolCall("", tool, {})).kind in ("read", "search", "todo")


def test_a_mark_that_a_killed_look_left_holds_nothing_up(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    mark = agent.notes / "turning"
    mark.touch()
    os.utime(mark, (0, 0))
    assert agent.before_tool("true").code == 0
    assert not mark.exists()


def test_a_turn_without_an_end_is_in_doubt(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    (agent.project / "made").write_text("agent, or the user after the interruption\n")
    begin_turn(agent)
    end_turn(agent)
    ((name, paths, doubt),) = told(transactions(agent)[0])
    assert (name, paths) == ("turn 1", ["made"])
    assert "did not end" in doubt


@pytest.mark.parametrize("agent", ["codex"], indirect=True)
def test_the_prompt_of_a_sub_agent_begins_no_turn(agent: AgentSession) -> None:
    """Codex sends it with the session's own id, in the middle of a turn."""
    start(agent)
    begin_turn(agent)
    write_file(agent, "made", "x\n")
    agent.fire("UserPromptSubmit", agent_id="a1", agent_type="default", prompt="Measure it")
    agent.wait_for(lambda: not (agent.notes / "turning").exists())
    end_turn(agent)
    assert told(transactions(agent)[0]) == [("turn 1", ["made"], "")]


def test_a_session_that_ends_in_a_turn_that_the_user_stopped_leaves_it_in_doubt(agent: AgentSession) -> None:
    """An agent fires nothing when the user interrupts it, and the user goes on by hand."""
    start(agent)
    begin_turn(agent)
    (agent.project / "hours").write_text("of the user's own work\n")
    end(agent)
    ((name, paths, doubt),) = told(transactions(agent)[0])
    assert (name, paths) == ("turn 1", ["hours"])
    assert "did not end" in doubt
    with SideCar(agent.project) as sidecar, pytest.raises(HoldfastError):
        sidecar.rollback(transactions(agent)[0].id)
    assert (agent.project / "hours").exists()


def test_a_turn_that_is_over_before_the_tree_was_looked_at_is_not_watched_on(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    end_turn(agent)
    with lock_file(agent.project / ".holdfast" / "sidecar" / "holdfast.lock"):
        agent.prompt("answered at once")
        agent.fire(ENDS[agent.agent])
    agent.wait_for(lambda: not (agent.notes / "turning").exists())
    (agent.project / "mine").write_text("by the user, after the turn\n")
    assert not (agent.notes / "recording").exists()
    end(agent)
    assert transactions(agent) == []


def test_a_session_that_is_over_before_its_first_look_leaves_nothing_in_progress(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    end_turn(agent)
    end(agent)
    with lock_file(agent.project / ".holdfast" / "sidecar" / "holdfast.lock"):
        agent.prompt("once more, and away")
        agent.fire(OVER.get(agent.agent, "SessionEnd"), reason="other")
    agent.wait_for(lambda: not (agent.notes / "turning").exists())
    agent.wait_for(lambda: not (agent.notes / "transaction").exists())
    assert transactions(agent) == []


def test_a_session_that_was_killed_is_recorded_in_doubt_by_the_next_one(agent: AgentSession) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        agent.variables["CLAUDE_PID"] = str(process.pid)
        start(agent)
        begin_turn(agent)
        (agent.project / "made").write_text("agent\n")
        process.kill()
    following = AgentSession(agent.project, agent.home, session_id="the-next-one")
    following.start()
    following.wait_for(lambda: not (agent.notes / "transaction").exists())
    (found,) = transactions(agent)
    assert (found.status, [paths for _, paths, _ in told(found)]) == ("committed", [["made"]])
    assert told(found)[0][2] == "its session ended unexpectedly"


def test_resumed_after_its_end_a_session_continues_in_a_new_transaction(agent: AgentSession) -> None:
    for number in (1, 2):
        start(agent)
        begin_turn(agent)
        (agent.project / f"made{number}").write_text("x\n")
        end_turn(agent)
        end(agent)
    later, first = transactions(agent)
    assert (later.id, later.continued_from) == (f"{first.id}-2", first.id)


def test_a_session_begun_with_an_earlier_version_keeps_its_transaction(agent: AgentSession) -> None:
    """It had another name for the agent, which stands in the transaction's."""
    name = f"claude-{agent.session_id}"
    start(agent)
    agent.wait_for((agent.project / ".holdfast" / "sidecar").exists)
    with SideCar(agent.project) as sidecar:
        sidecar.take_up(name)
    for number in (1, 2):
        begin_turn(agent)
        write_file(agent, f"made{number}", "x\n")
        end_turn(agent)
        end(agent)
    later, first = transactions(agent)
    assert (first.id, first.status, told(first)) == (name, "committed", [("turn 1", ["made1"], "")])
    assert (later.id, later.continued_from) == (f"{name}-2", name)
    done = agent.holdfast("rewind", "1", "--session", agent.session_id[:8], "--yes")
    assert f"claude --resume {agent.session_id}" in done.out
    assert not (agent.project / "made2").exists()


def test_a_session_that_changes_nothing_leaves_no_transaction(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    end_turn(agent)
    end(agent)
    assert transactions(agent) == []


@pytest.mark.parametrize("how", ["variable", "file", "no git", "task of a workflow"])
def test_where_nothing_is_recorded(agent: AgentSession, how: str) -> None:
    if how == "variable":
        agent.variables["HOLDFAST_RECORD_FILES"] = "off"
    elif how == "task of a workflow":
        agent.variables["HOLDFAST_WORKFLOW"] = "wf_1"
    elif how == "no git":
        (agent.project / ".git").rename(agent.home / "git")
    else:
        (ProjectLayout(agent.project).ensure().folder / "config.toml").write_text("record_files = false\n")
    start(agent)
    agent.prompt("work")
    assert not (agent.notes / "turning").exists()
    agent.fire("Stop")
    agent.fire("SessionEnd", reason="other")
    assert not (agent.project / ".holdfast" / "sidecar").exists()


def test_a_side_car_in_trouble_is_noted_and_not_felt(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    with SideCar(agent.project) as sidecar:
        sidecar.commit(f"claude-code-{agent.session_id}")
    (agent.project / "made").write_text("x\n")
    end_turn(agent)
    assert "is committed" in agent.errors
    begin_turn(agent)
    write_file(agent, "made2", "x\n")
    end_turn(agent)
    assert told(transactions(agent)[0]) == [("turn 2", ["made2"], "")]


@pytest.mark.parametrize("when", ["prompt", "end"])
def test_a_turn_that_could_not_be_recorded_is_told_and_what_followed_is_in_doubt(
    agent: AgentSession, when: str
) -> None:
    start(agent)
    begin_turn(agent)
    write_file(agent, "first", "x\n")
    end_turn(agent)
    obstacle = agent.project / ".holdfast" / "sidecar" / "kept"
    if when == "end":
        begin_turn(agent)
    obstacle.symlink_to("elsewhere")
    if when == "prompt":
        begin_turn(agent)
    write_file(agent, "first", "second\n")
    answers = [agent.fire("Stop")]
    agent.wait_for(lambda: any(agent.notes.glob("unrecorded-2*")))
    obstacle.unlink()
    (agent.project / "mine").write_text("mine, between two turns\n")
    (agent.project / "new").write_text("mine, too\n")
    answers.append(agent.prompt("go on"))
    agent.wait_for(lambda: not (agent.notes / "turning").exists())
    write_file(agent, "third", "x\n")
    answers.append(agent.fire("Stop"))
    agent.wait_for(lambda: not (agent.notes / "ending").exists())
    end(agent)
    (found,) = transactions(agent)
    assert [line for line in found.uncovered if "turn 2 was not recorded: " in line]
    certain = {path for _, paths, doubt in told(found) if not doubt for path in paths}
    assert certain == {"first", "third"}
    assert [(name, paths) for name, paths, doubt in told(found) if doubt] == (
        [("turn 2", ["first", "mine", "new"])] if when == "end" else []
    )
    assert sum("turn 2 changed in files was not recorded" in one.out for one in answers) == 1
    for words in (["tx", "rollback"], ["rewind", "0"]):
        done = agent.holdfast(*words, "--partial", "--dry-run")
        assert (done.code, done.err.count("not covered: turn 2 was not recorded: ")) == (3, 1)
    with SideCar(agent.project) as sidecar:
        sidecar.rollback(found.id, partial=True)
    assert (agent.project / "mine").read_text() == "mine, between two turns\n"
    assert (agent.project / "new").exists()


def test_rolled_back_during_a_turn_its_rest_is_recorded(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    write_file(agent, "before", "x\n")
    end_turn(agent)
    begin_turn(agent)
    lines = ("import sys", "from holdfast.undo.transactions import SideCar")
    take_back = "; ".join((*lines, "SideCar(sys.argv[1]).rollback(sys.argv[2])"))
    words = (str(agent.project), f"claude-code-{agent.session_id}")
    subprocess.run([sys.executable, "-c", take_back, *words], check=True)
    write_file(agent, "made", "x\n")
    (agent.project / "mine").write_text("mine, while the agent works\n")
    end_turn(agent)
    begin_turn(agent)
    write_file(agent, "made2", "x\n")
    end_turn(agent)
    later, first = transactions(agent)
    seen = "it changed during the turn, but no tool call of the session names it"
    assert told(later) == [("turn 2", ["mine"], seen), ("turn 2", ["made"], ""), ("turn 3", ["made2"], "")]
    assert (first.status, later.status) == ("rolled-back", "in-progress")
    assert agent.errors == ""


def test_what_the_user_edits_during_a_turn_is_in_doubt_and_left(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    write_file(agent, "made", "agent\n")
    (agent.project / "mine").write_text("mine, while the agent works\n")
    end_turn(agent)
    begin_turn(agent)
    agent.before_tool("mkdir -p src && cd src && touch inner; echo x > ../shelled.txt")
    (agent.project / "src").mkdir()
    (agent.project / "src" / "inner").write_text("")
    (agent.project / "shelled.txt").write_text("x\n")
    end_turn(agent)
    (found,) = transactions(agent)
    seen = "it changed during the turn, but no tool call of the session names it"
    assert told(found) == [
        ("turn 1", ["mine"], seen),
        ("turn 1", ["made"], ""),
        ("turn 2", ["shelled.txt", "src/", "src/inner"], ""),
    ]
    done = agent.holdfast("tx", "rollback", "--yes")
    assert (done.code, done.out) == (3, "Rolled back 3 files\n  made\n  shelled.txt\n  src/inner\n")
    assert done.err == f"left unchanged: mine: {seen}\nhint: changes in doubt are undone with --doubtful\n"
    assert (agent.project / "mine").read_text() == "mine, while the agent works\n"
    assert agent.holdfast("tx", "rollback", "--yes").code == 3
    assert agent.holdfast("tx", "rollback", "--yes", "--include-doubtful").code == 0
    assert (agent.project / "mine").read_text() == "mine\n"


REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected"
DONE_BY_HAND = {
    "rejected": ("Edit", REJECTED, False),
    "does not fit": ("Edit", "<tool_use_error>File has been modified since read</tool_use_error>", False),
    "command rejected": ("Bash", REJECTED, False),
    "command failed": ("Bash", "Exit code 1", True),
}


@pytest.mark.parametrize("how", DONE_BY_HAND)
def test_what_the_user_does_instead_of_a_tool_is_in_doubt(agent: AgentSession, how: str) -> None:
    tool, said, is_agents = DONE_BY_HAND[how]
    given = (
        {"command": "sed -i s/mine/ours/ mine"}
        if tool == "Bash"
        else {"file_path": str(agent.project / "mine")}
    )
    start(agent)
    begin_turn(agent)
    agent.before_tool(tool_name=tool, tool_input=given, tool_use_id="toolu_01AbCdEfGhIjKlMnOpQrStUv")
    answer = {
        "type": "tool_result",
        "tool_use_id": "toolu_01AbCdEfGhIjKlMnOpQrStUv",
        "content": said,
        "is_error": True,
    }
    agent.write({"type": "user", "message": {"role": "user", "content": [answer]}})
    (agent.project / "mine").write_text("mine, by hand\n")
    end_turn(agent)
    ((_, paths, doubt),) = told(transactions(agent)[0])
    assert (paths, not doubt) == (["mine"], is_agents)


def gemini_record(agent: AgentSession, *calls: dict[str, Any]) -> None:
    agent.write(gemini_files.user("u1", "go on"), gemini_files.gemini("g1", toolCalls=list(calls)))


@pytest.mark.parametrize("agent", ["gemini"], indirect=True)
def test_what_the_user_does_after_rejecting_a_tool_of_gemini_is_in_doubt(agent: AgentSession) -> None:
    """Its hooks come before the user is asked, and have no ids of calls."""
    start(agent)
    begin_turn(agent)
    given = {"command": "sed -i s/mine/ours/ mine"}
    shell, done = ("run_shell_command", given), ("write_file", {"file_path": str(agent.project / "made")})
    for name, args in (shell, done, ("run_shell_command", {"command": "touch ../other"})):
        agent.before_tool(tool_name=name, tool_input=args)
    gemini_record(
        agent,
        gemini_files.tool("c0", *shell),  # in the turn before
        gemini_files.tool("c1", *shell, status="cancelled"),
        gemini_files.tool("c2", done[0], {**done[1], "content": "x"}),
    )
    (agent.project / "mine").write_text("mine, by hand\n")
    (agent.project / "made").write_text("x\n")
    end_turn(agent)
    (found,) = transactions(agent)
    assert sorted((paths, not doubt) for _, paths, doubt in told(found)) == [
        (["made"], True),
        (["mine"], False),
    ]


@pytest.mark.parametrize("agent", ["opencode"], indirect=True)
def test_what_the_user_does_after_rejecting_a_tool_of_opencode_is_in_doubt(agent: AgentSession) -> None:
    database = Path(agent.home, ".local", "share", "opencode", "opencode.db")
    database.parent.mkdir(parents=True)
    record = opencode_files.Database(database)
    record.session(agent.session_id, directory=str(agent.project))
    start(agent)
    begin_turn(agent)
    no = "The user rejected permission to use this specific tool call."
    for call, name, args in (
        ("call_1", "bash", {"command": "sed -i s/mine/ours/ mine"}),
        ("call_2", "edit", {"filePath": str(agent.project / "other")}),
        ("call_3", "edit", {"filePath": str(agent.project / "made")}),
    ):
        agent.before_tool(tool_name=name, tool_input=args, tool_use_id=call)
        ended = {"output": "done"} if call == "call_3" else {"error": no}
        status = "completed" if call == "call_3" else "error"
        part = opencode_files.tool(name, call, status, input=args, **ended)
        record.message("assistant", part, session=agent.session_id)
    for name in ("mine", "other", "made"):
        (agent.project / name).write_text("x\n")
    end_turn(agent)
    (found,) = transactions(agent)
    assert sorted((paths, not doubt) for _, paths, doubt in told(found)) == [
        (["made"], True),
        (["mine", "other"], False),
    ]


@pytest.mark.parametrize("first", ["mine", "other"])
def test_what_the_user_wrote_to_a_file_before_a_tool_edits_it_stays_with_an_undo(
    agent: AgentSession, first: str
) -> None:
    """Also where a tool has edited another file before: then a shell answers for the hook."""
    lines = [f"line {number}\n" for number in range(20)]
    (agent.project / "mine").write_text("".join(lines))
    start(agent)
    begin_turn(agent)
    if first == "other":
        write_file(agent, "other", "x\n")
    lines[3] = "by the user\n"
    (agent.project / "mine").write_text("".join(lines))
    users = "".join(lines)
    for number in (10, 11):
        lines[number] = "by the agent\n"
        write_file(agent, "mine", "".join(lines))
    end_turn(agent)
    doubted, certain = told(transactions(agent)[0])
    assert (doubted[1], "no tool call" in doubted[2]) == (["mine"], True)
    assert certain[1:] == (["mine"] if first == "mine" else ["mine", "other"], "")
    assert agent.holdfast("tx", "undo").code == 0
    assert (agent.project / "mine").read_text() == users
    assert agent.holdfast("tx", "redo").code == 0
    done = agent.holdfast("tx", "rollback", "--yes")
    assert (done.code, done.err.partition(": it changed")[0]) == (3, "left in part: mine")
    assert (agent.project / "mine").read_text() == users
    assert agent.holdfast("tx", "redo").code == 0
    assert (agent.project / "mine").read_text() == "".join(lines)


@pytest.mark.parametrize(
    "command",
    [
        "echo by the agent >> mine",
        "sed -i 's/^line 10$/by the agent/' mine && cat other",
        "cd sub && cp ../other ../mine",
        "cp other mine",
    ],
)
def test_what_the_user_wrote_to_a_file_before_a_command_writes_it_is_in_doubt(
    agent: AgentSession, command: str
) -> None:
    lines = [f"line {number}\n" for number in range(20)]
    (agent.project / "mine").write_text("".join(lines))
    (agent.project / "other").write_text("other\n")
    (agent.project / "sub").mkdir()
    start(agent)
    begin_turn(agent)
    with SideCar(agent.project) as sidecar:
        sidecar.complete_first_look()  # or a hook lets the tool go while that is still going on
    lines[3] = "by the user\n"
    (agent.project / "mine").write_text("".join(lines))
    for ran in ("cat mine > /dev/null", command, command):
        agent.before_tool(ran)
        subprocess.run(["sh", "-c", ran], cwd=agent.project, check=True, capture_output=True)
    end_turn(agent)
    doubted, certain = told(transactions(agent)[0])
    assert (doubted[1], "no tool call" in doubted[2]) == (["mine"], True)
    assert certain[1:] == (["mine"], "")
    assert agent.holdfast("tx", "undo").code == 0
    assert (agent.project / "mine").read_text() == "".join(lines)


def test_a_file_that_a_tool_made_or_edited_in_the_turn_is_all_the_agents(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    write_file(agent, "mine", "by the tool\n")
    for command in ("echo first > made", "echo second >> made", "echo third >> mine", "cp mine made"):
        agent.before_tool(command)
        subprocess.run(["sh", "-c", command], cwd=agent.project, check=True)
    end_turn(agent)
    ((_, paths, doubt),) = told(transactions(agent)[0])
    assert (paths, doubt) == (["made", "mine"], "")


def test_an_edit_goes_on_beside_a_look_at_the_tree_and_the_record_says_what_it_may_lack(
    agent: AgentSession,
) -> None:
    start(agent)
    begin_turn(agent)
    (agent.project / "mine").write_text("by the user\n")
    with lock_file(agent.project / ".holdfast" / "sidecar" / "holdfast.lock"):
        write_file(agent, "mine", "by the agent\n")
        assert (agent.notes / "not-apart").read_text() == "mine"
    end_turn(agent)
    (found,) = transactions(agent)
    assert told(found) == [("turn 1", ["mine"], "")]
    assert any(
        "what others did to mine in turn 1 before a tool edited it" in line for line in found.uncovered
    )
    begin_turn(agent)
    (agent.project / "mine").write_text("by the user again\n")
    write_file(agent, "mine", "by the agent again\n")
    end_turn(agent)
    assert not any("turn 2" in line for line in transactions(agent)[0].uncovered)


def test_what_is_ignored_or_new_is_not_set_apart(agent: AgentSession) -> None:
    (agent.project / ".gitignore").write_text("secret\n")
    (agent.project / "secret").write_text("1\n")
    start(agent)
    begin_turn(agent)
    for name in ("secret", "new", "../elsewhere"):
        (agent.project / name).write_text("by the user\n")
        write_file(agent, name, "by the agent\n")
    end_turn(agent)
    assert told(transactions(agent)[0]) == [("turn 1", ["new"], "")]


READS_ONLY = {
    "cp mine copy": "mine",
    "cp mine /elsewhere 2>/dev/null": "mine",
    "cp mine copy 2 # mine": "mine",
    "cp -r sub /elsewhere": "sub/k",
    "ln -s mine link": "mine",
    "mkdir -p sub": "sub/new",
    "mkdir sub && cp x sub": "sub/k",
    "cp other sub": "sub/k",
    "cp other other2\necho mine": "mine",
    "rsync -a other copy --exclude mine": "mine",
    "cp -r sub/. /elsewhere": "sub/k",
    "mv gone sub": "sub/k",
    "cp -t sub mine": "mine",
    "git restore --staged mine": "mine",
    "git rm --cached mine": "mine",
    "chmod +x mine": "mine",
    "touch mine": "mine",
    "sed -n 1p mine": "mine",
    "perl -ne print mine": "mine",
    "cp -r $HERE .": "sub/k",
    "cat > copy <<'EOF'\nrm mine\nEOF": "mine",
}


@pytest.mark.some_of("command", number=6)
@pytest.mark.parametrize("command", READS_ONLY)
def test_a_command_names_what_it_writes_and_no_more(agent: AgentSession, command: str) -> None:
    (agent.project / "sub").mkdir()
    (agent.project / "sub" / "k").write_text("k\n")
    start(agent)
    begin_turn(agent)
    agent.before_tool(command)
    (agent.project / READS_ONLY[command]).write_text("the user's\n")
    end_turn(agent)
    ((_, paths, doubt),) = told(transactions(agent)[0])
    assert (paths, bool(doubt)) == ([READS_ONLY[command]], True)


WRITES = (
    "cp mine copy 2>/dev/null",
    "cp mine sub",
    "cp -t sub mine",
    "cp -r sub sub2",
    "cp -r sub sub3",
    "mv sub sub4",
    "mv mine sub # there",
    "ln -s mine link",
    "ln -s sub link",
    "mkdir -p one/two",
    "rm -r sub sub3",
    "chmod 700 mine",
    "touch made mine",
    "truncate -s 0 mine",
    "touch -- -made",
    "install -m 644 mine copy",
    "install -D mine sub/copy",
    "sed -i s/m/n/ mine",
    "sed -n -i.bak p mine",
    "perl -pi -e s/m/n/ mine",
    "(cd sub && rm k); rm mine",
    "cat > copy <<'EOF'\nx\nEOF\nrm mine",
    "name=mine; rm $name",
)


@pytest.mark.some_of("command", number=6)
@pytest.mark.parametrize("command", WRITES)
def test_what_a_command_writes_is_the_agents(agent: AgentSession, command: str) -> None:
    for folder in ("sub", "sub3"):
        (agent.project / folder).mkdir()
        (agent.project / folder / "k").write_text(f"{folder}\n")
    start(agent)
    begin_turn(agent)
    agent.before_tool(command)
    subprocess.run(["sh", "-c", command], cwd=agent.project, check=True)
    end_turn(agent)
    ((_, paths, doubt),) = told(transactions(agent)[0])
    assert paths
    assert not doubt


def test_files_are_rewound_to_a_turn(agent: AgentSession) -> None:
    start(agent)
    for number in (1, 2, 3):
        begin_turn(agent)
        write_file(agent, "made", f"agent {number}\n")
        write_file(agent, f"made{number}", "agent\n")
        end_turn(agent)
    end(agent)
    (agent.project / "mine").write_text("mine, since\n")
    planned = agent.holdfast("rewind", "1", "--dry-run")
    assert planned.out.splitlines()[0] == "Would restore 3 files to the end of turn 1"
    assert agent.holdfast("rewind", "9").code == 1
    assert "no turn of such a session" in agent.holdfast("rewind", "1", "--session", "other").err
    done = agent.holdfast("rewind", "1", "--session", agent.session_id[:8], "--json")
    told = json.loads(done.out)
    assert (told["restored"], told["left"]) == (["made", "made2", "made3"], {})
    assert (agent.project / "made").read_text() == "agent 1\n"
    assert f"holdfast context --session {agent.session_id} --turns 1" in told["continue_with"].values()
    assert agent.holdfast(*told["undo_with"][0].split()[1:]).code == 0
    assert (agent.project / "made").read_text() == "agent 3\n"
    assert agent.holdfast("rewind", "0").code == 0
    assert [path.name for path in agent.project.glob("m*")] == ["mine"]


def test_a_turn_that_was_undone_is_not_restored_by_a_rewind(agent: AgentSession) -> None:
    start(agent)
    for number in (1, 2, 3):
        begin_turn(agent)
        write_file(agent, "made", f"turn {number}\n")
        end_turn(agent)
    assert agent.holdfast("rewind", "1").code == 0
    done = agent.holdfast("rewind", "3")
    assert (done.code, done.err) == (
        1,
        "error: turn 3 has been undone\nhint: `holdfast tx redo` redoes the last undo\n",
    )
    begin_turn(agent)
    write_file(agent, "other", "turn 4\n")
    end_turn(agent)
    done = agent.holdfast("rewind", "3")
    assert done.code == 0
    assert done.err == "still undone: turns 2, 3; `holdfast tx redo` redoes the last undo\n"
    assert (agent.project / "made").read_text() == "turn 1\n"


def test_undo_takes_the_certain_part_of_each_turn_in_turn(agent: AgentSession) -> None:
    start(agent)
    for number in (1, 2):
        begin_turn(agent)
        write_file(agent, f"made{number}", "agent\n")
        (agent.project / "mine").write_text(f"mine, {number}\n")
        end_turn(agent)
    undone = [agent.holdfast("tx", "undo") for _ in range(2)]
    assert [(one.code, one.err) for one in undone] == [(0, "")] * 2
    assert sorted(path.name for path in agent.project.iterdir()) == [".git", ".holdfast", "mine"]
    assert (agent.project / "mine").read_text() == "mine, 2\n"
    assert "--doubtful" in agent.holdfast("tx", "undo").err


def test_what_is_taken_back_in_the_middle_of_a_turn_is_judged_alike(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    write_file(agent, "made", "agent\n")
    end_turn(agent)
    begin_turn(agent)
    (agent.project / "made").write_text("agent\nand the user\n")
    assert agent.holdfast("tx", "rollback", "--yes").code == 3
    assert (agent.project / "made").read_text() == "agent\nand the user\n"


def test_what_a_tool_names_before_the_watch_began_is_the_agents(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    end_turn(agent)
    with lock_file(agent.project / ".holdfast" / "sidecar" / "holdfast.lock"):
        agent.prompt("in a large tree")
        agent.before_tool(
            tool_name="Write", tool_input={"file_path": str(agent.project / "late"), "content": "x"}
        )
    agent.wait_for(lambda: not (agent.notes / "turning").exists())
    (agent.project / "late").write_text("x\n")
    end_turn(agent)
    assert "in doubt" not in agent.holdfast("tx", "show").out
    assert agent.holdfast("tx", "undo").code == 0
    assert not (agent.project / "late").exists()


def test_a_turn_whose_first_tool_did_not_wait_says_what_is_missing(agent: AgentSession) -> None:
    start(agent)
    begin_turn(agent)
    end_turn(agent)
    with lock_file(agent.project / ".holdfast" / "sidecar" / "holdfast.lock"):
        agent.prompt("in a large tree")
        assert agent.before_tool("echo x > early").code == 0  # has waited in vain
        (agent.project / "early").write_text("x\n")
    agent.wait_for(lambda: not (agent.notes / "turning").exists())
    end_turn(agent)
    assert "not covered: what turn 2 changed before its first look" in agent.holdfast("tx", "show").out
    done = agent.holdfast("rewind", "1")  # nothing of it is recorded
    assert (done.code, done.out.splitlines()[0]) == (3, "Restored 0 files to the end of turn 1")
    assert done.err.startswith("not covered: what turn 2 changed")
    end(agent)
    assert agent.holdfast("tx", "list").out.splitlines()[1].split()[2:6] == ["committed", "0", "0", "partial"]
