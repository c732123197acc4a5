"""What a session is told at its start, as the work in the folder stands."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from holdfast.hooks.fast.context import threads_stamp
from hooks.harness import AgentSession, said
from hooks.test_sessions import holdfast, run_through
from transcripts.claude_files import answered, called

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def git(session: AgentSession, *words: str) -> None:
    subprocess.run(["git", "-C", session.project, *AUTHOR, *words], check=True, capture_output=True)


@pytest.fixture
def repository(session: AgentSession) -> AgentSession:
    git(session, "init", "-q", "-b", "main")
    git(session, "commit", "-q", "--allow-empty", "-m", "begin")
    return session


def _spoken(words: str) -> dict[str, Any]:
    line = said(words, "assistant", "m9", 5_000, "claude-sonnet-4-5")
    line["message"] |= {"stop_reason": "end_turn"}
    return line


OVER = _spoken("All is well here.")


def other(session: AgentSession, name: str) -> AgentSession:
    return AgentSession(session.project, session.home, session_id=name)


def worked_on(session: AgentSession, path: str, *, commit: bool) -> str:
    """A whole session that writes one file; the name of its snapshot."""
    session.start()
    session.prompt(f"Write the module {path} with its tests")
    session.fire("PreToolUse", tool_name="Write", tool_input={"file_path": path}, tool_use_id="t1")
    (session.project / path).write_text("x = 1\n")
    if commit:
        git(session, "add", path)
        git(session, "commit", "-q", "-m", f"Add {path}")
    done = said(f"{path} is written.", "assistant", "m1", 5_000, "claude-sonnet-4-5")
    done["message"] |= {"stop_reason": "end_turn"}
    session.write(
        said(f"Write the module {path} with its tests", "user"),
        called("t1", "Write", file_path=str(session.project / path), content="x = 1\n"),
        answered("t1", "ok"),
        done,
    )
    session.fire("SessionEnd", reason="other")
    session.wait_for(
        lambda: (session.notes / "settled").exists() and not (session.notes / "settling").exists()
    )
    return (session.notes / "settled").read_text().split("\n")[0]


def listed(session: AgentSession, *words: str) -> list[dict[str, Any]]:
    return json.loads(holdfast(session, "threads", "--json", *words))


def test_finished_work_is_one_line_and_unfinished_work_the_whole_handover(repository: AgentSession) -> None:
    done = worked_on(other(repository, "one"), "done.py", commit=True)
    stamp = (repository.state / "hooks" / "threads").read_text().split("\n")[0]
    assert stamp == threads_stamp(str(repository.project))  # the start need not make the list
    told = other(repository, "two").start().context
    assert told.count("\n") == 0
    assert told.startswith(
        "[holdfast] The last session in this folder left nothing open, as far as its record shows: "
        '"Write the module done.py'
    )
    assert done in told
    assert listed(repository) == []
    left = worked_on(other(repository, "three"), "left.py", commit=False)
    told = other(repository, "four").start().context
    assert told.startswith(f"[holdfast] Work in this folder was paused ({left})")
    (thread,) = listed(repository)
    assert (thread["id"], thread["branch"], thread["state"]) == (left, "main", "not committed: left.py")
    assert len(listed(repository, "--all")) == 2
    assert repository.errors == ""


LOOKS = {
    "what is up": [],
    "how are you": [],
    "show me the weather": [],
    "run git status": ["git status"],
    "Please tell me which files here are not committed yet": ["git status --short && git diff | head -20"],
}


@pytest.mark.some_of("request_", number=2)
@pytest.mark.parametrize("request_", LOOKS)
def test_a_session_that_only_looked_hides_no_open_work(repository: AgentSession, request_: str) -> None:
    left = worked_on(other(repository, "one"), "left.py", commit=False)
    calls = [
        line
        for command in LOOKS[request_]
        for line in (called("c1", "Bash", command=command), answered("c1", "?? left.py"))
    ]
    later = run_through(other(repository, "two"), [said(request_, "user"), *calls, OVER])
    (thread,) = listed(repository)
    assert (thread["id"], thread["snapshot_id"] != later, later in thread["sessions"]) == (left, True, True)
    start = other(repository, "three").start().context
    assert start.startswith(f"[holdfast] Work in this folder was paused ({left})")
    latest = holdfast(repository, "context", "latest")
    for told in (start, latest):
        assert "Write the module left.py" in told
        assert f'changed nothing ({later}): the user said "{request_}"' in told
    assert "not committed: left.py" in thread["state"]
    assert repository.errors == ""


@pytest.mark.parametrize("how", ["unanswered", "in flight"])
def test_a_session_that_was_cut_off_before_it_went_on_hides_no_work(
    repository: AgentSession, how: str
) -> None:
    """The API failed, or it was killed in its first look: what it was handed over still holds."""
    left = worked_on(other(repository, "one"), "left.py", commit=False)
    look = called("c1", "Read", file_path=str(repository.project / "left.py"))
    later = run_through(
        other(repository, "two"),
        [said("go on with weeks", "user"), *([look] if how == "in flight" else [])],
    )
    (thread,) = listed(repository)
    assert (thread["id"], later in thread["sessions"]) == (left, True)
    start = other(repository, "three").start().context
    assert start.startswith(f"[holdfast] Work in this folder was paused ({left})")
    for told in (start, holdfast(repository, "context", "latest")):
        assert "Write the module left.py" in told
        assert f'changed nothing ({later}): the user said "go on with weeks"' in told


@pytest.mark.some_of("words", number=3)
@pytest.mark.parametrize(
    "words", [["go on"], ["Yes, please!"], ["same again"], ["weiter"], ["ok do it", "Add weeks, too"]]
)
def test_a_session_that_was_told_to_go_on_keeps_goal_and_rules(
    repository: AgentSession, words: list[str]
) -> None:
    """It did something, so its own handover counts: that must still say what all is for."""
    one = other(repository, "one")
    left = run_through(
        one,
        [
            said("Build the date parser in parser.py. Never use regular expressions.", "user"),
            called("c1", "Write", file_path=str(repository.project / "parser.py"), content="x = 1"),
            answered("c1", "written"),
            _spoken("I still have to handle weeks. Shall I do that now?"),
        ],
    )
    two = other(repository, "two")
    prompts = [{**said(one, "user"), "uuid": f"prompt-{number}"} for number, one in enumerate(words)]
    later = run_through(two, [*prompts, called("c2", "Bash", command="pytest -q")])
    assert json.loads((two.sessions / f"{later}.json").read_text())["continues"] == left
    latest = holdfast(repository, "context", "latest")
    assert "Build the date parser in parser.py" in latest
    assert "Never use regular expressions" in latest
    assert f'"{words[0]}", in answer to "Shall I do that now?"' in latest or len(words) > 1


def test_go_on_without_a_handover_is_no_thread_of_its_own(repository: AgentSession) -> None:
    """The session before was still being saved when it began."""
    left = worked_on(other(repository, "one"), "left.py", commit=False)
    two = other(repository, "two")
    two.prompt("go on")  # it was not started, so it was told nothing
    two.write(said("go on", "user"))
    assert two.fire("SessionEnd", reason="other").code == 0
    two.wait_for((two.notes / "settled").exists)
    later = (two.notes / "settled").read_text().split("\n")[0]
    two.wait_for(lambda: any(two.sessions.glob(f"{later}.context-*.md")))
    (thread,) = listed(repository)
    assert (thread["id"], later in thread["sessions"]) == (left, True)
    assert "Write the module left.py" in holdfast(repository, "context", "latest")


def test_a_new_request_that_was_not_answered_is_not_hidden(repository: AgentSession) -> None:
    worked_on(other(repository, "one"), "left.py", commit=False)
    asked = "Delete the tests of the old parser"
    later = run_through(other(repository, "two"), [said(asked, "user")])
    assert later in [one["id"] for one in listed(repository)]
    assert asked in holdfast(repository, "context", "latest")


@pytest.mark.parametrize("how", ["found out", "announced", "decided"])
def test_a_look_with_findings_is_work_of_its_own(repository: AgentSession, how: str) -> None:
    left = worked_on(other(repository, "one"), "left.py", commit=False)
    looks = [
        line
        for number in range(6)
        for line in (
            called(f"c{number}", "Read", file_path=str(repository.project / f"m{number}.py")),
            answered(f"c{number}", "x = 1"),
        )
    ]
    lines = {
        "found out": [said("Find out why the cache is slow", "user"), *looks, OVER],
        "announced": [said("Look at it", "user"), _spoken("I still have to write the migration.")],
        "decided": [said("Never touch migrations/ again", "user"), OVER],
    }[how]
    later = run_through(other(repository, "two"), lines)
    assert later in [one["id"] for one in listed(repository, "--all")]
    assert left in [one["id"] for one in listed(repository)]
    assert (repository.sessions / "LATEST-SESSION.txt").read_text() == f"{later}\n"


def test_who_only_looked_sees_that_the_work_is_committed(repository: AgentSession) -> None:
    worked_on(other(repository, "one"), "left.py", commit=False)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Take it")
    run_through(other(repository, "two"), [said("how are you", "user"), OVER])
    assert listed(repository) == []


def test_what_the_user_commits_later_is_finished(repository: AgentSession) -> None:
    left = worked_on(other(repository, "one"), "left.py", commit=False)
    assert [one["state"] for one in listed(repository)] == ["not committed: left.py"]
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "Take it")
    assert listed(repository) == []
    told = other(repository, "two").start().context
    assert told.startswith("[holdfast] The last session in this folder left nothing open")
    assert left in told
    (repository.project / "left.py").write_text("x = 2\n")  # by the user, who goes on with it
    assert [one["state"] for one in listed(repository)] == ["not committed: left.py"]
    assert repository.errors == ""


@pytest.mark.parametrize("how", ["stashed", "removed", "on another branch", "in part", "amended"])
def test_what_became_of_uncommitted_work_is_asked_of_git(repository: AgentSession, how: str) -> None:
    (repository.project / "new").mkdir()
    (repository.project / "mine.py").write_text("x = 1\n")  # the user's
    worked_on(other(repository, "one"), "new/left.py", commit=False)
    state = [one["state"] for one in listed(repository)]
    assert state == ["not committed: new/"]
    (repository.project / "new" / "other.py").write_text("x = 1\n")
    steps = {
        "stashed": [["stash", "-u", "-q"]],
        "removed": [["clean", "-fdxq", "new"]],
        "on another branch": [
            ["checkout", "-q", "-b", "side"],
            ["add", "new"],
            ["commit", "-q", "-m", "Take it"],
            ["checkout", "-q", "main"],
        ],
        "in part": [["add", "new/other.py"], ["commit", "-q", "-m", "Only mine"]],
        "amended": [["add", "new/left.py"], ["commit", "-q", "--amend", "-m", "All of it"]],
    }[how]
    for words in steps:
        git(repository, *words)
    away = ["not committed then, and git shows no change of it now: new/"]
    expected = {"stashed": away, "removed": away, "in part": state}.get(how, [])
    assert [one["state"] for one in listed(repository)] == expected
    assert ("was paused" in other(repository, "two").start().context) == bool(expected)


def test_what_an_earlier_session_left_is_told_with_the_later_one(repository: AgentSession) -> None:
    edits = [
        called("e1", "Write", file_path=str(repository.project / "m.py"), content="x = 1\n"),
        answered("e1", "ok"),
    ]
    rest = _spoken("Half done. I still have to write the tests.")
    first = run_through(
        other(repository, "one"), [said("Implement the exporter in m.py", "user"), *edits, rest]
    )
    done = _spoken("The header is in place.")
    later = run_through(
        other(repository, "two"), [said("Add a licence header to m.py", "user"), *edits, done]
    )
    (thread,) = listed(repository)
    assert thread["id"] == later
    assert thread["state"] == 'left by an earlier session: "I still have to write the tests."'
    start = other(repository, "three").start().context
    assert start.startswith(f"[holdfast] Work in this folder was paused ({later})")
    for told in (start, holdfast(repository, "context", "latest")):
        assert f'since: "I still have to write the tests." ({first})' in told
    assert repository.errors == ""


def test_three_threads_on_two_branches(repository: AgentSession) -> None:
    on_main = [worked_on(other(repository, name), f"{name}.py", commit=False) for name in ("one", "two")]
    git(repository, "checkout", "-q", "-b", "feature")
    feature = worked_on(other(repository, "three"), "three.py", commit=False)
    told = other(repository, "four").start().context
    assert told.startswith(f"[holdfast] Work in this folder was paused ({feature})")
    assert "Also open here: 2 more" in told
    git(repository, "checkout", "-q", "main")
    told = other(repository, "five").start().context
    assert "# Handover" not in told
    assert [line.split("`")[1] for line in told.split("\n")[1:]] == [*reversed(on_main), feature]
    assert 'on "feature"' in told
    # One of them is taken up by the agent itself, and belongs to it from then on.
    five = other(repository, "five")
    five.variables["CLAUDE_CODE_SESSION_ID"] = "five"
    assert "Write the module one.py" in holdfast(five, "resume", on_main[0])
    assert (five.notes / "took-up").read_text() == on_main[0]
    assert "another session is at work on it (five)" in other(repository, "six").start().context
    holdfast(repository, "threads", "--done", on_main[1])
    assert [one["id"] for one in listed(repository)] == [feature, on_main[0]]
    assert repository.errors == ""


def test_what_was_undone_of_a_plan_is_told_by_the_next_session(repository: AgentSession) -> None:
    """The context was prepared when the first session began, and was injected as it was after a rollback."""
    lines = ("issue: {id: W, title: Work}", "tasks:", "  - {id: t1, run: 'echo one > a'}")
    failing = "  - {id: t2, run: exit 3, depends_on: [t1]}"
    (repository.project / "plan.yaml").write_text("\n".join((*lines, failing, "")))
    assert repository.holdfast("run", "plan.yaml").code == 1

    def told(name: str) -> str:
        session = other(repository, name)
        context = session.start().context
        session.fire("SessionEnd", reason="other")
        assert "t2" in context
        return context

    assert "had changed was undone" not in told("one")
    holdfast(repository, "tx", "rollback", "last", "--yes")
    assert "What completed tasks had changed was undone: t1. Restore it with `holdfast tx undo" in told("two")
    holdfast(repository, "tx", "redo")
    assert "had changed was undone" not in told("three")


def test_of_a_finished_plan_it_is_told_what_was_undone(repository: AgentSession) -> None:
    """It was told that the work is finished, whatever had been taken back of it."""
    tasks = ("tasks:", "  - {id: t1, run: 'echo one > a'}", "  - {id: t2, run: 'true', depends_on: [t1]}")
    plan = "\n".join(("issue: {id: W, title: Work}", "pause_every: 1", *tasks, ""))
    (repository.project / "plan.yaml").write_text(plan)
    for words in (("run", "plan.yaml"), ("resume",)):
        assert repository.holdfast(*words).code == 0

    def told(name: str) -> str:
        return AgentSession(repository.project, repository.home, session_id=name).start().context

    assert 'is finished: "Work" (' in told("one")
    assert repository.holdfast("tx", "rollback", "last", "--yes").code == 0
    assert 'is finished: "Work"; "what completed tasks had changed was undone: t1" (' in told("two")
    assert repository.holdfast("tx", "redo", "last").code == 0
    assert 'is finished: "Work" (' in told("three")


def test_the_work_of_another_project_is_not_shown(repository: AgentSession) -> None:
    worked_on(other(repository, "one"), "left.py", commit=False)
    folder = repository.project.parent / "elsewhere"
    folder.mkdir()
    stranger = AgentSession(folder, repository.home, session_id="stranger")
    assert stranger.start().out == ""
    assert listed(stranger) == []


def test_a_thread_that_does_not_exist_is_an_error(repository: AgentSession) -> None:
    with pytest.raises(AssertionError, match="no such thread or workflow: nothing"):
        holdfast(repository, "resume", "nothing")
